//! Operations that need not be executed: Braun et al. (2013), section 3.1.

use slotvm_bytecode::{Op, ValType};

use crate::ir::entity::Value;
use crate::ir::fold::chosen;

/// An operand, and its bits if it is a constant.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Operand {
    pub(super) value: Value,
    pub(super) bits: Option<u64>,
}

/// Returns the operand that an operation returns unchanged. Only for integers: even
/// adding zero to a float changes some zeros and NaNs.
pub(super) fn copy(op: Op, operands: &[Operand]) -> Option<Value> {
    use Op::*;
    if op == Select {
        let [a, b, condition] = operands else { return None };
        return match condition.bits {
            Some(bits) => Some([a, b][chosen(bits)].value),
            None => (a.value == b.value).then_some(a.value),
        };
    }
    let [a, b] = operands else { return None };
    let is = |operand: &Operand, number: i64| match op.signature().map(|s| s.params) {
        Some([ValType::I32, ..]) => operand.bits.is_some_and(|bits| bits as i32 == number as i32),
        _ => operand.bits == Some(number as u64),
    };
    let (left, right) = match op {
        // The constants on one side for which the result is the other side.
        I32Add | I64Add | I32Or | I64Or | I32Xor | I64Xor => (Some(0), Some(0)),
        I32Sub | I64Sub | I32Shl | I64Shl | I32ShrS | I64ShrS | I32ShrU | I64ShrU | I32Rotl
        | I64Rotl | I32Rotr | I64Rotr => (None, Some(0)),
        I32Mul | I64Mul => (Some(1), Some(1)),
        I32DivS | I64DivS | I32DivU | I64DivU => (None, Some(1)),
        I32And | I64And => (Some(-1), Some(-1)),
        _ => return None,
    };
    let is_idempotent = matches!(op, I32And | I64And | I32Or | I64Or);
    if right.is_some_and(|number| is(b, number)) || is_idempotent && a.value == b.value {
        return Some(a.value);
    }
    left.is_some_and(|number| is(a, number)).then_some(b.value)
}

#[cfg(test)]
mod tests {
    use slotvm_bytecode::numeric::{eval, is_numeric};

    use super::*;

    /// Cells that operations treat specially.
    fn cells(ty: ValType) -> Vec<u64> {
        let integers =
            [0, 1, 2, 31, 32, 63, 64, -1, -2, i64::MIN, i32::MIN.into(), i32::MAX.into()];
        let floats = [0.0, -0.0, 1.0, -1.0, 1e300, f64::INFINITY, f64::NAN];
        let mut cells: Vec<u64> = integers.iter().map(|&i| i as u64).collect();
        cells.extend(floats.iter().map(|f| f.to_bits()));
        cells.extend(floats.iter().map(|&f| u64::from((f as f32).to_bits())));
        if matches!(ty, ValType::I32 | ValType::F32) {
            cells.iter_mut().for_each(|cell| *cell = u64::from(*cell as u32));
        }
        cells.sort_unstable();
        cells.dedup();
        cells
    }

    #[test]
    fn an_operation_that_copies_an_operand_gives_its_bits() {
        let mut n_copies = 0;
        for &op in Op::ALL.iter().filter(|&&op| is_numeric(op)) {
            let &[ty, other] = op.signature().expect("fixed").params else { continue };
            for &a in &cells(ty) {
                for &b in &cells(other) {
                    // Which operands are known to be constants, and whether they are one value.
                    for known in 0..4 {
                        let operand = |number: u32, bits| {
                            let bits = (known >> number & 1 == 1).then_some(bits);
                            Operand { value: Value(if a == b { 0 } else { number }), bits }
                        };
                        let operands = [operand(0, a), operand(1, b)];
                        if let Some(copied) = copy(op, &operands) {
                            let bits = if copied == operands[0].value { a } else { b };
                            assert_eq!(eval(op, a, b), Ok(bits), "{op:?} {a:x} {b:x}");
                            n_copies += 1;
                        }
                    }
                }
            }
        }
        assert!(n_copies > 1_000, "{n_copies}");
    }

    #[test]
    fn select_of_one_value_or_by_a_constant_is_a_copy() {
        let [a, b] = [0, 1].map(|value| Operand { value: Value(value), bits: None });
        let condition = |bits| Operand { value: Value(2), bits };
        assert_eq!(copy(Op::Select, &[a, b, condition(Some(7))]), Some(a.value));
        assert_eq!(copy(Op::Select, &[a, b, condition(Some(0))]), Some(b.value));
        assert_eq!(copy(Op::Select, &[a, b, condition(None)]), None);
        assert_eq!(copy(Op::Select, &[b, b, condition(None)]), Some(b.value));
    }
}
