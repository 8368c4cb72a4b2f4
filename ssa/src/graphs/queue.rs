//! Queues that return roots deepest first.

use std::collections::BinaryHeap;

use crate::graphs::search::NONE;

/// Blocks on their way to be walked from, deepest in the dominator tree first. Blocks are numbered in
/// preorder of the tree.
pub(super) trait RootQueue {
    /// Prepares for a tree, given the level of each block.
    fn start(&mut self, levels: &[u32]);

    /// Adds a block that is not in the queue.
    fn push(&mut self, level: u32, block: u32);

    /// Removes a block of the deepest nonempty level.
    fn pop(&mut self) -> Option<u32>;
}

/// LLVM's queue: the greatest level first and, within a level, the greatest depth-first number.
#[derive(Clone, Debug, Default)]
pub(super) struct Heap(BinaryHeap<(u32, u32)>);

impl RootQueue for Heap {
    fn start(&mut self, _: &[u32]) {
        self.0.clear();
    }

    fn push(&mut self, level: u32, block: u32) {
        self.0.push((level, block));
    }

    fn pop(&mut self) -> Option<u32> {
        self.0.pop().map(|(_, block)| block)
    }
}

/// A list for each level; within a level the block put in last comes first.
#[derive(Clone, Debug, Default)]
pub(super) struct Buckets {
    queue: LevelQueue,
    /// The next block of the same level, by block.
    next: Vec<u32>,
}

impl RootQueue for Buckets {
    fn start(&mut self, levels: &[u32]) {
        let n_levels = levels.iter().max().map_or(0, |&level| level as usize + 1);
        self.queue.resize(n_levels);
        if self.next.len() < levels.len() {
            self.next.resize(levels.len(), NONE);
        }
    }

    #[inline]
    fn push(&mut self, level: u32, block: u32) {
        self.next[block as usize] = self.queue.push(level, block);
    }

    #[inline]
    fn pop(&mut self) -> Option<u32> {
        self.queue.pop(|block| self.next[block as usize])
    }
}

/// Lists of blocks by level, of which the deepest can be taken: the first block of each list, and the
/// set of levels that have one. The links from block to block are kept by the user.
#[derive(Clone, Debug, Default)]
pub(crate) struct LevelQueue {
    /// The last block pushed, by level.
    heads: Vec<u32>,
    levels: Bitmap,
}

impl LevelQueue {
    /// Makes room for a number of levels.
    pub(crate) fn resize(&mut self, n: usize) {
        self.heads.resize(self.heads.len().max(n), NONE);
        self.levels.resize(n);
    }

    /// Puts a block at the head of its level's list; returns the next one in the list.
    pub(crate) fn push(&mut self, level: u32, block: u32) -> u32 {
        let next = std::mem::replace(&mut self.heads[level as usize], block);
        if next == NONE {
            self.levels.insert(level as usize);
        }
        next
    }

    /// Takes a block of the deepest level that has one; `next_of` knows the next one in the list.
    pub(crate) fn pop(&mut self, next_of: impl Fn(u32) -> u32) -> Option<u32> {
        let level = self.levels.last()?;
        let block = self.heads[level];
        let next = next_of(block);
        self.heads[level] = next;
        if next == NONE {
            self.levels.remove(level);
        }
        Some(block)
    }
}

/// A set of numbers from which the greatest can be taken: one bit for each, and two layers of summary
/// above.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bitmap {
    /// Bit `i` of a layer says whether word `i` of the layer below is not zero; of the lowest,
    /// whether `i` is in the set.
    layers: [Vec<u64>; 3],
}

impl Bitmap {
    /// Makes room for numbers below this one.
    pub(crate) fn resize(&mut self, n: usize) {
        for (layer, words) in self.layers.iter_mut().enumerate() {
            words.resize(words.len().max((n >> (6 * (layer + 1))) + 1), 0);
        }
    }

    #[inline]
    pub(crate) fn insert(&mut self, number: usize) {
        let mut bit = number;
        for words in &mut self.layers {
            let word = &mut words[bit >> 6];
            let was_empty = *word == 0;
            *word |= 1 << (bit & 63);
            if !was_empty {
                return;
            }
            bit >>= 6;
        }
    }

    #[inline]
    fn remove(&mut self, number: usize) {
        let mut bit = number;
        for words in &mut self.layers {
            let word = &mut words[bit >> 6];
            *word &= !(1 << (bit & 63));
            if *word != 0 {
                return;
            }
            bit >>= 6;
        }
    }

    #[inline]
    fn last(&self) -> Option<usize> {
        let [numbers, words, top] = &self.layers;
        // The topmost layer is one word up to 262,144 numbers.
        let word = top.iter().rposition(|&word| word != 0)?;
        let word = word << 6 | top[word].ilog2() as usize;
        let word = word << 6 | words[word].ilog2() as usize;
        Some(word << 6 | numbers[word].ilog2() as usize)
    }

    #[inline]
    pub(crate) fn pop_last(&mut self) -> Option<usize> {
        let last = self.last()?;
        self.remove(last);
        Some(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::Rng;

    /// Pushes blocks in random order, now and then taking one out. `check` sees each block that comes
    /// and the blocks that were there.
    fn run(queue: &mut impl RootQueue, levels: &[u32], rng: &mut Rng, check: impl Fn(u32, &[u32])) {
        queue.start(levels);
        let mut left: Vec<u32> = (0..levels.len() as u32).collect();
        let mut inside = vec![];
        while !left.is_empty() || !inside.is_empty() {
            if !left.is_empty() && !rng.one_in(3) {
                let block = left.swap_remove(rng.below(left.len() as u32) as usize);
                queue.push(levels[block as usize], block);
                inside.push(block);
            } else if let Some(block) = queue.pop() {
                check(block, &inside);
                let place = inside.iter().position(|&b| b == block).expect("it was there");
                inside.swap_remove(place);
            } else {
                assert!(inside.is_empty());
            }
        }
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn roots_come_deepest_first() {
        let mut rng = Rng(8);
        let mut buckets = Buckets::default();
        for n_levels in [1, 64, 65, 5_000, 600_000] {
            let levels: Vec<u32> = (0..1_000).map(|_| rng.below(n_levels)).collect();
            run(&mut buckets, &levels, &mut rng, |block, inside| {
                let deepest = inside.iter().map(|&b| levels[b as usize]).max();
                assert_eq!(Some(levels[block as usize]), deepest);
            });
        }
    }

    /// A textbook claims that the smallest depth-first number of a level comes first.
    #[test]
    fn within_a_level_the_greatest_depth_first_number_comes_first() {
        let mut rng = Rng(9);
        let mut heap = Heap::default();
        for n_levels in [1, 7, 500] {
            let levels: Vec<u32> = (0..500).map(|_| rng.below(n_levels)).collect();
            run(&mut heap, &levels, &mut rng, |block, inside| {
                let first = inside.iter().map(|&b| (levels[b as usize], b)).max();
                assert_eq!(Some((levels[block as usize], block)), first);
            });
        }
    }
}
