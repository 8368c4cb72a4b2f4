//! Tests of a counter that repeat after few rounds of its loop, as `i % 4 == 0`.
//!
//! A counter is a parameter that an edge gives itself plus or minus a constant. A test of its lowest bits, or of what
//! remains when it is divided by a small constant, takes the same turns again and again, which processors predict.
//! The marks come from one scan of the edges.

use slotvm_bytecode::Op;

use crate::ir::Function;
use crate::ir::edit::Editor;
use crate::ir::entity::{Inst, Value};
use crate::ir::irop::Opcode;

/// The maximum number of rounds after which a test repeats. Processors keep some hundred branches in mind, of which
/// this leaves most to others.
pub(super) const PERIOD_MAX: u64 = 16;
/// The maximum number of comparisons between the test and the remainder.
const COMPARISONS_MAX: usize = 2;

/// The instruction that defines a value, if one does.
pub(super) type Defs<'d> = &'d [Option<Inst>];

/// The counters of a function, as marks of its values.
pub(super) struct Counters(Vec<bool>);

impl Counters {
    /// Scans a function.
    pub(super) fn scan(editor: &mut Editor<'_>, defs: Defs<'_>) -> Counters {
        let mut is_counter = vec![false; editor.func().n_values()];
        for i in 0..editor.order().len() {
            for edge in editor.out_edges(editor.order()[i]) {
                for arg in 0..editor.args(edge).len() {
                    let param = editor.params(editor.dst(edge))[arg];
                    let arg = editor.resolve(editor.args(edge)[arg]);
                    if let Some(before) = by_constant(editor.func(), defs, arg, is_step) {
                        is_counter[param.index()] |= editor.resolve(before) == param;
                    }
                }
            }
        }
        Counters(is_counter)
    }

    /// Whether a condition repeats after at most [`PERIOD_MAX`] rounds of a loop.
    pub(super) fn repeat(&self, editor: &mut Editor<'_>, defs: Defs<'_>, condition: Value) -> bool {
        let mut value = condition;
        for _ in 0..COMPARISONS_MAX {
            let Some(inner) = compared(editor.func(), defs, value) else { break };
            value = editor.resolve(inner);
        }
        let Some(counter) = by_constant(editor.func(), defs, value, is_small_remainder) else {
            return false;
        };
        let counter = editor.resolve(counter);
        self.0.get(counter.index()).is_some_and(|&is| is)
    }
}

/// The value that is compared with a constant, or with zero.
fn compared(f: &Function, defs: Defs<'_>, value: Value) -> Option<Value> {
    let inst = (*defs.get(value.index())?)?;
    match f.opcode(inst) {
        Opcode::Op(Op::I32Eqz | Op::I64Eqz) => Some(f.operands(inst)[0]),
        _ => by_constant(f, defs, value, |op, _| {
            matches!(op, Op::I32Eq | Op::I32Ne | Op::I64Eq | Op::I64Ne)
        }),
    }
}

/// The first operand of the instruction that makes a value, if the second is a constant for which `accepts` holds.
fn by_constant(
    f: &Function,
    defs: Defs<'_>,
    value: Value,
    accepts: impl Fn(Op, u64) -> bool,
) -> Option<Value> {
    let inst = (*defs.get(value.index())?)?;
    let (Opcode::Op(op), &[first, second]) = (f.opcode(inst), f.operands(inst)) else {
        return None;
    };
    let constant = (*defs.get(second.index())?)?;
    let is_constant = matches!(f.opcode(constant), Opcode::Op(Op::I32Const | Op::I64Const));
    (is_constant && accepts(op, f.imm(constant).0)).then_some(first)
}

fn is_step(op: Op, _: u64) -> bool {
    matches!(op, Op::I32Add | Op::I32Sub | Op::I64Add | Op::I64Sub)
}

fn is_small_remainder(op: Op, constant: u64) -> bool {
    match op {
        Op::I32And | Op::I64And => constant < PERIOD_MAX,
        Op::I32RemU | Op::I64RemU | Op::I32RemS | Op::I64RemS => constant <= PERIOD_MAX,
        _ => false,
    }
}
