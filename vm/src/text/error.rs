//! Errors of the text form, with message, position and the marked source line.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use crate::printable::{Lines, Printable};

/// Maximum number of errors reported for one source.
pub(super) const DIAGNOSTICS_MAX: usize = 20;

/// Maximum number of bytes of the source line kept on each side of the place of an error.
const CONTEXT_BYTES: usize = 200;

/// An error at a byte range of the source.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    pub(super) span: Range<usize>,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

impl Problem {
    pub(super) fn new(span: Range<usize>, message: impl Into<String>) -> Problem {
        Problem { span, message: message.into(), help: None }
    }

    pub(super) fn with_help(mut self, help: Option<String>) -> Problem {
        self.help = help;
        self
    }
}

/// An error in a source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    line: usize,
    column: usize,
    message: String,
    help: Option<String>,
    /// The source line, or the part of a very long one around the place.
    excerpt: String,
    /// The place, as a byte range of the excerpt.
    span: Range<usize>,
}

/// A place in the source that only moves forwards, with its line and column. So problems in source order are
/// located in one pass.
struct Place<'s> {
    source: &'s str,
    pos: usize,
    line: usize,
    column: usize,
}

impl Place<'_> {
    fn advance(&mut self, to: usize) {
        let passed = &self.source[self.pos..to];
        self.line += passed.bytes().filter(|&byte| byte == b'\n').count();
        match passed.rfind('\n') {
            Some(newline) => self.column = 1 + passed[newline + 1..].chars().count(),
            None => self.column += passed.chars().count(),
        }
        self.pos = to;
    }
}

impl Diagnostic {
    /// Locates a problem in the source, which must not be before `place`.
    fn locate(place: &mut Place<'_>, problem: Problem) -> Diagnostic {
        let source = place.source;
        let start = problem.span.start.min(source.len());
        place.advance(start);
        // Text further away is not shown.
        let first = ceil_boundary(source, start.saturating_sub(CONTEXT_BYTES));
        let last = ceil_boundary(source, source.len().min(start + 2 * CONTEXT_BYTES));
        let from = source[first..start].rfind('\n').map_or(first, |newline| first + newline + 1);
        let line_end = source[start..last].find('\n').map_or(last, |length| start + length);
        let end = problem.span.end.clamp(start, line_end);
        let end = ceil_boundary(source, end.min(start + CONTEXT_BYTES));
        let to = ceil_boundary(source, line_end.min(end + CONTEXT_BYTES));
        Diagnostic {
            line: place.line,
            column: place.column,
            message: problem.message,
            help: problem.help,
            excerpt: source[from..to].trim_end_matches('\r').to_string(),
            span: start - from..end - from,
        }
    }

    /// The line, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// The column in characters, from 1.
    pub fn column(&self) -> usize {
        self.column
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// A suggested fix, if any.
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// Returns the error as a report of several lines, without colours.
    fn render(&self, path: &str) -> String {
        let length = self.excerpt.len();
        let span = self.span.start.min(length)..self.span.end.min(length);
        let shown = 1 + self.excerpt[..span.start].chars().count();
        let snippet = Snippet::source(self.excerpt.as_str())
            .line_start(self.line)
            .path(path)
            .annotation(AnnotationKind::Primary.span(span));
        // A name in a message may contain line breaks, and forge the line of the place.
        let message = Printable(&self.message).to_string();
        let mut group = Level::ERROR.primary_title(message).element(snippet);
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(Printable(help).to_string()));
        }
        let report = Renderer::plain().render(&[group]);
        if shown == self.column {
            return report;
        }
        // The excerpt starts in the middle of the line, and the renderer counts columns in it.
        let [shown, column] =
            [shown, self.column].map(|column| format!(":{}:{column}\n", self.line));
        report.replacen(&shown, &column, 1)
    }
}

/// Returns the first character boundary at or after a byte position.
fn ceil_boundary(source: &str, mut pos: usize) -> usize {
    while !source.is_char_boundary(pos) {
        pos += 1;
    }
    pos
}

/// One or more errors in a text, in text order.
///
/// Displays as a report with the offending lines, without colours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    path: String,
    /// The errors, at least one.
    diagnostics: Vec<Diagnostic>,
}

impl ParseError {
    /// Creates an error from at least one problem.
    pub(super) fn new(source: &str, mut problems: Vec<Problem>) -> ParseError {
        problems.sort_by_key(|problem| problem.span.start);
        problems.truncate(DIAGNOSTICS_MAX);
        let mut place = Place { source, pos: 0, line: 1, column: 1 };
        let locate = |problem| Diagnostic::locate(&mut place, problem);
        ParseError {
            path: "<text>".to_string(),
            diagnostics: problems.into_iter().map(locate).collect(),
        }
    }

    /// Sets the file name in the report.
    #[must_use]
    pub fn with_path(mut self, path: impl Into<String>) -> ParseError {
        self.path = path.into();
        self
    }

    /// All errors, in the order of the text; at least one.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// The line of the first error, from 1.
    pub fn line(&self) -> usize {
        self.diagnostics[0].line
    }

    /// The column of the first error in characters, from 1.
    pub fn column(&self) -> usize {
        self.diagnostics[0].column
    }

    /// The message of the first error.
    pub fn message(&self) -> &str {
        &self.diagnostics[0].message
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, diagnostic) in self.diagnostics.iter().enumerate() {
            if i > 0 {
                f.write_str("\n\n")?;
            }
            // The renderer does not escape all characters that control a terminal.
            Lines(&diagnostic.render(&self.path)).fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for ParseError {}

/// Maximum number of names compared in the search for a similar name.
const NAMES_COMPARED_MAX: usize = 10_000;
/// Maximum number of bytes of each.
const NAME_COMPARED_BYTES_MAX: usize = 40;

/// Returns a help text with the known name most similar to a misspelt one, if one is similar enough.
pub(super) fn suggest<'a>(
    misspelt: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    if misspelt.len() > NAME_COMPARED_BYTES_MAX {
        return None;
    }
    let allowed = 1 + misspelt.len() / 4;
    let nearest = known
        .into_iter()
        .take(NAMES_COMPARED_MAX)
        .filter(|name| name.len().abs_diff(misspelt.len()) <= allowed)
        .map(|name| (edit_distance(misspelt.as_bytes(), name.as_bytes()), name))
        .min()?;
    (nearest.0 <= allowed && nearest.0 < misspelt.len())
        .then(|| format!("did you mean `{}`?", nearest.1))
}

/// Levenshtein distance, computed row by row.
fn edit_distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
