//! Makes the code of a function, in one pass over its bytecode.
//!
//! The operand stack is followed while translating. An operand that is a local or a constant costs nothing where it is
//! pushed: whoever pops it names the local or the constant itself. All others lie in the cells that the verifier gives
//! them, where all of them lie at the end of a basic block. A few pairs of instructions become one: those that write a
//! local, compare and branch, or compute an address ([`values`]).
//!
//! Two kinds of functions are translated one instruction at a time, without any of this. Those that show themselves to
//! an observer, who sees the operand stack; and those with more cells than 16 bits can name, whose code computes in
//! scratch cells beside the frame.

mod control;
mod counts;
mod operands;
mod pairs;
mod values;
mod vectors;

use std::sync::OnceLock;

use slotvm_bytecode::pairs::is_pair;
use slotvm_bytecode::verified::{Block, Body, Storage};
use slotvm_bytecode::{Imm, Inst, Op, ValType, VerifiedModule, n_cells, numeric};

use super::handlers::table::{self, HandlerCode};
use crate::steps::blocks::Blocks;
use crate::steps::callees::CallSite;
use crate::steps::code::{BlockStart, CallReturn, CodeOptions, Count, FuncCode, Places};
use crate::steps::instr::{Instr, StackOp};
use crate::steps::module_code::{ModuleCode, Tiers};
use crate::steps::target::{CallTarget, TargetCode, n_call_cells};
use counts::Counted;
use operands::{Accumulators, Last, Operands, Value};

/// Makes the code of a function that the module defines.
pub(super) fn translate(code: &ModuleCode, func: u32, is_traced: bool) -> CallTarget {
    let mut translator = Translator::new(code.module(), func, code.options(), is_traced);
    translator.tiers = code.tiers().map(|tiers| &**tiers).filter(|_| !is_traced);
    translator.run();
    translator.finish()
}

/// The code offset of the bytecode instruction that one of a function was made from.
pub(super) fn offset(module: &VerifiedModule, target: &CallTarget, pc: *const Instr) -> u32 {
    let code = target.running();
    let offsets = code.offsets.get_or_init(|| {
        let mut translator = Translator::new(module, target.func, code.options, code.is_traced);
        translator.offsets = Some(Vec::with_capacity(code.instrs.len()));
        translator.run();
        translator.offsets.expect("they were asked for").into()
    });
    offsets[code.slot(pc)]
}

/// Where code of a function goes on once native code was left.
pub(super) fn places(module: &VerifiedModule, target: &CallTarget) -> Places {
    let code = target.running();
    let mut translator = Translator::new(module, target.func, code.options, code.is_traced);
    translator.places = Some((Vec::with_capacity(translator.body.blocks.len()), Vec::new()));
    translator.run();
    let (blocks, calls) = translator.places.expect("they were asked for");
    Places { blocks: blocks.into(), calls: calls.into() }
}

/// The instruction that goes on where native code was left, likewise.
pub(super) fn land(jumps: bool) -> *const Instr {
    static LANDS: OnceLock<[Instr; 2]> = OnceLock::new();
    alone(&LANDS, HandlerCode::Land, jumps)
}

/// The instruction after the call of a function by the host, for code of which handlers end with jumps or not.
pub(super) fn exit(jumps: bool) -> *const Instr {
    static EXITS: OnceLock<[Instr; 2]> = OnceLock::new();
    alone(&EXITS, HandlerCode::Exit, jumps)
}

/// The instruction of functions that are native code, likewise.
pub(super) fn native(jumps: bool) -> *const Instr {
    static CALLS: OnceLock<[Instr; 2]> = OnceLock::new();
    alone(&CALLS, HandlerCode::Native, jumps)
}

/// An instruction without operands that belongs to no function.
fn alone(place: &'static OnceLock<[Instr; 2]>, code: HandlerCode, jumps: bool) -> *const Instr {
    let instr = |jumps| Instr::new(table::address(code, jumps), 0, 0, 0);
    let instrs = place.get_or_init(|| [instr(false), instr(true)]);
    &raw const instrs[usize::from(jumps)]
}

