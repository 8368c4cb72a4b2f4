//! The places at which a function leaves for the interpreter.

use slotvm_bytecode::VerifiedModule;
use slotvm_ssa::ir::Function;
use slotvm_ssa::ir::entity::Block;
use slotvm_ssa::ir::irop::{IrOp, Opcode};
use slotvm_ssa::passes::inline::ExitPlan;

use super::document::Exit;

/// The exits of a function itself, which is in slot form, in the order of the bytecode.
pub(super) fn list(module: &VerifiedModule, slots: &Function, plan: &ExitPlan) -> Vec<Exit> {
    let body = module.body(slots.func).expect("the module defines the function");
    let calls = &plan.of_func.calls;
    let exits = slots.exits.iter().map(|state| match state.call {
        Some(offset) => {
            let call = calls.iter().find(|call| call.offset == offset);
            let callees = call.map_or(vec![], |call| call.callees.clone());
            Exit { offset, kind: "call", callees }
        }
        None => {
            let offset = body.blocks[state.blocks[0] as usize].start;
            Exit { offset, kind: "block", callees: vec![] }
        }
    });
    let mut exits: Vec<Exit> = exits.collect();
    exits.sort_by_key(|exit| (exit.offset, exit.kind));
    exits
}

/// Whether a block of a form ends with an exit.
pub(super) fn is_exit(f: &Function, block: Block) -> bool {
    f.opcode(f.terminator(block)) == Opcode::Ir(IrOp::Exit)
}
