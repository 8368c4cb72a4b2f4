//! Peepholes: operations that do nothing on the values that they meet, and tests of tests.
//!
//! Relies on SSA form as [`crate::ir`] and [`mod@crate::ir::verify`] describe it, and guarantees it. Only pure integer
//! operations change, each by the definitions of its operands:
//! * `and`, sign extensions and pairs of shifts go where the bits that they clear are known to be clear (`bits`),
//!   through phis too: naive code masks bytes that it has just loaded, and numbers that are 0 or 1.
//! * `x == 0` becomes `eqz`, and comparisons of a 0 or 1 with 0 or 1 become that number or its `eqz`; so does its
//!   exclusive or with 1.
//! * `i64.extend_i32_s` of a number that is not negative becomes `i64.extend_i32_u`.
//!
//! Cranelift has similar rules, but none that looks through a phi. What it does as well, multiplications by powers
//! of two, constants and so on, is left to it. Linear in the function: each operation is looked at once, and known bits
//! are asked of at most a constant number of values.

mod bits;

use slotvm_bytecode::Op;

use self::bits::{Bits, above_bits, is_boolean};
use crate::ir::Function;
use crate::ir::edit::Editor;
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::irop::Opcode;

/// Statistics of peepholes.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct PeepholeReport {
    /// Operations that became one of their operands.
    pub n_removed: usize,
    /// Operations that became cheaper ones.
    pub n_changed: usize,
}

/// Applies peepholes to a function in SSA form.
pub fn peephole(f: &mut Function) -> PeepholeReport {
    let mut editor = Editor::new(f);
    let report = run(&mut editor);
    editor.finish();
    report
}

/// Applies peepholes to a function that is being edited.
pub(crate) fn run(editor: &mut Editor<'_>) -> PeepholeReport {
    let mut report = PeepholeReport::default();
    let candidates = candidates(editor);
    if candidates.is_empty() {
        return report;
    }
    let mut bits = Bits::scan(editor);
    let mut is_removed = Vec::new();
    for &(block, inst) in &candidates {
        match rule(&mut bits, editor, inst) {
            Some(Change::Value(value)) => {
                let result = editor.func().result(inst);
                editor.replace_value(result, value);
                is_removed.resize(inst.index() + 1, false);
                is_removed[inst.index()] = true;
                report.n_removed += 1;
            }
            Some(Change::Op(op, operand)) => {
                editor.rewrite(inst, Opcode::Op(op), &[operand]);
                report.n_changed += 1;
            }
            None => continue,
        }
        debug_assert!(editor.insts(block).contains(&inst), "{inst} is in {block}");
    }
    remove(editor, &candidates, &is_removed);
    report
}

/// The operations that rules exist for, with their blocks.
fn candidates(editor: &Editor<'_>) -> Vec<(Block, Inst)> {
    let mut candidates = Vec::new();
    for &block in editor.order() {
        for &inst in editor.insts(block) {
            if let Opcode::Op(op) = editor.func().opcode(inst)
                && is_candidate(op)
            {
                candidates.push((block, inst));
            }
        }
    }
    candidates
}

/// Removes operations that became one of their operands.
fn remove(editor: &mut Editor<'_>, candidates: &[(Block, Inst)], is_removed: &[bool]) {
    let is_removed = |inst: Inst| is_removed.get(inst.index()).is_some_and(|&is| is);
    let mut last = None;
    for &(block, inst) in candidates {
        if is_removed(inst) && last != Some(block) {
            editor.retain_insts(block, |_, inst| !is_removed(inst));
            last = Some(block);
        }
    }
}

#[rustfmt::skip]
fn is_candidate(op: Op) -> bool {
    use Op::*;
    matches!(
        op,
        I32And | I64And | I32Xor | I32Eq | I32Ne | I64Eq | I32Eqz | I32ShrS | I32ShrU | I64ShrS | I64ShrU
            | I32Extend8S | I32Extend16S | I64Extend8S | I64Extend16S | I64Extend32S | I64ExtendI32S
    )
}

/// The replacement of an operation.
enum Change {
    /// Another value.
    Value(Value),
    /// An operation on one operand.
    Op(Op, Value),
}

/// The change of an operation, if there is any.
fn rule(bits: &mut Bits, editor: &mut Editor<'_>, inst: Inst) -> Option<Change> {
    use Op::*;
    let Opcode::Op(op) = editor.func().opcode(inst) else { return None };
    let operands = editor.func().operands(inst);
    let (a, b) = (operands[0], *operands.get(1).unwrap_or(&operands[0]));
    let (a, b) = (editor.resolve(a), editor.resolve(b));
    match op {
        I32And | I64And => and(bits, editor, a, b),
        I32Xor => {
            let (value, constant) = split(bits, editor, a, b)?;
            let inverts = constant == 1 && bits.is_boolean(editor, value);
            inverts.then_some(Change::Op(I32Eqz, value))
        }
        I32Eqz => {
            let inner = bits.inst(a).filter(|&inst| is_op(editor, inst, I32Eqz))?;
            let inner = editor.func().operands(inner)[0];
            let inner = editor.resolve(inner);
            bits.is_boolean(editor, inner).then_some(Change::Value(inner))
        }
        I32Eq | I32Ne => compare(bits, editor, op, a, b),
        I64Eq => {
            let (value, constant) = split(bits, editor, a, b)?;
            (constant == 0).then_some(Change::Op(I64Eqz, value))
        }
        I32ShrS | I32ShrU => shift(bits, editor, op, a, b, 32),
        I64ShrS | I64ShrU => shift(bits, editor, op, a, b, 64),
        I32Extend8S | I64Extend8S => extend(bits, editor, a, 8),
        I32Extend16S | I64Extend16S => extend(bits, editor, a, 16),
        I64Extend32S => extend(bits, editor, a, 32),
        I64ExtendI32S => is_below(bits, editor, a, 31).then_some(Change::Op(I64ExtendI32U, a)),
        _ => None,
    }
}

