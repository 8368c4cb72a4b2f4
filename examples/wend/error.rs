//! Errors in programs, with the place and an excerpt of the source.

use std::fmt;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use crate::syntax::Span;

/// An error in a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// The message.
    pub message: String,
    /// The place, in bytes of the source.
    pub span: Span,
    /// Further places: each with a note.
    pub notes: Vec<(Span, String)>,
    /// A suggested fix, if any.
    pub help: Option<String>,
}

impl CompileError {
    pub(crate) fn new(span: &Span, message: impl Into<String>) -> CompileError {
        CompileError { message: message.into(), span: span.clone(), notes: Vec::new(), help: None }
    }

    pub(crate) fn with_note(mut self, span: &Span, note: &str) -> CompileError {
        self.notes.push((span.clone(), note.to_owned()));
        self
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> CompileError {
        self.help = Some(help.into());
        self
    }

    /// The line and the column of the place, from 1. Columns count characters.
    pub fn position(&self, source: &str) -> (usize, usize) {
        let before = &source[..self.span.start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (1 + before.matches('\n').count(), 1 + before[line_start..].chars().count())
    }

    /// A report of several lines, with an excerpt of the source. `path` is the name of the file.
    pub fn render(&self, path: &str, source: &str) -> String {
        let primary = AnnotationKind::Primary.span(self.span.clone());
        let mut snippet = Snippet::source(source).path(path).annotation(primary);
        for (span, note) in &self.notes {
            snippet =
                snippet.annotation(AnnotationKind::Context.span(span.clone()).label(note.as_str()));
        }
        let mut group = Level::ERROR.primary_title(self.message.as_str()).element(snippet);
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        Renderer::plain().render(&[group])
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CompileError {}
