//! Frames that native code leaves for the interpreter, see [`crate::exit`].
//!
//! The frame takes its cells here. What a call takes from the deterministic call stack and from the frame stack, native
//! code has taken, and the interpreter gives it back where it leaves the function. If there is no room for the frame, the
//! trap is at the start of the block, and stacks are as after any trap.

use slotvm_bytecode::TrapCode;

use super::activation::Activation;
use super::translate::is_far;
use crate::entities::InstanceId;
use crate::error::{Error, Stop};
use crate::exit::Exit;
use crate::steps::code::BlockStart;
use crate::steps::instr::Instr;
use crate::steps::module_code::TieredCode;
use crate::steps::state::Landing;
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

impl Activation<'_> {
    /// Makes a frame of a function of an instance, whose cells start at an index, or goes on in the one that is there, where
    /// native code was left. Returns the instruction to go on with.
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
        let target = self.module().interpreted(exit.func());
        let BlockStart { slot, accumulators } = self.module().start_of(target, exit.block());
        self.state.active = target;
        self.state.pc = &raw const target.running().instrs[slot as usize];
        let end = base + target.n_cells as usize;
        self.make_room(base, end).map_err(|stop| self.at_start(exit, stop))?;
        let frame = &mut self.store.interp.stack.cells[base..end];
        // SAFETY: what all instances share lives as long as the store, and no native code runs.
        let values = unsafe { &(*self.state.shared).exit_cells };
        exit.write(values, frame);
        let [int, float] = accumulators.map(|cell| cell.map_or(0, |cell| frame[cell as usize]));
        let (pc, float, is_far) = (self.state.pc, f64::from_bits(float), is_far(target.n_cells));
        self.state.landing = Landing { pc, int, float, is_far };
        self.look_at_memory();
        if is_last {
            let tiers = self.module().tiers().expect("native code that is left was made by tiers");
            let code = TieredCode(self.store.instance(instance).code().clone());
            exit.version().leave(tiers.clone().left_often(&code, exit.version()));
        }
        Ok(self.module().land())
    }

    /// The reason for which the interpreter cannot go on after an exit, with the frames of a trap: its place is the start of
    /// the block, before the first instruction that was made of it.
    pub(super) fn at_start(&self, exit: &Exit, stop: Stop) -> Stop {
        let Stop::Trap(code) = stop else { return stop };
        let body = self.module().module().body(exit.func()).expect("the module defines it");
        let start = body.blocks[exit.block() as usize].start;
        let mut error = Error::from(Trap::new(code, []));
        error.add_frames([self.store.frame(self.instance(), exit.func(), start)], 0);
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
