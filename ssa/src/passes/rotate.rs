//! Loop rotation: a loop that tests at its top is made to test at its bottom.
//!
//! Relies on slot form, and guarantees it. A block that branches back to a small header which decides whether the loop
//! goes on gets a copy of the header instead, so that a round of the loop takes one branch and not two. The header
//! itself stays in front of the loop. It is the `while` loop that becomes a guarded `do` loop, as in LLVM's
//! `LoopRotation`. All that branches back must do nothing else, so that no branch to the header is left in the loop.
//!
//! It works before promotion, since the values of a header's copy and of the header meet afterwards: promotion makes
//! the phis. Only headers whose values are not used in other blocks are copied, which in slot form is nearly all.
//!
//! A loop that chooses among many targets right after its test, as an interpreter does, stays: it took longer with a
//! copy, since every target then passes the test before it jumps back to the choice.
//!
//! A copy has all instructions of the header, charges and polls included, in their order and with their locations. So
//! each path does what it did. Copies add no more than `COPIED_MAX` instructions for each loop.

use slotvm_bytecode::{Effect, Op};

use crate::graphs::ids::Loop;
use crate::graphs::loops::LoopForest;
use crate::ir::Function;
use crate::ir::analyses::Analyses;
use crate::ir::blocks::Blocks;
use crate::ir::entity::{Block, Edge, Inst, Value};
use crate::ir::irop::{IrOp, Opcode};

/// The maximum number of instructions of a header that is copied, without accesses of slots and constants.
const HEADER_MAX: usize = 10;
/// The maximum number of instructions, counted so, in all copies of a header.
const COPIED_MAX: usize = 2 * HEADER_MAX;

/// A `br_table` with more edges than this dispatches.
const UNDISPATCHED_MAX: usize = 8;

/// Statistics of rotation.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct RotationReport {
    /// Loops that were rotated.
    pub n_loops: usize,
    /// Blocks that branched back to a header, and have a copy of it now.
    pub n_copies: usize,
}

/// Rotates the loops of a function in slot form.
pub fn rotate(f: &mut Function, analyses: &mut Analyses) -> RotationReport {
    // Blocks are numbered so that only what closes a loop leads back.
    let is_back = |edge: Edge| f.edge_dst(edge) <= f.edge_src(edge);
    if !f.blocks().any(|block| f.succ_edges(block).any(is_back)) {
        return RotationReport::default();
    }
    let copies = find_copies(f, analyses);
    if copies.report == RotationReport::default() {
        return RotationReport::default();
    }
    let mut blocks = Blocks::like(f);
    let layout = std::mem::take(&mut f.layout);
    for block in f.blocks() {
        let (start, end) = f.blocks[block.index()].insts;
        let insts = &layout[start as usize..end as usize];
        blocks.open(block.0);
        match copies.of[block.index()] {
            Some(header) => {
                blocks.push_all(&insts[..insts.len() - 1]);
                let (start, end) = f.blocks[header.index()].insts;
                let header_insts = &layout[start as usize..end as usize];
                copy_header(f, &mut blocks, block, header, header_insts);
            }
            None => {
                blocks.push_all(insts);
                for edge in f.succ_edges(block) {
                    blocks.push_edge(f.edge_dst(edge).0, f.edge_args(edge).iter().copied());
                }
            }
        }
        blocks.close(block.0);
    }
    blocks.finish(f, Function::ENTRY.0);
    copies.report
}

/// The header that each block gets a copy of.
struct Copies {
    of: Vec<Option<Block>>,
    report: RotationReport,
}

fn find_copies(f: &Function, analyses: &mut Analyses) -> Copies {
    let (loops, _) = analyses.loops(f);
    let mut found = Vec::new();
    for of in loops.loops().filter(|&of| !loops.is_irreducible(of)) {
        let header = Block(loops.header(of));
        let Some(size) = size_of_test(f, loops, of, header) else { continue };
        let is_latch =
            |block: &Block| loops.contains(of, block.0) && f.succ_edges(*block).len() == 1;
        let latches = f.pred_edges(header).iter().map(|&edge| f.edge_src(edge)).filter(is_latch);
        let n_latches = latches.clone().count();
        if n_latches > 0 && n_latches * size <= COPIED_MAX {
            found.extend(latches.map(|latch| (header, latch)));
        }
    }
    remove_exporting(f, &mut found);
    let mut copies = Copies { of: vec![None; f.n_blocks()], report: RotationReport::default() };
    for &(header, latch) in &found {
        copies.of[latch.index()] = Some(header);
    }
    copies.report.n_copies = found.len();
    found.dedup_by_key(|(header, _)| *header);
    copies.report.n_loops = found.len();
    copies
}

