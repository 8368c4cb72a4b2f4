//! Counts that bound the work of a code generator on a function.
//!
//! Register allocators and optimisers take time for values that live in many blocks, and for dominators
//! that they find by walking. These counts measure both, at a cost linear in the function or in a limit
//! of the caller.
//!
//! * [`live_slots`]: the number of slots live on entry to each block of the slot form. No value of
//!   the SSA form is live where none of its slots is.
//! * [`recurring_spans`]: the extra blocks in which an optimiser could keep values of the SSA form live
//!   that are computed again in another block, or are loop-invariant.
//! * [`crowding()`]: how many values live at a time inside of blocks, and how much longer an optimiser makes
//!   them live that computes something later.
//! * [`copies()`]: the extra times that an optimiser computes values in more than one block.
//! * [`dominator_steps`]: the steps walked by the algorithm of Cooper, Harvey and Kennedy, "A Simple, Fast
//!   Dominance Algorithm" (2001). It is the usual one, and takes the square of the size of some
//!   graphs and the cube of others.

mod copies;
mod crowding;
mod recurring;

use crate::graphs::cfg::ControlFlow;
use crate::graphs::dominators::iterate;
use crate::graphs::queue::Bitmap;
use crate::graphs::search::{NONE, Search};
use crate::graphs::steps::step;
use crate::ir::Function;
use crate::ir::irop::{IrOp, Opcode};

pub use copies::copies;
pub use crowding::{Crowding, crowding, crowding_max};
pub use recurring::{HiddenValue, recurring_spans};

/// Slots in a word.
const WORD_SLOTS: usize = 64;

/// The number of slots that are live on entry to each block of a function in slot form. `None` if that
/// takes more than `words_max` words of 64 slots.
pub fn live_slots(func: &Function, words_max: usize) -> Option<Vec<u32>> {
    let n_blocks = func.n_blocks();
    let log = ExposedReads::find(func);
    let n_groups = log.n_slots.div_ceil(WORD_SLOTS);
    if n_groups.saturating_mul(n_blocks) > words_max {
        return None;
    }
    let mut counts = vec![0; n_blocks];
    let (mut live, mut written) = (vec![0_u64; n_blocks], vec![0_u64; n_blocks]);
    let mut work = Bitmap::default();
    work.resize(n_blocks);
    for accesses in log.groups(n_groups) {
        live.fill(0);
        written.fill(0);
        for &Access { block, bit, is_read } in &accesses {
            let words = if is_read { &mut live } else { &mut written };
            words[block as usize] |= 1 << bit;
            if is_read {
                work.insert(block as usize);
            }
        }
        // What is live in a block is live in its predecessors, unless they write it.
        while let Some(block) = work.pop_last() {
            for &edge in func.pred_edges(crate::ir::entity::Block(block as u32)) {
                step();
                let pred = func.edge_src(edge).index();
                let new = live[block] & !written[pred] & !live[pred];
                if new != 0 {
                    live[pred] |= new;
                    work.insert(pred);
                }
            }
        }
        for (count, live) in counts.iter_mut().zip(&live) {
            *count += live.count_ones();
        }
    }
    Some(counts)
}

/// An access of a slot that some block reads before it writes it.
#[derive(Copy, Clone)]
struct Access {
    block: u32,
    /// The slot's place in its group.
    bit: u8,
    is_read: bool,
}

/// First access of each slot in each block, if it is a read, and a write, if there is one.
struct ExposedReads {
    /// Slot, block, and whether it is a read.
    accesses: Vec<(u32, u32, bool)>,
    /// The number of each slot among those that some block reads first, or [`NONE`].
    numbers: Vec<u32>,
    n_slots: usize,
}

