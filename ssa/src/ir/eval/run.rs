//! Frames and control flow.

use slotvm_bytecode::{FuncType, Imm, Op, TrapCode, VerifiedModule};

use super::instantiate::func_ref;
use super::memory::Access;
use super::numeric::{self, Nans};
use super::state::Contents;
use super::{HostCall, Roots, Trap};
use crate::ir::Function;
use crate::ir::entity::{Block, Edge, Inst, Value};
use crate::ir::irop::{IrOp, Opcode};

/// Calls a function of the index space from outside. On a trap the call stack and the frame stack are
/// restored.
pub(super) fn run(
    module: &VerifiedModule,
    functions: &[Function],
    landings: &[Function],
    state: &mut Contents<'_>,
    func: u32,
    args: &[u128],
) -> Result<Vec<u128>, Trap> {
    let (frame_sp, stack_cells) = (state.frame_sp, state.stack_cells);
    let (frames, bits, edge_bits) = Default::default();
    let mut runner = Runner { module, functions, landings, state, frames, bits, edge_bits };
    let result = runner.run(func, args);
    if result.is_err() {
        (state.frame_sp, state.stack_cells) = (frame_sp, stack_cells);
    }
    result
}

/// An active guest function.
#[derive(Copy, Clone, Debug)]
pub(super) struct Frame {
    /// Index in the functions that the module defines, followed by the landings.
    pub(super) function: usize,
    /// The start of its values in [`Runner::bits`]. Its slots follow its values, and its root cells these.
    pub(super) base: usize,
    /// The immediate of the safepoint for the call at hand.
    pub(super) roots: Option<u32>,
    pub(super) block: Block,
    /// The next instruction of the block.
    pub(super) next: usize,
}

pub(super) struct Runner<'r, 'a> {
    pub(super) module: &'r VerifiedModule,
    pub(super) functions: &'r [Function],
    pub(super) landings: &'r [Function],
    pub(super) state: &'r mut Contents<'a>,
    frames: Vec<Frame>,
    /// Values and slots of all frames.
    pub(super) bits: Vec<u128>,
    /// The operands of the edge being followed.
    edge_bits: Vec<u128>,
}

/// The continuation after an instruction.
enum Next {
    /// The next instruction of the block.
    Inst,
    /// The block that an edge enters.
    Edge(Edge),
    /// A call; the results become those of the instruction.
    Call { func: u32, args: Vec<u128> },
    /// A call in place of this frame.
    TailCall { func: u32, args: Vec<u128> },
    /// Back to the caller.
    Return(Vec<u128>),
    /// In place of this frame, those of an exit.
    Land,
}

