//! Sequentialisation of parallel copies: all sources are read as they were before.

/// The source of a copy.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Source<V> {
    /// A slot.
    Slot(u32),
    /// The saved content of a slot.
    Saved,
    /// A value that no copy changes.
    Value(V),
}

/// A step of sequential copies.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Step<V> {
    /// Saves what a slot holds, in place of what was saved before.
    Save(u32),
    /// Writes to the slot.
    Copy(u32, Source<V>),
}

/// Brings parallel copies into an order. Destinations are distinct.
///
/// Boissinot et al. (2009), algorithm 1: a copy is done once nothing has to be read from its
/// destination any more. What is left then are cycles: the content of one slot of each is saved, so
/// that it can be written to. A cycle therefore takes one copy more than it has slots.
pub(super) fn sequence<V: Copy>(copies: &[(u32, Source<V>)]) -> Vec<Step<V>> {
    let mut steps = Vec::with_capacity(copies.len());
    // The copies sorted by destination; `None` once a copy is done.
    let mut open: Vec<Option<(u32, Source<V>)>> = copies.iter().copied().map(Some).collect();
    open.sort_by_key(|copy| copy.expect("none is done").0);
    let destinations: Vec<u32> = open.iter().flatten().map(|copy| copy.0).collect();
    let writer = |slot: u32| destinations.binary_search(&slot).ok();
    let mut n_readers = vec![0; open.len()];
    for copy in &open {
        if let Some((_, Source::Slot(slot))) = copy
            && let Some(i) = writer(*slot)
        {
            n_readers[i] += 1;
        }
    }
    let mut ready: Vec<usize> = (0..open.len()).filter(|&i| n_readers[i] == 0).collect();
    let mut saved = None;
    for i in 0..open.len() {
        while let Some(i) = ready.pop() {
            let (to, from) = open[i].take().expect("a copy is ready once");
            let Source::Slot(slot) = from else {
                steps.push(Step::Copy(to, from));
                continue;
            };
            let from = if saved == Some(slot) { Source::Saved } else { from };
            steps.push(Step::Copy(to, from));
            if let Some(read) = writer(slot) {
                n_readers[read] -= 1;
                if n_readers[read] == 0 && open[read].is_some() {
                    ready.push(read);
                }
            }
        }
        if open[i].is_some() {
            // The remaining copies form cycles, each slot with one reader.
            saved = Some(destinations[i]);
            steps.push(Step::Save(destinations[i]));
            ready.push(i);
        }
    }
    steps
}
