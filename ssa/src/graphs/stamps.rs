//! Sets that are cleared without touching their memory.

/// A set of numbers. Each number carries the stamp of the last set it was put into, so a new set takes
/// a new stamp and clears nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct StampSet {
    stamps: Vec<u32>,
    stamp: u32,
}

impl StampSet {
    /// Starts an empty set of numbers below `n`.
    pub(crate) fn start(&mut self, n: usize) {
        if self.stamps.len() < n {
            self.stamps.resize(n, 0);
        }
        self.stamp = self.stamp.wrapping_add(1);
        if self.stamp == 0 {
            self.stamps.fill(0);
            self.stamp = 1;
        }
    }

    /// Puts a number in; returns whether it was not there.
    #[inline]
    pub(crate) fn insert(&mut self, number: u32) -> bool {
        let stamp = &mut self.stamps[number as usize];
        let is_new = *stamp != self.stamp;
        *stamp = self.stamp;
        is_new
    }

    /// Whether a number is in the set.
    #[inline]
    pub(crate) fn contains(&self, number: u32) -> bool {
        self.stamps[number as usize] == self.stamp
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_start_empty_even_when_stamps_wrap_around() {
        let mut set = StampSet { stamp: u32::MAX - 3, ..StampSet::default() };
        for round in 0..10 {
            set.start(2 + round);
            let last = 1 + round as u32;
            assert!(!set.contains(0) && !set.contains(last));
            assert!(set.insert(last) && !set.insert(last));
            assert!(set.contains(last) && !set.contains(0));
        }
    }
}
