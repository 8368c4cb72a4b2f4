//! Cranelift's conditions of comparisons, of scalars and of lanes, and the comparisons that only decide.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use slotvm_bytecode::Op::{self, *};
use slotvm_bytecode::pairs::has_flag;
use slotvm_ssa::ir::Function;
use slotvm_ssa::ir::entity::{Block, Value};
use slotvm_ssa::ir::irop::Opcode;

/// The comparisons and flags of overflow whose results are only conditions of branches, selects and negations in their own blocks. They need
/// not be made numbers of 32 bits.
pub(super) struct Conditions {
    /// The block of each value that is one; otherwise [`Conditions::NUMBER`].
    blocks: Vec<Block>,
}

impl Conditions {
    const NUMBER: Block = Block(u32::MAX);

    /// Finds them in one pass: blocks are in preorder of the dominator tree, so definitions come before their uses.
    pub(super) fn find(func: &Function) -> Conditions {
        let mut conditions = Conditions { blocks: vec![Self::NUMBER; func.n_values()] };
        for block in func.blocks() {
            for &inst in func.insts(block) {
                let opcode = func.opcode(inst);
                let condition = condition_operand(opcode);
                for (i, &operand) in func.operands(inst).iter().enumerate() {
                    if Some(i) != condition || conditions.blocks[operand.index()] != block {
                        conditions.blocks[operand.index()] = Self::NUMBER;
                    }
                }
                match opcode {
                    Opcode::Op(op) if is_comparison(op) => {
                        conditions.blocks[func.result(inst).index()] = block;
                    }
                    Opcode::Op(op) if has_flag(op) => {
                        let flag = func.results(inst).nth(1).expect("there are two results");
                        conditions.blocks[flag.index()] = block;
                    }
                    _ => {}
                }
            }
            for edge in func.succ_edges(block) {
                for arg in func.edge_args(edge) {
                    conditions.blocks[arg.index()] = Self::NUMBER;
                }
            }
        }
        conditions
    }

    /// Whether a value is one of them.
    pub(super) fn contain(&self, value: Value) -> bool {
        self.blocks[value.index()] != Self::NUMBER
    }
}

/// The operand of which it only matters whether it is zero.
fn condition_operand(opcode: Opcode) -> Option<usize> {
    match opcode {
        Opcode::Op(BrIf | I32Eqz) => Some(0),
        Opcode::Op(Select) => Some(2),
        _ => None,
    }
}

/// Whether the result of a scalar operation is that of a comparison, 0 or 1.
pub(super) fn is_comparison(op: Op) -> bool {
    !op.is_vector()
        && (matches!(op, I32Eqz | I64Eqz | RefIsNull)
            || int_condition(op).is_some()
            || float_condition(op).is_some())
}

/// The condition of a comparison of integers.
#[rustfmt::skip]
pub(super) fn int_condition(op: Op) -> Option<IntCC> {
    Some(match op {
        I32Eq | I64Eq | I8x16Eq | I16x8Eq | I32x4Eq | I64x2Eq => IntCC::Equal,
        I32Ne | I64Ne | I8x16Ne | I16x8Ne | I32x4Ne | I64x2Ne => IntCC::NotEqual,
        I32LtS | I64LtS | I8x16LtS | I16x8LtS | I32x4LtS | I64x2LtS => IntCC::SignedLessThan,
        I32LtU | I64LtU | I8x16LtU | I16x8LtU | I32x4LtU => IntCC::UnsignedLessThan,
        I32GtS | I64GtS | I8x16GtS | I16x8GtS | I32x4GtS | I64x2GtS => IntCC::SignedGreaterThan,
        I32GtU | I64GtU | I8x16GtU | I16x8GtU | I32x4GtU => IntCC::UnsignedGreaterThan,
        I32LeS | I64LeS | I8x16LeS | I16x8LeS | I32x4LeS | I64x2LeS => IntCC::SignedLessThanOrEqual,
        I32LeU | I64LeU | I8x16LeU | I16x8LeU | I32x4LeU => IntCC::UnsignedLessThanOrEqual,
        I32GeS | I64GeS | I8x16GeS | I16x8GeS | I32x4GeS | I64x2GeS => IntCC::SignedGreaterThanOrEqual,
        I32GeU | I64GeU | I8x16GeU | I16x8GeU | I32x4GeU => IntCC::UnsignedGreaterThanOrEqual,
        _ => return None,
    })
}

/// The condition of a comparison of floats.
pub(super) fn float_condition(op: Op) -> Option<FloatCC> {
    Some(match op {
        F32Eq | F64Eq | F32x4Eq | F64x2Eq => FloatCC::Equal,
        F32Ne | F64Ne | F32x4Ne | F64x2Ne => FloatCC::NotEqual,
        F32Lt | F64Lt | F32x4Lt | F64x2Lt => FloatCC::LessThan,
        F32Gt | F64Gt | F32x4Gt | F64x2Gt => FloatCC::GreaterThan,
        F32Le | F64Le | F32x4Le | F64x2Le => FloatCC::LessThanOrEqual,
        F32Ge | F64Ge | F32x4Ge | F64x2Ge => FloatCC::GreaterThanOrEqual,
        _ => return None,
    })
}