impl ExposedReads {
    fn find(func: &Function) -> ExposedReads {
        let mut numbers = vec![NONE; func.slots.len()];
        let mut n_slots = 0;
        let mut accesses = Vec::new();
        // The last block that accesses a slot, and the last one that writes it.
        let mut touched = vec![(NONE, NONE); func.slots.len()];
        for block in func.blocks() {
            for &inst in func.insts(block) {
                let Opcode::Ir(op @ (IrOp::SlotGet | IrOp::SlotSet)) = func.opcode(inst) else {
                    continue;
                };
                let slot = func.imm(inst).low();
                let (accessed_in, written_in) = &mut touched[slot as usize];
                if op == IrOp::SlotSet && *written_in != block.0 {
                    accesses.push((slot, block.0, false));
                    *written_in = block.0;
                } else if op == IrOp::SlotGet && *accessed_in != block.0 {
                    accesses.push((slot, block.0, true));
                    if numbers[slot as usize] == NONE {
                        numbers[slot as usize] = n_slots;
                        n_slots += 1;
                    }
                }
                *accessed_in = block.0;
            }
        }
        ExposedReads { accesses, numbers, n_slots: n_slots as usize }
    }

    /// The accesses of each group of slots.
    fn groups(self, n_groups: usize) -> Vec<Vec<Access>> {
        let mut groups = vec![Vec::new(); n_groups];
        for (slot, block, is_read) in self.accesses {
            let number = self.numbers[slot as usize] as usize;
            if let Some(group) = groups.get_mut(number / WORD_SLOTS) {
                group.push(Access { block, bit: (number % WORD_SLOTS) as u8, is_read });
            }
        }
        groups
    }
}

/// The steps that the algorithm of Cooper, Harvey and Kennedy walks up the tree, in all its rounds; or
/// `steps_max` if there are more.
pub fn dominator_steps(cfg: &impl ControlFlow, steps_max: u64) -> u64 {
    let (mut search, mut numbers) = (Search::default(), Vec::new());
    search.run(cfg, &mut numbers);
    iterate(cfg, &search, &mut numbers, &mut Vec::new(), steps_max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::construction::build::BuildOptions;
    use crate::graphs::ids::Slot;
    use crate::graphs::slot_blocks::SlotBlocks;
    use crate::ir::graph::control_flow;
    use crate::tools::samples::{module, slot_form};
    use crate::tools::testing::{chain, families, irreducible, nest};

    fn slots(source: &str) -> Function {
        slot_form(&module(source), 0, &BuildOptions::default())
    }

    /// A loop that 100 locals live through, one of which changes in it.
    fn many_slots() -> Function {
        let mut source = String::from("func f(n: i32) -> i64 {\n  local 100 i64\n");
        for i in 1..=100 {
            source += &format!("  i64.const {i} local.set {i}\n");
        }
        source += "again:\n  local.get 1 i64.const 1 i64.add local.set 1\n";
        source += "  local.get n br_if again\n  i64.const 0\n";
        for i in 1..=100 {
            source += &format!("  local.get {i} i64.add\n");
        }
        slots(&(source + "  return }"))
    }

    #[test]
    fn live_slots_are_those_of_the_dataflow() {
        let func = many_slots();
        let counts = live_slots(&func, usize::MAX).unwrap();
        let log = ExposedReads::find(&func);
        let of = |wanted: bool| log.accesses.iter().filter(move |a| a.2 == wanted);
        let pairs =
            |wanted| of(wanted).map(|&(slot, block, _)| (block, Slot(slot))).collect::<Vec<_>>();
        let slot_blocks = SlotBlocks::new(func.slots.len(), pairs(false), pairs(true));
        let live =
            crate::graphs::liveness::Liveness::new(&control_flow(&func), &slot_blocks).unwrap();
        for (block, &count) in (0..).zip(&counts) {
            let n = slot_blocks.slots().filter(|&slot| live.is_live_in(block, slot));
            assert_eq!(count as usize, n.count(), "b{block}");
        }
        assert!(counts.contains(&101), "{counts:?}");
        assert_eq!(live_slots(&func, 1), None);
    }

    #[test]
    fn walks_up_the_tree_are_counted_up_to_the_limit() {
        let steps = |cfg| dominator_steps(&cfg, 1 << 20);
        assert_eq!(steps(chain(1_000)), 0);
        // The square of the depth, and the cube of it.
        assert!((100_000..1 << 20).contains(&steps(nest(1_000))), "{}", steps(nest(1_000)));
        assert_eq!(steps(nest(10_000)), 1 << 20);
        let ratio = steps(irreducible(64)) / steps(irreducible(32)).max(1);
        assert!(ratio >= 2, "{ratio}");
        for (name, cfg) in families(100) {
            assert!(dominator_steps(&cfg, u64::MAX) < 1 << 40, "{name}");
        }
    }
}
