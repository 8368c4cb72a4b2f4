//! Step counts of the algorithms, for tests: quadratic work shows in counts more reliably than in times.
//!
//! The algorithms call [`step`] in the loops whose number of rounds is an argument and not the length of
//! a list: searches, walks up a tree, queues. Outside of this crate's tests it compiles to nothing.

/// One more round of a loop.
#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn step() {}

#[cfg(test)]
pub(crate) use counting::{step, within};

#[cfg(test)]
mod counting {
    use std::cell::Cell;
    use std::fmt::Display;

    thread_local! {
        /// The steps taken, and how many may be.
        static STEPS: Cell<(usize, usize)> = const { Cell::new((0, usize::MAX)) };
    }

    /// Counts one more round of a loop, in this thread.
    pub(crate) fn step() {
        let (n_steps, steps_max) = STEPS.get();
        assert!(n_steps < steps_max, "it takes more than {steps_max} steps");
        STEPS.set((n_steps + 1, steps_max));
    }

    /// Returns the result of some work, which must take steps, but no more than `steps_max`. Quadratic
    /// work fails when it exceeds the limit, not when it ends.
    pub(crate) fn within<T>(steps_max: usize, name: impl Display, work: impl FnOnce() -> T) -> T {
        // Shown if the test fails.
        println!("{name}");
        STEPS.set((0, steps_max));
        let result = work();
        let (n_steps, _) = STEPS.replace((0, usize::MAX));
        assert!(n_steps > 0, "it takes no steps");
        result
    }
}
