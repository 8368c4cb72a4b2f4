//! The document as text: all stages in full, or one instruction through all stages.

use std::fmt::{Arguments, Write};

use slotvm_bytecode::printable::Printable;

use super::document::{
    BytecodeLine, CodeLine, Document, Exit, Line, NativeLine, Stage, StageBlock,
};
use crate::ViewError;

/// All stages.
pub fn text(document: &Document) -> String {
    let mut out = String::new();
    head(&mut out, document);
    title(&mut out, "bytecode", "with the operand stack before each instruction");
    for line in &document.bytecode {
        if let Some(label) = &line.label {
            push_line(&mut out, format_args!("{label}:"));
        }
        bytecode_line(&mut out, line);
    }
    exits(&mut out, document);
    for (stage, blocks) in in_full(document) {
        title(
            &mut out,
            &stage.name,
            if stage.changed { &stage.summary } else { "changed nothing" },
        );
        for block in blocks.iter().filter(|_| stage.changed) {
            let params: Vec<String> = block.params.iter().map(|&v| value(document, v)).collect();
            let params =
                if params.is_empty() { String::new() } else { format!("({})", params.join(", ")) };
            push_line(&mut out, format_args!("b{}{params}:", block.id));
            block.lines.iter().for_each(|line| ir_line(&mut out, document, "", line));
        }
    }
    for other in &document.comparisons {
        title(&mut out, &format!("compare: {}", other.name), &other.summary);
        other.lines.iter().for_each(|line| code_line(&mut out, document, line));
    }
    title(&mut out, "clif", "Cranelift's IR");
    document.clif.iter().for_each(|line| code_line(&mut out, document, line));
    title(&mut out, "native", &document.function.target);
    document.native.iter().for_each(|line| native_line(&mut out, document, line));
    ledger(&mut out, document);
    out
}

/// One instruction of the bytecode through all stages.
///
/// # Errors
/// Fails if no instruction starts at the offset.
pub fn at(document: &Document, offset: u32) -> Result<String, ViewError> {
    let Some(instruction) = document.bytecode.iter().find(|line| line.offset == offset) else {
        let last = document.bytecode.last().map_or(0, |line| line.offset);
        return Err(ViewError::NotThere(format!(
            "no instruction starts at @{offset:04x}; the code goes from @0000 to @{last:04x}"
        )));
    };
    let mut out = String::new();
    head(&mut out, document);
    title(&mut out, "bytecode", "");
    bytecode_line(&mut out, instruction);
    let is_of = |at: u32| root(document, at) == offset;
    for (stage, blocks) in in_full(document).filter(|(stage, _)| stage.changed) {
        title(&mut out, &stage.name, &stage.summary);
        let mut is_gone = true;
        for block in &blocks {
            for line in block.lines.iter().filter(|line| is_of(line.at)) {
                ir_line(&mut out, document, &format!("b{:<4}", block.id), line);
                is_gone = false;
            }
        }
        if is_gone {
            out.push_str("  nothing is left of it\n");
        }
    }
    title(&mut out, "clif", "Cranelift's IR");
    for line in document.clif.iter().filter(|line| line.at.is_some_and(is_of)) {
        code_line(&mut out, document, line);
    }
    title(&mut out, "native", &document.function.target);
    for line in document.native.iter().filter(|line| line.at.is_some_and(is_of)) {
        native_line(&mut out, document, line);
    }
    Ok(out)
}

fn bytecode_line(out: &mut String, line: &BytecodeLine) {
    let stack = line.stack.join(" ");
    let mark = if line.left_out { "  left out" } else { "" };
    push_line(out, format_args!("  @{:04x}  {:<32} [{stack}]{mark}", line.offset, line.text));
}

/// The exits, if there are any.
fn exits(out: &mut String, document: &Document) {
    if document.exits.is_empty() {
        return;
    }
    title(out, "exits", "where the code leaves for the interpreter");
    for Exit { offset, kind, callees } in &document.exits {
        let name = |callee: &u32| {
            let of_callee = document.functions.iter().find(|(func, _)| func == callee);
            format!("f{callee} {}", of_callee.map_or("", |(_, name)| name))
        };
        let callees: Vec<String> = callees.iter().map(name).collect();
        match *kind {
            "call" => {
                let callees = callees.join(" and ");
                push_line(
                    out,
                    format_args!("  @{offset:04x}  after calls of functions other than {callees}"),
                );
            }
            _ => push_line(out, format_args!("  @{offset:04x}  in the place of the block")),
        }
    }
}