impl<'r> Runner<'r, '_> {
    fn run(&mut self, func: u32, args: &[u128]) -> Result<Vec<u128>, Trap> {
        let mut returned = self.call(func, args)?;
        loop {
            if let Some(results) = returned.take() {
                match self.frames.last() {
                    Some(_) => self.accept(&results),
                    None => return Ok(results),
                }
            }
            let frame = *self.frames.last().expect("a frame is active");
            let inst = self.function(&frame).insts(frame.block)[frame.next];
            self.current().next += 1;
            let next = match self.step(&frame, inst) {
                Ok(next) => next,
                Err(code) => return Err(self.trap_at(&frame, inst, code)),
            };
            match next {
                Next::Inst => {}
                Next::Edge(edge) => self.follow(&frame, edge),
                Next::Call { func, args } => returned = self.call(func, &args)?,
                Next::TailCall { func, args } => {
                    self.pop_frame();
                    returned = self.call(func, &args)?;
                }
                Next::Return(results) => {
                    self.pop_frame();
                    returned = Some(results);
                }
                Next::Land => self.land(&frame, inst),
            }
        }
    }

    pub(super) fn function(&self, frame: &Frame) -> &'r Function {
        self.numbered(frame.function)
    }

    fn numbered(&self, function: usize) -> &'r Function {
        match function.checked_sub(self.functions.len()) {
            Some(landing) => &self.landings[landing],
            None => &self.functions[function],
        }
    }

    /// The instruction that a frame has executed last.
    fn last_inst(&self, frame: &Frame) -> Inst {
        self.function(frame).insts(frame.block)[frame.next - 1]
    }

    pub(super) fn current(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("a frame is active")
    }

    /// A trap at an instruction.
    fn trap_at(&self, frame: &Frame, inst: Inst, code: TrapCode) -> Trap {
        let function = self.function(frame);
        let loc = function.locs[function.loc(inst).index()];
        let is_custom = function.opcode(inst) == Opcode::Op(Op::Trap);
        let number = is_custom.then(|| function.imm(inst).low());
        Trap { code, number, func: loc.func, offset: loc.offset }
    }

    /// Enters a guest function, or runs a host function and returns its results. The place of a trap
    /// of the host is the call that the innermost frame waits for.
    fn call(&mut self, func: u32, args: &[u128]) -> Result<Option<Vec<u128>>, Trap> {
        let Some(function) = func.checked_sub(self.module.n_imported_funcs()) else {
            let Contents { memory, globals, tables, host, .. } = &mut *self.state;
            let roots = Roots {
                module: self.module,
                functions: self.functions,
                landings: self.landings,
                frames: &self.frames,
                bits: &mut self.bits,
                globals,
                tables,
            };
            let results = host(HostCall { func, args, memory, roots });
            let results = results.map_err(|code| match self.frames.last() {
                Some(frame) => self.trap_at(frame, self.last_inst(frame), code),
                None => Trap { code, number: None, func: 0, offset: 0 },
            })?;
            let expected = self.module.func_type(func).results.len();
            assert_eq!(
                results.len(),
                expected,
                "the host must return the results of f{func}'s type"
            );
            return Ok(Some(results));
        };
        let function = function as usize;
        let options = &self.state.options;
        let is_limited = self.state.stack_cells.is_none();
        let end = self.bits.len() + n_bits(&self.functions[function]);
        if is_limited && (self.frames.len() >= options.frames_max || end > options.values_max) {
            return Err(Trap { code: TrapCode::StackOverflow, number: None, func, offset: 0 });
        }
        self.push_frame(function, args);
        Ok(None)
    }

    pub(super) fn push_frame(&mut self, function: usize, args: &[u128]) {
        let (f, base) = (self.numbered(function), self.bits.len());
        self.bits.resize(base + n_bits(f), 0);
        self.frames.push(Frame { function, base, roots: None, block: Function::ENTRY, next: 0 });
        for (&param, &arg) in f.params(Function::ENTRY).iter().zip(args) {
            self.bits[base + param.index()] = arg;
        }
    }

    pub(super) fn pop_frame(&mut self) {
        let frame = self.frames.pop().expect("a frame is active");
        self.bits.truncate(frame.base);
    }

    /// Passes the results of a call to the calling instruction.
    fn accept(&mut self, results: &[u128]) {
        let frame = *self.frames.last().expect("a frame is active");
        let inst = self.last_inst(&frame);
        for (value, &bits) in self.function(&frame).results(inst).zip(results) {
            self.bits[frame.base + value.index()] = bits;
        }
        self.current().roots = None;
    }

    /// Enters the block that an edge goes to. Its phis are parallel.
    fn follow(&mut self, frame: &Frame, edge: Edge) {
        let function = self.function(frame);
        let dst = function.edge_dst(edge);
        self.edge_bits.clear();
        for arg in function.edge_args(edge) {
            self.edge_bits.push(self.bits[frame.base + arg.index()]);
        }
        for (param, &arg) in function.params(dst).iter().zip(&self.edge_bits) {
            self.bits[frame.base + param.index()] = arg;
        }
        let current = self.current();
        (current.block, current.next) = (dst, 0);
    }

    pub(super) fn read(&self, frame: &Frame, values: &[Value]) -> Vec<u128> {
        values.iter().map(|value| self.bits[frame.base + value.index()]).collect()
    }

    fn step(&mut self, frame: &Frame, inst: Inst) -> Result<Next, TrapCode> {
        let function = self.function(frame);
        let imm = function.imm(inst);
        let mut operands = [0; 4];
        let values = function.operands(inst);
        for (operand, value) in operands.iter_mut().zip(values) {
            *operand = self.bits[frame.base + value.index()];
        }
        let operands = &operands[..values.len().min(4)];
        let result = match function.opcode(inst) {
            Opcode::Ir(IrOp::Exit) => return Ok(Next::Land),
            Opcode::Ir(op) => self.ir_op(frame, op, imm, operands)?,
            Opcode::Op(op) if op.is_terminator() || is_call(op) => {
                return self.control(frame, inst, op, operands);
            }
            Opcode::Op(op) if let Some(results) = numeric::eval_pair(op, operands) => {
                for (value, bits) in function.results(inst).zip(results) {
                    self.bits[frame.base + value.index()] = bits;
                }
                return Ok(Next::Inst);
            }
            Opcode::Op(op) => {
                let bytes = function.vector_imm(inst);
                let result = self.op(op, imm, bytes, operands);
                let is_outside = result == Err(TrapCode::MemoryOutOfBounds);
                assert!(!is_outside || !function.is_in_bounds(inst), "{inst} is in bounds");
                result?
            }
        };
        if let Some(result) = result {
            self.bits[frame.base + function.result(inst).index()] = result;
        }
        Ok(Next::Inst)
    }

    fn ir_op(
        &mut self,
        frame: &Frame,
        op: IrOp,
        imm: Imm,
        operands: &[u128],
    ) -> Result<Option<u128>, TrapCode> {
        let function = self.function(frame);
        let slots = frame.base + function.n_values();
        let cells = slots + function.slots.len();
        match op {
            IrOp::SlotGet => return Ok(Some(self.bits[slots + imm.low() as usize])),
            IrOp::SlotSet => self.bits[slots + imm.low() as usize] = operands[0],
            IrOp::Fuel => self.state.charge(imm.0)?,
            IrOp::FuelBulk => self.state.charge((operands[0] as u32 >> imm.low()).into())?,
            IrOp::Poll => {
                self.state.poll()?;
                self.current().roots = None;
            }
            IrOp::StackPush => self.state.push_cells(imm.0)?,
            IrOp::StackPop => self.state.pop_cells(imm.0),
            IrOp::FramePush => return self.state.push_frame(imm.low()).map(|at| Some(at.into())),
            IrOp::FramePop => self.state.pop_frame(imm.low()),
            IrOp::RefIsFunc => {
                let is_func = operands[0] == func_ref(imm.low()).into();
                return Ok(Some(is_func.into()));
            }
            IrOp::Safepoint => self.current().roots = Some(imm.low()),
            IrOp::RootGet => return Ok(Some(self.bits[cells + imm.low() as usize])),
            IrOp::RootSet => self.bits[cells + imm.low() as usize] = operands[0],
            IrOp::Exit => unreachable!("an exit goes on elsewhere"),
        }
        Ok(None)
    }

    /// `bytes` is the immediate of an instruction on vectors.
    fn op(
        &mut self,
        op: Op,
        imm: Imm,
        bytes: u128,
        operands: &[u128],
    ) -> Result<Option<u128>, TrapCode> {
        use Op::*;
        let nans =
            if self.state.options.canonical_nans { Nans::Canonical } else { Nans::Propagated };
        if let Some(result) = numeric::eval(op, bytes, operands, nans)? {
            return Ok(Some(result));
        }
        if let Some(access) = Access::of(op) {
            return self.state.access(access, imm, operands);
        }
        Ok(match op {
            I32Const | I64Const | F32Const | F64Const => Some(imm.0.into()),
            V128Const => Some(bytes),
            RefNull => Some(0),
            RefIsNull => Some(u128::from(operands[0] == 0)),
            RefReinterpretI64 | I64ReinterpretRef => Some(operands[0]),
            RefFunc => Some(func_ref(imm.low()).into()),
            Select => Some(operands[if operands[2] as u32 != 0 { 0 } else { 1 }]),
            GlobalGet => Some(self.state.globals[imm.low() as usize]),
            GlobalSet => {
                self.state.globals[imm.low() as usize] = operands[0];
                None
            }
            TableGet | TableSet | TableSize | TableGrow | TableFill | TableCopy | TableInit
            | ElemDrop => self.state.table_op(op, imm, operands)?,
            _ => self.state.memory_op(self.module, op, imm, operands)?,
        })
    }

    /// Runs calls and terminators. `operands` are the first ones.
    fn control(
        &mut self,
        frame: &Frame,
        inst: Inst,
        op: Op,
        operands: &[u128],
    ) -> Result<Next, TrapCode> {
        let function = self.function(frame);
        let imm = function.imm(inst);
        let mut edges = function.succ_edges(frame.block);
        let n_edges = edges.len();
        let mut edge = |i: usize| Next::Edge(edges.nth(i).expect("as many edges as targets"));
        let all_operands = || self.read(frame, function.operands(inst));
        Ok(match op {
            Op::Br => edge(0),
            Op::BrIf => edge(if operands[0] as u32 != 0 { 0 } else { 1 }),
            Op::BrTable => edge((operands[0] as u32 as usize).min(n_edges - 1)),
            Op::Return => Next::Return(all_operands()),
            Op::Call => Next::Call { func: imm.low(), args: all_operands() },
            Op::ReturnCall => Next::TailCall { func: imm.low(), args: all_operands() },
            Op::CallIndirect | Op::ReturnCallIndirect => {
                let mut args = all_operands();
                let index = args.pop().expect("the index is on top") as u32;
                let func = self.callee(imm, index)?;
                match op {
                    Op::CallIndirect => Next::Call { func, args },
                    _ => Next::TailCall { func, args },
                }
            }
            Op::Trap => return Err(TrapCode::Custom),
            _ => return Err(TrapCode::Unreachable),
        })
    }

    /// The function that an indirect call goes to.
    fn callee(&self, imm: Imm, index: u32) -> Result<u32, TrapCode> {
        let reference = self.state.element(imm.high() as usize, index)?;
        let func = reference.checked_sub(1).ok_or(TrapCode::IndirectCallToNull)? as u32;
        let expected: &FuncType = &self.module.module().types[imm.low() as usize];
        if self.module.func_type(func) != expected {
            return Err(TrapCode::BadSignature);
        }
        Ok(func)
    }
}

/// The values, slots and root cells of a frame.
pub(super) fn n_bits(f: &Function) -> usize {
    f.n_values() + f.slots.len() + f.n_root_cells as usize
}

const fn is_call(op: Op) -> bool {
    matches!(op, Op::Call | Op::CallIndirect)
}
