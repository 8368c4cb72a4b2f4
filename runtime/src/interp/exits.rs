//! Frames that native code leaves for the interpreter, see [`crate::exit`].
//!
//! Frames take their cells here. What a call takes from the deterministic call stack and from the frame stack, native
//! code has taken, and the interpreter gives it back where it leaves the function. If there is no room for a frame, the
//! trap is at the start of the block, and stacks are as after any trap.
//!
//! Where functions were inlined into each other, each has a frame. Those that wait go on after their calls, as if the
//! interpreter had made these.

use std::ptr;

use slotvm_bytecode::TrapCode;

use super::activation::Activation;
use super::translate::is_far;
use crate::context::FuncRecord;
use crate::entities::{FuncHandle, InstanceId};
use crate::error::{Error, Stop};
use crate::exit::{EXIT_CELLS_MAX, Exit, ExitFrame, ExitPlace, WaitingFrame, write};
use crate::steps::callees::note;
use crate::steps::code::{BlockStart, CallReturn, FrameRefs};
use crate::steps::instr::Instr;
use crate::steps::module_code::TieredCode;
use crate::steps::state::Landing;
use crate::steps::target::CallTarget;
use crate::store::Store;
use crate::trap::Trap;

impl Store {
    /// Takes the exit at which native code was left, if it was left at one.
    pub(super) fn take_exit(&mut self) -> Option<*const Exit> {
        // SAFETY: the store owns the structure, and native code does not run at the moment.
        let exit = unsafe { &mut (*self.shared_ptr()).exit };
        let taken = std::mem::replace(exit, std::ptr::null());
        (!taken.is_null()).then_some(taken)
    }
}

/// Makes references of locals null. An exit writes only those that will be read.
fn clear_refs(refs: Option<&FrameRefs>, frame: &mut [u64]) {
    for &cell in refs.map_or(&[][..], |refs| &refs.locals) {
        frame[cell as usize] = 0;
    }
}

