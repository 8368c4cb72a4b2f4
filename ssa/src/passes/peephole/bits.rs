//! The bits of integers that are known to be zero.
//!
//! Asked of a value, not computed for all: few operations want to know. A query looks at the definition of the value
//! and at those of its operands, to a depth of [`QUERY_DEPTH_MAX`]. Of a phi it looks at the operands on all edges, and
//! through other phis and `select` at theirs, so at the values that a loop brings back as well: a phi of phis is one of
//! the other values that enter them. (A value that a loop computes from the phi itself is such a value, and is
//! looked at without going round.) A query looks at no more than [`QUERY_VALUES_MAX`] values; beyond them nothing is known.
//!
//! LLVM's `computeKnownBits` works so; ones are not tracked here.

use slotvm_bytecode::{Op, ValType};

use crate::ir::edit::Editor;
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::fold;
use crate::ir::irop::Opcode;

/// The maximum number of operations from the value of a query to one that is looked at.
const QUERY_DEPTH_MAX: u32 = 3;
/// The maximum number of values that a query looks at.
const QUERY_VALUES_MAX: u32 = 32;
/// The maximum number of in-edges of a phi that is looked at.
const EDGES_MAX: usize = 8;

/// The definition of a value.
#[derive(Copy, Clone)]
enum Def {
    Inst(Inst),
    /// A parameter of a block, by its place there.
    Param(Block, u32),
}

/// The definitions of a function's values.
pub(super) struct Bits {
    defs: Vec<Option<Def>>,
    /// The number of values that the query at hand may still look at.
    n_left: u32,
}

impl Bits {
    /// Scans a function.
    pub(super) fn scan(editor: &Editor<'_>) -> Bits {
        let f = editor.func();
        let mut defs = vec![None; f.n_values()];
        for &block in editor.order() {
            for (&param, i) in editor.params(block).iter().zip(0..) {
                defs[param.index()] = Some(Def::Param(block, i));
            }
            for &inst in editor.insts(block) {
                f.results(inst).for_each(|result| defs[result.index()] = Some(Def::Inst(inst)));
            }
        }
        Bits { defs, n_left: 0 }
    }

    /// The instruction that defines a value, if one does.
    pub(super) fn inst(&self, value: Value) -> Option<Inst> {
        match self.defs[value.index()] {
            Some(Def::Inst(inst)) => Some(inst),
            _ => None,
        }
    }

    /// The cell of an integer constant.
    pub(super) fn constant(&self, editor: &Editor<'_>, value: Value) -> Option<u64> {
        let inst = self.inst(value)?;
        let f = editor.func();
        matches!(f.opcode(inst), Opcode::Op(Op::I32Const | Op::I64Const)).then(|| f.imm(inst).0)
    }

    /// Whether a value is 0 or 1.
    pub(super) fn is_boolean(&mut self, editor: &mut Editor<'_>, value: Value) -> bool {
        self.zeros(editor, value) | 1 == u64::MAX
    }

    /// The bits of the cell of a value that are known to be zero. Those above an `i32` are.
    pub(super) fn zeros(&mut self, editor: &mut Editor<'_>, value: Value) -> u64 {
        self.n_left = QUERY_VALUES_MAX;
        self.zeros_of(editor, value, QUERY_DEPTH_MAX)
    }

    /// Looks at a value; if it is a phi, or a `select`, at all values that it can be.
    fn zeros_of(&mut self, editor: &mut Editor<'_>, value: Value, depth: u32) -> u64 {
        let value = editor.resolve(value);
        let unknown = above(editor.func().value_type(value));
        let (mut seen, mut next) = (vec![value], 0);
        let mut zeros = u64::MAX;
        while let Some(&value) = seen.get(next) {
            next += 1;
            if self.n_left == 0 || zeros == unknown {
                return unknown;
            }
            self.n_left -= 1;
            let mut others = Vec::new();
            match self.defs[value.index()] {
                Some(Def::Inst(inst)) => match editor.func().opcode(inst) {
                    Opcode::Op(Op::Select) => {
                        others.extend_from_slice(&editor.func().operands(inst)[..2]);
                    }
                    Opcode::Op(op) => zeros &= self.computed(editor, inst, op, depth) | unknown,
                    Opcode::Ir(_) => return unknown,
                },
                Some(Def::Param(block, i)) => {
                    let n_edges = editor.in_edges(block).len();
                    // The entry has none: its parameters can be anything.
                    if n_edges == 0 || n_edges > EDGES_MAX {
                        return unknown;
                    }
                    for j in 0..n_edges {
                        let edge = editor.in_edges(block)[j];
                        others.push(editor.args(edge)[i as usize]);
                    }
                }
                None => return unknown,
            }
            for other in others {
                let other = editor.resolve(other);
                if !seen.contains(&other) {
                    seen.push(other);
                }
            }
        }
        zeros
    }

