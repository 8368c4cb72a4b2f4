//! A module as the interpreter runs it, and the interface to a maker of native code while a program runs.
//!
//! The code of the interpreter counts calls of functions and rounds of loops. Where a count is due, it tells its
//! [`Tiers`], who may have native code made, now or later, in this or another thread, and then hand it over by
//! [`TieredCode::install`]. Calls of the function go to that code from then on, and loops go on in it.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use slotvm_bytecode::VerifiedModule;

use super::blocks::inside;
use super::callees::{CallSite, Callees};
use super::code::{CodeOptions, Count, FrameRefs, FuncCode, Places, find};
use super::instr::Instr;
use super::target::{CallTarget, TargetCode};
use crate::context::EntryTrampoline;
use crate::exit::CodeVersion;
use crate::part::Part;

/// Makes code of functions: `interp::translate`, which names handlers, and they the code here.
pub(crate) struct Translation {
    /// Makes the code of a function that the module defines, for an observer or not.
    pub(crate) translate: fn(&ModuleCode, u32, bool) -> CallTarget,
    /// The code offset of the bytecode instruction that one of a function was made from.
    pub(crate) offset: fn(&VerifiedModule, &CallTarget, *const Instr) -> u32,
    /// The instruction after the call of a function by the host, for code of which handlers end with jumps or not.
    pub(crate) exit: fn(bool) -> *const Instr,
    /// The instruction of functions that are native code, likewise.
    pub(crate) native: fn(bool) -> *const Instr,
    /// Where code of a function goes on once native code was left.
    pub(crate) places: fn(&VerifiedModule, &CallTarget) -> Places,
    /// The instruction that goes on at the place in [`State::landing`](super::state::State::landing), likewise.
    pub(crate) land: fn(bool) -> *const Instr,
}

/// Decides what is worth native code. See the module documentation.
///
/// # Safety
/// The code and the entry that [`Tiers::ready`] returns are as [`TieredCode::install`] demands.
pub unsafe trait Tiers: Send + Sync {
    /// The calls of a function, or rounds of a loop, after which [`Tiers::hot`] is told; at least 1. `n_insts` is the
    /// number of instructions that a call or a round executes, by estimate, `n_all` that of all of the function.
    fn threshold(&self, part: Part, n_insts: u32, n_all: u32) -> u32;

    /// Native code of a function that is about to be called for the first time, if it is there already, so that the function
    /// need never be interpreted. It and the entry to it are as [`TieredCode::install`] takes them.
    fn ready(&self, func: u32) -> Option<(*const u8, Option<EntryTrampoline>)>;

    /// Is told that the threshold was reached. Returns after how many more calls or rounds it is to be told again, unless
    /// native code is there by then. `callers` are the loops or functions that wait for the one at hand, the innermost first,
    /// as far as they are of the same instance.
    fn hot(
        &self,
        code: &TieredCode,
        part: Part,
        n_insts: u32,
        callers: &mut dyn Iterator<Item = Part>,
    ) -> u32;

    /// Is told that as many exits of native code were taken as its version allows. Returns after how many more it is to be told
    /// again.
    fn left_often(&self, code: &TieredCode, version: &CodeVersion) -> u32;
}

/// The interpreter's code of a module, to which native code can be added.
#[derive(Clone)]
pub struct TieredCode(pub(crate) Arc<ModuleCode>);

impl fmt::Debug for TieredCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TieredCode").finish_non_exhaustive()
    }
}

impl TieredCode {
    /// Lets calls of a function go to native code.
    ///
    /// # Safety
    /// `code` is native code of the function, as in the cell of [`FuncRecord::entry`](crate::native::FuncRecord::entry), and `entry` leads
    /// to code of its type, if it is known. Both live as long as any store that has been given its tiers with
    /// [`Natives`](crate::native::Natives), and rely on no more than these do.
    pub unsafe fn install(&self, func: u32, code: *const u8, entry: Option<EntryTrampoline>) {
        self.0.replace(func, code, entry);
    }

