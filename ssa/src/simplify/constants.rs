//! Folding of constants and of branches by constants.

use slotvm_bytecode::{Op, ValType};

use super::{Replacements, SimplificationReport};
use crate::draft::{Draft, DraftBlock};
use crate::entity::{Inst, Value};
use crate::fold;
use crate::ir::Function;
use crate::irop::Opcode;

/// Folds instructions and branches, in dominance order, so that operands come before their uses.
pub(super) fn fold(
    f: &mut Function,
    draft: &mut Draft,
    replacements: &mut Replacements,
    report: &mut SimplificationReport,
) {
    // The cell of each value that is a numeric constant.
    let mut cells = vec![None; f.n_values()];
    for block in &mut draft.blocks {
        for &inst in &block.insts {
            let Opcode::Op(op) = f.opcode(inst) else { continue };
            let operands: Vec<Value> =
                f.operands(inst).iter().map(|&operand| replacements.find(operand)).collect();
            let cell = |i: usize| operands.get(i).and_then(|operand| cells[operand.index()]);
            match op {
                Op::I32Const | Op::I64Const | Op::F32Const | Op::F64Const => {
                    cells[f.result(inst).index()] = Some(f.imm(inst).0);
                }
                Op::Select => {
                    if let Some(condition) = cell(2) {
                        let chosen = operands[fold::chosen(condition)];
                        replacements.replace(f.result(inst), chosen);
                        report.n_folded += 1;
                    }
                }
                Op::BrIf | Op::BrTable => {
                    let chosen = cell(0).map(|cell| taken(op, cell, block.edges.len()));
                    if let Some(chosen) = chosen.or_else(|| only_target(block)) {
                        block.edges.swap(0, chosen);
                        block.edges.truncate(1);
                        f.ops[inst.index()] = Opcode::Op(Op::Br);
                        f.operands[inst.index()].1 = 0;
                        report.n_branches += 1;
                    }
                }
                _ => {
                    if let Some((ty, bits)) = fold::fold(op, cell) {
                        cells[f.result(inst).index()] = Some(bits);
                        make_constant(f, inst, ty, bits);
                        report.n_folded += 1;
                    }
                }
            }
        }
    }
}

fn make_constant(f: &mut Function, inst: Inst, ty: ValType, bits: u64) {
    let (op, imm) = fold::constant(f, ty, bits);
    f.ops[inst.index()] = Opcode::Op(op);
    f.imms[inst.index()] = imm;
    f.operands[inst.index()].1 = 0;
}

/// The out-edge that a branch takes.
fn taken(op: Op, selector: u64, n_edges: usize) -> usize {
    let selector = selector as u32 as usize;
    match op {
        Op::BrIf => usize::from(selector == 0),
        _ => selector.min(n_edges - 1),
    }
}

/// An out-edge, if all enter one block with the same operands.
fn only_target(block: &DraftBlock) -> Option<usize> {
    let (first, others) = block.edges.split_first()?;
    let is_same = others.iter().all(|edge| edge.dst == first.dst && edge.args == first.args);
    is_same.then_some(0)
}