/// The size of a header that decides whether its loop goes on, and does little else.
fn size_of_test(f: &Function, loops: &LoopForest, of: Loop, header: Block) -> Option<usize> {
    let mut targets = f.succ_edges(header).map(|edge| f.edge_dst(edge));
    let (Some(a), Some(b), None) = (targets.next(), targets.next(), targets.next()) else {
        return None;
    };
    let [stays, leaves] = match loops.contains(of, a.0) {
        true => [a, b],
        false => [b, a],
    };
    let decides = loops.contains(of, stays.0) && !loops.contains(of, leaves.0) && stays != header;
    if is_dispatch(f, stays) {
        return None;
    }
    let counts = |inst: &&Inst| match f.opcode(**inst) {
        Opcode::Ir(op) => !op.is_slot_access(),
        Opcode::Op(op) => op.effect() != Effect::Pure || !f.operands(**inst).is_empty(),
    };
    let is_dear = |&inst: &Inst| {
        let op = f.opcode(inst);
        op.calls() || op == Opcode::Ir(IrOp::FramePush)
    };
    let size = f.insts(header).iter().filter(counts).count();
    (decides && size <= HEADER_MAX && !f.insts(header).iter().any(is_dear)).then_some(size)
}

/// Whether a block chooses among many targets.
fn is_dispatch(f: &Function, block: Block) -> bool {
    f.opcode(f.terminator(block)) == Opcode::Op(Op::BrTable)
        && f.succ_edges(block).len() > UNDISPATCHED_MAX
}

/// Removes the headers that have a value which another block uses, and their latches.
fn remove_exporting(f: &Function, found: &mut Vec<(Block, Block)>) {
    if found.is_empty() {
        return;
    }
    // The header of each of their values.
    let mut header_of = vec![None; f.n_values()];
    for &(header, _) in &*found {
        let results = f.insts(header).iter().flat_map(|&inst| f.results(inst));
        for value in f.params(header).iter().copied().chain(results) {
            header_of[value.index()] = Some(header);
        }
    }
    let mut exports = vec![false; f.n_blocks()];
    for block in f.blocks() {
        let operands = f.insts(block).iter().flat_map(|&inst| f.operands(inst));
        let args = f.succ_edges(block).flat_map(|edge| f.edge_args(edge));
        let headers = operands.chain(args).filter_map(|value| header_of[value.index()]);
        headers.filter(|&header| header != block).for_each(|from| exports[from.index()] = true);
    }
    found.retain(|&(header, _)| !exports[header.index()]);
}

/// Ends a block with a copy of a header instead of the branch to it.
fn copy_header(f: &mut Function, blocks: &mut Blocks, latch: Block, header: Block, insts: &[Inst]) {
    let edge = f.succ_edges(latch).next().expect("a latch has an edge");
    let mut copies: Vec<(Value, Value)> =
        f.params(header).iter().copied().zip(f.edge_args(edge).iter().copied()).collect();
    for &inst in insts {
        let operands: Vec<Value> =
            f.operands(inst).iter().map(|&value| copy_of(&copies, value)).collect();
        let copy = f.make_copy(inst, &operands);
        copies.extend(f.results(inst).zip(f.results(copy)));
        blocks.push(copy);
    }
    for edge in f.succ_edges(header) {
        let args: Vec<Value> =
            f.edge_args(edge).iter().map(|&value| copy_of(&copies, value)).collect();
        blocks.push_edge(f.edge_dst(edge).0, args);
    }
}

/// Returns the value that stands for a value in a copy. Headers are small, so a list will do.
fn copy_of(copies: &[(Value, Value)], value: Value) -> Value {
    copies.iter().rev().find(|&&(of, _)| of == value).map_or(value, |&(_, copy)| copy)
}

#[cfg(test)]
mod tests;
