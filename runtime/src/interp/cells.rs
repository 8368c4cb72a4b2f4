//! Cells of calls between the interpreter and what it calls, which gets its own: the stacks may move.

/// Cells for which nothing is allocated.
pub(super) const SMALL_CELLS: usize = 16;

/// `n` cells in either place. Those in `small` are 0.
pub(super) fn first<'a>(
    small: &'a mut [u64; SMALL_CELLS],
    large: &'a mut Vec<u64>,
    n: usize,
) -> &'a mut [u64] {
    if n <= SMALL_CELLS {
        return &mut small[..n];
    }
    large.resize(n, 0);
    large
}

/// Copies as many cells as `to` has. They are few, as a rule.
#[inline(always)]
pub(super) fn copy_cells(from: &[u64], to: &mut [u64]) {
    if to.len() <= SMALL_CELLS {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
    } else {
        to.copy_from_slice(&from[..to.len()]);
    }
}
