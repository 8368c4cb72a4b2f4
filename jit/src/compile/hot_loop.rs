//! The instruction of a function that code placement aligns: the start of its hottest loop.
//!
//! A loop whose code lies differently in the lines that the processor fetches and decodes takes up to twice the time,
//! with the same instructions. Cranelift aligns no blocks, so the whole function is placed such that one loop is
//! aligned: the deepest one, among those the one with the least code, among those the first. All other code then lies
//! the same way wherever the function is placed.
//!
//! Relies on the blocks of the machine code, which Cranelift lists if `machine_code_cfg_info` is set. Near-linear in
//! their number; but the list takes time quadratic in the number of blocks without code, so functions with more than
//! [`PLACED_BLOCKS_MAX`] blocks, edges and checks have none, and start at a multiple of 32 bytes as functions without
//! loops do.

use cranelift_codegen::CompiledCode;
use slotvm_ssa::graphs::cfg::{Cfg, ControlFlow};
use slotvm_ssa::graphs::ids::Loop;
use slotvm_ssa::graphs::loops::{LoopForest, LoopScratch};

use crate::code::machine_code::Anchor;
use crate::compile::budget::WorkCounts;

/// A loop starts at a multiple of these bytes: a line of the cache of decoded instructions.
const LOOP_BOUNDARY_BYTES: u32 = Anchor::LINE_BYTES;
/// The alignment of a function without loops in bytes: the size of a fetch.
const START_BOUNDARY_BYTES: u32 = 32;

/// Blocks, edges and checks of a function whose hottest loop is looked for, at most. Each of them may become a block of
/// the machine code.
const PLACED_BLOCKS_MAX: u64 = 1 << 14;

/// Whether a function with these counts may be placed by its hottest loop.
pub(super) fn is_placed(counts: &WorkCounts) -> bool {
    counts.n_blocks + counts.n_edges + counts.n_checks <= PLACED_BLOCKS_MAX
}

/// Finds the block to align, in memory that it reuses.
#[derive(Default)]
pub(super) struct HotLoops {
    cfg: Cfg,
    loops: LoopForest,
    scratch: LoopScratch,
}

impl HotLoops {
    /// The instruction of a function that is to be aligned.
    pub(super) fn anchor(&mut self, compiled: &CompiledCode) -> Anchor {
        let (starts, edges) = (&compiled.bb_starts, &compiled.bb_edges);
        let end = compiled.buffer.data().len() as u32;
        match self.hottest(starts, edges, end) {
            Some(offset) => Anchor { offset, boundary: LOOP_BOUNDARY_BYTES },
            None => Anchor { offset: 0, boundary: START_BOUNDARY_BYTES },
        }
    }

    /// The start of the hottest loop of blocks with these starts and edges, which are given by starts, too. Both are
    /// sorted, edges by their sources.
    fn hottest(&mut self, starts: &[u32], edges: &[(u32, u32)], end: u32) -> Option<u32> {
        // Without an edge backwards there is no loop.
        if !edges.iter().any(|(src, dst)| dst <= src) {
            return None;
        }
        let block = |offset: u32| starts.partition_point(|&start| start <= offset) as u32 - 1;
        let succs = edges.chunk_by(|a, b| a.0 == b.0);
        let mut succs = succs.peekable();
        let lists = starts.iter().map(|&start| {
            let edges = succs.next_if(|edges| edges[0].0 == start).unwrap_or_default();
            edges.iter().map(|&(_, dst)| block(dst))
        });
        self.cfg.rebuild(0, lists);
        self.loops.compute(&self.cfg, &mut self.scratch);
        let loops = &self.loops;
        let mut bytes = vec![0; loops.n_loops()];
        for block in 0..self.cfg.n_blocks() {
            if let Some(Loop(innermost)) = loops.innermost(block as u32) {
                let next = starts.get(block + 1).copied().unwrap_or(end);
                bytes[innermost as usize] += next - starts[block];
            }
        }
        let coldness = |it: &Loop| (u32::MAX - loops.depth(*it), bytes[it.0 as usize]);
        let hottest = loops.loops().min_by_key(coldness)?;
        Some(starts[loops.header(hottest) as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hottest(starts: &[u32], edges: &[(u32, u32)], end: u32) -> Option<u32> {
        HotLoops::default().hottest(starts, edges, end)
    }

    #[test]
    fn code_without_loops_has_no_hottest_one() {
        assert_eq!(hottest(&[], &[], 5), None);
        assert_eq!(hottest(&[0], &[], 5), None);
        // The block at 12 is out of line, and goes back.
        assert_eq!(hottest(&[0, 4, 8, 12], &[(0, 4), (0, 12), (4, 8), (12, 8)], 20), None);
    }

    #[test]
    fn the_deepest_loop_is_hottest_then_the_smallest_then_the_first() {
        // A block before and after, two loops of one block, of which the second has this size.
        let two = |bytes: u32| {
            let edges = [(0, 4), (4, 4), (4, 14), (14, 14), (14, 14 + bytes)];
            hottest(&[0, 4, 14, 14 + bytes], &edges, 40)
        };
        assert_eq!(two(11), Some(4));
        assert_eq!(two(10), Some(4));
        assert_eq!(two(9), Some(14));
        // The first is in another loop.
        let edges = [(0, 4), (4, 4), (4, 14), (14, 0), (14, 20), (20, 20), (20, 21)];
        assert_eq!(hottest(&[0, 4, 14, 20, 21], &edges, 30), Some(4));
    }

    #[test]
    fn code_out_of_line_belongs_to_its_loop() {
        // A loop at 4 whose rare path lies at 20, and a loop at 10 without one.
        let edges = [(0, 4), (4, 20), (4, 4), (4, 10), (10, 10), (10, 18), (20, 4)];
        assert_eq!(hottest(&[0, 4, 10, 18, 20], &edges, 30), Some(10));
    }

    #[test]
    fn edges_to_blocks_that_are_gone_lead_to_what_holds_their_code() {
        assert_eq!(hottest(&[0, 8, 16], &[(0, 8), (8, 16), (16, 10)], 20), Some(8));
    }
}
