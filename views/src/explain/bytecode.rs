//! The column of the bytecode: each instruction with the operand stack before it.

use std::collections::BTreeMap;

use slotvm_bytecode::VerifiedModule;
use slotvm_bytecode::text::Printer;
use slotvm_ssa::ir::Function;
use slotvm_ssa::passes::inline::ExitPlan;

use super::document::BytecodeLine;
use super::label_name;
use super::stack::Stacks;

/// The instructions of a function whose slot form's blocks have these numbers in the document, and which has these exits.
pub(super) fn lines(
    module: &VerifiedModule,
    slots: &Function,
    blocks: &[u32],
    plan: Option<&ExitPlan>,
) -> Vec<BytecodeLine> {
    let func = slots.func;
    let body = module.body(func).expect("the module defines the function");
    let code = module.func(func).expect("the module defines the function");
    // A block that an entry with a loop was split from comes after that, and has the instructions.
    let built: BTreeMap<u32, u32> = slots
        .blocks()
        .zip(blocks)
        .map(|(block, &number)| (slots.block_offset(block), number))
        .collect();
    let printer = Printer::new(module.module());
    let printer = printer.func(func);
    let mut stacks = Stacks::new(module, slots);
    let mut lines = vec![];
    for (index, block) in (0..).zip(&body.blocks) {
        stacks.start_block(block);
        let number = built.get(&block.start).copied();
        let is_exit = |plan: &ExitPlan| plan.of_func.blocks.binary_search(&index).is_ok();
        let left_out = plan.is_some_and(|plan| number.is_none() || is_exit(plan));
        for (offset, inst) in module.insts(func, block) {
            let label = block.label.filter(|_| offset == block.start);
            lines.push(BytecodeLine {
                offset,
                text: printer.inst(inst),
                stack: stacks.operands(),
                line: code.line_at(offset),
                label: label.map(|label| label_name(module, func, label)),
                block: number,
                left_out,
            });
            stacks.execute(offset, inst.op, inst.imm);
        }
    }
    lines
}
