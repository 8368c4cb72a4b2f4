//! Work on the functions of a module, on several threads if requested.
//!
//! [`try_map`] returns the results in order, or the first error in that order, regardless of scheduling. So
//! work that concerns each function alone has the same result in parallel or not.
//!
//! The threads are those of the caller's rayon pool, or else of the global one. Without the feature
//! `parallel`, or if the system cannot start threads, only the caller's thread works.

use std::ops::Range;

/// Calls `work` with each number below `n` and returns the results in order. Each thread creates its own
/// state, and takes the next number when it has finished one.
///
/// # Errors
/// Returns the error of the least number that has one.
///
/// # Panics
/// Panics if `state` or `work` does.
pub fn try_map<S, T: Send, E: Send>(
    n: usize,
    is_parallel: bool,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    #[cfg(feature = "parallel")]
    if n > 1 && n_threads(is_parallel) > 1 {
        return pool::try_map(n, state, work);
    }
    // Unused without the feature.
    let _ = is_parallel;
    let mut state = state();
    (0..n).map(|i| work(&mut state, i)).collect()
}

/// Number of threads that [`try_map`] uses.
fn n_threads(is_parallel: bool) -> usize {
    #[cfg(feature = "parallel")]
    if is_parallel && pool::exists() {
        return rayon::current_num_threads();
    }
    let _ = is_parallel;
    1
}

/// Bytes of code that one thread handles in less time than other threads take to start.
const ALONE_BYTES_MAX: usize = 128 << 10;

/// Number of parts per thread. With several, a thread with slow parts takes fewer of them.
const PARTS_PER_THREAD: usize = 4;

/// Divides functions, given their code sizes in bytes, into parts for threads.
pub(crate) fn parts(code_bytes: &[usize], is_parallel: bool) -> Vec<Range<usize>> {
    let is_small = code_bytes.iter().sum::<usize>() <= ALONE_BYTES_MAX;
    let n_threads = if is_small { 1 } else { n_threads(is_parallel) };
    ranges(code_bytes, if n_threads > 1 { n_threads * PARTS_PER_THREAD } else { 1 })
}

/// Divides a list into at most `n` ranges of about the same weight, given the weights of all items.
fn ranges(weights: &[usize], n: usize) -> Vec<Range<usize>> {
    let total: usize = weights.iter().sum();
    let mut ranges = Vec::with_capacity(n);
    let (mut start, mut weight) = (0, 0);
    for (i, &of_item) in weights.iter().enumerate() {
        weight += of_item;
        // The point where the items so far weigh the share of the ranges so far.
        if weight * n >= total * (ranges.len() + 1) && ranges.len() + 1 < n {
            ranges.push(start..i + 1);
            start = i + 1;
        }
    }
    if start < weights.len() {
        ranges.push(start..weights.len());
    }
    ranges
}

#[cfg(feature = "parallel")]
mod pool {
    use std::error::Error as _;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rayon::ThreadPoolBuilder;
    use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

    /// Whether threads are available. If the system cannot start any, rayon would panic.
    pub(super) fn exists() -> bool {
        static GLOBAL: OnceLock<bool> = OnceLock::new();
        let make = || match ThreadPoolBuilder::new().build_global() {
            Ok(()) => true,
            // An error without a source means that a pool exists already.
            Err(error) => error.source().is_none(),
        };
        rayon::current_thread_index().is_some() || *GLOBAL.get_or_init(make)
    }

    pub(super) fn try_map<S, T: Send, E: Send>(
        n: usize,
        state: impl Fn() -> S + Sync,
        work: impl Fn(&mut S, usize) -> Result<T, E> + Sync,
    ) -> Result<Vec<T>, E> {
        let next = AtomicUsize::new(0);
        // Numbers after an error do not matter any more; all before it are taken.
        let first_error = AtomicUsize::new(n);
        let take = |_| -> Vec<(usize, Result<T, E>)> {
            let mut state = state();
            let mut done = Vec::new();
            loop {
                // Each thread takes at most one number past the end.
                let i = next.fetch_add(1, Ordering::Relaxed);
                if i >= first_error.load(Ordering::Relaxed) {
                    return done;
                }
                let result = work(&mut state, i);
                if result.is_err() {
                    first_error.fetch_min(i, Ordering::Relaxed);
                }
                done.push((i, result));
            }
        };
        let n_threads = rayon::current_num_threads().min(n);
        let parts = (0..n_threads).into_par_iter().with_max_len(1).map(take);
        let mut all: Vec<(usize, Result<T, E>)> = parts.flatten_iter().collect();
        all.sort_unstable_by_key(|&(i, _)| i);
        all.into_iter().map(|(_, result)| result).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_all_items_and_weigh_about_the_same() {
        for n_items in 0..40 {
            let weights: Vec<usize> = (0..n_items).map(|i| (i * 37 + 11) % 64).collect();
            let total: usize = weights.iter().sum();
            for n in 1..10 {
                let ranges = ranges(&weights, n);
                assert!(ranges.len() <= n, "{ranges:?}");
                let mut end = 0;
                for range in &ranges {
                    assert_eq!(range.start, end);
                    assert!(!range.is_empty(), "{ranges:?}");
                    end = range.end;
                    let weight: usize = weights[range.clone()].iter().sum();
                    assert!(weight <= total / n + 64, "{weight} of {total} in {n}");
                }
                assert_eq!(end, n_items);
            }
        }
        assert_eq!(ranges(&[0, 0, 0], 4).last().map(|range| range.end), Some(3));
    }

    #[test]
    fn the_results_are_in_order_and_the_first_error_counts() {
        let square = |is_parallel: bool, n: usize, bad: &[usize]| {
            let count = |calls: &mut usize, i: usize| {
                *calls += 1;
                if bad.contains(&i) { Err(i) } else { Ok((i * i, *calls)) }
            };
            try_map(n, is_parallel, || 0, count)
        };
        for is_parallel in [false, true] {
            for n in [0, 1, 2, 1_000] {
                let results = square(is_parallel, n, &[]).unwrap();
                assert!(results.iter().map(|&(square, _)| square).eq((0..n).map(|i| i * i)));
                let calls = results.iter().map(|&(_, calls)| calls).max().unwrap_or(0);
                assert!(calls * n_threads(is_parallel) >= n, "each thread counts its own");
            }
            assert_eq!(square(is_parallel, 1_000, &[501, 300, 299, 998]), Err(299));
        }
    }
}
