//! Native code of what an interpreted program does often.
//!
//! A function that is called often is compiled, and calls of it go to its native code. A loop that goes round often is
//! compiled from its first block on, and the frames that are in it go on there.
//!
//! A part is hot when interpreting it has taken a third of the time that compiling it is estimated to take, as a traveller
//! who rents until the rent has reached a part of the price pays little more than one who knows the length of the stay.
//! Both times are estimated from numbers of instructions.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeSet, HashMap};
use std::hash::{Hash, Hasher};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use slotvm_bytecode::verified::Body;
use slotvm_bytecode::{Inst, Op};
use slotvm_runtime::native::{Part, TieredCode, Tiers};

use crate::config::TierCompilation;
use crate::native::activation::EntryTrampoline;
use crate::native::lazy::{LazyFunction, State};

/// The parts of a module that were hot.
pub(super) struct Parts {
    /// The functions that were hot once, by their numbers among those that the module defines.
    funcs: Box<[AtomicBool]>,
    /// The loops that were, by their functions.
    loops: Mutex<HashMap<u32, Vec<Loops>>>,
}

/// Loops of a function for which there is or will be native code, because one of them is hot.
struct Loops {
    /// The block where the first begins, for whose sake there is.
    first: u32,
    /// The blocks where they begin, in ascending order.
    starts: Vec<u32>,
    /// The loops inside of the first that were hot.
    inner: Vec<u32>,
    /// The times that these were hot since there is native code.
    n_waits: u32,
    /// Native code that goes on in any of them, once it is made.
    made: Option<LazyFunction>,
}

impl Loops {
    fn has(&self, block: u32) -> bool {
        self.starts.binary_search(&block).is_ok()
    }
}

/// The times that native code of loops is made for a function. The last time, it is made for all of them.
const LOOPS_MAX: usize = 3;

/// Loops that are compiled together with one before them, at most.
const FOLLOWING_MAX: usize = 15;

/// The loops that native code is made for where one of a function is hot, given how often some was made before.
///
/// While it is made, the program may get to the next loops of the function. So those that follow are entered there as well,
/// unless others lie around them: a loop with two entries is none to an optimiser. The last time, all are.
fn starts(body: &Body, block: u32, n_before: usize) -> Vec<u32> {
    let mut loops = body.loops();
    if n_before + 1 >= LOOPS_MAX {
        return loops.into_iter().map(|blocks| blocks.start).collect();
    }
    // Those that overlap are one.
    loops.dedup_by(|next, last| {
        let overlap = next.start < last.end;
        if overlap {
            last.end = last.end.max(next.end);
        }
        overlap
    });
    let following = loops.into_iter().map(|blocks| blocks.start).filter(|&start| start > block);
    std::iter::once(block).chain(following.take(FOLLOWING_MAX)).collect()
}

// Estimates of times that thresholds follow from, in nanoseconds (docs/decisions.md).
/// Compiling anything.
const COMPILE_NS: u64 = 60_000;
/// Compiling an instruction.
const COMPILE_NS_PER_INST: u64 = 2_000;
/// Interpreting an instruction.
const INTERPRET_NS_PER_INST: u64 = 1;
/// The part of the time of compiling that interpreting may take before.
const PART: u64 = 3;
/// The time between two looks for native code that is being made.
const LOOK_NS: u64 = 10_000;

/// Calls of a function, or rounds of a loop, after which more are expected.
const OFTEN: u32 = 3;
/// Looks for native code of a loop around, before there is some for the loop inside.
const WAITS_MAX: u32 = 100;
/// Rounds of a loop between two looks, at most: what it calls takes time, too.
const ROUNDS_BETWEEN_MAX: u32 = 100;
/// Calls of a function before it is wanted again, if there is no native code by then.
const CALLS_BETWEEN: u32 = 200;

/// The times that something of so many instructions is interpreted in a time.
fn times(ns: u64, n_insts: u32) -> u32 {
    (ns / (u64::from(n_insts.max(1)) * INTERPRET_NS_PER_INST)).clamp(1, 1 << 20) as u32
}

impl Parts {
    pub(super) fn new(n_funcs: usize) -> Parts {
        let funcs = std::iter::repeat_with(AtomicBool::default).take(n_funcs).collect();
        Parts { funcs, loops: Mutex::default() }
    }