/// Adds a line. Names in it come from the module, and what would control a terminal is escaped.
fn push_line(out: &mut String, line: Arguments<'_>) {
    writeln!(out, "{}", Printable(&line.to_string())).expect("writing to a string succeeds");
}

fn head(out: &mut String, document: &Document) {
    let function = &document.function;
    let (index, program) = (function.index, &document.program);
    push_line(out, format_args!("func f{index} {} of {program}", function.name));
    if !function.effort.is_empty() {
        push_line(out, format_args!("{}", function.effort));
    }
}

fn title(out: &mut String, name: &str, summary: &str) {
    let colon = if summary.is_empty() { "" } else { ": " };
    out.push('\n');
    push_line(out, format_args!("=== {name}{colon}{summary}"));
}

/// The stages with all their blocks: those that a stage leaves alone are those of the stage before.
fn in_full(document: &Document) -> impl Iterator<Item = (&Stage, Vec<&StageBlock>)> {
    let mut before = std::collections::BTreeMap::new();
    document.stages.iter().map(move |stage| {
        let mut blocks = vec![];
        for block in &stage.blocks {
            if !block.same {
                before.insert(block.id, block);
            }
            blocks.push(before[&block.id]);
        }
        (stage, blocks)
    })
}

/// The offset in the function that a location leads to, through all calls that were inlined.
fn root(document: &Document, at: u32) -> u32 {
    let mut location = &document.locations[at as usize];
    while let Some(outer) = location.inlined_at {
        location = &document.locations[outer as usize];
    }
    location.offset
}

fn place(document: &Document, at: u32) -> String {
    let mut parts = vec![];
    let mut next = Some(at);
    while let Some(at) = next {
        let location = &document.locations[at as usize];
        let is_own = location.func == document.function.index;
        let func = if is_own { String::new() } else { format!("f{}", location.func) };
        parts.push(format!("{func}@{:04x}", location.offset));
        next = location.inlined_at;
    }
    parts.join(" < ")
}

/// A value with its name and type.
fn value(document: &Document, value: u32) -> String {
    let about = &document.values[value as usize];
    let dot = if about.name.is_empty() { "" } else { "." };
    format!("v{value}{dot}{}: {}", about.name, about.ty)
}

/// An instruction after the name of its block, if that is to be shown.
fn ir_line(out: &mut String, document: &Document, block: &str, line: &Line) {
    let name = line
        .slot
        .map_or(String::new(), |slot| format!("  ; {}", document.slots[slot as usize].name));
    let text = format!("{}{name}", line.text);
    push_line(out, format_args!("{block}  {text:<40} ; {}", place(document, line.at)));
}

fn code_line(out: &mut String, document: &Document, line: &CodeLine) {
    let at = line.at.map_or(String::new(), |at| format!(" ; {}", place(document, at)));
    let text = format!("{:<44}{at}", line.text);
    push_line(out, format_args!("  {}", text.trim_end()));
}

fn native_line(out: &mut String, document: &Document, line: &NativeLine) {
    let at = line.at.map_or(String::new(), |at| place(document, at));
    let note = line.note.as_deref().unwrap_or("");
    let mark = if line.spill { "spill" } else { "" };
    let text =
        format!("{:6x}  {:<24} {:<36} ; {at} {note} {mark}", line.address, line.bytes, line.text);
    push_line(out, format_args!("{}", text.trim_end_matches([' ', ';'])));
}

fn ledger(out: &mut String, document: &Document) {
    title(out, "promotion", "phis in maximal, minimal, semi-pruned and pruned form");
    for row in &document.ledger.rows {
        let count = |n: Option<usize>| n.map_or("too many".into(), |n| n.to_string());
        let phis = &row.phis;
        let counts =
            [phis.maximal, phis.minimal, phis.semi_pruned, phis.pruned].map(count).join("/");
        let slot = if row.slot.is_some() { &row.key } else { "-" };
        let name = format!("{}: {}", row.name, row.ty);
        push_line(
            out,
            format_args!(
                "  {slot:<5} {name:<20} {counts:<12} {} reads, {} writes; {}",
                row.reads_removed, row.writes_removed, row.reason
            ),
        );
    }
}
