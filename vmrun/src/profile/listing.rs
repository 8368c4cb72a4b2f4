//! Counts beside the text of a function.

use std::collections::HashMap;
use std::fmt::Write as _;

use slotvm::compiler::FunctionCounts;

use super::{CallProfile, FunctionProfile};

/// The columns in front of each line: count and share.
pub(super) const MARGIN: &str = "                     ";

/// The maximum number of functions that the report names for an indirect call, the most frequent ones: as many as code
/// compares it with.
const SHOWN_CALLEES_MAX: usize = 2;

/// The text of a function's bytecode, with the code offset of each instruction after `; @`. The first instruction of a
/// block is preceded by how often the block was executed, and its share of `total`, the instructions that the program
/// executed. An indirect call is followed by the functions that it has called.
pub fn bytecode(
    text: &str,
    function: &FunctionProfile,
    total: u64,
    name: impl Fn(u32) -> String,
) -> String {
    let blocks: HashMap<u32, _> =
        function.blocks.iter().map(|block| (block.offset, block)).collect();
    let calls: HashMap<u32, _> = function.calls.iter().map(|call| (call.offset, call)).collect();
    let mut listing = String::new();
    for line in text.lines() {
        let offset = offset_of(line);
        let block = offset.and_then(|offset| blocks.get(&offset));
        let figures = block.map(|block| figures(block.count, block.instructions, total));
        let margin = figures.as_deref().unwrap_or(MARGIN);
        let call = offset.and_then(|offset| calls.get(&offset));
        let callees = call.map_or(String::new(), |call| callees(call, &name));
        push_line(&mut listing, &format!("{margin}{line}{callees}"));
    }
    listing
}

/// The code offset at the end of a line.
fn offset_of(line: &str) -> Option<u32> {
    let (_, offset) = line.rsplit_once("; @")?;
    u32::from_str_radix(offset.trim(), 16).ok()
}

/// The functions that a call has called, with the number of calls: ` calls first 900, second 100, others 2`.
fn callees(call: &CallProfile, name: impl Fn(u32) -> String) -> String {
    let (shown, left_out) = call.callees.split_at(call.callees.len().min(SHOWN_CALLEES_MAX));
    let mut parts: Vec<String> =
        shown.iter().map(|callee| format!("{} {}", name(callee.func), callee.count)).collect();
    let n_others = call.n_others() + left_out.iter().map(|callee| callee.count).sum::<u64>();
    if n_others > 0 {
        parts.push(format!("others {n_others}"));
    }
    format!(" calls {}", parts.join(", "))
}

/// The text of a function in the form that was lowered, whose blocks begin with `b` or `block`, a number, and `(` or `:`.
/// A block is preceded by how often it was executed, and its share: its instructions, which are its lines, times its
/// executions, of those of all functions.
pub fn blocks(text: &str, counts: &FunctionCounts, total: u64) -> String {
    let mut lines = block_lines(text).into_iter();
    with_margins(text, |line| {
        block_of(line)?;
        let (block, n_lines) = lines.next()?;
        let count = count(counts, block);
        Some(figures(count, count * n_lines, total))
    })
}

/// The executed instructions of a function in such a form.
pub fn executed(text: &str, counts: &FunctionCounts) -> u64 {
    block_lines(text).into_iter().map(|(block, n_lines)| n_lines * count(counts, block)).sum()
}

/// The executions of a block. Blocks that only the back end has, such as those that trap, have no counter.
pub(super) fn count(counts: &FunctionCounts, block: u32) -> u64 {
    counts.blocks.get(block as usize).map_or(0, |block| block.count)
}

/// The blocks in the order of the text, and the number of lines in each.
fn block_lines(text: &str) -> Vec<(u32, u64)> {
    let mut blocks: Vec<(u32, u64)> = Vec::new();
    for line in text.lines() {
        match (block_of(line), blocks.last_mut()) {
            (Some(block), _) => blocks.push((block, 0)),
            (None, Some((_, n_lines))) if !["", "}"].contains(&line.trim()) => *n_lines += 1,
            (None, _) => {}
        }
    }
    blocks
}

/// The number of the block that a line begins.
pub(super) fn block_of(line: &str) -> Option<u32> {
    let line = line.trim_start();
    let number = line.strip_prefix("block").or_else(|| line.strip_prefix('b'))?;
    let end = number.find(['(', ':', ' '])?;
    number[..end].parse().ok().filter(|_| !number[end..].starts_with(' '))
}

fn figures(count: u64, executed: u64, total: u64) -> String {
    let share = executed as f64 / total.max(1) as f64 * 100.0;
    format!("{count:>12} {share:>5.1}%  ")
}

fn with_margins(text: &str, mut margin: impl FnMut(&str) -> Option<String>) -> String {
    let mut listing = String::new();
    for line in text.lines() {
        let margin = margin(line).unwrap_or_else(|| MARGIN.to_owned());
        push_line(&mut listing, &format!("{margin}{line}"));
    }
    listing
}

fn push_line(listing: &mut String, line: &str) {
    writeln!(listing, "{}", line.trim_end()).expect("a string takes it");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_begin_blocks_are_known() {
        for (line, block) in [
            ("b0:                                     ; @0000", Some(0)),
            ("b12(v2: i64, v3: i64):                   ; label next @0006", Some(12)),
            ("                                block3(v0: i64):", Some(3)),
            ("  br b1(v1, v1)                         ; @0004", None),
            ("  v4 = i64.add v2, v3", None),
            ("}", None),
        ] {
            assert_eq!(block_of(line), block, "{line}");
        }
        let text = "func f0 f() {\nb0:\n  v0 = i32.const 1\n  br b1\nb1:\n  return\n}\n";
        assert_eq!(block_lines(text), [(0, 2), (1, 1)]);
    }
}
