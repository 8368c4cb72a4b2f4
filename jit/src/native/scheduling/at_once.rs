//! Parts that the thread of a program compiles itself.
//!
//! While another thread compiles, which begins with cold caches, the program is interpreted: that takes as much processor
//! time again, and gets the program nowhere near as far. So in a small module, most of whose time goes to few parts, the
//! program waits for the first parts that are soon compiled.
//!
//! It does so once it has run for a share of what it has waited for by then, so that a program which ends soon has not waited
//! for what does not pay. Until then nobody compiles: what other threads made meanwhile would cost as much.
//!
//! In a large module, and beyond a time in all, other threads compile: the program has much to do meanwhile, and does not
//! stand still for long. A program that can be interrupted does not wait either, for it polls, as nothing does that it would
//! wait for. Where thresholds are given, the embedder has decided how long a program is interpreted.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::config::{Config, TierCompilation};

// What other values do: docs/decisions.md, "Parts that the program's thread compiles".
/// Bytes of the functions of a small module, at most.
const SMALL_BYTES_MAX: u64 = 64 << 10;
/// Estimated nanoseconds of compiling the first part, for which the code generator is not in the caches yet.
const FIRST_NS: u64 = 1_000_000;
/// A program waits if it has run for this part of the time that it has waited, and of that for the first part.
const RUN_PART: u64 = 4;
/// The estimated time, in nanoseconds, of what is soon compiled, at most.
const PART_NS_MAX: u64 = 2_000_000;
/// Nanoseconds that programs wait for parts of a module, but for the part with which it becomes more.
const ALL_NS_MAX: u64 = 5_000_000;
/// The same for newer versions: as long as there is none, the code that is left too often goes on being left.
const VERSIONS_NS_MAX: u64 = 20_000_000;

/// The time that programs have waited for parts of a module.
pub(super) struct AtOnce {
    may_wait: bool,
    /// The time when a part was hot for the first time.
    first_hot: OnceLock<Instant>,
    spent_ns: AtomicU64,
}

impl AtOnce {
    /// Nobody has waited for parts of a module, whose functions have so many bytes.
    pub(super) fn new(config: &Config, module_bytes: u64) -> AtOnce {
        let may_wait = module_bytes <= SMALL_BYTES_MAX
            && !config.polls()
            && config.tier_thresholds.is_none()
            && config.tier_seed.is_none()
            && config.tier_compilation == TierCompilation::Background;
        AtOnce { may_wait, first_hot: OnceLock::new(), spent_ns: AtomicU64::new(0) }
    }

    /// Whether a program has run for so short a time, since a part was hot for the first time, that nothing is compiled yet.
    pub(super) fn is_early(&self) -> bool {
        let spent_ns = self.spent_ns.load(Ordering::Relaxed);
        if !self.may_wait || spent_ns >= ALL_NS_MAX {
            return false;
        }
        let elapsed_ns = self.first_hot.get_or_init(Instant::now).elapsed().as_nanos() as u64;
        elapsed_ns.saturating_sub(spent_ns) < (FIRST_NS + spent_ns) / RUN_PART
    }

    /// Whether the program waits for a part, which is hot now. `compile_ns` estimates what it takes, and `is_first` tells
    /// whether there was no version of its code before.
    pub(super) fn is_for(&self, compile_ns: impl FnOnce() -> u64, is_first: bool) -> bool {
        let all_ns_max = if is_first { ALL_NS_MAX } else { VERSIONS_NS_MAX };
        self.may_wait
            && self.spent_ns.load(Ordering::Relaxed) < all_ns_max
            && compile_ns() <= PART_NS_MAX
    }

    /// Makes something for which a program waits. Threads that begin before one of them has ended may wait for one part
    /// each beyond the time in all.
    pub(super) fn make<R>(&self, make: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let made = make();
        self.spent_ns.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        made
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::TierThresholds;

    /// Whether it is for a part that takes such a time: for the first time, and for a later one.
    fn is_for(at_once: &AtOnce, compile_ns: u64) -> [bool; 2] {
        [true, false].map(|is_first| at_once.is_for(|| compile_ns, is_first))
    }

    #[test]
    fn programs_wait_for_small_modules_and_not_for_long() {
        assert_eq!(is_for(&AtOnce::new(&Config::new(), SMALL_BYTES_MAX + 1), 1), [false; 2]);
        let small = AtOnce::new(&Config::new(), SMALL_BYTES_MAX);
        assert_eq!(is_for(&small, PART_NS_MAX), [true; 2]);
        assert_eq!(is_for(&small, PART_NS_MAX + 1), [false; 2]);
        let time = Duration::from_millis(1);
        small.make(|| std::thread::sleep(time));
        assert!(small.spent_ns.load(Ordering::Relaxed) >= time.as_nanos() as u64);
        for (spent_ns, expected) in [
            (ALL_NS_MAX - 1, [true; 2]),
            (ALL_NS_MAX, [false, true]),
            (VERSIONS_NS_MAX, [false; 2]),
        ] {
            small.spent_ns.store(spent_ns, Ordering::Relaxed);
            assert_eq!(is_for(&small, 1), expected, "{spent_ns}");
        }
    }

    #[test]
    fn nothing_is_compiled_before_a_program_has_run_for_a_share_of_what_it_waited() {
        let small = AtOnce::new(&Config::new(), SMALL_BYTES_MAX);
        let run_for = |ns, spent_ns| {
            let begun = Instant::now() - Duration::from_nanos(ns + spent_ns);
            let (may_wait, first_hot, spent_ns) =
                (small.may_wait, OnceLock::from(begun), AtomicU64::new(spent_ns));
            AtOnce { may_wait, first_hot, spent_ns }
        };
        let hour_ns = 3_600_000_000_000;
        assert!(small.is_early());
        assert!(!run_for(FIRST_NS / RUN_PART, 0).is_early());
        // Until a long time has passed, whatever this machine does meanwhile.
        let spent_ns = ALL_NS_MAX - 1;
        let much = AtOnce { spent_ns: AtomicU64::new(spent_ns), ..run_for(0, hour_ns) };
        assert!(!much.is_early());
        let none_left = AtOnce { spent_ns: AtomicU64::new(ALL_NS_MAX), ..run_for(0, 0) };
        assert!(!none_left.is_early());
        assert!(!AtOnce::new(&Config::new(), SMALL_BYTES_MAX + 1).is_early());
    }

    #[test]
    fn programs_that_can_be_interrupted_do_not_wait() {
        let [mut timeout, mut epochs, mut thresholds, mut synchronous] =
            [(); 4].map(|()| Config::new());
        timeout.timeout(Some(Duration::from_secs(1)));
        epochs.epoch_interruption(true);
        thresholds.tier_thresholds(Some(TierThresholds { calls: 1, rounds: 1 }));
        synchronous.tier_compilation(TierCompilation::Synchronous);
        for config in [timeout, epochs, thresholds, synchronous] {
            let at_once = AtOnce::new(&config, 0);
            assert_eq!((is_for(&at_once, 0), at_once.is_early()), ([false; 2], false));
        }
    }
}