impl Activation<'_> {
    /// Makes frames of functions of an instance, the cells of the outermost of which start at an index, where native code was
    /// left. If there is a frame at the index, the outermost one goes on in it. Returns the instruction to go on with.
    ///
    /// # Safety
    /// Native code of the function has written the exit to [`Shared::exit`](crate::context::Shared::exit) when it was left,
    /// and none has run since.
    pub(super) unsafe fn land(
        &mut self,
        instance: InstanceId,
        exit: *const Exit,
        base: usize,
    ) -> Result<*const Instr, Stop> {
        // SAFETY: native code names exits that live as long as it does, which is as long as the store.
        let exit = unsafe { &*exit };
        let is_last = exit.take();
        self.switch(instance);
        // SAFETY: what all instances share lives as long as the store, and no native code runs. There are as many cells, since
        // code that has exits has written to them.
        let values =
            unsafe { std::slice::from_raw_parts((*self.state.shared).exit_cells, EXIT_CELLS_MAX) };
        let base = self.wait_for(exit, values, base)?;
        let ExitFrame { func, place, ref cells } = *exit.at();
        let target = self.module().interpreted(func);
        let (slot, accumulators) = match place {
            ExitPlace::Block(block) => {
                let BlockStart { slot, accumulators } =
                    self.module().places(target).blocks[block as usize];
                (slot, accumulators)
            }
            ExitPlace::Call(call) => {
                self.note_missed(target, call);
                (self.call_return(target, call).slot, [None; 2])
            }
        };
        self.state.active = target;
        self.state.pc = &raw const target.running().instrs[slot as usize];
        let end = base + target.n_cells as usize;
        self.make_room(base, end).map_err(|stop| self.at_start(exit, stop))?;
        let refs = self.module().frame_refs(target);
        let frame = &mut self.store.interp.stack.cells[base..end];
        clear_refs(refs, frame);
        write(cells, values, frame);
        let [int, float] = accumulators.map(|cell| cell.map_or(0, |cell| frame[cell as usize]));
        let (pc, float) = (self.state.pc, f64::from_bits(float));
        // After a call, code of large frames begins anew to compute beside them.
        let is_far = is_far(target.n_cells) && matches!(place, ExitPlace::Block(_));
        self.state.landing = Landing { pc, int, float, is_far };
        self.look_at_memory();
        if is_last {
            let tiers = self.module().tiers().expect("native code that is left was made by tiers");
            let code = TieredCode(self.store.instance(instance).code().clone());
            exit.version().leave(tiers.clone().left_often(&code, exit.version()));
        }
        Ok(self.module().land())
    }

    /// Makes the frames that wait for that of an exit, the outermost first, and lets them wait. Returns where the cells of the
    /// frame of the exit start. All frames are named if there is no room for one.
    fn wait_for(&mut self, exit: &Exit, values: &[u64], base: usize) -> Result<usize, Stop> {
        let n_cells = |frame: &WaitingFrame| frame.cells.len();
        let mut start = exit.at().cells.len() + exit.waiting().iter().map(n_cells).sum::<usize>();
        let mut base = base;
        for (i, frame) in exit.waiting().iter().enumerate().rev() {
            let target = self.module().interpreted(frame.func);
            let CallReturn { slot, args, .. } = self.call_return(target, frame.call);
            let target = ptr::from_ref(target);
            // SAFETY: it is a target of an instance, which the store keeps.
            let (end, ret) = unsafe {
                let ret = &raw const (*target).running().instrs[slot as usize];
                (base + (*target).n_cells as usize, ret)
            };
            let room = self.make_room(base, end).and_then(|()| {
                start -= frame.cells.len();
                // SAFETY: it is a target of an instance, which the store keeps.
                let refs = self.module().frame_refs(unsafe { &*target });
                let cells = &mut self.store.interp.stack.cells[base..end];
                clear_refs(refs, cells);
                write(&frame.cells, &values[start..], cells);
                self.push_frame(ret, target, args)
            });
            room.map_err(|stop| self.at_places(exit, i + 1, stop))?;
            base += args as usize;
        }
        Ok(base)
    }

    /// Where a function goes on after a call.
    fn call_return(&self, target: &CallTarget, call: u32) -> CallReturn {
        let calls = &self.module().places(target).calls;
        let at = calls.binary_search_by_key(&call, |call| call.call);
        calls[at.expect("the function has the call")]
    }

    /// Notes which function an indirect call has called in native code, which is left after it.
    fn note_missed(&self, target: &CallTarget, call: u32) {
        // SAFETY: what all instances share lives as long as the store, and no native code runs.
        let callee = unsafe { (*self.state.shared).exit_callee };
        let callee = FuncHandle::from_cell(callee).expect("a function was called");
        let code = target.running();
        let at = code.sites.binary_search_by_key(&call, |site| site.offset);
        let site = code.sites[at.expect("code that tiers make native notes its calls")];
        note(&code.instrs[site.slot as usize], self.defined(callee));
    }

    /// The number of a function among those that the module of the active instance defines, if it is one of that instance.
    pub(super) fn defined(&self, func: FuncHandle) -> Option<u32> {
        let FuncRecord { ctx, defined, .. } = self.store.func_record(func);
        ptr::eq(ctx, self.state.ctx).then_some(defined)
    }

    /// The reason for which the interpreter cannot go on after an exit, with the frames of a trap: its place is the start of
    /// the block, before the first instruction that was made of it, or the call. The frames that wait are there.
    pub(super) fn at_start(&self, exit: &Exit, stop: Stop) -> Stop {
        self.at_places(exit, 0, stop)
    }

    /// The same where the innermost frames that wait are not there yet.
    fn at_places(&self, exit: &Exit, n_missing: usize, stop: Stop) -> Stop {
        let Stop::Trap(code) = stop else { return stop };
        let (at, instance) = (exit.at(), self.instance());
        let body = self.module().module().body(at.func).expect("the module defines it");
        let place = match at.place {
            ExitPlace::Block(block) => body.blocks[block as usize].start,
            ExitPlace::Call(call) => call,
        };
        let missing = exit.waiting()[..n_missing].iter().map(|frame| (frame.func, frame.call));
        let places = [(at.func, place)].into_iter().chain(missing);
        let mut error = Error::from(Trap::new(code, []));
        let frames = places.map(|(func, offset)| self.store.frame(instance, func, offset));
        error.add_frames(frames, 0);
        self.add_frames(&mut error, false);
        Stop::Error(error)
    }

    /// Makes sure that the stack has the cells of a frame, between two indices, and lets the state name them.
    pub(super) fn make_room(&mut self, base: usize, end: usize) -> Result<(), Stop> {
        let n_frames = self.n_frames();
        if self.store.config.stack_cells.is_none() {
            let limits = &self.store.config.limits;
            if end > limits.interp_cells_max as usize
                || n_frames > limits.interp_frames_max as usize
            {
                return Err(TrapCode::StackOverflow.into());
            }
        }
        self.count_frames();
        self.store.interp.stack.reserve(end)?;
        self.look_at_stacks(base, n_frames);
        Ok(())
    }
}
