//! Native code of what an interpreted program does often.
//!
//! A function that is called often is compiled, and calls of it go to its native code. A loop that goes round often is
//! compiled from its first block on, and the frames that are in it go on there.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use slotvm_runtime::native::{Part, TieredCode, Tiers};

use crate::native::lazy::{LazyFunction, State};

/// Native code of loops, by function and block; none where there cannot be any.
#[derive(Default)]
pub(super) struct Loops {
    made: Mutex<HashMap<Part, Option<LazyFunction>>>,
    /// The parts that were hot once, where native code is delayed.
    delayed: Mutex<HashSet<Part>>,
}

impl Loops {
    /// Whether a part is hot for the second time.
    fn is_second(&self, part: Part) -> bool {
        !self.delayed.lock().unwrap_or_else(PoisonError::into_inner).insert(part)
    }
}

/// Loops of a function that are compiled by themselves. The function is, too, so the others are entered there.
const LOOPS_MAX: usize = 2;

impl Tiers for State {
    fn threshold(&self, part: Part, _n_insts: u32) -> u32 {
        let config = self.native.config();
        if let Some(seed) = config.tier_seed {
            return random(seed, part, false);
        }
        match (part, config.tier_thresholds) {
            (Part::Func(_), Some(thresholds)) => thresholds.calls,
            (Part::Loop(..), Some(thresholds)) => thresholds.rounds,
            _ => 1000,
        }
    }

    fn hot(&self, code: &TieredCode, part: Part) -> u32 {
        if let Some(seed) = self.native.config().tier_seed
            && !self.loops.is_second(part)
        {
            return random(seed, part, true);
        }
        let func = part.func();
        let index = (func - self.module.n_imported_funcs()) as usize;
        if let Ok(native) = self.code_of(index, || false) {
            // SAFETY: it is the code of the function, which lives as long as `self`.
            unsafe { code.install(Part::Func(func), native) };
        }
        if let Part::Loop(_, block) = part
            && let Some(native) = self.loop_code(part, index, block)
        {
            // SAFETY: it is the code of the loop, which lives as long as `self`.
            unsafe { code.install(part, native) };
        }
        u32::MAX
    }
}

/// A threshold that is random but for the seed.
fn random(seed: u64, part: Part, is_delay: bool) -> u32 {
    const SOME: [u32; 6] = [1, 2, 3, 7, 50, 1000];
    let mut hasher = DefaultHasher::new();
    (seed, part, is_delay).hash(&mut hasher);
    SOME[(hasher.finish() % SOME.len() as u64) as usize]
}

impl State {
    /// Native code of a loop, which is compiled if it is not yet.
    fn loop_code(&self, part: Part, index: usize, block: u32) -> Option<*const u8> {
        let mut loops = self.loops.made.lock().unwrap_or_else(PoisonError::into_inner);
        let n_loops = loops.keys().filter(|known| known.func() == part.func()).count();
        if !loops.contains_key(&part) && n_loops < LOOPS_MAX {
            let compiled = self.compile_at(index, Some(block));
            loops.insert(part, compiled.ok());
        }
        let compiled = loops.get(&part)?.as_ref()?;
        Some(ptr::with_exposed_provenance(compiled.code.start))
    }
}
