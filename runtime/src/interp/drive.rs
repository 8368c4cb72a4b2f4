//! Enters, leaves and switches between functions.

use std::mem;
use std::sync::Arc;

use slotvm_bytecode::{Imm, Op, TrapCode, n_cells};

use super::run::{self, Position, Tracer};
use crate::entities::FuncHandle;
use crate::entities::FuncTarget;
use crate::entities::InstanceId;
use crate::error::{Error, Stop};
use crate::limits::TRACE_FRAMES_MAX;
use crate::steps::prepare::{FuncCode, ModuleCode, StepOp};
use crate::steps::stack::{Frame, Stack};
use crate::steps::trace::TraceFn;
use crate::store::Store;
use crate::trap::Trap;

/// Runs a guest function by interpretation.
///
/// # Errors
/// Fails if it traps or a host function that it calls fails.
pub(crate) fn execute(store: &mut Store, func: FuncHandle, cells: &mut [u64]) -> Result<(), Error> {
    let FuncTarget::Guest { instance, func } = store.func_target(func) else {
        return Err(Error::Usage("the interpreter cannot call host functions".to_owned()));
    };
    let trace = store.trace.clone();
    let stack = mem::take(&mut store.interp);
    let code = store.instance(instance).code().clone();
    let base = stack.top;
    let mut activation = Activation {
        n_outer_frames: stack.frames.len(),
        store,
        stack,
        code,
        instance,
        func,
        base,
        at: Position::default(),
        trace,
    };
    let result = activation.run_to_end(cells);
    // After an error, `Store::call` resets the stack.
    activation.stack.top = base;
    result
}

/// A call from the host that is being interpreted.
pub(super) struct Activation<'a> {
    pub(super) store: &'a mut Store,
    /// The store's stacks, taken out of it except while the host runs.
    pub(super) stack: Stack,
    /// Frames that belong to calls from the host below this one.
    n_outer_frames: usize,

    /// The active function.
    pub(super) instance: InstanceId,
    func: u32,
    /// The code of its instance.
    pub(super) code: Arc<ModuleCode>,
    /// The start of its cells.
    base: usize,
    pub(super) at: Position,

    trace: Option<TraceFn>,
}

impl Drop for Activation<'_> {
    /// Gives the stacks back, also if a hook has panicked that sees them. While the host runs, the store has
    /// them already, and these are empty.
    fn drop(&mut self) {
        if !self.stack.is_empty() {
            self.store.interp = mem::take(&mut self.stack);
        }
    }
}

