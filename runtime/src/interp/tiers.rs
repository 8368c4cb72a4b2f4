//! The ways between the interpreter and native code: functions that native code takes the place of, loops that go on in
//! it, and calls that come back from it.
//!
//! A function with native code has a target of one instruction, which calls that with the cells of its frame. So every
//! call of the interpreter enters it as it enters any other function, and asks nothing before. A loop goes on in native
//! code that is made for its first block and takes all that it needs from the cells; it returns from the function.
//!
//! Native code may call back, and what it calls may move the stacks of the interpreter. So it gets cells of its own.
//!
//! A tail call must not use up the stack, whatever tiers it leads through. Where native code that was entered calls a
//! function that is interpreted in its own place, it is left, as a trap would leave it, and whoever has entered it goes on
//! with that function ([`TailCall`]). Where native code leaves its frame for the interpreter, it does so in the same way, or
//! returns, if that frame is there ([`super::exits`]).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::slice;
use std::sync::atomic::Ordering;

use slotvm_bytecode::{FuncType, ValType, n_cells};

use super::activation::{self, Activation};
use super::cells::{SMALL_CELLS, copy_cells, first};
use crate::context::{EntryTrampoline, VmCtx};
use crate::entities::InstanceId;
use crate::error::{Error, Stop};
use crate::part::Part;
use crate::steps::code::{Count, part_at};
use crate::steps::instr::Instr;
use crate::steps::module_code::TieredCode;
use crate::steps::stack::{Frame, Left, TailCall};
use crate::steps::target::{CallTarget, NativeCode, TargetCode, n_call_cells};
use crate::store::called_from::{CalledFrom, NativePlace, Waits};
use crate::store::{NativeCallee, Store};

