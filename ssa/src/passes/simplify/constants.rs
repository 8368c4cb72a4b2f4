//! Folding of constants and of branches by constants.

use slotvm_bytecode::{Op, numeric, pairs};

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
    // The instructions of a block with two results, by their places, and what takes these.
    let mut folded = Vec::new();
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
            if pairs::is_pair(op) {
                if let Some(constants) = fold_pair(editor, inst, op, &operands, &mut cells) {
                    folded.push((j, constants));
                    report.n_folded += 1;
                }
                continue;
            }
            fold_inst(editor, block, inst, op, &operands, &mut cells, report);
        }
        replace_pairs(editor, block, &mut folded);
    }
}

/// The constants that are the results of an instruction with two, if its operands are constants. They stand for the results
/// from now on.
fn fold_pair(
    editor: &mut Editor<'_>,
    inst: Inst,
    op: Op,
    operands: &[Value],
    cells: &mut Vec<Option<u64>>,
) -> Option<[Inst; 2]> {
    let results = fold::fold_pair(op, |i| cells[operands[i].index()])?;
    let mut values = editor.func().results(inst);
    Some(results.map(|(ty, bits)| {
        let constant = editor.make_constant(ty, bits, editor.func().loc(inst));
        let value = editor.func().result(constant);
        cells.resize(value.index() + 1, None);
        cells[value.index()] = Some(bits);
        editor.replace_value(values.next().expect("there are two results"), value);
        constant
    }))
}

/// Puts constants in the places of the instructions that they stand for.
fn replace_pairs(editor: &mut Editor<'_>, block: Block, folded: &mut Vec<(usize, [Inst; 2])>) {
    if folded.is_empty() {
        return;
    }
    let mut insts = Vec::with_capacity(editor.insts(block).len() + folded.len());
    let mut rest = 0;
    for (position, constants) in folded.drain(..) {
        insts.extend_from_slice(&editor.insts(block)[rest..position]);
        insts.extend(constants);
        rest = position + 1;
    }
    insts.extend_from_slice(&editor.insts(block)[rest..]);
    editor.set_insts(block, &insts);
}

fn can_be_folded(op: Op) -> bool {
    matches!(op, Op::Select | Op::BrIf | Op::BrTable)
        || numeric::is_numeric(op)
        || pairs::is_pair(op)
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
