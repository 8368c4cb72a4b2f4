//! Graphs with slot accesses as text, to be measured from files.
//!
//! ```text
//! function NAME
//! slots 3
//! block 0 -> 1 2
//!   w 0        a write of slot 0, of a new value
//!   r 1        a read of slot 1
//!   w 2 r0     a write of slot 2, of what read 0 gave
//! block 1 -> 2
//! block 2
//! ```
//!
//! A file holds any number of functions. Blocks are numbered from 0 in the order of the text; block 0
//! is the entry, and no edge goes to it. A block may go to another one more than once. The reads of a
//! function are numbered from 0 in the order of the text. `#` starts a comment.

use slotvm_ssa::graphs::cfg::Cfg;
use std::fmt::Write;

use crate::slot_graph::{Access, SlotGraph, Written};

/// The slots that a function may have.
pub const SLOTS_MAX: u32 = 10_000_000;

/// Error of a text that does not describe graphs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {rule}")]
pub struct GraphTextError {
    /// The line, from 1.
    pub line: usize,
    /// The rule that it breaks.
    pub rule: String,
}

/// Reads the functions of a text.
///
/// # Errors
/// Fails if it is not of this format, or a function breaks a rule of it.
pub fn parse(text: &str) -> Result<Vec<SlotGraph>, GraphTextError> {
    let mut graphs = Vec::new();
    let mut open: Option<Reader<'_>> = None;
    let mut n_lines = 0;
    for (i, line) in text.lines().enumerate() {
        n_lines = i + 1;
        let code = line.split('#').next().unwrap_or_default();
        let mut words = Words { words: code.split_whitespace(), line: n_lines };
        let Some(keyword) = words.words.next() else { continue };
        if keyword == "function" {
            if let Some(reader) = open.take() {
                graphs.push(reader.finish()?);
            }
            let name = words.next("expected the name of the function")?;
            open = Some(Reader::new(name, n_lines));
        } else {
            let Some(reader) = &mut open else { return words.error("expected `function NAME`") };
            reader.line(keyword, &mut words)?;
        }
        words.end()?;
    }
    match open {
        Some(reader) => graphs.push(reader.finish()?),
        None if graphs.is_empty() => {
            return Err(GraphTextError { line: n_lines, rule: "expected a function".to_owned() });
        }
        None => {}
    }
    Ok(graphs)
}

/// The words of a line.
struct Words<'t> {
    words: std::str::SplitWhitespace<'t>,
    line: usize,
}

impl<'t> Words<'t> {
    fn error<T>(&self, rule: impl Into<String>) -> Result<T, GraphTextError> {
        Err(GraphTextError { line: self.line, rule: rule.into() })
    }

    fn next(&mut self, rule: &str) -> Result<&'t str, GraphTextError> {
        self.words.next().map_or_else(|| self.error(rule), Ok)
    }

    fn number(&self, word: &str, what: &str) -> Result<u32, GraphTextError> {
        word.parse().or_else(|_| self.error(format!("`{word}` is not the number of {what}")))
    }

    fn end(&mut self) -> Result<(), GraphTextError> {
        match self.words.next() {
            Some(word) => self.error(format!("expected nothing more, not `{word}`")),
            None => Ok(()),
        }
    }
}

/// A function being read.
struct Reader<'t> {
    name: &'t str,
    /// The line that it starts at.
    line: usize,
    n_slots: Option<u32>,
    succs: Vec<Vec<u32>>,
    /// The line of each block, for errors about its targets.
    block_lines: Vec<usize>,
    accesses: Vec<Vec<Access>>,
    /// The lines of all accesses.
    access_lines: Vec<usize>,
}

