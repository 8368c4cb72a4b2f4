//! How much work a function will be for a code generator: counts that bound it.
//!
//! Register allocators and optimisers take time for what lives in many blocks, and for dominators that
//! they find by walking. These counts say how much of that there is, at a cost that is linear in the
//! function, or in a limit that the caller gives.
//!
//! * [`live_slots`]: how many slots are live on entry to each block, of the slot form. No value of
//!   the SSA form is live where none of its slots is.
//! * [`recurring_spans`]: how much longer an optimiser could make values of the SSA form live that are
//!   computed again in another block, or are the same in each round of a loop.
//! * [`crowding()`]: how many values live at a time inside of blocks, and how much longer an optimiser makes
//!   them live that computes something later.
//! * [`dominator_steps`]: how far the algorithm of Cooper, Harvey and Kennedy, "A Simple, Fast
//!   Dominance Algorithm" (2001), walks. It is the usual one, and takes the square of the size of some
//!   graphs and the cube of others.

mod crowding;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};

use slotvm_bytecode::{Effect, Imm};

use crate::cfg::ControlFlow;
use crate::entity::Value;
use crate::idf::queue::Bitmap;
use crate::ir::Function;
use crate::irop::{IrOp, Opcode};
use crate::loops::LoopForest;
use crate::search::{NONE, Search};
use crate::steps::step;

pub use crowding::{Crowding, crowding, crowding_max};

/// Slots in a word.
const WORD_SLOTS: usize = 64;

/// The number of slots that are live on entry to each block of a function in slot form. Nothing if that
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
            for &edge in func.pred_edges(crate::entity::Block(block as u32)) {
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

/// Of each slot and block the first access, if it is a read, and a write, if there is one.
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

/// In how many more blocks values could be live if an optimiser did not compute them again: operations
/// without effects, constants apart, that an earlier block has too, or that give the same in each round
/// of a loop around them. Summed over the operations, and about right. `loops` are the loops of the
/// function, which is in SSA form.
pub fn recurring_spans(func: &Function, loops: &LoopForest) -> u64 {
    let spans = LoopSpans::new(func, loops);
    let mut total = 0;
    // The first value that is computed likewise, and the depth of the loops in which a value changes.
    let mut leaders: Vec<u32> = (0..func.n_values() as u32).collect();
    let mut depths = vec![0; func.n_values()];
    let mut first: HashMap<_, (Value, u32), BuildHasherDefault<DefaultHasher>> = HashMap::default();
    for block in func.blocks() {
        let depth = loops.depth_of_block(block.0);
        for &param in func.params(block) {
            depths[param.index()] = depth;
        }
        for &inst in func.insts(block) {
            if func.opcode(inst).effect() != Effect::Pure || func.results(inst).len() != 1 {
                func.results(inst).for_each(|result| depths[result.index()] = depth);
                continue;
            }
            let (result, operands) = (func.result(inst), func.operands(inst));
            let changes = operands.iter().map(|value| depths[value.index()]).max().unwrap_or(0);
            depths[result.index()] = changes;
            let operand = |i: usize| operands.get(i).map(|value| leaders[value.index()]);
            let key: (Opcode, Imm, [Option<u32>; 3]) =
                (func.opcode(inst), func.imm(inst), std::array::from_fn(operand));
            let &mut (leader, leader_block) = first.entry(key).or_insert((result, block.0));
            leaders[result.index()] = leader.0;
            if operands.is_empty() {
                continue;
            }
            if leader_block != block.0 {
                total += u64::from(block.0 - leader_block) + spans.of_loop_within(block.0, 0);
            } else if changes < depth {
                total += spans.of_loop_within(block.0, changes);
            }
        }
    }
    total
}

/// The sizes of loops.
struct LoopSpans<'a> {
    loops: &'a LoopForest,
    /// The number of blocks of each loop, those of the loops inside it included.
    sizes: Vec<u64>,
    n_blocks: u64,
}

