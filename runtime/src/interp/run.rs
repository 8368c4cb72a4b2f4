//! Runs the steps of one function that concern only its frame, memory 0, globals and fuel.
//!
//! Everything else, calls above all, is left to [`super::drive`]: [`run`] then stops at the step. The
//! only other way out is a trap, at the step that traps.

use std::sync::Arc;

use slotvm_bytecode::module::PAGE_BYTES;
use slotvm_bytecode::{CodeReader, Imm, Op, TrapCode, VerifiedModule, numeric};

use super::frame::{Frame, load, store};
use super::vector;
use crate::entities::InstanceId;
use crate::steps::prepare::{FuncCode, Keep, Step, StepOp};
use crate::steps::trace::{TraceEvent, TraceFn};
use crate::store::instance::GuestParts;
use crate::store::interrupt::Interrupts;

/// A place in a function.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Position {
    /// The step.
    pub(super) pc: usize,
    /// The cell of the frame above the top of the operand stack.
    pub(super) sp: usize,
}

/// The observer of steps.
pub(super) struct Tracer<'a> {
    pub(super) hook: &'a TraceFn,
    pub(super) instance: InstanceId,
    pub(super) module: &'a Arc<VerifiedModule>,
    pub(super) depth: usize,
    pub(super) func: u32,
}

impl Tracer<'_> {
    fn step(&self, step: &Step, stack: &[u64]) {
        if matches!(step.op, StepOp::Fuel | StepOp::Poll) {
            return;
        }
        let code = &self.module.func(self.func).expect("a function of the module").code;
        let inst = CodeReader::new(code, step.offset).read().expect("verified code decodes");
        (self.hook)(&TraceEvent {
            instance: self.instance,
            module: self.module,
            depth: self.depth,
            func: self.func,
            offset: step.offset,
            inst,
            stack,
        });
    }
}

/// Reads a local in the frame stack; the immediate is that of [`StepOp::FrameGet`].
fn frame_get(parts: &GuestParts<'_>, imm: Imm) -> u64 {
    let address = frame_address(parts, imm);
    let value = match imm.high() {
        4 => load(parts.memory, address).map(|bytes| u64::from(u32::from_le_bytes(bytes))),
        _ => load(parts.memory, address).map(u64::from_le_bytes),
    };
    value.expect("the frame stack lies in memory")
}

/// Writes a local in the frame stack; the immediate is that of [`StepOp::FrameSet`].
pub(super) fn frame_set(parts: &mut GuestParts<'_>, imm: Imm, value: u64) {
    let address = frame_address(parts, imm);
    let result = match imm.high() {
        4 => store(parts.memory, address, (value as u32).to_le_bytes()),
        _ => store(parts.memory, address, value.to_le_bytes()),
    };
    result.expect("the frame stack lies in memory");
}

fn frame_address(parts: &GuestParts<'_>, imm: Imm) -> u64 {
    u64::from(parts.frame_sp) + u64::from(imm.low())
}

/// Runs from a position to the next step that is not for this function, where `Ok` leaves the position.
///
/// # Errors
/// The trap of the step at the position that is left.
pub(super) fn run<const TRACE: bool>(
    code: &FuncCode,
    mut parts: GuestParts<'_>,
    canonical_nans: bool,
    cells: &mut [u64],
    at: &mut Position,
    tracer: Option<&Tracer<'_>>,
) -> Result<(), TrapCode> {
    let mut frame = Frame { cells, sp: at.sp };
    let mut pc = at.pc;
    let result = loop {
        let step = &code.steps[pc];
        if TRACE && let Some(tracer) = tracer {
            tracer.step(step, &frame.cells[code.n_locals..frame.sp]);
        }
        match execute(code, step, &mut parts, canonical_nans, &mut frame, &mut pc) {
            Ok(Next::Step) => {}
            Ok(Next::Leave) => break Ok(()),
            Err(trap) => break Err(trap),
        }
    };
    *at = Position { pc, sp: frame.sp };
    result
}

/// The continuation after a step.
enum Next {
    /// The step at `pc`.
    Step,
    /// The caller, which executes the step.
    Leave,
}

