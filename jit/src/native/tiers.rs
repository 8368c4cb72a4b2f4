//! Native code of what an interpreted program does often.
//!
//! A function that is called often is compiled, and calls of it go to its native code. A loop that goes round often is
//! compiled from its first block on, and the frames that are in it go on there.
//!
//! Often is when interpreting has taken as long as a part of what compiling is estimated to take: whoever buys when they
//! have paid rent for a part of the price pays little more than those who know how long they stay. Both are estimated from
//! numbers of instructions.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use slotvm_runtime::native::{Part, TieredCode, Tiers};

use crate::config::TierCompilation;
use crate::native::lazy::{LazyFunction, State};

/// What is known about the parts of a module whose functions are interpreted at first.
pub(super) struct Parts {
    /// The functions that were hot once, by their numbers among those that the module defines.
    funcs: Box<[AtomicBool]>,
    /// The loops that were, at most [`LOOPS_MAX`] of each function.
    loops: Mutex<HashMap<u32, Vec<(Part, Loop)>>>,
}

/// A loop that is hot.
enum Loop {
    /// Native code is to be made.
    Wanted,
    /// There is native code.
    Made(LazyFunction),
}

/// Loops of a function that are compiled by themselves. The function is, too, so the others are entered there.
const LOOPS_MAX: usize = 2;

// What decides about thresholds, in nanoseconds (docs/decisions.md).
/// Compiling anything.
const COMPILE_NS: u64 = 60_000;
/// Compiling an instruction.
const COMPILE_NS_PER_INST: u64 = 2_000;
/// Interpreting 16 instructions.
const INTERPRET_NS_PER_16: u64 = 16;
/// The part of the time of compiling that interpreting may take before.
const PART: u64 = 3;
/// The time between two looks for native code that is being made.
const LOOK_NS: u64 = 10_000;

/// How often something of so many instructions is interpreted in a time.
fn times(ns: u64, n_insts: u32) -> u32 {
    (ns * 16 / (u64::from(n_insts.max(1)) * INTERPRET_NS_PER_16)).clamp(1, 1 << 20) as u32
}

impl Parts {
    pub(super) fn new(n_funcs: usize) -> Parts {
        let funcs = std::iter::repeat_with(AtomicBool::default).take(n_funcs).collect();
        Parts { funcs, loops: Mutex::default() }
    }

    /// Whether somebody has wanted native code of a part before. If not, somebody has now.
    fn want(&self, index: usize, part: Part) -> bool {
        match part {
            Part::Func(_) => self.funcs[index].swap(true, Ordering::Relaxed),
            Part::Loop(..) => {
                // Nobody waits. If another thread is here, there will be another time.
                let Ok(mut loops) = self.loops.try_lock() else { return true };
                let known = loops.entry(part.func()).or_default();
                let is_known = known.len() == LOOPS_MAX || known.iter().any(|known| known.0 == part);
                if !is_known {
                    known.push((part, Loop::Wanted));
                }
                is_known
            }
        }
    }

    /// Takes back that somebody wants native code of a part.
    fn forget(&self, index: usize, part: Part) {
        match part {
            Part::Func(_) => self.funcs[index].store(false, Ordering::Relaxed),
            Part::Loop(..) => {
                let mut loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
                loops.entry(part.func()).or_default().retain(|known| known.0 != part);
            }
        }
    }
}

impl Tiers for State {
    fn threshold(&self, part: Part, n_insts: u32) -> u32 {
        let config = self.native.config();
        if let Some(seed) = config.tier_seed {
            return random(seed, part, false);
        }
        match (part, config.tier_thresholds) {
            (Part::Func(_), Some(thresholds)) => thresholds.calls,
            (Part::Loop(..), Some(thresholds)) => thresholds.rounds,
            (_, None) => times(self.compile_ns(part) / PART, n_insts),
        }
    }

