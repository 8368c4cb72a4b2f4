//! Native code of what an interpreted program does often.
//!
//! A function that is called often is compiled, and calls of it go to its native code. A loop that goes round often is
//! compiled from its first block on, and the frames that are in it go on there.

use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::iter;
use std::sync::{Arc, Weak};
use std::time::Instant;

use slotvm_bytecode::verified::Body;
use slotvm_bytecode::{Inst, Op};
use slotvm_runtime::native::{CodeVersion, Part, TieredCode, Tiers};

use crate::compile::contain::Panics;
use crate::compile::error::CompileError;
use crate::compile::failure::CompileFailure;
use crate::compile::subject::Subject;
use crate::config::TierCompilation;
use crate::native::ownership::code_table::CodeTable;
use crate::native::scheduling::at_once::AtOnce;
use crate::native::scheduling::callers::{self, Callers, State};
use crate::native::scheduling::making::Maker;
use crate::native::scheduling::payback::{self, compile_ns, random, times};
use crate::native::scheduling::wishes::Wishes;
use slotvm_runtime::native::EntryTrampoline;

/// The decisions about native code of a module whose functions are interpreted at first.
pub(crate) struct Tiering {
    /// Reference to itself for the threads that compile.
    this: Weak<Tiering>,
    maker: Arc<Maker>,
    wishes: Wishes,
    callers: Callers,
    at_once: AtOnce,
}

/// What became of native code that somebody has wanted.
enum Outcome {
    Made,
    Failed(CompileFailure),
    /// Nobody has wanted it.
    Unknown,
}

/// A part that native code is wanted of.
#[derive(Copy, Clone)]
struct Wish {
    part: Part,
    /// The instructions of what was hot.
    n_insts: u32,
    /// The times that the part was counted before, or that the version before was left. Calls of a function that begins with
    /// a loop are not counted by themselves: native code of it is made with that of the loop.
    n_times: Option<u32>,
    since: Instant,
    /// The versions of native code of the part that were made before.
    version: u32,
}

/// Fulfils a wish.
type Make = fn(&Tiering, &TieredCode, Wish) -> Outcome;

// What other values do: docs/decisions.md, "Constants of the tiers".
/// The time between two looks for native code that is being made, in nanoseconds.
const LOOK_NS: u64 = 10_000;

/// Calls of a function, or rounds of a loop, after which more are expected.
const OFTEN: u32 = 3;
/// Rounds of a loop between two looks, at most: what it calls takes time, too.
const ROUNDS_BETWEEN_MAX: u32 = 100;
/// The part of the calls or rounds so far after which a part is looked at again for which it was too early.
const SOON_PART: u32 = 4;
/// Calls of a function before it is wanted again, if there is no native code by then.
const CALLS_BETWEEN: u32 = 200;
/// Calls or rounds before a part is wanted again of which there will be no native code.
const NEVER: u32 = i32::MAX as u32;

// SAFETY: what `ready` returns is the code of the function. It lives as long as `self`, which a store has that is given it,
// and relies on what the code relies on that the store is given with it.
unsafe impl Tiers for Tiering {
    fn ready(&self, func: u32) -> Option<(*const u8, Option<EntryTrampoline>)> {
        let part = Part::Func(func);
        self.code().place_kept_func(self.index(part));
        Some((self.made(part)?, self.entry(func)))
    }

    fn threshold(&self, part: Part, n_insts: u32, n_all: u32) -> u32 {
        let config = self.code().native.config();
        payback::threshold(config, part, || self.is_kept(part), (n_insts, n_all))
    }

