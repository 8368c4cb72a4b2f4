//! What the thread of a program compiles itself.
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

// What other values do: docs/decisions.md, "What the program's thread compiles".
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

    /// Whether the program waits for a part that takes such a time, by estimate, and is compiled for the first time or for a
    /// later one.
    pub(super) fn is_for(&self, compile_ns: u64, is_first: bool) -> bool {
        let all_ns_max = if is_first { ALL_NS_MAX } else { VERSIONS_NS_MAX };
        self.may_wait
            && self.first_hot.get_or_init(Instant::now).elapsed() >= YOUNG
            && compile_ns <= PART_NS_MAX
            && self.spent_ns.load(Ordering::Relaxed) < all_ns_max
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

    #[test]
    fn programs_wait_for_small_modules_and_not_for_long() {
        let large = old(&Config::new(), SMALL_BYTES_MAX + 1);
        assert!(!large.is_for(1, true) && !large.is_for(1, false));
        let small = AtOnce::new(&Config::new(), SMALL_BYTES_MAX);
        small.first_hot.set(Instant::now() + YOUNG).unwrap();
        assert!(!small.is_for(1, true) && !small.is_for(1, false));
        let small = old(&Config::new(), SMALL_BYTES_MAX);
        assert!(small.is_for(PART_NS_MAX, true) && !small.is_for(PART_NS_MAX + 1, true));
        assert_eq!(small.make(|| 7), 7);
        assert!(small.is_for(PART_NS_MAX, true));
        small.make(|| std::thread::sleep(Duration::from_nanos(ALL_NS_MAX)));
        assert!(!small.is_for(1, true) && small.is_for(1, false));
        small.make(|| std::thread::sleep(Duration::from_nanos(VERSIONS_NS_MAX)));
        assert!(!small.is_for(1, false));
    }

    #[test]
    fn programs_that_can_be_interrupted_do_not_wait() {
        let (mut timeout, mut epochs, mut thresholds) =
            (Config::new(), Config::new(), Config::new());
        timeout.timeout(Some(Duration::from_secs(1)));
        epochs.epoch_interruption(true);
        thresholds.tier_thresholds(Some(TierThresholds { calls: 1, rounds: 1 }));
        for config in [timeout, epochs, thresholds] {
            let at_once = old(&config, 0);
            assert!(!at_once.is_for(0, true) && !at_once.is_for(0, false));
        }
    }
}