    fn hot(&self, code: &TieredCode, part: Part, n_insts: u32) -> u32 {
        let config = self.native.config();
        let index = self.index(part);
        let is_wanted = self.parts.want(index, part);
        if config.tier_compilation == TierCompilation::Synchronous {
            if let Some(seed) = config.tier_seed
                && !is_wanted
            {
                return random(seed, part, true);
            }
            self.make(code, part);
            return i32::MAX as u32;
        }
        if !is_wanted {
            let (state, code) = (self.this.clone(), code.clone());
            let work = move || {
                if let Some(state) = state.upgrade() {
                    state.make(&code, part);
                }
            };
            if !self.native.workers.push(self.number(), work) {
                self.parts.forget(index, part);
            }
        }
        match part {
            // Calls find native code by themselves.
            Part::Func(_) => i32::MAX as u32,
            Part::Loop(..) => times(LOOK_NS, n_insts).min(100),
        }
    }
}

impl State {
    fn index(&self, part: Part) -> usize {
        (part.func() - self.module.n_imported_funcs()) as usize
    }

    /// The number by which [`Workers`](crate::native::workers::Workers) know it.
    pub(super) fn number(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// The estimated time of compiling a part.
    fn compile_ns(&self, part: Part) -> u64 {
        let body = self.module.body(part.func()).expect("the module defines the function");
        let n_insts: u64 = body.blocks.iter().map(|block| u64::from(block.cost)).sum();
        COMPILE_NS + COMPILE_NS_PER_INST * n_insts
    }

    /// Compiles a part, and hands it over to the interpreter.
    fn make(&self, code: &TieredCode, part: Part) {
        let start = Instant::now();
        let index = self.index(part);
        let native = match part {
            Part::Func(_) => self.func_code(index),
            Part::Loop(_, block) => {
                if block == 0 {
                    // Its calls are not counted by themselves.
                    self.make(code, Part::Func(part.func()));
                }
                self.loop_code(part, index, block)
            }
        };
        if let Some(native) = native {
            // SAFETY: it is the code of the part. It lives as long as `self`, which a store has that is given it.
            unsafe { code.install(part, native) };
        }
        let expected = self.compile_ns(part);
        let spent = start.elapsed().as_nanos() as u64;
        let (func, is_made) = (part.func(), native.is_some());
        let offset = match part {
            Part::Func(_) => None,
            Part::Loop(func, block) => {
                let body = self.module.body(func).expect("the module defines the function");
                Some(body.blocks[block as usize].start)
            }
        };
        tracing::debug!(
            name = self.module.func_name(func),
            func,
            offset,
            is_made,
            expected,
            spent,
            "tier up"
        );
    }

    /// Native code of a function, which is compiled if it is not yet; none if that fails.
    fn func_code(&self, index: usize) -> Option<*const u8> {
        let function = &self.functions[index];
        if function.get().is_none() {
            // Not `get_or_init`: in the child of a fork nobody may be there to end what was begun.
            let compiled = self.compile(index).map_err(|error| error.to_string());
            _ = function.set(compiled);
        }
        let compiled = function.get()?.as_ref().ok()?;
        Some(ptr::with_exposed_provenance(compiled.code.start))
    }

    /// Native code of a loop, which is compiled if it is not yet; none if that fails.
    fn loop_code(&self, part: Part, index: usize, block: u32) -> Option<*const u8> {
        let address = |compiled: &LazyFunction| ptr::with_exposed_provenance(compiled.code.start);
        let wanted = |made: Option<LazyFunction>| {
            let mut loops = self.parts.loops.lock().unwrap_or_else(PoisonError::into_inner);
            let (_, known) = loops.get_mut(&part.func())?.iter_mut().find(|known| known.0 == part)?;
            // Another thread may have been as fast, whose code may run already.
            if let (Some(made), Loop::Wanted) = (made, &known) {
                *known = Loop::Made(made);
            }
            match known {
                Loop::Made(compiled) => Some(Some(address(compiled))),
                Loop::Wanted => Some(None),
            }
        };
        match wanted(None)? {
            Some(native) => Some(native),
            None => wanted(Some(self.compile_at(index, Some(block)).ok()?))?,
        }
    }
}

/// A threshold that is random but for the seed.
fn random(seed: u64, part: Part, is_delay: bool) -> u32 {
    const SOME: [u32; 6] = [1, 2, 3, 7, 50, 1000];
    let mut hasher = DefaultHasher::new();
    (seed, part, is_delay).hash(&mut hasher);
    SOME[(hasher.finish() % SOME.len() as u64) as usize]
}
