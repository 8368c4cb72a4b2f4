//! Compressed sparse rows: lists of numbers, one after the other in one vector, made by a counting sort.
//!
//! The caller goes through the pairs of row and item twice, in the same order: first to
//! [`count`](Rows::count) them, then to [`put`](Rows::put) them where they belong. The items of a row
//! keep that order.

/// Lists of numbers by row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    /// The start of each row; one more entry than rows. While rows are filled there is another one in front,
    /// so that entry `row + 1` is where the next item of the row goes.
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl Rows {
    /// Removes all rows, and prepares to count the items of new ones.
    pub(crate) fn start(&mut self, n_rows: usize) {
        self.starts.clear();
        self.starts.resize(n_rows + 2, 0);
        self.items.clear();
    }

    /// Counts one more item for a row.
    ///
    /// # Panics
    /// Panics if the row does not exist.
    #[inline]
    pub(crate) fn count(&mut self, row: u32) {
        self.starts[row as usize + 2] += 1;
    }

    /// Ends counting and starts filling.
    pub(crate) fn start_filling(&mut self) {
        let mut n_items = 0;
        for start in &mut self.starts {
            n_items += *start;
            *start = n_items;
        }
        self.items.resize(n_items as usize, 0);
    }

    /// Appends an item to a row.
    #[inline]
    pub(crate) fn put(&mut self, row: u32, item: u32) {
        let place = &mut self.starts[row as usize + 1];
        self.items[*place as usize] = item;
        *place += 1;
    }

    /// Ends filling, once all counted items were put.
    pub(crate) fn finish(&mut self) {
        self.starts.pop();
    }

    /// Replaces the rows by a copy of others, given as their starts and items.
    #[cfg(feature = "ir")]
    pub(crate) fn copy_from(&mut self, starts: &[u32], items: impl Iterator<Item = u32>) {
        self.starts.clear();
        self.starts.extend_from_slice(starts);
        self.items.clear();
        self.items.extend(items);
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    pub(crate) fn n_items(&self) -> usize {
        self.items.len()
    }

    #[inline]
    pub(crate) fn row(&self, row: u32) -> &[u32] {
        let row = row as usize;
        &self.items[self.starts[row] as usize..self.starts[row + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_the_order_of_their_items() {
        let mut rows = Rows::default();
        for pairs in [&[(2, 7), (0, 5), (2, 4), (2, 7)][..], &[], &[(1, 1), (0, 2)]] {
            rows.start(3);
            pairs.iter().for_each(|&(row, _)| rows.count(row));
            rows.start_filling();
            pairs.iter().for_each(|&(row, item)| rows.put(row, item));
            rows.finish();
            assert_eq!((rows.n_rows(), rows.n_items()), (3, pairs.len()));
            for row in 0..3 {
                let of_row = pairs.iter().filter(|pair| pair.0 == row).map(|pair| pair.1);
                assert!(of_row.eq(rows.row(row).iter().copied()), "{row} of {pairs:?}");
            }
        }
    }
}