impl Activation<'_> {
    /// Calls the native code of the active function, whose frame has the parameters, and leaves the function.
    pub(super) fn run_native(&mut self) -> Result<*const Instr, Stop> {
        let active = self.active();
        let (func, n_cells) = (active.func, active.n_cells);
        let TargetCode::Native(NativeCode { address: native, entry, .. }) = active.code else {
            unreachable!("only native code has the instruction")
        };
        let type_id = match entry {
            Some(_) => u32::MAX,
            None => {
                let type_index = self.module().module().func_type_index(func);
                self.store.instance(self.instance()).type_id(type_index)
            }
        };
        let (mut small, mut large) = ([0; SMALL_CELLS], Vec::new());
        let cells = first(&mut small, &mut large, n_cells as usize);
        let fp = self.index(self.state.fp);
        copy_cells(&self.store.interp.stack.cells[fp..], cells);
        self.enter_native(native, (entry, type_id), false, cells)
    }

    /// Counts what the active function does often. Where native code of a loop is there, goes on in it, and then leaves
    /// the function.
    pub(super) fn count(&mut self, instr: &Instr) -> Result<*const Instr, Stop> {
        self.count_frames();
        let counts = &self.active().running().counts;
        let count = &counts[instr.c as usize];
        if count.native.load(Ordering::Acquire).is_null() {
            let tiers = self.module().tiers().expect("somebody wants what is counted").clone();
            let code = TieredCode(self.store.instance(self.instance()).code().clone());
            let (part, n_insts) = (count.part, count.n_insts);
            let left = tiers.hot(&code, part, n_insts, &mut self.callers()).max(1);
            count.leave(left);
            let was_told = count.left_then.load(Ordering::Relaxed) != 0;
            let left_then = if was_told { u32::MAX } else { left };
            count.left_then.store(left_then, Ordering::Relaxed);
        }
        let native = count.native.load(Ordering::Acquire);
        if native.is_null() {
            return Ok(ptr::from_ref(instr).wrapping_add(1));
        }
        // The next frame that comes here goes on there at once, and few more calls make the function native.
        count.hurry(1);
        counts[0].hurry(CALLS_WITH_LOOP);
        let Part::Loop(_, number) = count.part else {
            unreachable!("native code of functions has a target of its own")
        };
        // SAFETY: what all instances share lives as long as the store, and no native code runs.
        unsafe { (*self.state.shared).selector = number };
        let module = self.module().module().clone();
        let results = &module.func_type(self.active().func).results;
        let type_id = self.store.intern_type(&FuncType::new([ValType::I64], &results[..]));
        let (mut small, mut large) = ([0; SMALL_CELLS], Vec::new());
        let cells = first(&mut small, &mut large, n_cells(results).max(1));
        // The code reads the frame before anything else, so before anything can move it.
        cells[0] = self.state.fp.expose_provenance() as u64;
        self.enter_native(native, (None, type_id), true, cells)
    }

    /// The parts that wait for the active function, the innermost first, as far as they are of its instance.
    fn callers(&self) -> impl Iterator<Item = Part> + '_ {
        let waiting = self.waiting().take_while(|frame| frame.instance == self.state.instance);
        waiting.map(|&Frame { ret, func, .. }| {
            // SAFETY: it is a target of an instance, which the store keeps. It is interpreted: native code calls by other ways.
            let (func, code) = unsafe { ((*func).func, (*func).running()) };
            // Before the instruction to go on with is the call.
            part_at(&code.counts, func, code.slot(ret) as u32 - 1)
        })
    }

    /// Enters native code of the active function, and leaves the function with its results.
    fn enter_native(
        &mut self,
        code: *const u8,
        (entry, type_id): (Option<EntryTrampoline>, u32),
        is_loop: bool,
        cells: &mut [u64],
    ) -> Result<*const Instr, Stop> {
        let CallTarget { func, n_cells, n_results, .. } = *self.active();
        let (instance, ctx) = (self.instance(), self.state.ctx);
        let fp = self.index(self.state.fp);
        let callee = NativeCallee { ctx, code, entry, type_id, instance, func, is_loop };
        self.count_frames();
        self.store.interp.stack.top = fp + n_cells as usize;
        // Native code says where the active function is.
        let place = self.place(Waits::Elsewhere);
        self.store.calls.from = CalledFrom::Interpreter(&raw const place);
        // SAFETY: code and entry are those of the function or of its loop, as whoever installed them has said, the context
        // is that of the active instance, which has the function, and the cells are those of the type.
        let result = unsafe { self.store.run_native(&callee, cells) };
        if let Err(mut error) = result {
            self.look_at_stacks(fp, self.store.interp.stack.frames.len());
            self.look_at_memory();
            match self.store.interp.left.take() {
                Some(Left::Call(TailCall { instance, func, args })) => {
                    let n_params = self.store.interp_params(instance, func);
                    self.store.interp.stack.cells.copy_within(args..args + n_params, fp);
                    return self.enter(instance, func, fp);
                }
                Some(Left::Exit(instance, exit)) => {
                    // SAFETY: native code was left there just now.
                    return unsafe { self.land(instance, exit, fp) };
                }
                None => {}
            }
            // Native code has said where the active function was.
            self.add_frames(&mut error, false);
            return Err(error.into());
        }
        if is_loop && let Some(exit) = self.store.take_exit() {
            self.look_at_stacks(fp, self.store.interp.stack.frames.len());
            // SAFETY: native code was left there just now. It has returned instead of the function.
            return unsafe { self.land(instance, exit, fp) };
        }
        let n_results = n_results as usize;
        copy_cells(cells, &mut self.store.interp.stack.cells[fp..fp + n_results]);
        let pc = self.leave_at(fp);
        self.look_at_memory();
        Ok(pc)
    }
}

// What other values do: docs/decisions.md, "Constants of the tiers".

/// Calls of a function, one of whose loops has gone on in native code, before it is hot itself.
const CALLS_WITH_LOOP: u32 = 2;

/// The time of a call of a function that is interpreted by native code, as the number of instructions that the interpreter
/// executes meanwhile.
const FALLBACK_INSTS: u32 = 60;

/// Counts a call of a function by native code as often as the way there takes longer than the function.
fn count_fallback(target: &CallTarget) {
    let TargetCode::Interpreted(code) = &target.code else { return };
    if let Some(count @ Count { part: Part::Func(_), .. }) = code.counts.first() {
        let more = FALLBACK_INSTS / count.n_insts.max(1);
        count.hurry(count.left().saturating_sub(more).max(1));
    }
}

impl Store {
    /// The cells that the parameters of a function take.
    fn interp_params(&self, instance: InstanceId, func: u32) -> usize {
        n_cells(&self.instance(instance).module().func_type(func).params)
    }