    fn hot(
        &self,
        code: &TieredCode,
        part: Part,
        n_insts: u32,
        callers: &mut dyn Iterator<Item = Part>,
    ) -> u32 {
        match part {
            Part::Func(_) => self.code().place_kept_func(self.index(part)),
            Part::Loop(_, number) => self.code().place_kept_loops(self.index(part), number),
        }
        if self.made(part).is_none() && self.at_once.is_early() {
            let soon = (code.n_times(part) / SOON_PART).clamp(1, ROUNDS_BETWEEN_MAX);
            return times(LOOK_NS, n_insts).min(soon);
        }
        let hot = part;
        let part = match (part, self.made(part)) {
            (Part::Func(func), None) => match self.instead(code, func, callers) {
                Some(part) => part,
                None => return CALLS_BETWEEN,
            },
            _ => part,
        };
        if self.code().native.config().tier_compilation == TierCompilation::Synchronous {
            let left = self.make_now(code, part, n_insts);
            return if part == hot { left } else { CALLS_BETWEEN };
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
        let part = self.enclosing(code, part);
        if self.has_failed(part) {
            return NEVER;
        }
        let outer = |number| {
            outer(self.body(part), number, |number| {
                code.n_times(Part::Loop(part.func(), number)) >= OFTEN
            })
        };
        let (index, body) = (self.index(part), self.body(part));
        // Few who look want anything, and counting instructions takes as long as the function is.
        let estimate = || compile_ns(self.code().n_insts(part.func()));
        let is_at_once = LazyCell::new(|| self.at_once.is_for(estimate, true));
        if let Some(part) = self.wishes.want(index, part, outer, || *is_at_once, body) {
            let n_times = match part == hot {
                true => self.threshold(part, n_insts, self.code().n_insts(part.func())),
                false => code.n_times(part),
            };
            let (n_times, since) = (Some(n_times), Instant::now());
            let wish = Wish { part, n_insts, n_times, since, version: 0 };
            self.have_made(code, wish, hot, *is_at_once);
        }
        left
    }

    fn left_often(&self, code: &TieredCode, version: &CodeVersion) -> u32 {
        let (part, config) = (version.part(), self.code().native.config());
        let n_all = self.code().n_insts(part.func());
        let n_insts = code.n_insts(part).unwrap_or(n_all);
        let n_exits = payback::n_exits(config, part, (n_insts, n_all));
        if let Some((loops, native)) = self.code().newer(version) {
            match part {
                Part::Func(_) => self.install(code, part, native),
                Part::Loop(func, _) => self.install_loops(code, func, &loops, native),
            }
            return n_exits;
        }
        if let Some(around) = self.often_around(code, part) {
            let n_insts = code.n_insts(around).unwrap_or(n_all);
            self.hot(code, around, n_insts, &mut iter::empty());
            let is_coming = self.at_once.is_early()
                || self.made(around).is_some()
                || self.wishes.is_waiting(self.index(around), around);
            if is_coming {
                return n_exits;
            }
        }
        if !version.claim() {
            return n_exits;
        }
        let (n_times, since) = (Some(n_exits), Instant::now());
        let wish = Wish { part, n_insts, n_times, since, version: version.number() + 1 };
        if config.tier_compilation == TierCompilation::Synchronous {
            self.make_contained(code, wish);
            return n_exits;
        }
        if self.at_once.is_for(|| compile_ns(n_all), false) {
            self.at_once.make(|| self.make_contained(code, wish));
            return n_exits;
        }
        let (tiering, code) = (self.this.clone(), code.clone());
        let work = move || {
            let Some(tiering) = tiering.upgrade() else { return };
            tiering.make_contained(&code, wish);
        };
        // What is left often costs more than what is interpreted.
        if !self.code().native.workers.push(self.code().number(), || u64::MAX, work) {
            version.release();
        }
        n_exits
    }
}

/// The outermost loop around one that is often gone round, or else that one, by their numbers.
fn outer(body: &Body, number: u32, is_often: impl Fn(u32) -> bool) -> u32 {
    let loops = body.loops();
    let start = loops[number as usize].start;
    let mut around = (0..number).zip(&loops);
    let outer = around.find(|&(outer, blocks)| blocks.end > start && is_often(outer));
    outer.map_or(number, |(outer, _)| outer)
}

impl Tiering {
    pub(crate) fn new(maker: Arc<Maker>) -> Arc<Tiering> {
        let wishes = Wishes::new(maker.code.entries().len());
        let at_once = AtOnce::new(maker.code.native.config(), maker.module_bytes());
        Arc::new_cyclic(|this| {
            let (this, callers) = (this.clone(), Callers::default());
            Tiering { this, maker, wishes, callers, at_once }
        })
    }

