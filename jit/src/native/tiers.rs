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
    /// The loops that were, by their functions.
    loops: Mutex<HashMap<u32, Vec<Loop>>>,
}

/// Loops of a function that are hot, for which there is or will be native code.
struct Loop {
    /// The block where it begins; none for all loops of the function beyond [`LOOPS_MAX`].
    block: Option<u32>,
    /// Native code, once it is made.
    made: Option<LazyFunction>,
}

/// Loops of a function that get native code of their own. More share code that is entered in any loop, which is not as
/// good: optimisers like loops with one entry.
const LOOPS_MAX: usize = 2;

/// The block by which a loop is known among those of its function that are known.
fn key(known: &[Loop], block: u32) -> Option<u32> {
    let has_own = known.len() < LOOPS_MAX || known.iter().any(|known| known.block == Some(block));
    has_own.then_some(block)
}

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
            Part::Loop(func, block) => {
                // Nobody waits. If another thread is here, there will be another time.
                let Ok(mut loops) = self.loops.try_lock() else { return true };
                let known = loops.entry(func).or_default();
                let block = key(known, block);
                let is_known = known.iter().any(|known| known.block == block);
                if !is_known {
                    known.push(Loop { block, made: None });
                }
                is_known
            }
        }
    }

    /// Takes back that somebody wants native code of a part.
    fn forget(&self, index: usize, part: Part) {
        match part {
            Part::Func(_) => self.funcs[index].store(false, Ordering::Relaxed),
            Part::Loop(func, block) => {
                let mut loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
                let known = loops.entry(func).or_default();
                let block = key(known, block);
                known.retain(|known| known.block != block || known.made.is_some());
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
            self.make(code, part, n_insts, Instant::now());
            return i32::MAX as u32;
        }
        if let Some(native) = self.made(index, part) {
            // Another store, or another loop, has wanted it before.
            // SAFETY: it is the code of the part. It lives as long as `self`, which a store has that is given it.
            unsafe { code.install(part, native) };
            return i32::MAX as u32;
        }
        if !is_wanted {
            let (state, code, wanted) = (self.this.clone(), code.clone(), Instant::now());
            let work = move || {
                if let Some(state) = state.upgrade() {
                    state.make(&code, part, n_insts, wanted);
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

    /// Native code of a part, if there is any and nobody works on that at the moment.
    fn made(&self, index: usize, part: Part) -> Option<*const u8> {
        let code = match part {
            Part::Func(_) => self.functions[index].get()?.as_ref().ok()?.code.start,
            Part::Loop(func, block) => {
                let loops = self.parts.loops.try_lock().ok()?;
                let known = loops.get(&func)?;
                let block = key(known, block);
                known.iter().find(|known| known.block == block)?.made.as_ref()?.code.start
            }
        };
        Some(ptr::with_exposed_provenance(code))
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

    /// Compiles a part that somebody has wanted, and hands it over to the interpreter.
    fn make(&self, code: &TieredCode, part: Part, n_insts: u32, wanted: Instant) {
        let start = Instant::now();
        let index = self.index(part);
        let native = match part {
            Part::Func(_) => self.func_code(index),
            Part::Loop(func, block) => {
                if block == 0 {
                    // Its calls are not counted by themselves.
                    self.make(code, Part::Func(func), n_insts, wanted);
                }
                self.loop_code(func, block)
            }
        };
        if let Some(native) = native {
            // SAFETY: it is the code of the part. It lives as long as `self`, which a store has that is given it.
            unsafe { code.install(part, native) };
        }
        let expected_ns = self.compile_ns(part);
        tracing::debug!(
            target: "slotvm::tiers",
            func = part.func(),
            name = self.module.func_name(part.func()),
            offset = self.offset(part),
            is_made = native.is_some(),
            count = self.threshold(part, n_insts),
            payback = times(expected_ns, n_insts),
            expected_ns,
            spent_ns = start.elapsed().as_nanos() as u64,
            waited_ns = (start - wanted).as_nanos() as u64,
        );
    }

    /// The code offset of a loop.
    fn offset(&self, part: Part) -> Option<u32> {
        match part {
            Part::Func(_) => None,
            Part::Loop(func, block) => {
                let body = self.module.body(func).expect("the module defines the function");
                Some(body.blocks[block as usize].start)
            }
        }
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

    /// Native code of a loop that somebody has wanted, which is compiled if it is not yet; none if that fails.
    fn loop_code(&self, func: u32, block: u32) -> Option<*const u8> {
        let found = |made: Option<LazyFunction>| {
            let mut loops = self.parts.loops.lock().unwrap_or_else(PoisonError::into_inner);
            let known = loops.get_mut(&func)?;
            let block = key(known, block);
            let known = known.iter_mut().find(|known| known.block == block)?;
            // Another thread may have been as fast, whose code may run already.
            if known.made.is_none() {
                known.made = made;
            }
            let code = known.made.as_ref().map(|made| made.code.start);
            Some((block, code.map(ptr::with_exposed_provenance)))
        };
        let (block, code) = found(None)?;
        if code.is_some() {
            return code;
        }
        let starts = match block {
            Some(block) => vec![block],
            None => {
                let body = self.module.body(func).expect("the module defines the function");
                body.loops().into_iter().map(|blocks| blocks.start).collect()
            }
        };
        let index = (func - self.module.n_imported_funcs()) as usize;
        found(Some(self.compile_at(index, &starts).ok()?))?.1
    }
}

/// A threshold that is random but for the seed.
fn random(seed: u64, part: Part, is_delay: bool) -> u32 {
    const SOME: [u32; 6] = [1, 2, 3, 7, 50, 1000];
    let mut hasher = DefaultHasher::new();
    (seed, part, is_delay).hash(&mut hasher);
    SOME[(hasher.finish() % SOME.len() as u64) as usize]
}