    /// Leaves word of a call that is to be made instead of what native code does. Its arguments are put on top of the stack.
    fn leave_tail_call(
        &mut self,
        instance: InstanceId,
        func: u32,
        cells: &[u64],
    ) -> Result<(), Error> {
        let (args, n_params) = (self.interp.stack.top, self.interp_params(instance, func));
        self.interp.stack.reserve(args + n_params)?;
        self.interp.stack.cells[args..args + n_params].copy_from_slice(&cells[..n_params]);
        self.interp.left = Some(Left::Call(TailCall { instance, func, args }));
        Ok(())
    }

    /// Does the work that native code has left, which the host had called. The cells receive the results.
    pub(crate) fn go_on_left(&mut self, left: Left, cells: &mut [u64]) -> Result<(), Error> {
        match left {
            Left::Call(call) => self.make_tail_call(call, cells),
            // SAFETY: native code was left there just now.
            Left::Exit(instance, exit) => unsafe {
                activation::resume(self, instance, exit, cells)
            },
        }
    }

    fn make_tail_call(
        &mut self,
        TailCall { instance, func, args }: TailCall,
        cells: &mut [u64],
    ) -> Result<(), Error> {
        let ty = self.instance(instance).module().func_type(func);
        let (n, n_results) = (n_call_cells(ty), n_cells(&ty.results));
        let n_params = self.interp_params(instance, func);
        let mut own = self.interp.stack.cells[args..args + n_params].to_vec();
        own.resize(n, 0);
        activation::execute(self, instance, func, &mut own)?;
        cells[..n_results].copy_from_slice(&own[..n_results]);
        Ok(())
    }
}

/// Interprets a function that native code calls: [`VmCtx::interpret`]. If the call is in the place of the native code that
/// the runtime has entered, it leaves that code to be ended.
///
/// # Safety
/// Called by native code with its context, after it has set [`Shared::selector`](crate::context::Shared::selector) to a
/// function of the instance, or [`Shared::exit`](crate::context::Shared::exit) to an exit of one and its cells, by the
/// trampoline of the function's type, which has the frame pointer `fp`. `is_last` says that the trampoline returns to where
/// the runtime's own call of native code returns.
pub unsafe fn interpret(ctx: *mut VmCtx, cells: *mut u64, fp: usize, is_last: bool) -> u32 {
    // SAFETY: native code passes the context that it got, which lives as long as the store.
    let (store, instance, defined) = unsafe {
        let shared = (*ctx).shared;
        let instance = InstanceId::from_number((*ctx).instance);
        (Store::running(shared), instance, (*shared).selector)
    };
    store.calls.from = CalledFrom::Native(NativePlace::CallerOf(fp));
    let exit = store.take_exit();
    let code = store.instance(instance).code();
    let n_imported = code.module().n_imported_funcs();
    let func = match exit {
        // SAFETY: native code names exits that live as long as it does.
        Some(exit) => unsafe { (*exit).outermost() },
        None => n_imported + defined,
    };
    let n_cells = match code.made(func - n_imported) {
        // It may be a function that the one whose code is left has tail called, of other parameters.
        _ if exit.is_some() => n_cells(&code.module().func_type(func).results),
        Some(target) => {
            count_fallback(target);
            target.n_call_cells as usize
        }
        None => n_call_cells(code.module().func_type(func)),
    };
    let cells = match n_cells {
        // The pointer may be anything.
        0 => &mut [],
        // SAFETY: the trampoline of the function's type passes as many cells as it needs.
        n => unsafe { slice::from_raw_parts_mut(cells, n) },
    };
    if is_last {
        let left = match exit {
            Some(exit) => {
                store.interp.left = Some(Left::Exit(instance, exit));
                Ok(())
            }
            None => store.leave_tail_call(instance, func, cells),
        };
        let error = match left {
            // Nobody sees it.
            Ok(()) => Error::Usage(String::new()),
            Err(error) => error,
        };
        store.set_pending(Ok(error));
        return 1;
    }
    let mut error = None;
    let mut execute = |store: &mut Store| match exit {
        // SAFETY: native code was left there just now.
        Some(exit) => unsafe { activation::resume(store, instance, exit, cells) },
        None => activation::execute(store, instance, func, cells),
    };
    // A panic must not unwind through native frames; it resumes beyond them.
    let call = || match execute(&mut *store) {
        Ok(()) => true,
        Err(failure) => {
            error = Some(failure);
            false
        }
    };
    let failure = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(true) => return 0,
        Ok(false) => Ok(error.expect("it has failed")),
        Err(panic) => Err(panic),
    };
    store.set_pending(failure);
    1
}
