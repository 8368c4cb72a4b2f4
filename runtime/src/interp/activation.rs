//! A call from the host that is being interpreted: enters, leaves and switches between functions, and traps.

use std::ptr;
use std::sync::Arc;

use slotvm_bytecode::{TrapCode, n_cells};

use super::cells::{SMALL_CELLS, copy_cells, first};
use super::run::run;
use crate::entities::FuncHandle;
use crate::entities::FuncTarget;
use crate::entities::InstanceId;
use crate::error::{Error, Stop};
use crate::exit::Exit;
use crate::steps::instr::Instr;
use crate::steps::module_code::ModuleCode;
use crate::steps::stack::{Frame, Stack};
use crate::steps::state::State;
use crate::steps::target::{CallTarget, TargetCode};
use crate::steps::trace::TraceFn;
use crate::store::Store;
use crate::store::called_from::{CalledFrom, InterpretedPlace, Waits};
use crate::trap::Trap;

/// Runs a function of an instance by interpretation.
///
/// # Errors
/// Fails if it traps or a host function that it calls fails.
pub(crate) fn execute(
    store: &mut Store,
    instance: InstanceId,
    func: u32,
    cells: &mut [u64],
) -> Result<(), Error> {
    execute_from(store, instance, Begin::Call(func), cells)
}

/// Goes on in a frame of a function of an instance that native code has left. The cells receive the results of the
/// function.
///
/// # Errors
/// As for [`execute`].
///
/// # Safety
/// As for [`Activation::land`].
pub(super) unsafe fn resume(
    store: &mut Store,
    instance: InstanceId,
    exit: *const Exit,
    cells: &mut [u64],
) -> Result<(), Error> {
    execute_from(store, instance, Begin::Exit(exit), cells)
}

/// How an activation begins.
#[derive(Copy, Clone)]
enum Begin {
    /// By a call of a function.
    Call(u32),
    /// In the frame of an exit, as [`resume`] takes it.
    Exit(*const Exit),
}

fn execute_from(
    store: &mut Store,
    instance: InstanceId,
    begin: Begin,
    cells: &mut [u64],
) -> Result<(), Error> {
    let trace = store.interp.trace.clone();
    let (n_outer_frames, base) = (store.interp.stack.frames.len(), store.interp.stack.top);
    let module = Arc::as_ptr(store.instance(instance).code());
    let shared = store.shared_ptr();
    // Made where it stays, and errors are not moved unless there are some: native code calls often.
    let state = State { shared, instance: instance.number(), ..State::EMPTY };
    let entered_from = store.calls.from;
    let activation = &mut Activation {
        state,
        store,
        n_outer_frames,
        entered_from,
        base,
        module,
        stop: None,
        trace,
    };
    activation.run(begin, cells);
    activation.store.calls.from = entered_from;
    activation.store.interp.stack.top = base;
    let stop = activation.stop.take();
    let result = match stop {
        None => Ok(()),
        Some(stop) => Err(activation.error(stop)),
    };
    // After an error some are left, and an activation below may be asked for its own.
    activation.store.interp.stack.frames.truncate(n_outer_frames);
    result
}

/// See the module documentation. Handlers see only the state, which therefore comes first.
///
/// The stacks stay in the store. The number of frames there is right only while something works on the store that may call
/// back: handlers push and pop frames behind its back.
#[repr(C)]
pub(super) struct Activation<'a> {
    pub(super) state: State,
    pub(super) store: &'a mut Store,
    /// Frames that belong to calls from the host below this one.
    n_outer_frames: usize,
    /// Where the guest code is that the activation was entered from.
    entered_from: CalledFrom,
    /// The start of the cells of the function that the host has called.
    base: usize,
    /// The code of the active instance.
    module: *const ModuleCode,
    /// Why the activation ended, unless it returned.
    stop: Option<Stop>,
    pub(super) trace: Option<TraceFn>,
}