    /// The zeros of the result of an operation.
    fn computed(&mut self, editor: &mut Editor<'_>, inst: Inst, op: Op, depth: u32) -> u64 {
        use Op::*;
        if let Some(access) = op.access().filter(|access| !access.store) {
            let is_integer = matches!(access.ty, ValType::I32 | ValType::I64);
            return if access.signed || !is_integer { 0 } else { above_bits(8 * access.bytes) };
        }
        if is_boolean(op) {
            return !1;
        }
        match op {
            I32Const | I64Const => return !editor.func().imm(inst).0,
            I32Clz | I32Ctz | I32Popcnt | I64Clz | I64Ctz | I64Popcnt => return !0x7f,
            _ if depth == 0 || !looks_at_operands(op) => return 0,
            _ => {}
        }
        let operands = editor.func().operands(inst);
        let (a, b) = (operands[0], *operands.get(1).unwrap_or(&operands[0]));
        let (a, b) = (editor.resolve(a), editor.resolve(b));
        let mut of = |value| self.zeros_of(editor, value, depth - 1);
        match op {
            I32And | I64And => return of(a) | of(b),
            I32Or | I64Or | I32Xor | I64Xor => return of(a) & of(b),
            I32Add | I64Add => return sum(of(a), of(b), editor.func().value_type(a)),
            I32WrapI64 | I64ExtendI32U => return of(a),
            I64ExtendI32S => {
                let zeros = of(a);
                return if zeros >> 31 & 1 == 1 { zeros } else { zeros & 0x7fff_ffff };
            }
            _ => {}
        }
        let Some(count) = self.constant(editor, b) else { return 0 };
        let zeros = self.zeros_of(editor, a, depth - 1);
        match op {
            I32Shl => zeros << (count % 32) | !(u64::MAX << (count % 32)),
            I64Shl => zeros << (count % 64) | !(u64::MAX << (count % 64)),
            I32ShrU => zeros >> (count % 32) | above_bits(32 - count as u32 % 32),
            I64ShrU => zeros >> (count % 64) | above_bits(64 - count as u32 % 64),
            _ => 0,
        }
    }
}

#[rustfmt::skip]
fn looks_at_operands(op: Op) -> bool {
    use Op::*;
    matches!(
        op,
        I32And | I64And | I32Or | I64Or | I32Xor | I64Xor | I32Add | I64Add | I32WrapI64 | I64ExtendI32U
            | I64ExtendI32S | I32Shl | I64Shl | I32ShrU | I64ShrU
    )
}

/// Whether an operation returns 0 or 1.
pub(super) fn is_boolean(op: Op) -> bool {
    fold::is_comparison(op)
}

/// The zeros of a sum: none of its bits is above those of the greatest sum, unless that wraps.
fn sum(a: u64, b: u64, ty: ValType) -> u64 {
    let Some(max) = (!a).checked_add(!b) else { return 0 };
    if max & above(ty) != 0 { 0 } else { above_bits(u64::BITS - max.leading_zeros()) }
}

/// All bits from `n` on.
pub(super) fn above_bits(n: u32) -> u64 {
    u64::MAX.checked_shl(n).unwrap_or(0)
}

/// The bits of a cell above a value of a type, which are zero.
fn above(ty: ValType) -> u64 {
    above_bits(if ty == ValType::I32 { 32 } else { 64 })
}