    /// Lets loops of a function, whose numbers are in ascending order, go on in native code.
    ///
    /// # Safety
    /// `code` takes the context of the function's instance, and as its only parameter the address of the cells of the
    /// function's frame, which it reads before it does anything else, and has the function's results. It finds the number of
    /// the loop in [`Shared::selector`](crate::native::Shared::selector). Otherwise as for [`TieredCode::install`].
    pub unsafe fn install_loops(&self, func: u32, loops: &[u32], code: *const u8) {
        self.0.leave_loops(func, loops, code);
    }

    /// The times that a function was called, or a loop has gone round, at least.
    pub fn n_times(&self, part: Part) -> u32 {
        self.0.n_times(part)
    }

    /// The time that something has taken so far, at least, as a number of instructions that were interpreted. What was called
    /// meanwhile is not in it.
    pub fn n_interpreted(&self, part: Part) -> u64 {
        self.0.n_interpreted(part)
    }

    /// The instructions that are executed each time that something is done, by estimate, if that is counted.
    pub fn n_insts(&self, part: Part) -> Option<u32> {
        self.0.with_count(part, |count| count.n_insts)
    }

    /// The blocks of a function that have never been interpreted, in ascending order, as far as the function was called so
    /// many times, or a loop around the block has gone round so many times.
    pub fn never_ran(&self, func: u32, n_times_min: u32) -> Vec<u32> {
        self.0.never_ran(func, n_times_min)
    }

    /// The functions of the module that indirect calls in a function have called while it was interpreted, for those calls of
    /// which all are known: one or two for each code offset, which are in ascending order. Tail calls are not among them, nor
    /// calls where the function was called less often, and loops around them have gone round less often.
    pub fn callees(&self, func: u32, n_times_min: u32) -> Vec<(u32, Vec<u32>)> {
        self.0.callees(func, n_times_min)
    }

    /// Whether a function was called, or a loop went round, since [`Tiers::hot`] was first told
    /// of it.
    pub fn has_gone_on(&self, part: Part) -> bool {
        self.0.has_gone_on(part)
    }
}

/// The slots of the parts of a function that were done so many times.
fn often_done(code: &FuncCode, n_times_min: u32) -> impl Iterator<Item = Range<u32>> {
    let often = code.counts.iter().filter(move |count| count.n_times() >= n_times_min);
    often.map(|count| count.slots.clone())
}

/// A module as the interpreter runs it. Functions are translated when they are first called.
pub(crate) struct ModuleCode {
    module: Arc<VerifiedModule>,
    options: CodeOptions,
    /// Those that the module defines, as they run and as they run for an observer; null where one was never
    /// called. A list itself is made when the first one is called: native code never does.
    targets: [OnceLock<Box<[AtomicPtr<CallTarget>]>>; 2],
    /// The same for functions that were never interpreted before native code was left for one of their blocks.
    landed: OnceLock<Box<[AtomicPtr<CallTarget>]>>,
    tiers: Option<Arc<dyn Tiers>>,
    translation: &'static Translation,
    exports: OnceLock<HashMap<String, usize>>,
}

impl ModuleCode {
    /// Translates nothing yet.
    pub(crate) fn new(
        module: Arc<VerifiedModule>,
        options: CodeOptions,
        tiers: Option<Arc<dyn Tiers>>,
        translation: &'static Translation,
    ) -> ModuleCode {
        let (targets, landed, exports) = Default::default();
        ModuleCode { module, options, targets, landed, tiers, translation, exports }
    }

    pub(crate) fn module(&self) -> &Arc<VerifiedModule> {
        &self.module
    }

    pub(crate) fn options(&self) -> CodeOptions {
        self.options
    }