impl<'t> Reader<'t> {
    fn new(name: &'t str, line: usize) -> Reader<'t> {
        Reader {
            name,
            line,
            n_slots: None,
            succs: Vec::new(),
            block_lines: Vec::new(),
            accesses: Vec::new(),
            access_lines: Vec::new(),
        }
    }

    fn line(&mut self, keyword: &str, words: &mut Words<'t>) -> Result<(), GraphTextError> {
        let Some(n_slots) = self.n_slots else {
            if keyword != "slots" {
                return words.error("expected `slots N` after the name of the function");
            }
            let word = words.next("expected the number of slots")?;
            let n_slots = words.number(word, "slots")?;
            if n_slots > SLOTS_MAX {
                return words.error(format!("a function has at most {SLOTS_MAX} slots"));
            }
            self.n_slots = Some(n_slots);
            return Ok(());
        };
        match keyword {
            "block" => self.block(words),
            "r" | "w" => {
                let slot = words.next("expected a slot")?;
                let slot = words.number(slot, "a slot")?;
                if slot >= n_slots {
                    return words.error(format!("the slots are numbered below {n_slots}"));
                }
                let access = match keyword {
                    "r" => Access::Read { slot },
                    _ => Access::Write { slot, value: written(words)? },
                };
                let Some(list) = self.accesses.last_mut() else {
                    return words.error("expected `block 0` before the first access");
                };
                list.push(access);
                self.access_lines.push(words.line);
                Ok(())
            }
            _ => words.error(format!("expected `block`, `r`, `w` or `function`, not `{keyword}`")),
        }
    }

    fn block(&mut self, words: &mut Words<'t>) -> Result<(), GraphTextError> {
        let next = self.succs.len();
        let number = words.next("expected the number of the block")?;
        if words.number(number, "a block")? as usize != next {
            return words.error(format!("expected block {next}: blocks are in order"));
        }
        let mut succs = Vec::new();
        if let Some(arrow) = words.words.next() {
            if arrow != "->" {
                return words.error(format!("expected `->`, not `{arrow}`"));
            }
            while let Some(target) = words.words.next() {
                succs.push(words.number(target, "a block")?);
            }
        }
        self.succs.push(succs);
        self.block_lines.push(words.line);
        self.accesses.push(Vec::new());
        Ok(())
    }

    /// Checks what can only be said at the end.
    fn finish(self) -> Result<SlotGraph, GraphTextError> {
        let n_blocks = self.succs.len();
        let at = |line, rule: String| Err(GraphTextError { line, rule });
        let (Some(n_slots), 1..) = (self.n_slots, n_blocks) else {
            return at(self.line, format!("the function {} has no block", self.name));
        };
        for (targets, &line) in self.succs.iter().zip(&self.block_lines) {
            if let Some(target) = targets.iter().find(|&&target| target as usize >= n_blocks) {
                return at(line, format!("unknown block {target}"));
            }
            if targets.contains(&0) {
                return at(line, "no edge goes to the entry, block 0".to_owned());
            }
        }
        let cfg = Cfg::new(0, self.succs);
        let graph = SlotGraph::new(self.name.to_owned(), n_slots, cfg, self.accesses);
        match graph.undominated_write() {
            Some(place) => at(
                self.access_lines[place],
                "a read whose value is written dominates the write".to_owned(),
            ),
            None => Ok(graph),
        }
    }
}

/// Parses the value of a write: a read such as `r0`, or nothing for a new value.
fn written(words: &mut Words<'_>) -> Result<Written, GraphTextError> {
    let Some(word) = words.words.next() else { return Ok(Written::New) };
    match word.strip_prefix('r') {
        Some(number) => Ok(Written::Read(words.number(number, "a read")?)),
        None => words.error(format!("expected a read such as `r0`, not `{word}`")),
    }
}

/// Writes a function.
pub fn write(graph: &SlotGraph) -> String {
    use slotvm_ssa::graphs::cfg::ControlFlow;
    let mut text = format!("function {}\nslots {}\n", graph.name, graph.n_slots);
    let mut line = |args: std::fmt::Arguments<'_>| {
        text.write_fmt(args).expect("a string takes any text");
    };
    for block in 0..graph.n_blocks() as u32 {
        line(format_args!("block {block}"));
        let succs = graph.cfg.succs(block);
        if !succs.is_empty() {
            line(format_args!(" ->"));
        }
        for succ in succs {
            line(format_args!(" {succ}"));
        }
        line(format_args!("\n"));
        for access in graph.accesses(block) {
            match access {
                Access::Read { slot } => line(format_args!("  r {slot}\n")),
                Access::Write { slot, value: Written::New } => line(format_args!("  w {slot}\n")),
                Access::Write { slot, value: Written::Read(read) } => {
                    line(format_args!("  w {slot} r{read}\n"));
                }
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
function first
slots 3
block 0 -> 1 2
  w 0
  r 1
  w 2 r0
block 1 -> 2 2
block 2
  r 0
function second
slots 0
block 0
";

    #[test]
    fn what_is_written_is_read_back() {
        let graphs = parse(TEXT).unwrap();
        assert_eq!(graphs.iter().map(write).collect::<String>(), TEXT);
        assert_eq!((graphs[0].n_blocks(), graphs[0].n_reads(), graphs[1].n_slots), (3, 2, 0));
    }

    #[test]
    fn comments_and_spaces_do_not_matter() {
        let graphs = parse("# a file\n\nfunction f # it\nslots 1\n block 0->\n").unwrap_err();
        assert_eq!(graphs.to_string(), "line 5: `0->` is not the number of a block");
        let graphs =
            parse("# a file\n\nfunction f # it\nslots 1\n block 0 ->\nr 0 # r0\n").unwrap();
        assert_eq!(write(&graphs[0]), "function f\nslots 1\nblock 0\n  r 0\n");
    }

    #[test]
    fn errors_name_the_line_and_the_rule() {
        for (text, error) in [
            ("", "line 0: expected a function"),
            ("slots 1", "line 1: expected `function NAME`"),
            ("function", "line 1: expected the name of the function"),
            ("function a b", "line 1: expected nothing more, not `b`"),
            ("function a\nblock 0", "line 2: expected `slots N` after the name of the function"),
            ("function a\nslots 99999999", "line 2: a function has at most 10000000 slots"),
            ("function a\nslots 1", "line 1: the function a has no block"),
            ("function a\nslots 1\nr 0", "line 3: expected `block 0` before the first access"),
            ("function a\nslots 1\nblock 1", "line 3: expected block 0: blocks are in order"),
            ("function a\nslots 1\nblock 0 1", "line 3: expected `->`, not `1`"),
            ("function a\nslots 1\nblock 0 -> 1", "line 3: unknown block 1"),
            ("function a\nslots 1\nblock 0 -> 0", "line 3: no edge goes to the entry, block 0"),
            ("function a\nslots 1\nblock 0\nr 1", "line 4: the slots are numbered below 1"),
            ("function a\nslots 1\nblock 0\nr", "line 4: expected a slot"),
            (
                "function a\nslots 1\nblock 0\nw 0 0",
                "line 4: expected a read such as `r0`, not `0`",
            ),
            (
                "function a\nslots 1\nblock 0\nx 0",
                "line 4: expected `block`, `r`, `w` or `function`, not `x`",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), error, "{text}");
        }
    }

    #[test]
    fn a_written_read_dominates_the_write() {
        let of = |accesses: &str| {
            parse(&format!("function a\nslots 1\n{accesses}")).map_err(|error| error.line)
        };
        assert!(of("block 0 -> 1\nr 0\nblock 1\nw 0 r0").is_ok());
        assert!(of("block 0 -> 2\nblock 1\nw 0 r0\nblock 2 -> 1\nr 0").is_ok());
        assert_eq!(of("block 0\nw 0 r0\nr 0").unwrap_err(), 4);
        assert_eq!(of("block 0\nw 0 r0").unwrap_err(), 4);
        assert_eq!(of("block 0 -> 1 2\nblock 1 -> 2\nr 0\nblock 2\nw 0 r0").unwrap_err(), 7);
    }

    #[test]
    fn numbering_keeps_what_is_reachable() {
        let text = "\
function f
slots 2
block 0 -> 3
  r 0
block 1 -> 3
  r 1
block 2
  w 1 r2
block 3 -> 2
  r 1
";
        let numbered = parse(text).unwrap()[0].numbered();
        let expected = "\
function f
slots 2
block 0 -> 1
  r 0
block 1 -> 2
  r 1
block 2
  w 1 r1
";
        assert_eq!(write(&numbered), expected);
    }
}
