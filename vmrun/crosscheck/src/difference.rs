//! The description of a difference between two engines at a point.

use std::fmt::{Debug, Write as _};

use slotvm_bytecode::VerifiedModule;
use slotvm_bytecode::module::PAGE_BYTES;

use super::points::{Detail, End, Event};

/// Differing globals and table elements that are listed.
const LISTED_MAX: usize = 4;
/// Frames of a backtrace that are listed.
const FRAMES_MAX: usize = 8;
/// Bytes that are shown where memories differ.
const SHOWN_BYTES: usize = 16;

/// A description of the event at a point.
pub(super) fn event(event: &Event, module: &VerifiedModule) -> String {
    match event {
        Event::Call { import, params } => format!("calls {import} with {params:?}"),
        Event::End { of, end: End::Returned(results) } => format!("{of} returns {results:?}"),
        Event::End { of, end: End::Failed(message) } => format!("{of} fails: {message}"),
        Event::End { of, end: End::Trapped { message, frames, n_omitted, .. } } => {
            let mut text = format!("{of} traps: {message}");
            for &(func, offset) in frames.iter().take(FRAMES_MAX) {
                let name = module.func_name(func);
                write!(text, ", at {name} (function {func}) @{offset:04x}")
                    .expect("it is a string");
            }
            let n_more = frames.len().saturating_sub(FRAMES_MAX) as u64 + n_omitted;
            if n_more > 0 {
                write!(text, ", and {n_more} more frames").expect("it is a string");
            }
            text
        }
    }
}

/// The differences between a point in the interpreter and in native code, a line for each.
pub(super) fn lines(expected: &Detail, found: &Detail, module: &VerifiedModule) -> Vec<String> {
    let mut lines = Vec::new();
    if expected.event != found.event {
        lines.push(format!("interpreter: {}", event(&expected.event, module)));
        lines.push(format!("native code: {}", event(&found.event, module)));
    }
    if expected.fuel != found.fuel {
        let fuel = |fuel: Option<u64>| fuel.map_or("none".to_owned(), |fuel| fuel.to_string());
        lines.push(format!("fuel left: {} instead of {}", fuel(found.fuel), fuel(expected.fuel)));
    }
    list(&mut lines, "global", &expected.globals, &found.globals);
    for (i, (a, b)) in expected.tables.iter().zip(&found.tables).enumerate() {
        if a.len() != b.len() {
            lines.push(format!("table {i}: {} elements instead of {}", b.len(), a.len()));
        }
        list(&mut lines, &format!("table {i}, element"), a, b);
    }
    memory(&mut lines, &expected.memory, &found.memory);
    if lines.is_empty() {
        // A hash has differed, so this is a fault of the comparison.
        lines.push("only hashes differ".to_owned());
    }
    lines
}

fn list<T: PartialEq + Debug>(lines: &mut Vec<String>, what: &str, a: &[T], b: &[T]) {
    let differing = || a.iter().zip(b).enumerate().filter(|(_, (a, b))| a != b);
    for (i, (a, b)) in differing().take(LISTED_MAX) {
        lines.push(format!("{what} {i}: {b:?} instead of {a:?}"));
    }
    let n = differing().count();
    if n > LISTED_MAX {
        lines.push(format!("{what}: {} more differ", n - LISTED_MAX));
    }
}

fn memory(lines: &mut Vec<String>, a: &[u8], b: &[u8]) {
    if a.len() != b.len() {
        lines.push(format!("memory: {} bytes instead of {}", b.len(), a.len()));
    }
    let pages = a.chunks(PAGE_BYTES as usize).zip(b.chunks(PAGE_BYTES as usize)).enumerate();
    let differing: Vec<usize> = pages.filter(|(_, (a, b))| a != b).map(|(i, _)| i).collect();
    let Some(&first) = differing.first() else { return };
    let start = first * PAGE_BYTES as usize;
    let at = a[start..].iter().zip(&b[start..]).position(|(a, b)| a != b);
    let at = start + at.expect("the page differs");
    let shown = |bytes: &[u8]| {
        let end = bytes.len().min(at + SHOWN_BYTES);
        bytes[at..end].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
    };
    lines.push(format!(
        "memory: {} pages differ, first at address {at:#x} (page {first})",
        differing.len()
    ));
    lines.push(format!("  interpreter: {}", shown(a)));
    lines.push(format!("  native code: {}", shown(b)));
}

#[cfg(test)]
mod tests {
    use super::super::points::Cell;
    use super::*;

    fn detail(event: Event) -> Detail {
        Detail {
            event,
            globals: vec![Cell(1)],
            tables: vec![vec![0]],
            fuel: None,
            memory: vec![0; 70_000],
        }
    }

    fn module() -> VerifiedModule {
        let text = "func f() { return }";
        slotvm_bytecode::verify(slotvm_bytecode::text::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn each_difference_has_a_line() {
        let call = |param| Event::Call { import: "env print".into(), params: vec![Cell(param)] };
        let expected = detail(call(1));
        let mut found = detail(call(2));
        found.globals[0] = Cell(7);
        found.tables[0][0] = 3;
        found.memory[66_000] = 9;
        found.fuel = Some(3);
        let lines = lines(&expected, &found, &module());
        let text = lines.join("\n");
        for part in [
            "interpreter: calls env print with [0x1]",
            "native code: calls env print with [0x2]",
            "fuel left: 3 instead of none",
            "global 0: 0x7 instead of 0x1",
            "table 0, element 0: 3 instead of 0",
            "memory: 1 pages differ, first at address 0x101d0 (page 1)",
            "  native code: 09 00",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn traps_are_shown_with_their_places() {
        let end = End::Trapped {
            message: "unreachable".into(),
            code: 1,
            frames: vec![(0, 16)],
            n_omitted: 2,
        };
        let text = event(&Event::End { of: "main".into(), end }, &module());
        assert_eq!(text, "main traps: unreachable, at f (function 0) @0010, and 2 more frames");
    }
}