/// Executes a step and moves `pc` to the next one, unless it is left to the caller or traps.
#[inline(always)]
fn execute(
    code: &FuncCode,
    step: &Step,
    parts: &mut GuestParts<'_>,
    canonical_nans: bool,
    frame: &mut Frame<'_>,
    pc: &mut usize,
) -> Result<Next, TrapCode> {
    use Op::*;

    let imm = step.imm;
    // An access is an arm of the match: the bytes in memory, and how they make or come from a cell.
    macro_rules! load {
        ($address:ident, $narrow:ty, $wide:ty) => {{
            let address = frame.$address(imm);
            let value = <$narrow>::from_le_bytes(load(parts.memory, address)?);
            frame.push(value as $wide as u64)
        }};
    }
    macro_rules! store {
        ($address:ident, $narrow:ty) => {{
            let value = frame.pop() as $narrow;
            let address = frame.$address(imm);
            store(parts.memory, address, value.to_le_bytes())?
        }};
    }

    let op = match step.op {
        StepOp::Op(op) => op,
        StepOp::Fuel => {
            let cost = i64::from(imm.low());
            if *parts.fuel < cost {
                return Err(TrapCode::OutOfFuel);
            }
            *parts.fuel -= cost;
            Nop
        }
        StepOp::Poll => {
            if parts.interrupts.is_some_and(Interrupts::is_due) {
                return Ok(Next::Leave);
            }
            Nop
        }
        StepOp::DirectLoad => {
            *frame.top(0) = frame.cells[imm.low() as usize];
            Nop
        }
        StepOp::DirectStore => {
            frame.cells[imm.low() as usize] = frame.pop();
            frame.pop();
            Nop
        }
        StepOp::FrameAddr => {
            frame.push(frame_address(parts, imm));
            Nop
        }
        StepOp::FrameGet => {
            frame.push(frame_get(parts, imm));
            Nop
        }
        StepOp::FrameSet => {
            let value = frame.pop();
            frame_set(parts, imm, value);
            Nop
        }
        StepOp::FrameTee => {
            frame_set(parts, imm, *frame.top(0));
            Nop
        }
        StepOp::Vector => {
            let step = code.vectors[imm.low() as usize];
            vector::execute(step, parts, canonical_nans, frame)?;
            Nop
        }
    };
    match op {
        Unreachable => return Err(TrapCode::Unreachable),
        Nop => {}
        Br => {
            *pc = imm.low() as usize;
            return Ok(Next::Step);
        }
        BrKeep => {
            let Keep { target, n_cells, to } = code.keeps[imm.low() as usize];
            frame.cells.copy_within(frame.sp - n_cells as usize..frame.sp, to as usize);
            frame.sp = to as usize + n_cells as usize;
            *pc = target as usize;
            return Ok(Next::Step);
        }
        BrIf => {
            if frame.pop() as u32 != 0 {
                *pc = imm.low() as usize;
                return Ok(Next::Step);
            }
        }
        BrTable => {
            let index = (frame.pop() as u32).min(imm.low());
            *pc = code.targets[imm.high() as usize + index as usize] as usize;
            return Ok(Next::Step);
        }

        Drop => {
            frame.pop();
        }
        Dup => {
            let a = *frame.top(0);
            frame.push(a);
        }
        Swap => {
            let (b, a) = (frame.pop(), frame.pop());
            frame.push(b);
            frame.push(a);
        }
        Over => {
            let a = *frame.top(1);
            frame.push(a);
        }
        Rot => {
            let (c, b, a) = (frame.pop(), frame.pop(), frame.pop());
            frame.push(b);
            frame.push(c);
            frame.push(a);
        }
        Select => {
            let (condition, b) = (frame.pop() as u32, frame.pop());
            if condition == 0 {
                *frame.top(0) = b;
            }
        }

        LocalGet => frame.push(frame.cells[imm.low() as usize]),
        LocalSet => frame.cells[imm.low() as usize] = frame.pop(),
        LocalTee => frame.cells[imm.low() as usize] = *frame.top(0),
        GlobalGet => frame.push(parts.globals.get(imm.low())),
        GlobalSet => parts.globals.set(imm.low(), frame.pop()),

        RefNull => frame.push(0),
        RefIsNull => *frame.top(0) = u64::from(*frame.top(0) == 0),
        I32Const | I64Const | F32Const | F64Const => frame.push(imm.0),
        MemorySize => frame.push(parts.memory.len() as u64 / PAGE_BYTES),

        I32Load | F32Load | I64Load32U => load!(pop_address, u32, u64),
        I64Load | F64Load => load!(pop_address, u64, u64),
        I32Load8S => load!(pop_address, i8, u32),
        I32Load8U | I64Load8U => load!(pop_address, u8, u64),
        I32Load16S => load!(pop_address, i16, u32),
        I32Load16U | I64Load16U => load!(pop_address, u16, u64),
        I64Load8S => load!(pop_address, i8, u64),
        I64Load16S => load!(pop_address, i16, u64),
        I64Load32S => load!(pop_address, i32, u64),
        I32Store | F32Store | I64Store32 => store!(pop_address, u32),
        I64Store | F64Store => store!(pop_address, u64),
        I32Store8 | I64Store8 => store!(pop_address, u8),
        I32Store16 | I64Store16 => store!(pop_address, u16),

        I32LoadIndexed | F32LoadIndexed | I64Load32UIndexed => load!(pop_indexed, u32, u64),
        I64LoadIndexed | F64LoadIndexed => load!(pop_indexed, u64, u64),
        I32Load8SIndexed => load!(pop_indexed, i8, u32),
        I32Load8UIndexed | I64Load8UIndexed => load!(pop_indexed, u8, u64),
        I32Load16SIndexed => load!(pop_indexed, i16, u32),
        I32Load16UIndexed | I64Load16UIndexed => load!(pop_indexed, u16, u64),
        I64Load8SIndexed => load!(pop_indexed, i8, u64),
        I64Load16SIndexed => load!(pop_indexed, i16, u64),
        I64Load32SIndexed => load!(pop_indexed, i32, u64),
        I32StoreIndexed | F32StoreIndexed | I64Store32Indexed => store!(pop_indexed, u32),
        I64StoreIndexed | F64StoreIndexed => store!(pop_indexed, u64),
        I32Store8Indexed | I64Store8Indexed => store!(pop_indexed, u8),
        I32Store16Indexed | I64Store16Indexed => store!(pop_indexed, u16),

        Return | Call | CallIndirect | ReturnCall | ReturnCallIndirect | RefFunc | TableGet
        | TableSet | TableSize | TableGrow | TableFill | TableCopy | TableInit | ElemDrop
        | MemoryGrow | MemoryFill | MemoryCopy | MemoryInit | DataDrop => return Ok(Next::Leave),

        // The token of a promotable local.
        LocalAddr => frame.push(0),

        // The rest is numeric, or `eval` panics.
        _ => {
            let b = if imm.low() == 2 { frame.pop() } else { 0 };
            let a = frame.pop();
            let mut value = numeric::eval(op, a, b)?;
            if canonical_nans && op.makes_nan() {
                value = numeric::canonical_nan(op, value);
            }
            frame.push(value);
        }
    }
    *pc += 1;
    Ok(Next::Step)
}