    /// Has a part made that somebody has wanted because one was hot: by this thread, or by another one when it has time.
    fn have_made(&self, code: &TieredCode, wish: Wish, hot: Part, is_at_once: bool) {
        let (part, n_all) = (wish.part, self.code().n_insts(wish.part.func()));
        if is_at_once {
            self.at_once.make(|| self.make_with_func(Tiering::make_contained, code, wish));
            return;
        }
        let urgency = {
            let code = code.clone();
            move || payback::urgency(code.n_interpreted(part).max(code.n_interpreted(hot)), n_all)
        };
        let (tiering, code) = (self.this.clone(), code.clone());
        let work = move || {
            let Some(tiering) = tiering.upgrade() else { return };
            match code.has_gone_on(part) {
                true => _ = tiering.make_with_func(Tiering::make_contained, &code, wish),
                // The program has got on to something else.
                false => tiering.wishes.forget(tiering.index(part), part),
            }
        };
        if !self.code().native.workers.push(self.code().number(), urgency, work) {
            self.wishes.forget(self.index(part), part);
        }
    }

    /// The code of the module.
    fn code(&self) -> &CodeTable {
        &self.maker.code
    }

    /// The part to compile when a function is hot, or `None` while the function waits for a caller.
    fn instead(
        &self,
        code: &TieredCode,
        func: u32,
        callers: &mut dyn Iterator<Item = Part>,
    ) -> Option<Part> {
        let hot = Part::Func(func);
        match self.callers.state(func) {
            Some(State::Ready) => return Some(hot),
            Some(State::Waits(part)) => {
                let is_coming = self.made(part).is_none()
                    && !self.has_failed(part)
                    && self.wishes.is_waiting(self.index(part), part);
                if !is_coming {
                    self.callers.set(func, State::Ready);
                }
                return None;
            }
            None => {}
        }
        let module = &self.code().module;
        let config = self.code().native.config();
        let mut n_interpreted = code.n_interpreted(hot);
        let is_worth = |chain: &[Part]| {
            n_interpreted += chain.iter().map(|&part| code.n_interpreted(part)).sum::<u64>();
            let part = chain[chain.len() - 1];
            let inlines = self.maker.options.passes.of(part.func()).contains("inline");
            inlines
                && !self.has_failed(part)
                && payback::is_worth(
                    config,
                    part,
                    n_interpreted,
                    self.code().n_insts(part.func()),
                    self.code().n_insts(func),
                )
        };
        let enclosing = |part| self.enclosing(code, part);
        let part = callers::instead(module, func, callers, enclosing, is_worth);
        self.callers.set(func, if part == hot { State::Ready } else { State::Waits(part) });
        Some(part)
    }

    /// The function of a loop that is to be compiled rather than the loop, or else the part: loops of what is called often
    /// are left soon, and the next call is native.
    fn enclosing(&self, code: &TieredCode, part: Part) -> Part {
        let func = Part::Func(part.func());
        let is_better =
            code.n_times(func) >= OFTEN && self.made(func).is_none() && !self.has_failed(func);
        if is_better { func } else { part }
    }

    /// The outermost loop around one that is often gone round, if there may be native code of it and is none: that of the loop
    /// inside is left each time.
    fn often_around(&self, code: &TieredCode, part: Part) -> Option<Part> {
        let Part::Loop(func, number) = part else { return None };
        let is_often = |number| code.n_times(Part::Loop(func, number)) >= OFTEN;
        let outer = outer(self.body(part), number, is_often);
        let around = Part::Loop(func, outer);
        let is_new = outer != number && self.made(around).is_none() && !self.has_failed(around);
        is_new.then_some(around)
    }