    /// The part that native code is to be made of now that one is hot, unless somebody has wanted it before. `outer` is the
    /// loop around a hot one that the program is likely to come back to before long.
    fn want(
        &self,
        index: usize,
        part: Part,
        outer: impl FnOnce(u32) -> u32,
        body: &Body,
    ) -> Option<Part> {
        let (func, block) = match part {
            Part::Func(_) => {
                return (!self.funcs[index].swap(true, Ordering::Relaxed)).then_some(part);
            }
            Part::Loop(func, block) => (func, block),
        };
        // Nobody waits. If another thread is here, there will be another time.
        let mut loops = self.loops.try_lock().ok()?;
        let known = loops.entry(func).or_default();
        if known.iter().any(|known| known.has(block)) {
            return None;
        }
        let start = match known.iter_mut().find(|known| known.inner.contains(&block)) {
            Some(around) => {
                around.n_waits += u32::from(around.made.is_some());
                if around.n_waits < WAITS_MAX {
                    return None;
                }
                block
            }
            None => outer(block),
        };
        if let Some(known) = known.iter_mut().find(|known| known.has(start)) {
            known.inner.push(block);
            return None;
        }
        let starts = starts(body, start, known.len());
        let inner = if start == block { Vec::new() } else { vec![block] };
        known.push(Loops { first: start, starts, inner, n_waits: 0, made: None });
        Some(Part::Loop(func, start))
    }

    /// Native code of some loops of a function was there before anybody wanted it.
    pub(super) fn set_loops(&self, func: u32, starts: &[u32], made: LazyFunction) {
        let mut starts = starts.to_vec();
        let Some(&first) = starts.first() else { return };
        starts.sort_unstable();
        let mut loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
        let known = loops.entry(func).or_default();
        known.push(Loops { first, starts, inner: Vec::new(), n_waits: 0, made: Some(made) });
    }

    /// Calls `f` for the native code of loops: with the function, the blocks where it starts, the first one for whose sake
    /// there is code first, and the code.
    pub(super) fn for_each_made(&self, mut f: impl FnMut(u32, &[u32], &LazyFunction)) {
        let loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
        let mut funcs: Vec<_> = loops.iter().collect();
        funcs.sort_unstable_by_key(|(func, _)| **func);
        for (&func, all) in funcs {
            for Loops { first, starts, made, .. } in all {
                let others = starts.iter().copied().filter(|start| start != first);
                let starts: Vec<u32> = std::iter::once(*first).chain(others).collect();
                made.iter().for_each(|made| f(func, &starts, made));
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
                known.retain(|known| known.first != block || known.made.is_some());
            }
        }
    }
}

// SAFETY: what `ready` returns is the code of the function. It lives as long as `self`, which a store has that is given it,
// and relies on what the code relies on that the store is given with it.
unsafe impl Tiers for State {
    fn ready(&self, func: u32) -> Option<(*const u8, Option<EntryTrampoline>)> {
        let part = Part::Func(func);
        self.place_kept_func(self.index(part));
        Some((self.made(part)?, self.entry(func)))
    }

    fn threshold(&self, part: Part, n_insts: u32, n_all: u32) -> u32 {
        let config = self.native.config();
        if let Some(seed) = config.tier_seed {
            return random(seed, part, false);
        }
        match (part, config.tier_thresholds) {
            (Part::Func(_), Some(thresholds)) => thresholds.calls,
            (Part::Loop(..), Some(thresholds)) => thresholds.rounds,
            (_, None) if self.is_kept(part) => 1,
            (_, None) => times(compile_ns(n_all) / PART, n_insts),
        }
    }

    fn hot(&self, code: &TieredCode, part: Part, n_insts: u32) -> u32 {
        match part {
            Part::Func(_) => self.place_kept_func(self.index(part)),
            Part::Loop(_, block) => self.place_kept_loops(self.index(part), block),
        }
        if self.native.config().tier_compilation == TierCompilation::Synchronous {
            return self.make_now(code, part, n_insts);
        }
        let left = match part {
            Part::Func(_) => CALLS_BETWEEN,
            Part::Loop(..) => times(LOOK_NS, n_insts).min(ROUNDS_BETWEEN_MAX),
        };
        if let Some(native) = self.made(part) {
            // It was made for another store.
            self.install(code, part, native);
            return left;
        }
        let func = Part::Func(part.func());
        let is_called = part != func && code.n_times(func) >= OFTEN && self.made(func).is_none();
        // Loops of what is called often are left soon, and the next call is native.
        let part = if is_called { func } else { part };
        let outer = |block| {
            outer(self.body(part), block, |block| {
                code.n_times(Part::Loop(part.func(), block)) >= OFTEN
            })
        };
        if let Some(part) = self.parts.want(self.index(part), part, outer, self.body(part)) {
            let (state, code, wanted) = (self.this.clone(), code.clone(), Instant::now());
            let work = move || {
                let Some(state) = state.upgrade() else { return };
                match code.has_gone_on(part) {
                    true => state.make(&code, part, n_insts, wanted),
                    // The program has got on to something else.
                    false => state.parts.forget(state.index(part), part),
                }
            };
            if !self.native.workers.push(self.number(), work) {
                self.parts.forget(self.index(part), part);
            }
        }
        left
    }
}

