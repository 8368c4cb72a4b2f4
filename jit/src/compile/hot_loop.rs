//! The instruction of a function that code placement aligns: the start of its hottest loop.
//!
//! A loop whose code lies differently in the lines that the processor fetches and decodes takes up to twice the time,
//! with the same instructions. Cranelift aligns no blocks, so the whole function is placed such that one loop is
//! aligned, which lowering has marked ([`crate::lower::hot_loop`]). All other code then lies the same way wherever the
//! function is placed.
//!
//! Relies on the starts of the blocks of the machine code, which Cranelift lists if `machine_code_cfg_info` is set. (It lists
//! the edges between them as well, but names other blocks as their sources where cold blocks are moved to the end.) The list
//! takes time quadratic in the number of blocks without code, so functions with more than [`PLACED_BLOCKS_MAX`] blocks, edges
//! and checks have none, and start at a multiple of 32 bytes as functions without loops do.

use cranelift_codegen::CompiledCode;

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

/// The instruction of a function that is to be aligned. Source locations tell whether they are marked.
pub(super) fn anchor(compiled: &CompiledCode, is_marked: impl Fn(u32) -> bool) -> Anchor {
    let mut ranges = compiled.buffer.get_srclocs_sorted().iter();
    let marked = ranges.find(|range| !range.loc.is_default() && is_marked(range.loc.bits()));
    match marked.and_then(|range| block_at(&compiled.bb_starts, range.start)) {
        Some(offset) => Anchor { offset, boundary: LOOP_BOUNDARY_BYTES },
        None => Anchor { offset: 0, boundary: START_BOUNDARY_BYTES },
    }
}

/// The start of the block that has the code at an offset, among sorted starts.
fn block_at(starts: &[u32], offset: u32) -> Option<u32> {
    let after = starts.partition_point(|&start| start <= offset);
    Some(starts[after.checked_sub(1)?])
}
