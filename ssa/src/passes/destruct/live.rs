//! Liveness of values: for each value the blocks where it is live, and how far into each.
//!
//! Values are handled one by one. From each use the search goes against the edges until it reaches the
//! definition or a visited block (Appel and Palsberg 2002; Boissinot et al., "Computing
//! Liveness Sets for SSA-Form Programs", 2011, section 5.2). The time is linear in the length of the
//! lists, which [`LIVE_PAIRS_MAX`] limits.
//!
//! Positions count from 0, where the parameters of a block are defined; instruction `i` uses its
//! operands and defines its results at `i + 1`. An operand of an edge is used at the end of the block
//! that the edge leaves, [`AT_EDGE`], and not in the block that it enters.

use super::TooLarge;
use crate::graphs::steps::step;
use crate::ir::Function;
use crate::ir::entity::{Block, Value};

/// The position of the uses by edges.
pub(super) const AT_EDGE: u32 = u32::MAX - 1;
/// The position after the block: the value is live on entry to a successor.
pub(super) const LIVE_OUT: u32 = u32::MAX;
/// The maximum number of pairs of a value and a block where it is live.
pub(super) const LIVE_PAIRS_MAX: usize = 1 << 25;

/// A point of a function: a block, and a position in it. Points of blocks that are numbered in
/// dominator-tree preorder are ordered so that a definition comes before all points it dominates.
pub(super) type Point = (Block, u32);

/// The uses of values, sorted by value.
#[derive(Debug)]
pub(super) struct Uses {
    starts: Vec<u32>,
    points: Vec<Point>,
}

impl Uses {
    /// Collects all uses. Operands for parameters that are not `wanted` do not count.
    pub(super) fn collect(f: &Function, wanted: impl Fn(Value) -> bool) -> Uses {
        let mut starts = vec![0; f.n_values() + 1];
        for_each_use(f, &wanted, |value, _| starts[value.index()] += 1);
        let mut end = 0;
        for start in &mut starts {
            end += *start;
            *start = end;
        }
        let mut points = vec![(Function::ENTRY, 0); end as usize];
        for_each_use(f, &wanted, |value, point| {
            starts[value.index()] -= 1;
            points[starts[value.index()] as usize] = point;
        });
        Uses { starts, points }
    }

    /// The uses of a value, in no particular order.
    pub(super) fn of(&self, value: Value) -> &[Point] {
        let start = self.starts[value.index()] as usize;
        &self.points[start..self.starts[value.index() + 1] as usize]
    }
}

fn for_each_use(f: &Function, wanted: impl Fn(Value) -> bool, mut on: impl FnMut(Value, Point)) {
    for block in f.blocks() {
        for (&inst, position) in f.insts(block).iter().zip(1..) {
            f.operands(inst).iter().for_each(|&value| on(value, (block, position)));
        }
        for edge in f.succ_edges(block) {
            for (&arg, &param) in f.edge_args(edge).iter().zip(f.params(f.edge_dst(edge))) {
                if wanted(param) {
                    on(arg, (block, AT_EDGE));
                }
            }
        }
    }
}

/// Blocks where each value is live, ascending, each with the position of its last use there, or [`LIVE_OUT`].
#[derive(Debug)]
pub(super) struct Liveness {
    starts: Vec<u32>,
    blocks: Vec<(Block, u32)>,
}

impl Liveness {
    /// Computes the liveness of the values that have a definition in `defs`.
    pub(super) fn compute(
        f: &Function,
        defs: &[Option<Point>],
        uses: &Uses,
    ) -> Result<Liveness, TooLarge> {
        let mut live = Liveness { starts: Vec::with_capacity(defs.len() + 1), blocks: Vec::new() };
        // The place of each block in the list of the current value, if it is after the list's start.
        let mut places = vec![0; f.n_blocks()];
        let mut work = Vec::new();
        for (value, def) in defs.iter().enumerate() {
            let start = live.blocks.len();
            live.starts.push(start as u32);
            let &Some((def_block, _)) = def else { continue };
            for &(block, position) in uses.of(Value::new(value)) {
                if live.reach(&mut places, start, block, position) && block != def_block {
                    work.push(block);
                }
                while let Some(block) = work.pop() {
                    for &edge in f.pred_edges(block) {
                        let pred = f.edge_src(edge);
                        if live.reach(&mut places, start, pred, LIVE_OUT) && pred != def_block {
                            work.push(pred);
                        }
                    }
                }
            }
            if live.blocks.len() > LIVE_PAIRS_MAX {
                return Err(TooLarge);
            }
            live.blocks[start..].sort_unstable();
        }
        live.starts.push(live.blocks.len() as u32);
        Ok(live)
    }

    /// Records that the value whose list starts at `start` is live up to a position of a block; returns
    /// whether the block is new in the list.
    fn reach(&mut self, places: &mut [u32], start: usize, block: Block, position: u32) -> bool {
        step();
        let place = places[block.index()] as usize;
        match self.blocks.get_mut(place) {
            Some((known, last)) if place >= start && *known == block => {
                *last = position.max(*last);
                false
            }
            _ => {
                places[block.index()] = self.blocks.len() as u32;
                self.blocks.push((block, position));
                true
            }
        }
    }

    /// The blocks where a value is live, ascending, and how far into each.
    pub(super) fn of(&self, value: Value) -> &[(Block, u32)] {
        let start = self.starts[value.index()] as usize;
        &self.blocks[start..self.starts[value.index() + 1] as usize]
    }

    /// Whether a value is live after a point that its definition dominates.
    pub(super) fn is_live_behind(&self, value: Value, (block, position): Point) -> bool {
        let blocks = self.of(value);
        let found = blocks.binary_search_by_key(&block, |&(block, _)| block);
        found.is_ok_and(|i| blocks[i].1 > position)
    }
}
