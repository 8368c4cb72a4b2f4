//! Pseudo-random numbers (splitmix64), the same for the same seed on every machine.

use std::ops::Range;

pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, or 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.bits() % n.max(1) as u64) as usize
    }

    /// Returns true once in `n` times.
    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Returns a number from 1 to 8, mostly few.
    pub(crate) fn few(&mut self) -> usize {
        let doublings = self.below(4);
        1 + self.below(1 << doublings)
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// A range within this length, mostly a short one.
    pub(crate) fn range(&mut self, len: usize) -> Range<usize> {
        let start = self.below(len + 1);
        let max = if self.one_in(8) { len } else { 16 };
        start..start + self.below(max.min(len - start) + 1)
    }
}
