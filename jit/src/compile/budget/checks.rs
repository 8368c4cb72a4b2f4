//! Checks that split blocks: where no instruction may fault, each branches to a block that calls what stops
//! the program.

use slotvm_bytecode::{Effect, Op};
use slotvm_ssa::ir::Function;
use slotvm_ssa::ir::entity::{Block, Inst};
use slotvm_ssa::ir::irop::{IrOp, Opcode};

/// The blocks that the code of a block has, at most. An edge of a switch has one, too.
pub(crate) fn n_code_blocks(func: &Function, block: Block, splits: bool) -> u64 {
    let of_inst = |&inst: &Inst| match func.opcode(inst) {
        Opcode::Ir(IrOp::Poll) => 1,
        Opcode::Op(Op::BrTable) => func.succ_edges(block).len() as u64,
        // Lengths for which the runtime polls are told apart.
        op @ Opcode::Op(Op::MemoryCopy | Op::MemoryFill) => {
            3 + if splits { n_checks(op) } else { 0 }
        }
        op if splits => n_checks(op),
        _ => 0,
    };
    1 + func.insts(block).iter().map(of_inst).sum::<u64>()
}

/// The checks of a block, at most.
pub(crate) fn n_checks_of(func: &Function, block: Block) -> u64 {
    func.insts(block).iter().map(|&inst| n_checks(func.opcode(inst))).sum()
}

/// The most checks that the code of an operation has.
pub(super) fn n_checks(op: Opcode) -> u64 {
    let op = match op {
        Opcode::Op(op) => op,
        Opcode::Ir(IrOp::Fuel | IrOp::FuelBulk | IrOp::StackPush | IrOp::FramePush) => return 1,
        Opcode::Ir(_) => return 0,
    };
    match op.effect() {
        _ if op.access_bytes().is_some() => 1,
        _ if is_division(op) => 1,
        // The index, null, and the type.
        _ if op == Op::CallIndirect || op == Op::ReturnCallIndirect => 3,
        Effect::Call => 1,
        // Not a number, and out of range; zero, and overflow.
        Effect::Trap => 2,
        Effect::Read | Effect::Write => match op {
            Op::GlobalGet | Op::GlobalSet | Op::RefFunc | Op::TableSize | Op::MemorySize => 0,
            Op::TableGet | Op::TableSet | Op::TableGrow | Op::MemoryGrow => 1,
            // The bounds; for lengths for which the runtime polls, what the others have.
            Op::MemoryCopy | Op::MemoryFill => 3,
            // The trap, and an interruption.
            _ => 2,
        },
        _ => 0,
    }
}

/// Whether an operation traps for a divisor of zero only.
fn is_division(op: Op) -> bool {
    use Op::{I32DivU, I32RemS, I32RemU, I64DivU, I64RemS, I64RemU};
    matches!(op, I32DivU | I64DivU | I32RemS | I32RemU | I64RemS | I64RemU)
}