fn is_op(editor: &Editor<'_>, inst: Inst, op: Op) -> bool {
    editor.func().opcode(inst) == Opcode::Op(op)
}

/// The operand that is not constant, and the constant, of an operation whose operands can change places.
fn split(bits: &Bits, editor: &mut Editor<'_>, a: Value, b: Value) -> Option<(Value, u64)> {
    match bits.constant(editor, b) {
        Some(constant) => Some((a, constant)),
        None => bits.constant(editor, a).map(|constant| (b, constant)),
    }
}

/// Whether all bits of a value from `n` on are known to be zero.
fn is_below(bits: &mut Bits, editor: &mut Editor<'_>, value: Value, n: u32) -> bool {
    bits.zeros(editor, value) | !above_bits(n) == u64::MAX
}

/// `a & mask`, where `a` has no other bits; `!a & 1`, where `a` is 0 or 1.
fn and(bits: &mut Bits, editor: &mut Editor<'_>, a: Value, b: Value) -> Option<Change> {
    let (a, mask) = split(bits, editor, a, b)?;
    if bits.zeros(editor, a) | mask == u64::MAX {
        return Some(Change::Value(a));
    }
    let inverted = bits.inst(a).filter(|&inst| mask == 1 && is_op(editor, inst, Op::I32Xor))?;
    let operands = editor.func().operands(inverted);
    let (a, b) = (operands[0], operands[1]);
    let (a, b) = (editor.resolve(a), editor.resolve(b));
    let (value, inverts) = split(bits, editor, a, b)?;
    (inverts & 1 == 1 && bits.is_boolean(editor, value)).then_some(Change::Op(Op::I32Eqz, value))
}

/// Comparisons with 0 or 1.
fn compare(bits: &mut Bits, editor: &mut Editor<'_>, op: Op, a: Value, b: Value) -> Option<Change> {
    let (a, constant) = split(bits, editor, a, b).filter(|&(_, constant)| constant <= 1)?;
    let is_test_for_zero = (op == Op::I32Eq) == (constant == 0);
    if op == Op::I32Eq && constant == 0 {
        return Some(Change::Op(Op::I32Eqz, a));
    }
    if !bits.is_boolean(editor, a) {
        return None;
    }
    Some(if is_test_for_zero { Change::Op(Op::I32Eqz, a) } else { Change::Value(a) })
}

/// A shift to the left and back.
fn shift(
    bits: &mut Bits,
    editor: &mut Editor<'_>,
    op: Op,
    a: Value,
    b: Value,
    width: u32,
) -> Option<Change> {
    let count = bits.constant(editor, b)? as u32 % width;
    let left = if width == 32 { Op::I32Shl } else { Op::I64Shl };
    let inner = bits.inst(a).filter(|&inst| is_op(editor, inst, left))?;
    let operands = editor.func().operands(inner);
    let (value, by) = (operands[0], operands[1]);
    let (value, by) = (editor.resolve(value), editor.resolve(by));
    if bits.constant(editor, by)? as u32 % width != count {
        return None;
    }
    let is_signed = matches!(op, Op::I32ShrS | Op::I64ShrS);
    let n_left = width - count;
    let is_kept = if is_signed {
        is_below(bits, editor, value, n_left - 1)
            || bits.inst(value).is_some_and(|inst| is_signed_below(editor, inst, n_left))
    } else {
        is_below(bits, editor, value, n_left)
    };
    is_kept.then_some(Change::Value(value))
}

/// A sign extension from `n` bits.
fn extend(bits: &mut Bits, editor: &mut Editor<'_>, a: Value, n: u32) -> Option<Change> {
    let does_nothing = is_below(bits, editor, a, n - 1)
        || bits.inst(a).is_some_and(|inst| is_signed_below(editor, inst, n));
    does_nothing.then_some(Change::Value(a))
}

/// Whether an instruction returns a number of at most `n` bits, its sign included.
fn is_signed_below(editor: &Editor<'_>, inst: Inst, n: u32) -> bool {
    use Op::*;
    let Opcode::Op(op) = editor.func().opcode(inst) else { return false };
    let n_bits = match op {
        I32Extend8S | I64Extend8S => 8,
        I32Extend16S | I64Extend16S => 16,
        I64Extend32S | I64ExtendI32S => 32,
        _ => match op.access() {
            Some(access) if access.signed => 8 * access.bytes,
            _ => return is_boolean(op) && n > 1,
        },
    };
    n_bits <= n
}

#[cfg(test)]
mod tests;
