//! Constant folding: the result of an operation on constants, and the instruction of a constant.
//!
//! Both simplification of SSA form and construction on the fly use it. [`slotvm_bytecode::numeric`] and
//! [`slotvm_bytecode::pairs`] define the operations.

use slotvm_bytecode::numeric::{eval, is_numeric};
use slotvm_bytecode::op::Signature;
use slotvm_bytecode::pairs::{self, is_pair};
use slotvm_bytecode::{Imm, Op, ValType};

use crate::ir::Function;

/// Returns the type and the cell of a numeric operation's result, if `cell` has those of its operands. An
/// operation that traps is left to trap, and one whose result is a NaN is left to the machine, which chooses
/// its bits.
pub(crate) fn fold(op: Op, cell: impl Fn(usize) -> Option<u64>) -> Option<(ValType, u64)> {
    if !is_numeric(op) {
        return None;
    }
    let Signature { params, results } = op.signature().expect("numeric opcodes have one");
    let a = cell(0)?;
    let b = if params.len() == 2 { cell(1)? } else { 0 };
    let bits = eval(op, a, b).ok()?;
    let may_differ = match op.nan_type() {
        Some(ValType::F32) => f32::from_bits(bits as u32).is_nan(),
        Some(_) => f64::from_bits(bits).is_nan(),
        None => false,
    };
    (!may_differ).then_some((results[0], bits))
}

/// Returns the types and the cells of an operation's two results, if it has two and `cell` has those of its operands.
pub(crate) fn fold_pair(
    op: Op,
    cell: impl Fn(usize) -> Option<u64>,
) -> Option<[(ValType, u64); 2]> {
    if !is_pair(op) {
        return None;
    }
    let Signature { params, results } = op.signature().expect("these opcodes have one");
    let mut operands = [0; 4];
    for (i, operand) in operands.iter_mut().enumerate().take(params.len()) {
        *operand = cell(i)?;
    }
    let [first, second] = pairs::eval(op, operands);
    Some([(results[0], first), (results[1], second)])
}

/// The index of the operand that a `select` returns, by the cell of its condition.
pub(crate) fn chosen(condition: u64) -> usize {
    usize::from(condition as u32 == 0)
}

/// The index of the out-edge that a branch takes, by the cell of its selector.
pub(crate) fn taken(op: Op, selector: u64, n_edges: usize) -> usize {
    let selector = selector as u32 as usize;
    match op {
        Op::BrIf => usize::from(selector == 0),
        _ => selector.min(n_edges - 1),
    }
}

/// Whether an operation returns 0 or 1.
pub(crate) fn is_comparison(op: Op) -> bool {
    use Op::*;
    let is_in = |first: Op, last: Op| (first as u16..=last as u16).contains(&(op as u16));
    is_in(I32Eqz, F64Ge) || op == RefIsNull
}

/// The instruction of a constant. The only reference constant is null, and the only vector constant zero.
pub(crate) fn constant(f: &mut Function, ty: ValType, bits: u64) -> (Op, Imm) {
    match ty {
        ValType::I32 => (Op::I32Const, Imm(bits)),
        ValType::I64 => (Op::I64Const, Imm(bits)),
        ValType::F32 => (Op::F32Const, Imm(bits)),
        ValType::F64 => (Op::F64Const, Imm(bits)),
        ValType::FuncRef | ValType::ExternRef | ValType::Ref => (Op::RefNull, Imm::ref_type(ty)),
        ValType::V128 => (Op::V128Const, f.add_vector(bits.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_fold_unless_they_trap_or_make_a_nan() {
        let fold = |op, cells: &[Option<u64>]| fold(op, |i| cells[i]);
        assert_eq!(fold(Op::I32Add, &[Some(3), Some(4)]), Some((ValType::I32, 7)));
        assert_eq!(fold(Op::I64Eqz, &[Some(0)]), Some((ValType::I32, 1)));
        assert_eq!(fold(Op::I32Add, &[Some(3), None]), None);
        assert_eq!(fold(Op::I32DivU, &[Some(3), Some(0)]), None);
        assert_eq!(fold(Op::I32TruncF64S, &[Some(1e300_f64.to_bits())]), None);
        let zero = Some(0.0_f64.to_bits());
        assert_eq!(fold(Op::F64Div, &[zero, zero]), None);
        let negative_nan = f64::NAN.to_bits() | 1 << 63;
        let negated = fold(Op::F64Neg, &[Some(negative_nan)]);
        assert_eq!(negated, Some((ValType::F64, f64::NAN.to_bits())));
        assert_eq!(fold(Op::Select, &[zero, zero, Some(1)]), None);
    }

    #[test]
    fn pairs_fold_to_two_constants() {
        let fold = |op, cells: &[Option<u64>]| fold_pair(op, |i| cells[i]);
        let sum = fold(Op::I64Add128, &[Some(u64::MAX), Some(2), Some(1), Some(3)]);
        assert_eq!(sum, Some([(ValType::I64, 0), (ValType::I64, 6)]));
        assert_eq!(fold(Op::I64Add128, &[Some(1), Some(2), Some(1), None]), None);
        let sum = fold(Op::I32AddOverflowS, &[Some(0x7fff_ffff), Some(1)]);
        assert_eq!(sum, Some([(ValType::I32, 0x8000_0000), (ValType::I32, 1)]));
        assert_eq!(fold(Op::I64Add, &[Some(1), Some(2)]), None);
    }
}