    /// The targets of calls of the functions that the module defines, in order.
    pub(crate) fn targets(&self, is_traced: bool) -> &[AtomicPtr<CallTarget>] {
        self.targets[usize::from(is_traced)].get_or_init(|| self.no_targets())
    }

    fn no_targets(&self) -> Box<[AtomicPtr<CallTarget>]> {
        let n = self.module.n_funcs() - self.module.n_imported_funcs();
        (0..n).map(|_| AtomicPtr::new(ptr::null_mut())).collect()
    }

    /// The target of calls of a function that the module defines, which is made if it was never called.
    pub(crate) fn target(&self, func: u32, is_traced: bool) -> &CallTarget {
        let defined = func - self.module.n_imported_funcs();
        let place = &self.targets(is_traced)[defined as usize];
        get_or_make(place, || self.new_target(func, is_traced))
    }

    /// The target of a function that is interpreted. If native code was there before the function was ever interpreted, it
    /// is no target of calls.
    pub(crate) fn interpreted(&self, func: u32) -> &CallTarget {
        let defined = func - self.module.n_imported_funcs();
        if let Some(target) = self.made(defined).and_then(CallTarget::interpreted) {
            return target;
        }
        let place = &self.landed.get_or_init(|| self.no_targets())[defined as usize];
        get_or_make(place, || (self.translation.translate)(self, func, false))
    }

    /// The code of a function in the interpreter, if it is made.
    fn code_made(&self, func: u32) -> Option<&FuncCode> {
        let defined = func - self.module.n_imported_funcs();
        let target = self.made(defined).and_then(CallTarget::interpreted);
        let landed = || made_at(self.landed.get()?, defined);
        Some(target.or_else(landed)?.running())
    }