    /// Makes native code at once. Returns what [`Tiers::hot`] does.
    fn make_now(&self, code: &TieredCode, part: Part, n_insts: u32) -> u32 {
        if self.has_failed(part) {
            return NEVER;
        }
        let (index, body) = (self.index(part), self.body(part));
        // What is made for several loops is compared here, too, though the program waits.
        let is_first = self.wishes.want(index, part, |number| number, || false, body);
        if let Some(seed) = self.code().native.config().tier_seed
            && is_first.is_some()
        {
            return random(seed, part, true);
        }
        // Faults that are not contained panic here, where the program waits.
        let make = match self.maker.options.containment.is_on {
            true => Tiering::make_contained,
            false => Tiering::make,
        };
        let n_times = Some(self.threshold(part, n_insts, self.code().n_insts(part.func())));
        match self.make_with_func(
            make,
            code,
            Wish { part, n_insts, n_times, since: Instant::now(), version: 0 },
        ) {
            Outcome::Made | Outcome::Failed(_) => NEVER,
            // Another thread had the lock.
            Outcome::Unknown => 1,
        }
    }

    /// Whether native code of a part was not made, and will not be.
    fn has_failed(&self, part: Part) -> bool {
        match part {
            Part::Func(_) => matches!(self.code().function(self.index(part)).get(), Some(Err(_))),
            Part::Loop(func, number) => self.wishes.has_failed(func, number),
        }
    }

    /// Whether native code of a part is there, and at most to be placed.
    fn is_kept(&self, part: Part) -> bool {
        let Some(kept) = &self.code().kept else { return false };
        let index = self.index(part) as u32;
        match part {
            Part::Func(_) => kept.func(index).is_some(),
            Part::Loop(_, number) => kept.loops(index, number).is_some(),
        }
    }

    fn index(&self, part: Part) -> usize {
        self.code().index(part.func())
    }

    /// Native code of a part, if there is any and nobody works on that at the moment.
    fn made(&self, part: Part) -> Option<*const u8> {
        match part {
            Part::Func(_) => self.code().address(self.index(part)),
            Part::Loop(func, number) => self.code().loop_address(func, number),
        }
    }

    fn body(&self, part: Part) -> &Body {
        self.code().module.body(part.func()).expect("the module defines the function")
    }

    /// The trampoline by which the interpreter enters a function. Where it cannot be made, which is counted, a call fails.
    fn entry(&self, func: u32) -> Option<EntryTrampoline> {
        let Maker { code, trampolines, .. } = &*self.maker;
        let CodeTable { native, module, .. } = &**code;
        match trampolines.entry(native, module, module.func_type_index(func)) {
            Ok(trampoline) => Some(trampoline.entry()),
            Err(_) => None,
        }
    }

    /// Hands native code of a part over to the interpreter.
    fn install(&self, code: &TieredCode, part: Part, native: *const u8) {
        match part {
            // SAFETY: it is the code of the part, and the entry is that of its type. Both live as long as `self`, which a store
            // has that is given it: the module's trampolines keep those that they have returned.
            Part::Func(func) => unsafe { code.install(func, native, self.entry(func)) },
            Part::Loop(func, number) => self.install_loops(code, func, &[number], native),
        }
    }

    /// Hands native code of some loops of a function over to the interpreter.
    fn install_loops(&self, code: &TieredCode, func: u32, loops: &[u32], native: *const u8) {
        // SAFETY: it is the code of these loops. It lives as long as `self`, which a store has that is given it.
        unsafe { code.install_loops(func, loops, native) };
    }

    /// Makes what is wanted, and after a loop at its first block the function, whose calls nobody counts. A frame may wait
    /// for the loop.
    fn make_with_func(&self, make: Make, code: &TieredCode, wish: Wish) -> Outcome {
        let outcome = make(self, code, wish);
        if let Part::Loop(func, 0) = wish.part
            && self.offset(wish.part) == Some(0)
            && !matches!(outcome, Outcome::Unknown)
        {
            let part = Part::Func(func);
            make(self, code, Wish { part, n_times: None, since: Instant::now(), ..wish });
        }
        outcome
    }

    /// Does what [`Tiering::make`] does, and takes a panic for a failure of the part.
    fn make_contained(&self, code: &TieredCode, wish: Wish) -> Outcome {
        let mut outcome = Outcome::Unknown;
        let subject = self.subject(wish.part);
        let make = || outcome = self.make(code, wish);
        let Err(message) = self.maker.options.containment.in_thread(subject, make) else {
            return outcome;
        };
        let part = wish.part;
        match part {
            Part::Func(func) => {
                let name = self.code().module.func_name(func);
                let error = CompileError::panicked(subject, name, &message);
                // What there is by now stays.
                _ = self.code().function(self.index(part)).set(Err(error));
            }
            Part::Loop(func, number) => self.wishes.failed(func, number),
        }
        Outcome::Failed(CompileFailure::Panic)
    }

