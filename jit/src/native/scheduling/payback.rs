//! When native code is worth what it costs.
//!
//! A part is hot when interpreting it has taken a part of the time that compiling it is estimated to take, as a traveller
//! who rents until the rent has reached a part of the price pays little more than one who knows the length of the stay.
//! Both times are estimated from numbers of instructions: those of the function, and those that a call or a round executes
//! if all ways through it are as likely.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use slotvm_runtime::native::Part;

use crate::config::Config;

// Estimates of times in nanoseconds. What other values do: docs/decisions.md, "Constants of the tiers".
/// Compiling anything.
const COMPILE_NS: u64 = 60_000;
/// Compiling an instruction.
const COMPILE_NS_PER_INST: u64 = 2_000;
/// Interpreting an instruction.
const INTERPRET_NS_PER_INST: u64 = 1;
/// Leaving native code for the interpreter.
const EXIT_NS: u64 = 300;
/// The part of the time of compiling that interpreting may take before.
const PART: u64 = 10;

/// The times that something of so many instructions is interpreted in a time.
pub(super) fn times(ns: u64, n_insts: u32) -> u32 {
    (ns / (u64::from(n_insts.max(1)) * INTERPRET_NS_PER_INST)).clamp(1, 1 << 20) as u32
}

/// The estimated time of compiling something of a function of so many instructions.
pub(super) fn compile_ns(n_all: u32) -> u64 {
    COMPILE_NS + COMPILE_NS_PER_INST * u64::from(n_all)
}

/// How urgent it is to compile a part of which so many instructions were interpreted: the share of the price that this took,
/// in thousandths. The function of the part has `n_all` instructions.
pub(super) fn urgency(n_interpreted: u64, n_all: u32) -> u64 {
    n_interpreted.saturating_mul(1000 * INTERPRET_NS_PER_INST) / compile_ns(n_all)
}

/// The number of calls or rounds after which a part is hot: one, if its native code is kept. The part has `n_insts`
/// instructions, and its function `n_all`.
pub(super) fn threshold(
    config: &Config,
    part: Part,
    is_kept: impl Fn() -> bool,
    (n_insts, n_all): (u32, u32),
) -> u32 {
    match (config.tier_seed, config.tier_thresholds, part) {
        (Some(seed), ..) => random(seed, part, false),
        (None, Some(thresholds), Part::Func(_)) => thresholds.calls,
        (None, Some(thresholds), Part::Loop(..)) => thresholds.rounds,
        (None, None, _) if is_kept() => 1,
        (None, None, _) => times(compile_ns(n_all) / PART, n_insts),
    }
}

/// Whether to compile a part instead of a hot function that it inlines. `n_interpreted` instructions of both were
/// interpreted; `n_all` has the function of the part, `n_saved` the hot one.
///
/// The price is the difference of the two compilations. Thresholds that are given hold for each part, so that nothing takes
/// the place of another.
pub(super) fn is_worth(
    config: &Config,
    part: Part,
    n_interpreted: u64,
    n_all: u32,
    n_saved: u32,
) -> bool {
    match (config.tier_seed, config.tier_thresholds) {
        (Some(seed), _) => random(seed, part, true).is_multiple_of(2),
        (None, Some(_)) => false,
        (None, None) => {
            let price = compile_ns(n_all).saturating_sub(compile_ns(n_saved));
            n_interpreted * INTERPRET_NS_PER_INST >= price / PART
        }
    }
}

/// The number of exits of code of a part after which a newer version is made: those that take as long as what is interpreted
/// before there is native code. The part executes `n_insts` instructions each time, and its function has `n_all`.
pub(super) fn n_exits(config: &Config, part: Part, (n_insts, n_all): (u32, u32)) -> u32 {
    match (config.tier_exits, config.tier_seed) {
        (Some((_, false)), _) => u32::MAX,
        (Some((seed, true)), _) | (None, Some(seed)) => random(seed, part, true),
        (None, None) => {
            let each = EXIT_NS + u64::from(n_insts) * INTERPRET_NS_PER_INST;
            (compile_ns(n_all) / PART / each).max(1) as u32
        }
    }
}

/// A threshold that is random but for the seed.
pub(super) fn random(seed: u64, part: Part, is_delay: bool) -> u32 {
    const SOME: [u32; 6] = [1, 2, 3, 7, 50, 1000];
    let mut hasher = DefaultHasher::new();
    (seed, part, is_delay).hash(&mut hasher);
    SOME[(hasher.finish() % SOME.len() as u64) as usize]
}