    /// Where the code of a function that is interpreted goes on once native code was left.
    pub(crate) fn places<'t>(&self, target: &'t CallTarget) -> &'t Places {
        let places = &target.running().places;
        places.get_or_init(|| (self.translation.places)(&self.module, target))
    }

    /// The cells of references into the embedder's heap in a frame of a function that is interpreted; none if the function
    /// has no such references.
    pub(crate) fn frame_refs<'t>(&self, target: &'t CallTarget) -> Option<&'t FrameRefs> {
        let body = self.module.body(target.func).expect("the module defines it");
        let refs = || &target.running().refs;
        let new = || Box::new(FrameRefs::of(&self.module, target.func));
        body.has_refs.then(|| &**refs().get_or_init(new))
    }

    /// The instruction that goes on where native code was left.
    pub(crate) fn land(&self) -> *const Instr {
        (self.translation.land)(self.options.jumps)
    }

    /// The target of the first call of a function.
    fn new_target(&self, func: u32, is_traced: bool) -> CallTarget {
        let tiers = self.tiers.as_deref().filter(|_| !is_traced);
        match tiers.and_then(|tiers| tiers.ready(func)) {
            Some((address, entry)) => self.native_target(func, address, entry),
            None => (self.translation.translate)(self, func, is_traced),
        }
    }

    /// The target of calls of a function that is native code, at an address and with the entry to it.
    fn native_target(
        &self,
        func: u32,
        address: *const u8,
        entry: Option<EntryTrampoline>,
    ) -> CallTarget {
        let start = (self.translation.native)(self.options.jumps);
        CallTarget::native_code(self.module.func_type(func), func, start, address, entry)
    }

    /// The code offset of the bytecode instruction that one of a function was made from.
    pub(crate) fn offset(&self, target: &CallTarget, pc: *const Instr) -> u32 {
        (self.translation.offset)(&self.module, target, pc)
    }

    /// The instruction after the call of a function by the host.
    pub(crate) fn exit(&self) -> *const Instr {
        (self.translation.exit)(self.options.jumps)
    }

    /// The decisions about native code of the module.
    pub(crate) fn tiers(&self) -> Option<&Arc<dyn Tiers>> {
        self.tiers.as_ref()
    }

    /// The target of calls of a function, by its number among those that the module defines, if it is made.
    pub(crate) fn made(&self, defined: u32) -> Option<&CallTarget> {
        made_at(self.targets[0].get()?, defined)
    }

    /// Native code of a function, if calls go there.
    pub(crate) fn native(&self, func: u32) -> *const u8 {
        let defined = func - self.module.n_imported_funcs();
        self.made(defined).map_or(ptr::null(), CallTarget::native)
    }

    /// Lets calls of a function go to native code from now on.
    pub(crate) fn replace(&self, func: u32, address: *const u8, entry: Option<EntryTrampoline>) {
        let defined = func - self.module.n_imported_funcs();
        let place = &self.targets(false)[defined as usize];
        let new = Box::into_raw(Box::new(self.native_target(func, address, entry)));
        let mut before = place.load(Ordering::Acquire);
        loop {
            // SAFETY: what is in the list stays alive as long as `self`; `new` was made above, and nobody else has it yet.
            let is_same = unsafe {
                if let TargetCode::Native(code) = &mut (*new).code {
                    code.before = before;
                }
                before.as_ref().is_some_and(|before| before.native() == address)
            };
            if is_same {
                // SAFETY: the box was made above, and nobody else has its address.
                drop(unsafe { Box::from_raw(new) });
                return;
            }
            match place.compare_exchange(before, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(other) => before = other,
            }
        }
    }

    /// Lets loops of a function, whose numbers are in ascending order, go on in native code from now on, in the frames that
    /// are being interpreted.
    ///
    /// For [`ModuleCode::has_gone_on`], all counts of the function begin anew: its frames may leave for native code.
    pub(crate) fn leave_loops(&self, func: u32, loops: &[u32], native: *const u8) {
        self.with_counts(func, |counts| {
            for count in counts {
                if let Part::Loop(_, number) = count.part
                    && loops.binary_search(&number).is_ok()
                {
                    count.native.store(native.cast_mut(), Ordering::Release);
                    count.hurry(1);
                }
                count.left_then.store(count.left.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        });
    }

    /// Whether something was done since [`Tiers::hot`] was first told of it.
    pub(crate) fn has_gone_on(&self, part: Part) -> bool {
        let has_gone_on = |count: &Count| {
            count.left.load(Ordering::Relaxed) != count.left_then.load(Ordering::Relaxed)
        };
        self.with_count(part, has_gone_on).unwrap_or(false)
    }

    /// The times that something was done, at least.
    pub(crate) fn n_times(&self, part: Part) -> u32 {
        self.with_count(part, Count::n_times).unwrap_or(0)
    }

    /// See [`TieredCode::n_interpreted`].
    fn n_interpreted(&self, part: Part) -> u64 {
        let n = |count: &Count| u64::from(count.n_times()) * u64::from(count.n_insts);
        self.with_count(part, n).unwrap_or(0)
    }

    /// The blocks of a function that have never run, in ascending order, as far as they are in a part that was done so many
    /// times; none, if it was never interpreted.
    fn never_ran(&self, func: u32, n_times_min: u32) -> Vec<u32> {
        let code = self.code_made(func);
        code.map_or(Vec::new(), |code| {
            code.blocks.never_ran(&code.instrs, often_done(code, n_times_min))
        })
    }

    /// See [`TieredCode::callees`].
    fn callees(&self, func: u32, n_times_min: u32) -> Vec<(u32, Vec<u32>)> {
        let Some(code) = self.code_made(func) else { return Vec::new() };
        let n_imported = self.module.n_imported_funcs();
        let of_site = |site: &CallSite| {
            let callees = Callees::of_word(code.instrs[site.slot as usize].data());
            (site.offset, callees.listed().map(|defined| n_imported + defined).collect())
        };
        let mut is_often = inside(often_done(code, n_times_min));
        let all = code.sites.iter().filter(|site| is_often(site.slot)).map(of_site);
        all.filter(|(_, callees): &(u32, Vec<u32>)| !callees.is_empty()).collect()
    }

    fn with_count<R>(&self, part: Part, f: impl FnOnce(&Count) -> R) -> Option<R> {
        self.with_counts(part.func(), |counts| find(counts, part).map(f)).flatten()
    }

    /// The result of `f` on the counts of a function, if it has any.
    fn with_counts<R>(&self, func: u32, f: impl FnOnce(&[Count]) -> R) -> Option<R> {
        self.code_made(func).map(|code| f(&code.counts))
    }

    /// The number of the export with a name.
    pub(crate) fn export(&self, name: &str) -> Option<usize> {
        let exports = self.exports.get_or_init(|| {
            let exports = self.module.module().exports.iter();
            exports.enumerate().map(|(i, export)| (export.name.clone(), i)).collect()
        });
        exports.get(name).copied()
    }
}

/// The interpreter's code of a module, for all stores that are given it with the module
/// ([`Store::instantiate_with`](crate::Store::instantiate_with)): a function is translated once and not in each of them.
#[derive(Default)]
pub struct InterpreterCode {
    /// One for each kind of store.
    made: Mutex<Vec<Arc<ModuleCode>>>,
}

impl fmt::Debug for InterpreterCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterpreterCode").finish_non_exhaustive()
    }
}

