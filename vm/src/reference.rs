//! Reference of the instruction set, generated from the opcode table.

use std::fmt::Write;

use crate::op::{Effect, ImmKind, Op};
use crate::types::ValType;

/// The chapters of the reference: first opcode and title. The opcodes of a chapter are consecutive.
const CHAPTERS: [(u16, &str); 23] = [
    (0x00, "Control flow"),
    (0x10, "Operand stack"),
    (0x18, "Locals and globals"),
    (0x20, "References and tables"),
    (0x30, "Constants"),
    (0x38, "Whole memory"),
    (0x40, "Memory accesses"),
    (0x58, "Indexed memory accesses"),
    (0x70, "Comparisons"),
    (0x92, "Integer arithmetic"),
    (0xb6, "Float arithmetic"),
    (0xd2, "Conversions"),
    (0xfc13, "Integers with two results"),
    (0xfd00, "SIMD: memory accesses"),
    (0xfd0c, "SIMD: constants, shuffles and lanes"),
    (0xfd23, "SIMD: comparisons"),
    (0xfd4d, "SIMD: bitwise operations"),
    (0xfd54, "SIMD: memory accesses of lanes"),
    (0xfd5e, "SIMD: conversions and 8-bit lanes"),
    (0xfd80, "SIMD: 16-bit lanes"),
    (0xfda0, "SIMD: 32-bit lanes"),
    (0xfdc0, "SIMD: 64-bit lanes"),
    (0xfde0, "SIMD: floats"),
];

/// Returns all instructions as Markdown: for each chapter, a table of byte, mnemonic, immediates,
/// signature, effect and meaning.
pub fn reference() -> String {
    let mut out = String::new();
    for (i, &(first, title)) in CHAPTERS.iter().enumerate() {
        let end = CHAPTERS.get(i + 1).map_or(u16::MAX, |&(next, _)| next);
        let ops = Op::ALL.iter().copied().filter(|op| (first..end).contains(&op.code()));
        if i > 0 {
            out.push('\n');
        }
        write_chapter(&mut out, title, ops).expect("writing to a string cannot fail");
    }
    out
}

fn write_chapter(out: &mut String, title: &str, ops: impl Iterator<Item = Op>) -> std::fmt::Result {
    writeln!(out, "### {title}\n")?;
    writeln!(out, "| byte | mnemonic | immediates | signature | effect | meaning |")?;
    writeln!(out, "|---|---|---|---|---|---|")?;
    for op in ops {
        let (code, mnemonic, doc) = (code(op), op.mnemonic(), op.doc());
        let (imms, effect) = (immediates(op.imm_kind()), effect(op.effect()));
        let signature = signature(op);
        writeln!(out, "| `{code}` | `{mnemonic}` | {imms} | `{signature}` | {effect} | {doc} |")?;
    }
    Ok(())
}

/// The bytes that encode an opcode.
fn code(op: Op) -> String {
    match op.code().to_be_bytes() {
        [0, byte] => format!("{byte:02x}"),
        [first, second] => format!("{first:02x} {second:02x}"),
    }
}

/// The immediates, in the order of the binary form.
fn immediates(kind: ImmKind) -> &'static str {
    match kind {
        ImmKind::None => "",
        ImmKind::I32 => "i32",
        ImmKind::I64 => "i64",
        ImmKind::F32 => "f32",
        ImmKind::F64 => "f64",
        ImmKind::Number => "number",
        ImmKind::Local => "local",
        ImmKind::Global => "global",
        ImmKind::Func => "function",
        ImmKind::Label => "label",
        ImmKind::LabelCount => "label, count",
        ImmKind::Labels => "labels, default",
        ImmKind::TypeTable => "type, table",
        ImmKind::RefType => "reference type",
        ImmKind::Table => "table",
        ImmKind::TableTable => "destination, source",
        ImmKind::ElemTable => "element segment, table",
        ImmKind::Elem => "element segment",
        ImmKind::Memory => "memory",
        ImmKind::MemoryMemory => "destination, source",
        ImmKind::DataMemory => "data segment, memory",
        ImmKind::Data => "data segment",
        ImmKind::Mem => "memory, offset",
        ImmKind::Indexed => "memory, scale, offset",
        ImmKind::V128 => "16 bytes",
        ImmKind::Lanes => "16 lanes",
        ImmKind::Lane => "lane",
        ImmKind::MemLane => "memory, offset, lane",
    }
}

fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Pure => "pure",
        Effect::Trap => "trap",
        Effect::Read => "read",
        Effect::Write => "write",
        Effect::Call => "call",
        Effect::Control => "control",
        Effect::Stack => "stack",
        Effect::Local => "local",
    }
}

fn signature(op: Op) -> String {
    let Some(signature) = op.signature() else { return special_signature(op).to_owned() };
    let names = |types: &[ValType]| types.iter().map(|ty| ty.name()).collect::<Vec<_>>().join(" ");
    match (names(signature.params), names(signature.results)) {
        (params, results) if params.is_empty() => format!("-> {results}").trim_end().to_owned(),
        (params, results) => format!("{params} -> {results}").trim_end().to_owned(),
    }
}

/// Signatures that depend on an immediate or on the operand stack. `t*` is any number of types. A
/// signature without `->` means that control does not continue.
fn special_signature(op: Op) -> &'static str {
    match op {
        Op::Unreachable | Op::Trap => "t*",
        Op::Br => "shape",
        Op::BrKeep => "t*",
        Op::BrIf => "shape i32 -> shape",
        Op::BrTable => "shape i32",
        Op::Return => "t* results",
        Op::Call => "params -> results",
        Op::CallIndirect => "params i32 -> results",
        Op::ReturnCall => "t* params",
        Op::ReturnCallIndirect => "t* params i32",
        Op::Drop => "a ->",
        Op::Dup => "a -> a a",
        Op::Swap => "a b -> b a",
        Op::Over => "a b -> a b a",
        Op::Rot => "a b c -> b c a",
        Op::Select => "t t i32 -> t",
        Op::LocalGet | Op::GlobalGet => "-> t",
        Op::LocalSet | Op::GlobalSet => "t ->",
        Op::LocalTee => "t -> t",
        Op::LocalAddr => "-> i32",
        Op::RefNull => "-> r",
        Op::RefIsNull => "r -> i32",
        Op::TableGet => "i32 -> r",
        Op::TableSet => "i32 r ->",
        Op::TableGrow => "r i32 -> i32",
        Op::TableFill => "i32 r i32 ->",
        _ => unreachable!("{op:?} has a fixed signature"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instruction_is_there_once() {
        let reference = reference();
        for op in Op::ALL {
            let rows = reference.lines().filter(|line| {
                line.starts_with(&format!("| `{}` | `{}` |", code(*op), op.mnemonic()))
            });
            assert_eq!(rows.count(), 1, "{op:?}");
        }
        assert_eq!(reference.lines().filter(|line| line.starts_with("| `")).count(), Op::ALL.len());
    }
}
