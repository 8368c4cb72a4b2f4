//! Parts that the thread of a program compiles itself.
//!
//! While another thread compiles, which begins with cold caches, the program is interpreted: that takes as much processor
//! time again, and gets the program nowhere near as far. So in a small module, most of whose time goes to few parts, the
//! program waits for the first parts that are soon compiled.
//!
//! In a large module, and beyond a time in all, other threads compile: the program has much to do meanwhile, and does not
//! stand still for long. A program that has only begun does not wait either: it may end before that pays. Nor does one that
//! can be interrupted, which polls, as nothing does that it would wait for. Where thresholds are given, the embedder has
//! decided how long a program is interpreted.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::config::Config;

// What other values do: docs/decisions.md, "Parts that the program's thread compiles".
/// Bytes of the functions of a small module, at most.
const SMALL_BYTES_MAX: u64 = 64 << 10;
/// The time since the first part was hot in which a program may end soon, so that it does not wait.
const YOUNG: Duration = Duration::from_micros(500);
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
        let may_wait =
            module_bytes <= SMALL_BYTES_MAX && !config.polls() && config.tier_thresholds.is_none();
        AtOnce { may_wait, first_hot: OnceLock::new(), spent_ns: AtomicU64::new(0) }
    }

    /// Whether the program waits for a part, which is hot now. `compile_ns` estimates what it takes, and `is_first` tells
    /// whether there was no version of its code before.
    pub(super) fn is_for(&self, compile_ns: impl FnOnce() -> u64, is_first: bool) -> bool {
        let all_ns_max = if is_first { ALL_NS_MAX } else { VERSIONS_NS_MAX };
        self.may_wait
            && self.first_hot.get_or_init(Instant::now).elapsed() >= YOUNG
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
    use super::*;
    use crate::config::TierThresholds;

    /// A module that had a hot part long ago.
    fn old(config: &Config, module_bytes: u64) -> AtOnce {
        let at_once = AtOnce::new(config, module_bytes);
        at_once.first_hot.set(Instant::now() - YOUNG).unwrap();
        at_once
    }

    /// Whether it is for a part that takes such a time: for the first time, and for a later one.
    fn is_for(at_once: &AtOnce, compile_ns: u64) -> [bool; 2] {
        [true, false].map(|is_first| at_once.is_for(|| compile_ns, is_first))
    }

    #[test]
    fn programs_wait_for_small_modules_and_not_for_long() {
        assert_eq!(is_for(&old(&Config::new(), SMALL_BYTES_MAX + 1), 1), [false; 2]);
        let small = old(&Config::new(), SMALL_BYTES_MAX);
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
    fn programs_that_have_only_begun_do_not_wait() {
        let young = AtOnce::new(&Config::new(), 0);
        young.first_hot.set(Instant::now() + Duration::from_secs(3_600)).unwrap();
        assert_eq!(is_for(&young, 0), [false; 2]);
    }

    #[test]
    fn programs_that_can_be_interrupted_do_not_wait() {
        let (mut timeout, mut epochs, mut thresholds) =
            (Config::new(), Config::new(), Config::new());
        timeout.timeout(Some(Duration::from_secs(1)));
        epochs.epoch_interruption(true);
        thresholds.tier_thresholds(Some(TierThresholds { calls: 1, rounds: 1 }));
        for config in [timeout, epochs, thresholds] {
            assert_eq!(is_for(&old(&config, 0), 0), [false; 2]);
        }
    }
}