/// The most cells of a frame that instructions can name.
const NEAR_CELLS_MAX: u32 = 1 << 16;

/// Whether code of a function with frames of so many cells computes in scratch cells.
pub(super) const fn is_far(n_cells: u32) -> bool {
    n_cells > NEAR_CELLS_MAX
}

struct Translator<'a> {
    module: &'a VerifiedModule,
    func: u32,
    body: &'a Body,
    options: CodeOptions,
    is_traced: bool,
    /// The receiver of counts that are due.
    tiers: Option<&'a dyn Tiers>,
    /// Whether the frame has more cells than instructions can name.
    is_far: bool,

    instrs: Vec<Instr>,
    stack_ops: Vec<StackOp>,
    counts: Vec<Count>,
    sites: Vec<CallSite>,
    /// The code offset of each slot, if somebody asks.
    offsets: Option<Vec<u32>>,
    /// Where the code goes on at the start of each block and after each call, if somebody asks.
    places: Option<(Vec<BlockStart>, Vec<CallReturn>)>,
    /// That of the instruction at hand.
    offset: u32,
    operands: Operands,
    last: Option<Last>,
    accumulators: Accumulators,
    /// The slot after a copy that may become two.
    last_copy: Option<usize>,
    /// The scratch cell that is next in use.
    scratch: u16,

    /// The slot of the last branch.
    branch: u32,
    /// The first slot of each block that has been translated.
    starts: Vec<u32>,
    /// Slots whose distance is to be that to a block. The flag is set for slots of data.
    branches: Vec<(u32, u32, bool)>,
    /// The next entries of the lists of the body.
    next_direct: usize,
    next_wide: usize,
}

