//! The analyses of the control-flow graph that promotion rests on, as text: loops, dominance frontiers, live slots.

use std::collections::BTreeSet;
use std::fmt::Write;

use slotvm_bytecode::printable::counted;

use super::{ITEMS_MAX, ShowError};
use crate::graphs::cfg::{Cfg, ControlFlow};
use crate::graphs::dominators::DomTree;
use crate::graphs::frontier::Frontiers;
use crate::graphs::ids::Slot;
use crate::graphs::liveness::Liveness;
use crate::graphs::loops::LoopForest;
use crate::graphs::slot_blocks::SlotBlocks;
use crate::ir::Function;
use crate::ir::entity::Block;
use crate::ir::graph::{control_flow, list, origin, print_lines, title};
use crate::ir::irop::{IrOp, Opcode};

/// Prints the loops, each after the one around it, with the blocks where it is entered, those that lead back to its
/// header, and all its blocks.
pub(super) fn print_loops(f: &Function) -> Result<String, ShowError> {
    let cfg = control_flow(f);
    let loops = LoopForest::new(&cfg);
    let all = || loops.loops();
    let depths = cfg_blocks(&cfg).map(|block| loops.depth_of_block(block) as usize);
    check_items("blocks in loops", depths.sum())?;
    let mut blocks_of = vec![Vec::new(); loops.n_loops()];
    for block in cfg_blocks(&cfg) {
        let mut around = loops.innermost(block);
        while let Some(of) = around {
            blocks_of[of.index()].push(block);
            around = loops.parent(of);
        }
    }
    let n_irreducible = all().filter(|&of| loops.is_irreducible(of)).count();
    let mut out = title(f);
    let n_loops = counted(loops.n_loops() as u64, "loop", "loops");
    writeln!(out, "  ; {n_loops}, {n_irreducible} irreducible").expect(INFALLIBLE);
    for of in all() {
        let header = loops.header(of);
        let is_inside = |block: u32| loops.contains(of, block);
        let is_entry = |block: &u32| cfg.preds(*block).iter().any(|&pred| !is_inside(pred));
        let entries = blocks_of[of.index()].iter().copied().filter(is_entry).map(Block);
        let back: BTreeSet<u32> =
            cfg.preds(header).iter().copied().filter(|&block| is_inside(block)).collect();
        let back = back.into_iter().map(Block);
        let indent = "  ".repeat(loops.depth(of).min(DEPTH_SHOWN_MAX) as usize);
        let mark = if loops.is_irreducible(of) { " irreducible," } else { "" };
        let blocks = blocks_of[of.index()].iter().copied().map(Block);
        writeln!(
            out,
            "{indent}loop {}:{mark} depth {}, entered at {}, back from {}, blocks {}  ; {}",
            Block(header),
            loops.depth(of),
            list(entries),
            list(back),
            list(blocks),
            origin(f, Block(header))
        )
        .expect(INFALLIBLE);
    }
    Ok(out)
}

/// Loops deeper than this are indented as if they were at this depth.
const DEPTH_SHOWN_MAX: u32 = 20;

/// Prints the dominance frontier of each block.
pub(super) fn print_frontiers(f: &Function) -> Result<String, ShowError> {
    let cfg = control_flow(f);
    let frontiers = frontiers(&cfg, &DomTree::semi_nca(&cfg))?;
    Ok(print_lines(f, |b| {
        format!("frontier {}", list(frontiers.of(b.0).iter().copied().map(Block)))
    }))
}

/// Prints the slots that are live on entry to each block, and at its end.
pub(super) fn print_liveness(f: &Function) -> Result<String, ShowError> {
    let cfg = control_flow(f);
    let live = liveness(f, &cfg)?;
    let texts = f.slot_texts();
    let slots = || (0..f.slots.len()).map(Slot::new);
    let n_live = |block: u32| live.words(block).iter().map(|word| word.count_ones() as usize);
    // At the end of a block no more are live than on entry to all its successors.
    let n_in: usize = cfg_blocks(&cfg).flat_map(n_live).sum();
    let edges = cfg_blocks(&cfg).flat_map(|block| cfg.succs(block));
    let n_out: usize = edges.flat_map(|&succ| n_live(succ)).sum();
    check_items("live slots", n_in + n_out)?;
    let names = |is_live: &dyn Fn(Slot) -> bool| {
        list(slots().filter(|&slot| is_live(slot)).map(|slot| texts[slot.index()].as_str()))
    };
    Ok(print_lines(f, |b| {
        let live_in = names(&|slot| live.is_live_in(b.0, slot));
        let live_out = names(&|slot| live.is_live_out(&cfg, b.0, slot));
        format!("in {live_in}, out {live_out}")
    }))
}

/// The dominance frontiers, unless a text of them would be too long.
pub(super) fn frontiers(cfg: &Cfg, tree: &DomTree) -> Result<Frontiers, ShowError> {
    let mut frontiers = Frontiers::default();
    let computed = frontiers.compute(cfg, tree, ITEMS_MAX);
    computed.map_err(|_| ShowError::TooLong { items: "blocks in dominance frontiers" })?;
    Ok(frontiers)
}

/// The slots that are live on entry to each block.
fn liveness(f: &Function, cfg: &Cfg) -> Result<Liveness, ShowError> {
    let too_long = |_| ShowError::TooLong { items: "live slots" };
    Liveness::new(cfg, &accesses(f)).map_err(too_long)
}

/// The blocks that write each slot, and those that read it before they write it.
pub(super) fn accesses(f: &Function) -> SlotBlocks {
    let (mut writes, mut reads) = (Vec::new(), Vec::new());
    // One more than the last block that reads or writes a slot, and than the last one that writes it.
    let mut last = vec![(0, 0); f.slots.len()];
    for block in f.blocks() {
        let now = block.0 + 1;
        for &inst in f.insts(block) {
            let Opcode::Ir(op @ (IrOp::SlotGet | IrOp::SlotSet)) = f.opcode(inst) else { continue };
            let slot = Slot(f.imm(inst).low());
            let (accessed, written) = &mut last[slot.index()];
            if op == IrOp::SlotSet && *written != now {
                *written = now;
                writes.push((block.0, slot));
            } else if op == IrOp::SlotGet && *accessed != now {
                reads.push((block.0, slot));
            }
            *accessed = now;
        }
    }
    SlotBlocks::new(f.slots.len(), writes.iter().copied(), reads.iter().copied())
}

pub(super) fn check_items(items: &'static str, n: usize) -> Result<(), ShowError> {
    if n > ITEMS_MAX { Err(ShowError::TooLong { items }) } else { Ok(()) }
}

fn cfg_blocks(cfg: &Cfg) -> std::ops::Range<u32> {
    0..cfg.n_blocks() as u32
}

const INFALLIBLE: &str = "writing to a string succeeds";