impl Activation<'_> {
    /// Calls the active function, which has not been entered yet.
    fn run_to_end(&mut self, cells: &mut [u64]) -> Result<(), Error> {
        self.stack.reserve(self.base + cells.len())?;
        let base = self.base;
        self.stack.cells[base..base + cells.len()].copy_from_slice(cells);
        match self.begin().and_then(|()| self.run()) {
            Ok(()) => {
                cells.copy_from_slice(&self.stack.cells[base..base + cells.len()]);
                Ok(())
            }
            Err(Stop::Error(error)) => Err(error),
            Err(Stop::Trap(code)) => {
                let mut error = Trap::new(code, []).into();
                self.add_frames(&mut error, true);
                Err(error)
            }
        }
    }

    /// Runs until the function that the host has called is left.
    fn run(&mut self) -> Result<(), Stop> {
        loop {
            match &self.trace {
                None => self.run_frame::<false>(None)?,
                Some(hook) => {
                    let hook = hook.clone();
                    let module = self.code.module().clone();
                    let (instance, func) = (self.instance, self.func);
                    let depth = self.stack.frames.len();
                    let tracer = Tracer { hook: &hook, instance, module: &module, depth, func };
                    self.run_frame::<true>(Some(&tracer))?;
                }
            }
            if self.step()? {
                return Ok(());
            }
        }
    }

    /// Runs the active function up to a step that concerns more than its frame.
    fn run_frame<const TRACE: bool>(&mut self, tracer: Option<&Tracer<'_>>) -> Result<(), Stop> {
        let code = self.code.func(self.func);
        let cells = &mut self.stack.cells[self.base..self.base + code.n_cells];
        let canonical_nans = self.store.config.canonical_nans;
        let parts = self.store.guest_parts(self.instance);
        run::run::<TRACE>(code, parts, canonical_nans, cells, &mut self.at, tracer)?;
        Ok(())
    }

    /// Executes the step that `run_frame` has come to. Returns whether the host's call is finished.
    fn step(&mut self) -> Result<bool, Stop> {
        let step = self.func_code().steps[self.at.pc];
        let op = match step.op {
            StepOp::Op(op) => op,
            StepOp::Poll => {
                self.with_store(Store::poll)?;
                self.at.pc += 1;
                return Ok(false);
            }
            _ => unreachable!("`run` executes the others"),
        };
        match op {
            Op::Return => return Ok(self.leave()),
            Op::Call => self.call_func(step.imm.low()),
            Op::CallIndirect => {
                let func = self.pop_callee(step.imm)?;
                self.call_handle(func)
            }
            Op::ReturnCall => return self.return_call_func(step.imm.low()),
            Op::ReturnCallIndirect => {
                let func = self.pop_callee(step.imm)?;
                return self.return_call_handle(func);
            }
            _ => {
                self.serve(op, step.imm)?;
                self.at.pc += 1;
                Ok(())
            }
        }?;
        Ok(false)
    }

    fn func_code(&self) -> &FuncCode {
        self.code.func(self.func)
    }

    // The operand stack.

    pub(super) fn push(&mut self, cell: u64) {
        self.stack.cells[self.base + self.at.sp] = cell;
        self.at.sp += 1;
    }

    pub(super) fn pop(&mut self) -> u64 {
        self.at.sp -= 1;
        self.stack.cells[self.base + self.at.sp]
    }

    pub(super) fn pop_u32(&mut self) -> u32 {
        self.pop() as u32
    }

    /// Pops three operands, the deepest first.
    pub(super) fn pop_3(&mut self) -> [u32; 3] {
        let (c, b, a) = (self.pop_u32(), self.pop_u32(), self.pop_u32());
        [a, b, c]
    }

    // Entering and leaving. The arguments of a call lie where the callee's cells start.

    /// Enters the function that the host has called, if there is enough of the host's stack.
    fn begin(&mut self) -> Result<(), Stop> {
        self.store.check_host_stack()?;
        self.enter()
    }

    /// Enters the active function: makes its frame.
    fn enter(&mut self) -> Result<(), Stop> {
        self.at = Position::default();
        let code = self.code.func(self.func);
        let end = self.base + code.n_cells;
        if self.store.config.stack_cells.is_some() {
            if !self.store.take_stack_cells(code.call_cells.into()) {
                return Err(TrapCode::StackOverflow.into());
            }
        } else {
            let limits = &self.store.config.limits;
            let n_frames = self.stack.frames.len() + 1;
            if end > limits.interp_cells_max as usize
                || n_frames > limits.interp_frames_max as usize
            {
                return Err(TrapCode::StackOverflow.into());
            }
        }
        self.stack.reserve(end)?;
        let cells = &mut self.stack.cells[self.base..end];
        if code.frame_bytes > 0 {
            let frame_sp = self.store.push_frame(self.instance, code.frame_bytes)?;
            let mut parts = self.store.guest_parts(self.instance);
            parts.memory[frame_sp as usize..][..code.frame_bytes as usize].fill(0);
            for &(param, place) in &code.frame_params {
                run::frame_set(&mut parts, place, cells[param]);
            }
        }
        cells[code.n_params..code.n_locals].fill(0);
        self.at.sp = code.n_locals;
        Ok(())
    }

    /// Gives back what `enter` has taken.
    fn release(&mut self) {
        let code = self.code.func(self.func);
        if self.store.config.stack_cells.is_some() {
            self.store.give_stack_cells(code.call_cells.into());
        }
        if code.frame_bytes > 0 {
            self.store.pop_frame(self.instance, code.frame_bytes);
        }
    }

    /// Makes another function the active one, without entering it.
    fn switch(&mut self, instance: InstanceId, func: u32, base: usize) {
        if instance != self.instance {
            self.instance = instance;
            self.code = self.store.instance(instance).code().clone();
        }
        self.func = func;
        self.base = base;
        self.at = Position::default();
    }

    /// Leaves the active function with its results on top of the operand stack.
    fn leave(&mut self) -> bool {
        let n_results = self.func_code().n_results;
        self.move_to_base(n_results);
        self.release();
        self.resume(n_results)
    }

    /// Moves the topmost operands to where the cells start.
    fn move_to_base(&mut self, n: usize) {
        let end = self.base + self.at.sp;
        self.stack.cells.copy_within(end - n..end, self.base);
    }

    /// Continues after the call of the active function, which has been released; its results lie at its
    /// base. Returns whether the caller is the host.
    fn resume(&mut self, n_results: usize) -> bool {
        if self.stack.frames.len() == self.n_outer_frames {
            return true;
        }
        let results_end = self.base + n_results;
        let frame = self.stack.frames.pop().expect("there is one more than outer frames");
        self.switch(frame.instance, frame.func, frame.base);
        self.at = Position { pc: frame.pc + 1, sp: results_end - frame.base };
        false
    }

    fn push_active(&mut self) {
        let Activation { instance, func, base, .. } = *self;
        self.stack.frames.push(Frame { instance, func, pc: self.at.pc, base });
    }

    // Calls.

    fn call_func(&mut self, func: u32) -> Result<(), Stop> {
        let module = self.code.module();
        if func < module.n_imported_funcs() {
            return self.call_handle(self.store.instance(self.instance).func_handle(func));
        }
        self.call_guest(self.instance, func)
    }

    fn call_handle(&mut self, func: FuncHandle) -> Result<(), Stop> {
        match self.store.func_target(func) {
            FuncTarget::Guest { instance, func } => self.call_guest(instance, func),
            FuncTarget::Host { .. } => {
                let ty = self.store.func_type(func);
                let (n_params, n_results) = (n_cells(&ty.params), n_cells(&ty.results));
                let args = self.base + self.at.sp - n_params;
                let top = self.base + self.func_code().n_cells;
                self.push_active();
                self.call_host(func, args, top)?;
                self.stack.frames.pop();
                self.at.sp = args + n_results - self.base;
                self.at.pc += 1;
                Ok(())
            }
        }
    }

    fn call_guest(&mut self, instance: InstanceId, func: u32) -> Result<(), Stop> {
        self.push_active();
        let args_end = self.base + self.at.sp;
        self.switch(instance, func, args_end);
        self.base -= self.func_code().n_params;
        self.enter()
    }

    fn return_call_func(&mut self, func: u32) -> Result<bool, Stop> {
        let module = self.code.module();
        if func < module.n_imported_funcs() {
            return self.return_call_handle(self.store.instance(self.instance).func_handle(func));
        }
        self.return_call_guest(self.instance, func)
    }

    fn return_call_handle(&mut self, func: FuncHandle) -> Result<bool, Stop> {
        match self.store.func_target(func) {
            FuncTarget::Guest { instance, func } => self.return_call_guest(instance, func),
            FuncTarget::Host { .. } => {
                let ty = self.store.func_type(func);
                let (n_params, n_results) = (n_cells(&ty.params), n_cells(&ty.results));
                self.move_to_base(n_params);
                self.release();
                let top = self.base + n_params.max(n_results);
                self.stack.reserve(top)?;
                self.call_host(func, self.base, top)?;
                Ok(self.resume(n_results))
            }
        }
    }

    fn return_call_guest(&mut self, instance: InstanceId, func: u32) -> Result<bool, Stop> {
        let n_params = self.store.instance(instance).code().func(func).n_params;
        self.move_to_base(n_params);
        self.release();
        self.switch(instance, func, self.base);
        self.enter()?;
        Ok(false)
    }

    /// Pops the table index of an indirect call and returns the function there.
    fn pop_callee(&mut self, imm: Imm) -> Result<FuncHandle, TrapCode> {
        let index = self.pop_u32();
        let (ty, table) = (imm.low(), self.store.table_of(self.instance, imm.high()));
        let cell = self.store.table(table).get(index)?;
        let func = FuncHandle::from_cell(cell).ok_or(TrapCode::IndirectCallToNull)?;
        let wanted = self.store.instance(self.instance).type_id(ty);
        if self.store.func_record(func).type_id == wanted {
            Ok(func)
        } else {
            Err(TrapCode::BadSignature)
        }
    }

    /// Calls a host function, whose arguments and then results lie at the cell `args`. The cells from
    /// `top` on are free for calls that it makes. The guest frames that wait for it are those of the
    /// stack.
    fn call_host(&mut self, func: FuncHandle, args: usize, top: usize) -> Result<(), Stop> {
        const SMALL: usize = 16;
        let ty = self.store.func_type(func);
        let (n_params, n_results) = (n_cells(&ty.params), n_cells(&ty.results));
        let n = n_params.max(n_results);
        // The stack may move while the host runs, so the host gets cells of its own.
        let (mut small, mut large) = ([0; SMALL], Vec::new());
        let cells = if n <= SMALL {
            &mut small[..n]
        } else {
            large.resize(n, 0);
            &mut large[..]
        };
        cells[..n_params].copy_from_slice(&self.stack.cells[args..args + n_params]);
        self.stack.top = top;
        self.store.interp = mem::take(&mut self.stack);
        let result = self.store.call_host(func, cells);
        self.stack = mem::take(&mut self.store.interp);
        if let Err(mut error) = result {
            self.add_frames(&mut error, false);
            return Err(error.into());
        }
        self.stack.cells[args..args + n_results].copy_from_slice(&cells[..n_results]);
        Ok(())
    }

    /// Lets something work on the store that may call back into guest code, for the step at hand: the
    /// stacks are in the store meanwhile. An error that is a trap gets its frames.
    pub(super) fn with_store<R, E>(
        &mut self,
        work: impl FnOnce(&mut Store) -> Result<R, E>,
    ) -> Result<R, Stop>
    where
        Stop: From<E>,
    {
        let top = self.stack.top;
        self.stack.top = self.base + self.func_code().n_cells;
        self.store.interp = mem::take(&mut self.stack);
        let result = work(self.store);
        self.stack = mem::take(&mut self.store.interp);
        self.stack.top = top;
        result.map_err(|stop| match stop.into() {
            Stop::Trap(code) => Stop::Trap(code),
            Stop::Error(mut error) => {
                self.add_frames(&mut error, true);
                Stop::Error(error)
            }
        })
    }

    /// Appends the frames of this activation to an error: the active function, if it is to be there, and
    /// those that wait.
    pub(super) fn add_frames(&self, error: &mut Error, active: bool) {
        let Activation { instance, func, base, .. } = *self;
        let active = active.then_some(Frame { instance, func, pc: self.at.pc, base });
        let waiting = &self.stack.frames[self.n_outer_frames..];
        let n_frames = waiting.len() + usize::from(active.is_some());
        let frames = active.into_iter().chain(waiting.iter().rev().copied());
        let listed = frames.take(TRACE_FRAMES_MAX).map(|frame| {
            let code = self.store.instance(frame.instance).code();
            let offset = code.func(frame.func).steps[frame.pc].offset;
            self.store.frame(frame.instance, frame.func, offset)
        });
        error.add_frames(listed, n_frames.saturating_sub(TRACE_FRAMES_MAX) as u64);
    }
}