impl<'a> LoopSpans<'a> {
    fn new(func: &Function, loops: &'a LoopForest) -> LoopSpans<'a> {
        let mut sizes = vec![0; loops.n_loops()];
        for number in func.blocks().filter_map(|block| loops.innermost(block.0)) {
            sizes[number as usize] += 1;
        }
        // Loops are numbered in preorder.
        for number in (0..loops.n_loops() as u32).rev() {
            if let Some(around) = loops.parent(number) {
                sizes[around as usize] += sizes[number as usize];
            }
        }
        LoopSpans { loops, sizes, n_blocks: func.n_blocks() as u64 }
    }

    /// The size of the outermost loop around a block that is deeper than `depth`.
    fn of_loop_within(&self, block: u32, depth: u32) -> u64 {
        /// A nest this deep may be the whole function.
        const DEPTH_MAX: usize = 16;
        let around = |&number: &u32| self.loops.parent(number);
        let loops = std::iter::successors(self.loops.innermost(block), around);
        let mut within = loops.take_while(|&number| self.loops.depth(number) > depth);
        match within.by_ref().take(DEPTH_MAX).last() {
            None => 0,
            Some(_) if within.next().is_some() => self.n_blocks,
            Some(outermost) => self.sizes[outermost as usize],
        }
    }
}

/// The steps that the algorithm of Cooper, Harvey and Kennedy walks up the tree, in all its rounds; or
/// `steps_max` if there are more.
pub fn dominator_steps(cfg: &impl ControlFlow, steps_max: u64) -> u64 {
    let (mut search, mut numbers) = (Search::default(), Vec::new());
    search.run(cfg, &mut numbers);
    let order = search.postorder.iter().rev().map(|&found| search.vertices[found as usize]);
    let order: Vec<u32> = order.collect();
    for (number, &block) in (0..).zip(&order) {
        numbers[block as usize] = number;
    }
    // By number; the entry is its own parent.
    let mut idoms = vec![NONE; order.len()];
    idoms[0] = 0;
    let mut n_steps = 0;
    let mut has_changed = true;
    while std::mem::take(&mut has_changed) {
        for (number, &block) in (0_u32..).zip(&order).skip(1) {
            let mut idom = NONE;
            for &pred in cfg.preds(block) {
                let mut other = numbers[pred as usize];
                if other == NONE || idoms[other as usize] == NONE {
                    continue;
                }
                if idom == NONE {
                    idom = other;
                }
                while idom != other {
                    step();
                    n_steps += 1;
                    let deeper = if idom > other { &mut idom } else { &mut other };
                    *deeper = idoms[*deeper as usize];
                }
                if n_steps >= steps_max {
                    return steps_max;
                }
            }
            if idoms[number as usize] != idom {
                idoms[number as usize] = idom;
                has_changed = true;
            }
        }
    }
    n_steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::BuildOptions;
    use crate::graph::control_flow;
    use crate::promote::{Scratch, promote};
    use crate::samples::{module, slot_form};
    use crate::slot_blocks::SlotBlocks;
    use crate::testing::{chain, families, irreducible, nest};

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
        let pairs = |wanted| of(wanted).map(|&(slot, block, _)| (block, slot)).collect::<Vec<_>>();
        let slot_blocks = SlotBlocks::new(func.slots.len(), pairs(false), pairs(true));
        let live = crate::liveness::Liveness::new(&control_flow(&func), &slot_blocks).unwrap();
        for (block, &count) in (0..).zip(&counts) {
            let n = (0..func.slots.len() as u32).filter(|&slot| live.is_live_in(block, slot));
            assert_eq!(count as usize, n.count(), "b{block}");
        }
        assert!(counts.contains(&101), "{counts:?}");
        assert_eq!(live_slots(&func, 1), None);
    }

    #[test]
    fn what_recurs_is_counted() {
        let recurring = |source: &str| {
            let mut func = slots(source);
            promote(&mut func, &mut Scratch::default());
            recurring_spans(&func, &LoopForest::new(&control_flow(&func)))
        };
        // In one block each value is computed once anyway.
        let once = "local.get n i32.const 3 i32.mul local.get n i32.const 3 i32.mul i32.add";
        assert_eq!(recurring(&format!("func f(n: i32) -> i32 {{ {once} return }}")), 0);
        // The next block has a product and what is made of it.
        let twice = "local.get n i32.const 3 i32.mul i32.const 5 i32.xor";
        let source = format!("func f(n: i32) -> i32 {{ {twice} br_if a a: {twice} return }}");
        assert_eq!(recurring(&source), 2);
        // The sum does not change in the loop, which has one block.
        let source = "func f(n: i32, m: i32) { a: local.get m i32.const 1 i32.add
            local.get n i32.const 1 i32.sub local.tee n i32.or br_if a return }";
        assert_eq!(recurring(source), 1);
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