    fn subject(&self, part: Part) -> Subject {
        match self.offset(part) {
            Some(offset) => Subject::Loop { func: part.func(), offset },
            None => Subject::Function(part.func()),
        }
    }

    /// Compiles a part that somebody has wanted, and hands it over to the interpreter.
    fn make(&self, code: &TieredCode, wish: Wish) -> Outcome {
        let Wish { part, n_insts, n_times, since, version } = wish;
        let start = Instant::now();
        self.prepare_trampolines(part);
        let outcome = match part {
            Part::Func(_) => match self.maker.func_code(code, part, version) {
                Ok(native) => {
                    self.install(code, part, native);
                    Outcome::Made
                }
                Err(failure) => Outcome::Failed(failure),
            },
            Part::Loop(func, _) => match self.maker.loop_code(&self.wishes, code, part, version) {
                Ok(Some((loops, native))) => {
                    self.install_loops(code, func, &loops, native);
                    Outcome::Made
                }
                Ok(None) => Outcome::Unknown,
                Err(failure) => Outcome::Failed(failure),
            },
        };
        let (is_made, reason) = match outcome {
            Outcome::Made => (true, None),
            Outcome::Failed(failure) => (false, Some(failure.name())),
            Outcome::Unknown => return outcome,
        };
        let expected_ns = compile_ns(self.code().n_insts(part.func()));
        tracing::debug!(
            target: "slotvm::tiers",
            func = part.func(),
            name = self.code().module.func_name(part.func()),
            offset = self.offset(part),
            is_made,
            reason,
            count = n_times,
            version,
            payback = times(expected_ns, n_insts),
            expected_ns,
            spent_ns = start.elapsed().as_nanos() as u64,
            waited_ns = (start - since).as_nanos() as u64,
        );
        outcome
    }

    /// Makes the trampolines that the interpreter will enter a part by, and those by which it calls, so that the program
    /// need not. Those that cannot be made are counted where they are made ([`ModuleTrampolines`]); a call that needs one
    /// fails.
    ///
    /// [`ModuleTrampolines`]: crate::native::ownership::module_trampolines::ModuleTrampolines
    fn prepare_trampolines(&self, part: Part) {
        let Maker { code, trampolines, .. } = &*self.maker;
        let CodeTable { native, module, .. } = &**code;
        let func = part.func();
        let prepared = match part {
            Part::Func(_) => trampolines.entry(native, module, module.func_type_index(func)),
            Part::Loop(..) => trampolines.loop_entry(native, &module.func_type(func).results),
        };
        if prepared.is_err() {
            return;
        }
        let blocks = &self.body(part).blocks;
        let insts = blocks.iter().flat_map(|block| module.insts(func, block));
        let types = insts.filter_map(|(_, Inst { op, imm })| match op {
            Op::Call | Op::ReturnCall => {
                let callee = imm.low();
                let defined = callee.checked_sub(module.n_imported_funcs());
                let is_compiled = defined.is_some_and(|defined| {
                    code.function(defined as usize).get().is_some() || callee == func
                });
                (!is_compiled).then(|| module.func_type_index(callee))
            }
            Op::CallIndirect | Op::ReturnCallIndirect => Some(imm.low()),
            _ => None,
        });
        let types: BTreeSet<u32> = types.collect();
        for ty in types {
            if trampolines.to_host(native, module, ty).is_err() {
                return;
            }
        }
    }

    /// The code offset of a loop.
    fn offset(&self, part: Part) -> Option<u32> {
        match part {
            Part::Func(_) => None,
            Part::Loop(_, number) => {
                let body = self.body(part);
                let start = body.loops()[number as usize].start;
                Some(body.blocks[start as usize].start)
            }
        }
    }
}
