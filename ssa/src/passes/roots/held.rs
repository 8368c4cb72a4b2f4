//! Root cells that hold what their slots do at the start of a block: on all ways there a call has listed the cell, and since
//! then all calls have, and nothing has written the slot.
//!
//! A forward problem over one word for each block. A block is looked at again when its word loses cells, so at most once more than
//! there are cells.

use super::Cells;
use super::live::LiveAt;
use crate::graphs::cfg::ControlFlow;
use crate::graphs::ids::Slot;
use crate::ir::Function;
use crate::ir::irop::{IrOp, Opcode};

/// The effect of a block: cells that hold their slots after it whatever was before, and those that still do if they did.
#[derive(Copy, Clone)]
struct Effect {
    made: u32,
    kept: u32,
}

/// The cells at the start of each block.
pub(super) fn at_starts(
    f: &Function,
    live: &LiveAt,
    cells: &Cells,
    cfg: &impl ControlFlow,
) -> Vec<u32> {
    let effects = effects(f, live, cells);
    let mut starts = vec![u32::MAX; f.n_blocks()];
    starts[cfg.entry() as usize] = 0;
    let mut changed = vec![cfg.entry()];
    while let Some(block) = changed.pop() {
        let Effect { made, kept } = effects[block as usize];
        let end = starts[block as usize] & kept | made;
        for &succ in cfg.succs(block) {
            let start = &mut starts[succ as usize];
            if *start & end != *start {
                *start &= end;
                changed.push(succ);
            }
        }
    }
    starts
}

fn effects(f: &Function, live: &LiveAt, cells: &Cells) -> Vec<Effect> {
    let mut safepoints = live.safepoints.iter().peekable();
    let effect = |block| {
        let mut effect = Effect { made: 0, kept: u32::MAX };
        for &inst in f.insts(block) {
            if f.opcode(inst) == Opcode::Ir(IrOp::SlotSet)
                && let Some(cell) = cells.of_slots.get(&Slot(f.imm(inst).low()))
            {
                effect.made &= !(1 << cell);
                effect.kept &= !(1 << cell);
            }
            if let Some(at) = safepoints.next_if(|at| at.inst == inst) {
                let listed = cells.listed(&live.roots[at.roots.clone()]);
                effect = match f.opcode(inst) {
                    // What is written for a poll alone is not in its cell afterwards.
                    Opcode::Ir(IrOp::Poll) => {
                        Effect { made: effect.made & listed, kept: effect.kept & listed }
                    }
                    _ => Effect { made: listed, kept: 0 },
                };
            }
        }
        effect
    };
    f.blocks().map(effect).collect()
}