/// The estimated time of compiling something of a function of so many instructions.
fn compile_ns(n_all: u32) -> u64 {
    COMPILE_NS + COMPILE_NS_PER_INST * u64::from(n_all)
}

/// The outermost loop around the one that begins at a block which is often gone round, or else that one.
fn outer(body: &Body, block: u32, is_often: impl Fn(u32) -> bool) -> u32 {
    let loops = body.loops();
    let mut around = loops.iter().take_while(|blocks| blocks.start < block);
    let outer = around.find(|blocks| blocks.end > block && is_often(blocks.start));
    outer.map_or(block, |blocks| blocks.start)
}

impl State {
    /// Makes native code at once. Returns what [`Tiers::hot`] does.
    fn make_now(&self, code: &TieredCode, part: Part, n_insts: u32) -> u32 {
        let is_first = self.parts.want(self.index(part), part, |block| block, self.body(part));
        if let Some(seed) = self.native.config().tier_seed
            && is_first.is_some()
        {
            return random(seed, part, true);
        }
        self.make(code, part, n_insts, Instant::now());
        i32::MAX as u32
    }

    /// Whether native code of a part is there, and at most to be placed.
    fn is_kept(&self, part: Part) -> bool {
        let Some(kept) = &self.kept else { return false };
        let index = self.index(part) as u32;
        match part {
            Part::Func(_) => kept.func(index).is_some(),
            Part::Loop(_, block) => kept.loops(index, block).is_some(),
        }
    }

    fn index(&self, part: Part) -> usize {
        (part.func() - self.module.n_imported_funcs()) as usize
    }

    /// Native code of a part, if there is any and nobody works on that at the moment.
    fn made(&self, part: Part) -> Option<*const u8> {
        let code = match part {
            Part::Func(_) => self.functions[self.index(part)].get()?.as_ref().ok()?.code.start,
            Part::Loop(func, block) => {
                let loops = self.parts.loops.try_lock().ok()?;
                let mut known = loops.get(&func)?.iter();
                known.find(|known| known.has(block))?.made.as_ref()?.code.start
            }
        };
        Some(ptr::with_exposed_provenance(code))
    }

    fn body(&self, part: Part) -> &Body {
        self.module.body(part.func()).expect("the module defines the function")
    }

