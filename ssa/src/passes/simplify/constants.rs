//! Folding of constants and of branches by constants.

use slotvm_bytecode::{Op, numeric};

use super::SimplificationReport;
use crate::ir::edit::Editor;
use crate::ir::entity::{Block, Edge, Inst, Value};
use crate::ir::fold;
use crate::ir::irop::Opcode;

/// Folds instructions and branches, in dominance order, so that operands come before their uses.
pub(super) fn fold(editor: &mut Editor<'_>, report: &mut SimplificationReport) {
    // The cell of each value that is a numeric constant.
    let mut cells = vec![None; editor.func().n_values()];
    let mut operands = Vec::new();
    for i in 0..editor.order().len() {
        let block = editor.order()[i];
        for j in 0..editor.insts(block).len() {
            let inst = editor.insts(block)[j];
            let Opcode::Op(op) = editor.func().opcode(inst) else { continue };
            if let Op::I32Const | Op::I64Const | Op::F32Const | Op::F64Const = op {
                let f = editor.func();
                cells[f.result(inst).index()] = Some(f.imm(inst).0);
                continue;
            }
            if !can_be_folded(op) {
                continue;
            }
            operands.clear();
            operands.extend_from_slice(editor.func().operands(inst));
            operands.iter_mut().for_each(|operand| *operand = editor.resolve(*operand));
            fold_inst(editor, block, inst, op, &operands, &mut cells, report);
        }
    }
}

fn can_be_folded(op: Op) -> bool {
    matches!(op, Op::Select | Op::BrIf | Op::BrTable) || numeric::is_numeric(op)
}

fn fold_inst(
    editor: &mut Editor<'_>,
    block: Block,
    inst: Inst,
    op: Op,
    operands: &[Value],
    cells: &mut [Option<u64>],
    report: &mut SimplificationReport,
) {
    let cell = |i: usize| operands.get(i).and_then(|operand| cells[operand.index()]);
    match op {
        Op::Select => {
            if let Some(condition) = cell(2) {
                let chosen = operands[fold::chosen(condition)];
                let result = editor.func().result(inst);
                editor.replace_value(result, chosen);
                report.n_folded += 1;
            }
        }
        Op::BrIf | Op::BrTable => {
            let chosen = cell(0).map(|cell| fold::taken(op, cell, editor.out_edges(block).len()));
            let chosen = chosen.and_then(|i| editor.out_edges(block).nth(i));
            if let Some(edge) = chosen.or_else(|| only_target(editor, block)) {
                editor.keep_edge(block, edge);
                report.n_branches += 1;
            }
        }
        _ => {
            if let Some((_, bits)) = fold::fold(op, cell) {
                cells[editor.func().result(inst).index()] = Some(bits);
                editor.fold(inst, bits);
                report.n_folded += 1;
            }
        }
    }
}

/// An out-edge, if all enter one block with the same operands.
pub(crate) fn only_target(editor: &mut Editor<'_>, block: Block) -> Option<Edge> {
    let mut edges = editor.out_edges(block);
    let first = edges.next()?;
    let is_same = |edge| {
        editor.dst(edge) == editor.dst(first)
            && (0..editor.args(edge).len()).all(|i| {
                let (a, b) = (editor.args(edge)[i], editor.args(first)[i]);
                editor.resolve(a) == editor.resolve(b)
            })
    };
    edges.all(is_same).then_some(first)
}
