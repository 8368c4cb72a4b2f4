//! Chapters of the guide: their blocks of code, links and headings.

use std::fs;
use std::path::PathBuf;

use crate::binary::root;

/// The folder with the chapters.
pub(super) fn source() -> PathBuf {
    root().join("docs/guide/src")
}

/// A chapter.
pub(super) struct Chapter {
    pub(super) name: String,
    lines: Vec<String>,
}

/// A command, and the output that stands below it.
pub(super) struct Command {
    pub(super) line: String,
    pub(super) output: Option<String>,
}

/// A block of code.
struct Block {
    language: String,
    text: String,
    /// The numbers of the lines of its fences.
    fences: (usize, usize),
}

/// All chapters, in the order of their names.
pub(super) fn chapters() -> Vec<Chapter> {
    let paths = super::files(&source());
    let names = paths.iter().filter(|path| path.is_file());
    names
        .map(|path| Chapter::read(&path.file_name().expect("it has one").to_string_lossy()))
        .collect()
}

impl Chapter {
    pub(super) fn read(name: &str) -> Chapter {
        let text = fs::read_to_string(source().join(name)).expect("the chapter is there");
        Chapter { name: name.to_owned(), lines: text.lines().map(str::to_owned).collect() }
    }

    fn code(&self) -> Vec<Block> {
        let mut blocks: Vec<Block> = vec![];
        let mut open: Option<Block> = None;
        for (number, line) in self.lines.iter().enumerate() {
            match (&mut open, line.trim_start().strip_prefix("```")) {
                (None, Some(language)) => {
                    let language = language.trim().to_owned();
                    open = Some(Block { language, text: String::new(), fences: (number, 0) });
                }
                (Some(block), Some(_)) => {
                    block.fences.1 = number;
                    blocks.extend(open.take());
                }
                (Some(block), None) => block.text += &format!("{line}\n"),
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "{}: a block of code has no end", self.name);
        blocks
    }

    /// The texts of the blocks of a language.
    pub(super) fn blocks(&self, language: &str) -> Vec<String> {
        let blocks = self.code().into_iter();
        blocks.filter(|block| block.language == language).map(|block| block.text).collect()
    }

    /// The commands of `sh` blocks. A `text` block right below is the output of the last one before it.
    pub(super) fn commands(&self) -> Vec<Command> {
        let blocks = self.code();
        let mut commands = vec![];
        for (i, block) in blocks.iter().enumerate().filter(|(_, block)| block.language == "sh") {
            let lines = block
                .text
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty() && !line.starts_with('#'));
            commands.extend(lines.map(|line| Command { line: line.to_owned(), output: None }));
            let output = blocks.get(i + 1).filter(|next| {
                let between = &self.lines[block.fences.1 + 1..next.fences.0];
                next.language == "text" && between.iter().all(|line| line.is_empty())
            });
            let last = commands.last_mut().expect("a block has a command");
            last.output = output.map(|output| output.text.clone());
        }
        commands
    }

    /// The text outside of blocks of code.
    fn prose(&self) -> String {
        let blocks = self.code();
        let in_code = |number: usize| {
            blocks.iter().any(|block| (block.fences.0..=block.fences.1).contains(&number))
        };
        let prose = self.lines.iter().enumerate().filter(|(number, _)| !in_code(*number));
        prose.map(|(_, line)| format!("{line}\n")).collect()
    }

    /// The code in the text, between single backticks.
    pub(super) fn code_words(&self) -> impl Iterator<Item = String> {
        let prose = self.prose();
        let words: Vec<String> = prose.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        words.into_iter()
    }

    /// The targets of links outside of code, and whether they are pictures.
    pub(super) fn links(&self) -> Vec<(String, bool)> {
        let text = self.prose();
        let mut links = vec![];
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split(')').next().expect("a split has a part");
            let start = text[..at].rfind('[').expect("the text of a link has a start");
            links.push((target.to_owned(), text[..start].ends_with('!')));
        }
        links
    }
}

/// The anchors of the headings of a text, as GitHub and mdBook make them.
pub(crate) fn heading_anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |line: &str| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}