impl<'a> Activation<'a> {
    /// The activation that a state belongs to.
    ///
    /// # Safety
    /// The state is that of an activation, and there is no other reference to that.
    pub(super) unsafe fn of<'b>(state: *mut State) -> &'b mut Activation<'b> {
        // SAFETY: the state comes first in an activation, and only there; and this reference is the only one, as
        // the caller says.
        unsafe { &mut *state.cast() }
    }

    /// Calls a function from the host. If it does not return, [`Activation::stop`] says why.
    fn run(&mut self, begin: Begin, cells: &mut [u64]) {
        match self.begin(begin, cells) {
            Ok(pc) => {
                self.state.pc = pc;
                // SAFETY: the state is that of this activation. The function has been entered, so its code, frame and
                // memory are those in the state.
                unsafe { run(&raw mut self.state) };
            }
            Err(stop) => self.stop = Some(stop),
        }
        self.count_frames();
        if self.stop.is_none() {
            copy_cells(&self.store.interp.stack.cells[self.base..], cells);
        }
    }

    /// The error that the activation ends with.
    #[cold]
    fn error(&self, stop: Stop) -> Error {
        match stop {
            Stop::Error(error) => error,
            Stop::Trap(code) => {
                let mut error = Trap::new(code, []).into();
                self.add_frames(&mut error, true);
                error
            }
        }
    }

    /// Enters the function that the host has called, or the frame that native code has left, if there is enough of the
    /// host's stack.
    fn begin(&mut self, begin: Begin, cells: &[u64]) -> Result<*const Instr, Stop> {
        let instance = self.instance();
        let stack = &mut self.store.interp.stack;
        let reserved = stack.reserve(self.base + cells.len());
        // What an error is told of looks at them.
        self.look_at_stacks(self.base, self.n_outer_frames);
        reserved?;
        let exit = self.module().exit();
        let stack = &mut self.store.interp.stack;
        copy_cells(cells, &mut stack.cells[self.base..self.base + cells.len()]);
        stack.frames.push(Frame {
            ret: exit,
            func: ptr::null(),
            args: 0,
            instance: instance.number(),
        });
        self.look_at_stacks(self.base, self.n_outer_frames + 1);
        self.look_at_instance();
        match begin {
            Begin::Call(func) => {
                self.state.active = self.target(func);
                self.state.pc = ptr::null();
                self.store.check_host_stack()?;
                self.enter(instance, func, self.base)
            }
            Begin::Exit(exit) => {
                // SAFETY: `resume` alone begins so, with an exit at which native code was left just before.
                let (pc, exit) = unsafe { (self.land(instance, exit, self.base)?, &*exit) };
                let has_room = self.store.check_host_stack();
                has_room.map_err(|code| self.at_start(exit, code.into())).map(|()| pc)
            }
        }
    }

    /// Ends the activation.
    pub(super) fn stop(&mut self, stop: Stop) {
        self.stop = Some(stop);
    }

    // What the state says.

    pub(super) fn instance(&self) -> InstanceId {
        InstanceId::from_number(self.state.instance)
    }

    /// The active function.
    pub(super) fn active(&self) -> &CallTarget {
        // SAFETY: it is a target of an instance, which the store keeps.
        unsafe { &*self.state.active }
    }

    /// The code of the active instance.
    pub(super) fn module(&self) -> &'a ModuleCode {
        // SAFETY: the instance keeps it, and the store its instances, as long as the store lives.
        unsafe { &*self.module }
    }

    /// The index of a cell.
    pub(super) fn index(&self, cell: *const u64) -> usize {
        (cell.addr() - self.store.interp.stack.cells.as_ptr().addr()) / size_of::<u64>()
    }

    /// The target of calls of a function of the active module.
    pub(super) fn target(&self, func: u32) -> *const CallTarget {
        self.module().target(func, self.trace.is_some())
    }

    /// Lets the state name the stacks, which may have moved. There are so many frames.
    pub(super) fn look_at_stacks(&mut self, fp: usize, n_frames: usize) {
        let limits = &self.store.config.limits;
        let has_limits = self.store.config.stack_cells.is_none();
        let Stack { cells, frames, .. } = &mut self.store.interp.stack;
        let n_cells = match has_limits {
            true => cells.len().min(limits.interp_cells_max as usize),
            false => cells.len(),
        };
        let n_frames_max = match has_limits {
            true => frames.capacity().min(limits.interp_frames_max as usize),
            false => frames.capacity(),
        };
        let first = cells.as_mut_ptr();
        self.state.fp = first.wrapping_add(fp);
        self.state.cells_end = first.wrapping_add(n_cells.max(fp));
        let first = frames.as_mut_ptr();
        self.state.frames = first.wrapping_add(n_frames);
        self.state.frames_end = first.wrapping_add(n_frames_max.max(n_frames));
    }

    /// The number of frames that wait.
    pub(super) fn n_frames(&self) -> usize {
        (self.state.frames.addr() - self.store.interp.stack.frames.as_ptr().addr())
            / size_of::<Frame>()
    }

    /// Tells the list of frames how many there are.
    pub(super) fn count_frames(&mut self) {
        let n_frames = self.n_frames();
        assert!(n_frames <= self.store.interp.stack.frames.capacity(), "frames lie in the list");
        // SAFETY: there is room for as many, and the first ones of the list are written before more are.
        unsafe { self.store.interp.stack.frames.set_len(n_frames) };
    }

    /// Lets the state name what belongs to its instance.
    fn look_at_instance(&mut self) {
        let instance = self.store.instance(self.instance());
        self.state.ctx = instance.ctx();
        self.state.globals = instance.ctx.cells();
        self.state.targets = self.module().targets(self.trace.is_some()).as_ptr();
        self.look_at_memory();
    }

    /// Lets the state name the memory of its instance, which may have grown.
    pub(super) fn look_at_memory(&mut self) {
        // SAFETY: the context lives as long as the instance, and leads to memory 0 if there is one.
        (self.state.memory, self.state.memory_bytes) = unsafe {
            match (*self.state.ctx).memory {
                memory if memory.is_null() => (ptr::dangling_mut(), 0),
                memory => ((*memory).base, (*memory).bytes as usize),
            }
        };
    }

    /// Makes another instance the active one.
    pub(super) fn switch(&mut self, instance: InstanceId) {
        if instance != self.instance() {
            self.state.instance = instance.number();
            self.module = Arc::as_ptr(self.store.instance(instance).code());
            self.look_at_instance();
        }
    }

    // Entering and leaving. The arguments of a call lie where the callee's cells start.

    /// Lets a function wait. Its callee's cells start at `args`.
    pub(super) fn push_frame(
        &mut self,
        ret: *const Instr,
        func: *const CallTarget,
        args: u32,
    ) -> Result<(), Stop> {
        self.count_frames();
        let fp = self.index(self.state.fp);
        self.store.interp.stack.reserve(0)?;
        self.store.interp.stack.frames.push(Frame {
            ret,
            func,
            args,
            instance: self.state.instance,
        });
        self.look_at_stacks(fp, self.store.interp.stack.frames.len());
        Ok(())
    }

    /// Enters a function, whose cells start at an index, and returns its first instruction.
    pub(super) fn enter(
        &mut self,
        instance: InstanceId,
        func: u32,
        base: usize,
    ) -> Result<*const Instr, Stop> {
        self.switch(instance);
        self.state.active = self.target(func);
        let target = self.state.active;
        // SAFETY: it is a target of an instance, which the store keeps.
        let target = unsafe { &*target };
        self.state.pc = ptr::null();
        let end = base + target.n_cells as usize;
        if self.store.config.stack_cells.is_some()
            && !self.store.take_stack_cells(target.call_cells.into())
        {
            return Err(TrapCode::StackOverflow.into());
        }
        self.make_room(base, end)?;
        if let TargetCode::Interpreted(code) = &target.code
            && target.frame_bytes > 0
        {
            let frame_sp = self.store.push_frame(instance, target.frame_bytes)?;
            let start = frame_sp as usize;
            let memory = self.store.guest_parts(instance).memory;
            memory[start..][..target.frame_bytes as usize].fill(0);
            for &(param, offset, bytes) in &code.frame_params {
                let value = self.store.interp.stack.cells[base + param as usize].to_le_bytes();
                let memory = self.store.guest_parts(instance).memory;
                memory[start + offset as usize..][..bytes as usize]
                    .copy_from_slice(&value[..bytes as usize]);
            }
        }
        let cells = &mut self.store.interp.stack.cells[base..end];
        cells[target.n_params as usize..target.n_locals as usize].fill(0);
        Ok(target.start)
    }

    /// Gives back what `enter` has taken.
    pub(super) fn release(&mut self) {
        let (call_cells, frame_bytes) = (self.active().call_cells, self.active().frame_bytes);
        if self.store.config.stack_cells.is_some() {
            self.store.give_stack_cells(call_cells.into());
        }
        if frame_bytes > 0 {
            self.store.pop_frame(self.instance(), frame_bytes);
        }
    }

    /// Goes on after the call of the active function, which has been released; its results lie where its cells
    /// start.
    pub(super) fn leave(&mut self) -> *const Instr {
        self.count_frames();
        self.leave_at(self.index(self.state.fp))
    }

    /// The same, where the active function's cells start at an index, and the list knows how many frames there are.
    pub(super) fn leave_at(&mut self, fp: usize) -> *const Instr {
        let frame = self
            .store
            .interp
            .stack
            .frames
            .pop()
            .expect("below each function is a frame that waits");
        let fp = fp - frame.args as usize;
        self.switch(InstanceId::from_number(frame.instance));
        self.state.active = frame.func;
        self.look_at_stacks(fp, self.store.interp.stack.frames.len());
        frame.ret
    }

    // Calls.

    /// Calls a function, with the instruction to go on with after it.
    pub(super) fn call(
        &mut self,
        func: FuncHandle,
        args: u32,
        ret: *const Instr,
    ) -> Result<*const Instr, Stop> {
        match self.store.func_target(func) {
            FuncTarget::Guest { instance, func } => self.call_guest(instance, func, args, ret),
            FuncTarget::Host { .. } => {
                let fp = self.index(self.state.fp);
                let top = fp + self.active().n_cells as usize;
                self.call_host(func, fp + args as usize, top, true)?;
                Ok(ret)
            }
        }
    }

    pub(super) fn call_guest(
        &mut self,
        instance: InstanceId,
        func: u32,
        args: u32,
        ret: *const Instr,
    ) -> Result<*const Instr, Stop> {
        let base = self.index(self.state.fp) + args as usize;
        self.push_frame(ret, self.state.active, args)?;
        self.enter(instance, func, base)
    }

    /// Calls a function in place of the active one, which has been released.
    pub(super) fn return_call(
        &mut self,
        func: FuncHandle,
        args: u32,
    ) -> Result<*const Instr, Stop> {
        match self.store.func_target(func) {
            FuncTarget::Guest { instance, func } => self.return_call_guest(instance, func, args),
            FuncTarget::Host { .. } => {
                let ty = self.store.func_type(func);
                let (n_params, n_results) = (n_cells(&ty.params), n_cells(&ty.results));
                let base = self.index(self.state.fp);
                self.move_args(args, n_params);
                let top = base + n_params.max(n_results);
                self.count_frames();
                self.store.interp.stack.reserve(top)?;
                self.look_at_stacks(base, self.store.interp.stack.frames.len());
                self.call_host(func, base, top, false)?;
                Ok(self.leave())
            }
        }
    }

    pub(super) fn return_call_guest(
        &mut self,
        instance: InstanceId,
        func: u32,
        args: u32,
    ) -> Result<*const Instr, Stop> {
        let ty = self.store.instance(instance).module().func_type(func);
        let n_params = n_cells(&ty.params);
        self.move_args(args, n_params);
        let base = self.index(self.state.fp);
        self.enter(instance, func, base)
    }

    /// Moves the arguments of a call to where the active function's cells start.
    fn move_args(&mut self, args: u32, n_params: usize) {
        let base = self.index(self.state.fp);
        let start = base + args as usize;
        self.store.interp.stack.cells.copy_within(start..start + n_params, base);
    }

    /// Calls a host function, whose arguments and then results lie at the cell with an index. The cells from
    /// `top` on are free for calls that it makes. If it fails, the active function is one of the frames if it
    /// waits.
    fn call_host(
        &mut self,
        func: FuncHandle,
        args: usize,
        top: usize,
        waits: bool,
    ) -> Result<(), Stop> {
        let ty = self.store.func_type(func);
        let (n_params, n_results) = (n_cells(&ty.params), n_cells(&ty.results));
        let n = n_params.max(n_results);
        // The stack may move while the host runs, so the host gets cells of its own.
        let (mut small, mut large) = ([0; SMALL_CELLS], Vec::new());
        let cells = first(&mut small, &mut large, n);
        cells[..n_params].copy_from_slice(&self.store.interp.stack.cells[args..args + n_params]);
        let at = if waits { Waits::Calling } else { Waits::Elsewhere };
        let result = self.lend_stack(top, at, |store| store.call_host(func, cells));
        if let Err(mut error) = result {
            self.add_frames(&mut error, waits);
            return Err(error.into());
        }
        self.store.interp.stack.cells[args..args + n_results].copy_from_slice(&cells[..n_results]);
        Ok(())
    }

    /// Lets something work on the store that may call back into guest code. The cells from `top` on are free
    /// meanwhile. The active function is one of the frames if it waits.
    pub(super) fn lend_stack<R>(
        &mut self,
        top: usize,
        waits: Waits,
        work: impl FnOnce(&mut Store) -> R,
    ) -> R {
        let fp = self.index(self.state.fp);
        self.count_frames();
        self.store.interp.stack.top = top;
        let place = self.place(waits);
        self.store.calls.from = CalledFrom::Interpreter(&raw const place);
        let result = work(self.store);
        self.look_at_stacks(fp, self.store.interp.stack.frames.len());
        self.look_at_memory();
        result
    }

    /// Lets something work on the store that may call back into guest code, for the instruction at hand. An error that
    /// is a trap gets its frames.
    pub(super) fn with_store<R, E>(
        &mut self,
        work: impl FnOnce(&mut Store) -> Result<R, E>,
    ) -> Result<R, Stop>
    where
        Stop: From<E>,
    {
        self.waiting_at(Waits::Calling, work)
    }

    /// Polls at the start of a block.
    pub(super) fn poll(&mut self) -> Result<(), Stop> {
        self.waiting_at(Waits::Polling, Store::poll)
    }

    fn waiting_at<R, E>(
        &mut self,
        waits: Waits,
        work: impl FnOnce(&mut Store) -> Result<R, E>,
    ) -> Result<R, Stop>
    where
        Stop: From<E>,
    {
        let fp = self.index(self.state.fp);
        let top = fp + self.active().n_cells as usize;
        self.lend_stack(top, waits, work).map_err(|stop| match stop.into() {
            Stop::Trap(code) => Stop::Trap(code),
            Stop::Error(mut error) => {
                self.add_frames(&mut error, true);
                Stop::Error(error)
            }
        })
    }

    /// The frames of this activation that wait, the innermost first. The list knows how many there are.
    pub(super) fn waiting(&self) -> impl ExactSizeIterator<Item = &Frame> {
        // The first of them is the host's call.
        self.store.interp.stack.frames[self.n_outer_frames..].iter().skip(1).rev()
    }

    /// The place of the activation for backtraces. The list knows how many
    /// frames there are.
    pub(super) fn place(&self, waits: Waits) -> InterpretedPlace {
        let State { active: func, pc, instance, .. } = self.state;
        let n_frames = self.store.interp.stack.frames.len();
        InterpretedPlace {
            entered_from: self.entered_from,
            active: (waits != Waits::Elsewhere).then_some((func, pc, instance)),
            polls: waits == Waits::Polling,
            // The first of them is the host's call, if it has begun.
            waiting: (self.n_outer_frames + 1).min(n_frames)..n_frames,
            fp: self.index(self.state.fp),
        }
    }

    /// Appends the frames of this activation to an error: the active function, if it is to be there, and
    /// those that wait.
    pub(super) fn add_frames(&self, error: &mut Error, active: bool) {
        let waits = if active { Waits::Calling } else { Waits::Elsewhere };
        let InterpretedPlace { active, waiting, .. } = self.place(waits);
        let (frames, n_omitted) = self.store.interpreted_frames(active, waiting);
        error.add_frames(frames, n_omitted);
    }
}