impl InterpreterCode {
    /// The code of a module for stores with these options.
    pub(crate) fn of(
        &self,
        module: &Arc<VerifiedModule>,
        options: CodeOptions,
        tiers: Option<&Arc<dyn Tiers>>,
        translation: &'static Translation,
    ) -> Arc<ModuleCode> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let same_tiers = |code: &ModuleCode| match (&code.tiers, tiers) {
            (None, None) => true,
            (Some(made), Some(tiers)) => Arc::ptr_eq(made, tiers),
            _ => false,
        };
        let fits = |code: &&Arc<ModuleCode>| {
            code.options == options && Arc::ptr_eq(&code.module, module) && same_tiers(code)
        };
        if let Some(code) = made.iter().find(fits) {
            return code.clone();
        }
        let code = Arc::new(ModuleCode::new(module.clone(), options, tiers.cloned(), translation));
        made.push(code.clone());
        code
    }
}

/// The target in its place, which is made if there is none.
fn get_or_make(place: &AtomicPtr<CallTarget>, make: impl FnOnce() -> CallTarget) -> &CallTarget {
    let mut target = place.load(Ordering::Acquire);
    if target.is_null() {
        let new = Box::into_raw(Box::new(make()));
        let null = ptr::null_mut();
        target = match place.compare_exchange(null, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => new,
            Err(made) => {
                // SAFETY: the box was made above, and nobody else has its address.
                drop(unsafe { Box::from_raw(new) });
                made
            }
        };
    }
    // SAFETY: what is in the lists of a module's code was made by the lines above or is `replace`'s, which keeps what was
    // there before. It lives as long as the lists, and only what threads share in it is written.
    unsafe { &*target }
}

/// A target, if it is made.
fn made_at(targets: &[AtomicPtr<CallTarget>], defined: u32) -> Option<&CallTarget> {
    let target = targets[defined as usize].load(Ordering::Acquire);
    // SAFETY: what is in the lists stays alive as long as they do, and only what threads share in it is written.
    unsafe { target.as_ref() }
}

impl Drop for ModuleCode {
    fn drop(&mut self) {
        let lists = self.targets.iter_mut().chain([&mut self.landed]);
        for place in lists.filter_map(OnceLock::get_mut).flatten() {
            let mut target = *place.get_mut();
            while !target.is_null() {
                // SAFETY: `target` or `replace` put it there, from a box, `self` is borrowed exclusively, and targets before
                // others have one successor.
                let last = unsafe { Box::from_raw(target) };
                target = last.before().cast_mut();
            }
        }
    }
}