    /// The number by which [`Workers`](crate::native::workers::Workers) know it.
    pub(super) fn number(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// The trampoline by which the interpreter enters a function. Where it cannot be made, a call finds out.
    fn entry(&self, func: u32) -> Option<EntryTrampoline> {
        let State { native, module, trampolines, .. } = self;
        let trampoline = trampolines.entry(native, module, module.func_type_index(func));
        Some(trampoline.ok()?.entry())
    }

    /// Hands native code of a part over to the interpreter.
    fn install(&self, code: &TieredCode, part: Part, native: *const u8) {
        // SAFETY: it is the code of the part, and the entry is that of its type. Both live as long as `self`, which a store
        // has that is given it: the module's trampolines keep those that they have returned.
        unsafe {
            match part {
                Part::Func(func) => code.install(func, native, self.entry(func)),
                Part::Loop(func, block) => code.install_loops(func, &[block], native),
            }
        }
    }

    /// Compiles a part that somebody has wanted, and hands it over to the interpreter.
    fn make(&self, code: &TieredCode, part: Part, n_insts: u32, wanted: Instant) {
        let start = Instant::now();
        let index = self.index(part);
        self.prepare_ways(part);
        let native = match part {
            Part::Func(_) => {
                self.func_code(index).inspect(|&native| self.install(code, part, native))
            }
            Part::Loop(func, block) => {
                if block == 0 {
                    // Its calls are not counted by themselves.
                    self.make(code, Part::Func(func), n_insts, wanted);
                }
                self.loop_code(func, block).map(|(starts, native)| {
                    // SAFETY: it is the code of these loops. It lives as long as `self`, which a store has that is given it.
                    unsafe { code.install_loops(func, &starts, native) };
                    native
                })
            }
        };
        let costs = self.body(part).blocks.iter().map(|block| block.cost);
        let n_all = costs.fold(0, u32::saturating_add);
        let expected_ns = compile_ns(n_all);
        tracing::debug!(
            target: "slotvm::tiers",
            func = part.func(),
            name = self.module.func_name(part.func()),
            offset = self.offset(part),
            is_made = native.is_some(),
            count = self.threshold(part, n_insts, n_all),
            payback = times(expected_ns, n_insts),
            expected_ns,
            spent_ns = start.elapsed().as_nanos() as u64,
            waited_ns = (start - wanted).as_nanos() as u64,
        );
    }

    /// Makes the trampolines that the interpreter will enter a part by, and those by which it calls, so that the program
    /// need not. Where that fails, the program finds out.
    fn prepare_ways(&self, part: Part) {
        let State { native, module, trampolines, .. } = self;
        let func = part.func();
        _ = match part {
            Part::Func(_) => trampolines.entry(native, module, module.func_type_index(func)),
            Part::Loop(..) => trampolines.loop_entry(native, &module.func_type(func).results),
        };
        let blocks = &self.body(part).blocks;
        let insts = blocks.iter().flat_map(|block| module.insts(func, block));
        let types = insts.filter_map(|(_, Inst { op, imm })| match op {
            Op::Call | Op::ReturnCall => {
                let callee = imm.low();
                let defined = callee.checked_sub(module.n_imported_funcs());
                let is_compiled = defined.is_some_and(|defined| {
                    self.functions[defined as usize].get().is_some() || callee == func
                });
                (!is_compiled).then(|| module.func_type_index(callee))
            }
            Op::CallIndirect | Op::ReturnCallIndirect => Some(imm.low()),
            _ => None,
        });
        let types: BTreeSet<u32> = types.collect();
        for ty in types {
            _ = trampolines.to_host(native, module, ty);
        }
    }

    /// The code offset of a loop.
    fn offset(&self, part: Part) -> Option<u32> {
        match part {
            Part::Func(_) => None,
            Part::Loop(_, block) => Some(self.body(part).blocks[block as usize].start),
        }
    }

    /// Native code of a function, which is compiled if it is not yet; none if that fails.
    fn func_code(&self, index: usize) -> Option<*const u8> {
        self.place_kept_func(index);
        let function = &self.functions[index];
        if function.get().is_none() {
            // Not `get_or_init`: in the child of a fork nobody may be there to end what was begun.
            let compiled = self.compile(index).map_err(|error| error.to_string());
            _ = function.set(compiled);
        }
        let compiled = function.get()?.as_ref().ok()?;
        Some(ptr::with_exposed_provenance(compiled.code.start))
    }

    /// Native code of a loop that somebody has wanted, which is compiled if it is not yet, with all loops that it is for;
    /// nothing if that fails.
    fn loop_code(&self, func: u32, block: u32) -> Option<(Vec<u32>, *const u8)> {
        let found = |made: Option<LazyFunction>| {
            let mut loops = self.parts.loops.lock().unwrap_or_else(PoisonError::into_inner);
            let mut known = loops.get_mut(&func)?.iter_mut();
            let known = known.find(|known| known.has(block))?;
            // Another thread may have been as fast, whose code may run already.
            if known.made.is_none() {
                known.made = made;
            }
            let code = known.made.as_ref().map(|made| made.code.start);
            Some((known.starts.clone(), code.map(ptr::with_exposed_provenance)))
        };
        let (starts, code) = found(None)?;
        if let Some(code) = code {
            return Some((starts, code));
        }
        let index = (func - self.module.n_imported_funcs()) as usize;
        let made = self.compile_at(index, &self.numbered(func, &starts)).ok()?;
        let (starts, code) = found(Some(made))?;
        Some((starts, code?))
    }

    /// The blocks where native code of some loops is entered, by the numbers of all loops of the function.
    fn numbered(&self, func: u32, starts: &[u32]) -> Vec<u32> {
        if let [start] = *starts {
            return vec![start];
        }
        let loops = self.body(Part::Func(func)).loops();
        let start = |blocks: std::ops::Range<u32>| {
            // Nobody enters the others there.
            if starts.binary_search(&blocks.start).is_ok() { blocks.start } else { starts[0] }
        };
        loops.into_iter().map(start).collect()
    }
}

/// A threshold that is random but for the seed.
fn random(seed: u64, part: Part, is_delay: bool) -> u32 {
    const SOME: [u32; 6] = [1, 2, 3, 7, 50, 1000];
    let mut hasher = DefaultHasher::new();
    (seed, part, is_delay).hash(&mut hasher);
    SOME[(hasher.finish() % SOME.len() as u64) as usize]
}
