//! CLIF as text for people: `@` is the offset of the bytecode, as in all other texts, and comments name locals.
//!
//! Cranelift prints the locations of instructions, which are numbers of [`Loc`]s. An instruction of an inlined function
//! has the offset of the call in the function itself; the chain of places follows as a comment.

use std::fmt::Write;

use cranelift_codegen::ir;
use slotvm_ssa::ir::Function;
use slotvm_ssa::ir::entity::Loc;

use crate::lower::hot_loop::loc_of;
use crate::lower::names::ClifNames;

/// The text of the CLIF that a function was lowered to.
pub(super) fn print(clif: &ir::Function, func: &Function, names: Option<&ClifNames>) -> String {
    let mut out = String::new();
    let mut cells = names.map_or(&[][..], |names| &names.cells);
    for line in clif.display().to_string().lines() {
        let end = out.len();
        let rest = match at(line) {
            Some((loc, prefix)) => {
                let offset = place_in(func, loc).map(|offset| format!("@{offset:04x}"));
                let offset = offset.unwrap_or_else(|| prefix.trim_end().to_owned());
                let _ = write!(out, "{offset:<width$}", width = prefix.len());
                &line[prefix.len()..]
            }
            None => line,
        };
        out.push_str(rest);
        if let Some((loc, _)) = at(line) {
            write_chain(&mut out, func, loc);
        }
        if let Some(names) = names {
            write_names(&mut out, rest, names);
        }
        out.truncate(end + out[end..].trim_end().len());
        out.push('\n');
        // The frame is described where the function begins.
        for cell in std::mem::take(&mut cells) {
            let _ = writeln!(out, "    ; {cell}");
        }
    }
    out
}

/// The location at the start of a line, and the columns before its instruction.
fn at(line: &str) -> Option<(Loc, &str)> {
    let digits = line.strip_prefix('@')?;
    let n_digits = digits.find(' ')?;
    let loc = u32::from_str_radix(&digits[..n_digits], 16).ok()?;
    let n_spaces = digits[n_digits..].find(|c| c != ' ')?;
    Some((loc_of(loc), &line[..1 + n_digits + n_spaces]))
}

/// The code offset in the function itself of a location.
fn place_in(func: &Function, loc: Loc) -> Option<u32> {
    let mut at = func.locs.get(loc.index())?;
    while let Some(outer) = at.inlined_at {
        at = func.locs.get(outer.index())?;
    }
    Some(at.offset)
}

/// Writes the chain of places of an inlined instruction, as the text of our IR has it.
fn write_chain(out: &mut String, func: &Function, loc: Loc) {
    let Some(mut at) = func.locs.get(loc.index()).filter(|at| at.inlined_at.is_some()) else {
        return;
    };
    out.push_str("  ; ");
    loop {
        if at.func != func.func {
            let _ = write!(out, "f{}", at.func);
        }
        let _ = write!(out, "@{:04x}", at.offset);
        match at.inlined_at.and_then(|outer| func.locs.get(outer.index())) {
            Some(outer) => at = outer,
            None => return,
        }
        out.push_str(" < ");
    }
}

/// Writes the names of the values that a line defines: of a block's parameters or of an instruction's results.
fn write_names(out: &mut String, line: &str, names: &ClifNames) {
    let line = line.trim_start();
    let defined = match line.strip_prefix("block") {
        Some(_) => line.split_once('(').and_then(|(_, params)| params.split_once(')')),
        None => line.split_once(" = ").filter(|_| line.starts_with('v')),
    };
    let Some((defined, _)) = defined else { return };
    let name = |value: &str| {
        let (value, _) = value.trim().split_once(':').unwrap_or((value.trim(), ""));
        let number = value.strip_prefix('v')?.parse().ok()?;
        Some(format!("{value} is {}", names.values.get(&ir::Value::from_u32(number))?))
    };
    let texts: Vec<String> = defined.split(',').filter_map(name).collect();
    if !texts.is_empty() {
        let _ = write!(out, "  ; {}", texts.join(", "));
    }
}