impl<'a> Translator<'a> {
    fn new(
        module: &'a VerifiedModule,
        func: u32,
        options: CodeOptions,
        is_traced: bool,
    ) -> Translator<'a> {
        let body = module.body(func).expect("the function is defined in the module");
        Translator {
            module,
            func,
            body,
            options,
            is_traced,
            tiers: None,
            is_far: is_far(body.n_cells()),
            instrs: Vec::new(),
            stack_ops: Vec::new(),
            counts: Vec::new(),
            sites: Vec::new(),
            offsets: None,
            places: None,
            offset: 0,
            operands: Operands::default(),
            last: None,
            accumulators: Accumulators::default(),
            last_copy: None,
            scratch: 0,
            branch: 0,
            starts: Vec::with_capacity(body.blocks.len()),
            branches: Vec::new(),
            next_direct: 0,
            next_wide: 0,
        }
    }

    fn run(&mut self) {
        self.far_begin();
        let body = self.body;
        let counted =
            if self.options.counts && !self.is_traced { counts::of(body) } else { Vec::new() };
        let mut counted = counted.into_iter().peekable();
        for (i, block) in (0..).zip(&body.blocks) {
            let count = counted.next_if(|counted| counted.block == i);
            self.block(block, count);
        }
        self.place_counts();
        self.link();
    }

    fn finish(self) -> CallTarget {
        let Translator { body, options, .. } = self;
        let ty = self.module.func_type(self.func);
        let takes_more = options.stack_cells || body.frame_bytes > 0;
        let frame_params = (0..ty.params.len() as u32).filter_map(|i| {
            let (offset, bytes) = self.frame_place(i)?;
            Some((body.local_cell(i), offset, bytes))
        });
        let blocks = match options.counts && !self.is_traced {
            true => Blocks::new(
                &self.instrs,
                &self.starts,
                table::address(HandlerCode::First, options.jumps),
            ),
            false => Blocks::default(),
        };
        let code = FuncCode {
            frame_params: frame_params.collect(),
            is_traced: self.is_traced,
            options,
            counts: self.counts.into(),
            sites: self.sites.into(),
            blocks,
            offsets: OnceLock::new(),
            places: OnceLock::new(),
            refs: OnceLock::new(),
            instrs: self.instrs.into(),
            stack_ops: self.stack_ops.into(),
        };
        CallTarget {
            start: code.instrs.as_ptr(),
            func: self.func,
            n_params: n_cells(&ty.params) as u32,
            n_locals: body.n_local_cells(),
            n_cells: body.n_cells(),
            n_results: n_cells(&ty.results) as u32,
            n_call_cells: n_call_cells(ty) as u32,
            entry_bytes: if takes_more { usize::MAX } else { body.n_cells() as usize * 8 },
            call_cells: body.call_cells(),
            frame_bytes: body.frame_bytes,
            code: TargetCode::Interpreted(code),
        }
    }

    /// Whether each instruction is translated by itself.
    fn is_exact(&self) -> bool {
        self.is_traced || self.is_far
    }

    fn block(&mut self, block: &Block, counted: Option<Counted>) {
        self.starts.push(self.instrs.len() as u32);
        self.offset = block.start;
        (self.last, self.last_copy) = (None, None);
        if block.label.is_some() {
            self.accumulators = Accumulators::default();
        }
        // The branch before may go where cells are read that hold the same.
        self.accumulators.read_all();
        let height = self.body.n_local_cells() + self.module.shape_cells(block.shape);
        self.operands.begin(height);
        if let Some((starts, _)) = &mut self.places {
            let accumulators = self.accumulators.cells();
            starts.push(BlockStart { slot: self.instrs.len() as u32, accumulators });
        }
        if let Some(counted) = counted {
            self.count(counted);
        }
        if self.options.polls && block.polls {
            self.far_end();
            self.emit(HandlerCode::Poll, 0, 0, 0);
            self.far_begin();
        }
        if self.options.fuel {
            self.emit(HandlerCode::Fuel, 0, 0, block.cost);
        }
        let mut falls_through = true;
        for (offset, inst) in self.module.insts(self.func, block) {
            self.offset = offset;
            self.scratch = 0;
            if self.is_traced {
                self.trace();
            }
            falls_through = !inst.op.is_terminator();
            self.inst(inst);
        }
        if falls_through {
            self.flush();
        }
    }

    fn inst(&mut self, Inst { op, imm }: Inst) {
        match op {
            Op::Unreachable
            | Op::Trap
            | Op::Br
            | Op::BrIf
            | Op::BrTable
            | Op::BrKeep
            | Op::Return => {
                self.branch(op, imm);
            }
            Op::Call | Op::CallIndirect | Op::ReturnCall | Op::ReturnCallIndirect => {
                self.call(op, imm);
            }
            // References have the bits that they are made of.
            Op::Nop | Op::RefReinterpretI64 | Op::I64ReinterpretRef => {}
            Op::Drop | Op::Dup | Op::Swap | Op::Over | Op::Rot | Op::Select => self.shuffle(op),
            Op::LocalGet | Op::LocalSet | Op::LocalTee | Op::LocalAddr => self.local(op, imm.low()),
            Op::GlobalGet | Op::GlobalSet => self.global(op, imm.low()),
            Op::RefNull => self.push(Value::Const(0)),
            Op::RefIsNull => self.unary(Op::I64Eqz),
            Op::I32Const | Op::I64Const | Op::F32Const | Op::F64Const => {
                self.push(Value::Const(imm.0));
            }
            Op::MemorySize => self.define(HandlerCode::MemorySize, 0, 0),
            _ if numeric::is_numeric(op) => self.numeric(op),
            _ if is_pair(op) => self.pair(op),
            _ if op.is_vector() => self.vector(op, imm),
            _ => match op.access() {
                Some(access) => self.access(access, imm),
                None => self.service(op, imm),
            },
        }
    }

    // Emitting.

    /// Appends an instruction. The accumulators hold what they did, or nothing.
    fn emit(&mut self, code: HandlerCode, a: u16, b: u16, c: u32) {
        self.last = None;
        if code.branches() {
            self.branch = self.instrs.len() as u32;
        }
        if code.leaves() {
            self.accumulators = Accumulators::default();
        }
        self.instrs.push(Instr::new(table::address(code, self.options.jumps), a, b, c));
        self.note_offset();
    }

    /// Appends an instruction with one number in `a` and `b`.
    fn emit_ab(&mut self, code: HandlerCode, ab: u32, c: u32) {
        self.emit(code, ab as u16, (ab >> 16) as u16, c);
    }

    /// Appends a slot of data.
    fn emit_data(&mut self, data: u64) {
        self.emit_slot(Instr::of_data(data));
    }

    /// Emits a slot of data.
    fn emit_slot(&mut self, slot: Instr) {
        self.instrs.push(slot);
        self.note_offset();
    }

    fn note_offset(&mut self) {
        if let Some(offsets) = &mut self.offsets {
            offsets.push(self.offset);
        }
    }

    /// Takes back the last instruction, in whose place others come.
    fn take_back(&mut self, last: Last) {
        self.accumulators = last.before;
        self.truncate(last.start);
    }

    /// Takes back instructions, from a slot on.
    fn truncate(&mut self, slot: usize) {
        self.instrs.truncate(slot);
        self.last_copy = self.last_copy.filter(|&end| end <= slot);
        if let Some(offsets) = &mut self.offsets {
            offsets.truncate(slot);
        }
        self.last = None;
    }

    /// Lets the code that follows compute in scratch cells, if the frame is large.
    fn far_begin(&mut self) {
        if self.is_far {
            self.emit(HandlerCode::FarBegin, 0, 0, 0);
        }
    }

    /// Lets the code that follows name cells of the frame.
    fn far_end(&mut self) {
        if self.is_far {
            self.emit(HandlerCode::FarEnd, 0, 0, 0);
        }
    }

    fn trace(&mut self) {
        let height = self.operands.height();
        self.far_end();
        self.emit_ab(HandlerCode::Trace, height, 0);
        self.far_begin();
    }

    // Facts about the function.

    /// The offset and the bytes of a local in the function's frame in the frame stack, if it lives there.
    fn frame_place(&self, local: u32) -> Option<(u32, u32)> {
        let local = &self.body.locals[local as usize];
        match local.storage {
            Storage::Promotable => None,
            Storage::Escapes { frame_offset, .. } => Some((frame_offset, local.ty.bytes())),
        }
    }

    /// The promotable local that the access at hand reads or writes by its address, if any.
    fn direct_local(&mut self) -> Option<u32> {
        let next = self.body.direct.get(self.next_direct)?;
        (next.offset == self.offset).then(|| {
            self.next_direct += 1;
            next.local
        })
    }

    /// The operands of the shuffle at hand that take two cells, as a bit set.
    fn wide_operands(&mut self) -> u8 {
        match self.body.wide.get(self.next_wide) {
            Some(next) if next.offset == self.offset => {
                self.next_wide += 1;
                next.operands
            }
            _ => 0,
        }
    }

    fn local_type(&self, local: u32) -> ValType {
        self.body.locals[local as usize].ty
    }

    fn code(&self) -> &'a [u8] {
        &self.module.func(self.func).expect("defined here").code
    }

    // Operations on the operand stack.

    /// Appends a stack operation, which pops and pushes so many cells.
    fn stack_op(&mut self, op: StackOp, pops: u32, pushes: u32) {
        self.flush();
        let height = self.operands.height();
        self.far_end();
        let concerns_store =
            matches!(op, StackOp::Service(..) | StackOp::GlobalGet(_) | StackOp::GlobalSet(_));
        let code = if concerns_store { HandlerCode::StackOp } else { HandlerCode::Vector };
        self.emit_ab(code, height, self.stack_ops.len() as u32);
        self.stack_ops.push(op);
        self.far_begin();
        self.operands.set_height(height - pops + pushes);
    }

    fn service(&mut self, op: Op, imm: Imm) {
        let (pops, pushes) = match op {
            Op::RefFunc | Op::TableSize => (0, 1),
            Op::TableGet | Op::MemoryGrow => (1, 1),
            Op::TableSet => (2, 0),
            Op::TableGrow => (2, 1),
            Op::TableFill | Op::TableCopy | Op::TableInit => (3, 0),
            Op::MemoryFill | Op::MemoryCopy | Op::MemoryInit => (3, 0),
            Op::ElemDrop | Op::DataDrop => (0, 0),
            _ => unreachable!("`{}` does not concern the store", op.mnemonic()),
        };
        self.stack_op(StackOp::Service(op, imm), pops, pushes);
    }
}
