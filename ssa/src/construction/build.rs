//! Bytecode to slot form, or in one step to SSA form.
//!
//! Relies on a [`VerifiedModule`]: code is well-typed, and basic blocks, operand-stack shapes at their
//! starts, storage of locals and direct accesses through local addresses are known.
//!
//! Guarantees what [`crate::ir`] promises of slot form: unreachable blocks are dropped, the entry has
//! no predecessors (it is split if bytecode branches to offset 0), and blocks are numbered in preorder
//! of the dominator tree. Each `local.get` of a promotable local is a `slot.get`, each `local.set` and
//! `local.tee` a `slot.set`, as a straightforward compiler emits them; escaping locals are linear
//! memory at the address that `frame.push` returns. Operations of fuel, deterministic stack and frame
//! stack stand where the interpreter performs them: on entry `stack.push`, `frame.push` with the stores
//! of escaping parameters, then the poll and the fuel of the first block; before returns and tail calls
//! `frame.pop` and `stack.pop`; fuel of bulk operations right before them.
//!
//! Inside a block the operand stack is abstract: a stack of values on top of the operands that the
//! block inherits and has not touched yet. Inherited operands are read from their slots on first use,
//! found by walking the shape from its top, so that a block costs what it touches and not the depth of
//! the stack. An operand that survives its block is written to its slot once, where it was pushed. This
//! is sound since a position must be popped, hence read if its value is needed, before another value
//! can be pushed there: in a block no read of a stack slot comes after a write to it. A position that
//! holds at the end what it held at the start is not written.

mod exits;
pub mod frame;
mod func_exits;
mod insts;
mod on_the_fly;
mod operands;
mod paying_exits;
mod simplify;
mod slots;
mod speculation;
mod stack;
mod typing;
mod waiting;

use std::collections::HashMap;

use slotvm_bytecode::module::{Func, Label};
use slotvm_bytecode::verified::{Body, Storage};
use slotvm_bytecode::{Imm, Op, ValType, VerifiedModule};

use self::exits::Exits;
pub use self::exits::possible_exits;
use self::frame::{FrameSlot, frame_locals, frame_operands};
pub use self::func_exits::{FuncExits, LikelyCall};
use self::on_the_fly::OnTheFly;
pub use self::operands::{OperandCounts, SLOT_FORM_OPERANDS_MAX, is_buildable};
pub use self::paying_exits::paying_exits;
use self::slots::{AsInsts, Slots};
use self::speculation::speculate;
pub use self::speculation::{LIKELY_CALLEES_MAX, possible_calls};
use self::stack::{AbstractStack, StackScratch};
use crate::construction::braun::{BraunOptions, BraunReport};
use crate::construction::promote::PHI_OPERANDS_MAX;
use crate::graphs::cfg::{Cfg, ControlFlow};
use crate::graphs::dominators::{DomScratch, DomTree};
use crate::ir::entity::{self, Block, Loc, Value};
use crate::ir::frame::{FramePlace, FrameState};
use crate::ir::irop::{IrOp, Opcode};
use crate::ir::{Entry, Function, LocData, SlotData, SlotOrigin};

/// The charges of the slot form, and whether it can be interrupted.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct BuildOptions {
    /// Whether blocks and bulk operations charge fuel.
    pub fuel: bool,
    /// Whether frames are taken from the deterministic call stack.
    pub stack_cells: bool,
    /// Whether the host can interrupt the function, at blocks with [`slotvm_bytecode::verified::Block::polls`].
    pub polls: bool,
    /// Whether the values that wait at calls are recorded ([`Function::waiting`]).
    pub waits: bool,
}

/// Memory of the build, to be reused from function to function.
#[derive(Debug, Default)]
pub struct BuildScratch {
    graph: Cfg,
    dom: DomTree,
    dom_scratch: DomScratch,
    /// The slot of each promotable local.
    local_slots: Vec<u32>,
    stack: StackScratch,
    /// Writes to insert into a block of slot form, and their positions.
    surviving: Vec<(u32, entity::Inst)>,
    on_the_fly: on_the_fly::Scratch,
    /// Functions that nobody needs any more, for their memory.
    spare: Vec<Function>,
}

/// The number of functions whose memory is kept.
const SPARE_FUNCTIONS_MAX: usize = 4;

impl BuildScratch {
    /// Takes the memory of a function that nobody needs any more.
    pub fn reuse(&mut self, function: Function) {
        if self.spare.len() < SPARE_FUNCTIONS_MAX {
            self.spare.push(function);
        }
    }

    /// An empty function.
    pub(crate) fn empty(&mut self) -> Function {
        let mut function = self.spare.pop().unwrap_or_default();
        function.clear();
        function
    }
}

/// Stands for "no slot" in tables of slots.
const NO_SLOT: u32 = u32::MAX;

/// Makes the slot form of a function.
///
/// # Panics
/// Panics if the function is imported, or so large that ids run out; see [`is_buildable`].
pub fn build(
    module: &VerifiedModule,
    func: u32,
    options: &BuildOptions,
    scratch: &mut BuildScratch,
) -> Function {
    build_at(module, func, &[], FuncExits::NONE, options, scratch).0
}

/// Makes the slot form of a function in which [exits](IrOp::Exit) are in the place of some blocks and after some calls. What
/// only these blocks lead to is left out.
///
/// # Panics
/// As for [`build`], and if one of the blocks is the first one.
pub fn build_with_exits(
    module: &VerifiedModule,
    func: u32,
    exits: &FuncExits,
    options: &BuildOptions,
    scratch: &mut BuildScratch,
) -> Function {
    build_at(module, func, &[], exits, options, scratch).0
}

/// The most slots that are set where a function is entered in a loop, counted once for each block where it may be.
const ENTRY_SLOTS_MAX: u64 = 1 << 16;

/// Makes the slot form of what follows in a function at the start of one of some basic blocks, by their numbers, for
/// frames of the interpreter that are there: on-stack replacement. The entry sets all slots from the frame's cells
/// ([`Entry::Frame`]) and goes on at the block whose place in the list it is told; what cannot be reached from there is left
/// out. It neither takes stack nor pushes a frame, as the interpreter has, but gives back what that took.
///
/// After Fink & Qian, "Design, Implementation and Evaluation of Adaptive Recompilation with On-Stack Replacement" (CGO
/// 2003), section 3.2, where the entry is bytecode; here it is slot form, which is promoted like any other.
///
/// It has exits as in [`build_with_exits`].
///
/// Returns `None` if an operand lies in different cells at different blocks, or there is too much to set.
///
/// # Panics
/// As for [`build_with_exits`], and if there is no such block, none is named, or it is an exit.
pub fn build_loop(
    module: &VerifiedModule,
    func: u32,
    starts: &[u32],
    exits: &FuncExits,
    options: &BuildOptions,
    scratch: &mut BuildScratch,
) -> Option<Function> {
    assert!(!starts.is_empty(), "the function is entered somewhere");
    let body = module.body(func).expect("the function is defined in the module");
    let depth = |&start: &u32| u64::from(module.shape_depth(body.blocks[start as usize].shape));
    let n_slots = body.locals.len() as u64 + starts.iter().map(depth).sum::<u64>();
    if n_slots > ENTRY_SLOTS_MAX {
        return None;
    }
    let (function, fits) = build_at(module, func, starts, exits, options, scratch);
    fits.then_some(function)
}

/// Makes the slot form of a function, from its start or from one of some blocks on. Returns as well whether operands lie in
/// the same cells at all of these.
fn build_at(
    module: &VerifiedModule,
    func: u32,
    starts: &[u32],
    func_exits: &FuncExits,
    options: &BuildOptions,
    scratch: &mut BuildScratch,
) -> (Function, bool) {
    let exits = Exits::new(func_exits);
    let entered = if starts.is_empty() { &[0] } else { starts };
    assert!(!entered.iter().any(|&start| exits.has(start)), "what is entered is no exit");
    let empty = scratch.empty();
    let BuildScratch { graph, dom, dom_scratch, local_slots, stack, surviving, .. } = scratch;
    let is_split = analyse(module, func, starts, &exits, graph, dom, dom_scratch);
    let slots = AsInsts { surviving };
    let mut builder =
        Builder::new((module, func), &exits, *options, empty, local_slots, stack, slots);
    builder.starts = starts;
    builder.all_blocks(graph, dom, is_split);
    let fits = builder.fits;
    let (mut f, _) = builder.finish();
    speculate(&mut f, &func_exits.calls);
    (f, fits)
}

/// Options for building SSA form directly.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct SsaOptions {
    /// Charges and polls.
    pub build: BuildOptions,
    /// Options of the construction of phis.
    pub braun: BraunOptions,
    /// Whether numeric operations on constants become constants, unless they trap, and phis of equal
    /// constants as well. The semantics are those of [`slotvm_bytecode::numeric`].
    pub fold: bool,
    /// Whether an operation that returns one of its operands unchanged, like the addition of zero or a
    /// `select` of two equal values, becomes this operand.
    pub copies: bool,
}

/// Makes the SSA form of a function in one pass, by [`crate::construction::braun`]. Slots are its variables and stay
/// in the function's list, but no instruction reads or writes them. Blocks, and all instructions that are not folded,
/// are those of [`build`] followed by [`crate::construction::promote`]; fuel is charged for what was folded, too.
///
/// Returns `None` if the function needs more than [`BraunOptions::entries_max`], or its phis have more
/// than [`PHI_OPERANDS_MAX`] operands. Its slot form can still be built.
///
/// # Panics
/// Panics if the function is imported, or so large that ids run out; see [`is_buildable`].
pub fn build_ssa(
    module: &VerifiedModule,
    func: u32,
    options: &SsaOptions,
    scratch: &mut BuildScratch,
) -> Option<(Function, BraunReport)> {
    let empty = scratch.empty();
    let BuildScratch { graph, dom, dom_scratch, local_slots, stack, on_the_fly, .. } = scratch;
    let exits = Exits::new(FuncExits::NONE);
    let is_split = analyse(module, func, &[], &exits, graph, dom, dom_scratch);
    let slots = OnTheFly::new(graph, dom, *options, on_the_fly);
    let build = BuildOptions { waits: false, ..options.build };
    let mut builder = Builder::new((module, func), &exits, build, empty, local_slots, stack, slots);
    builder.all_blocks(graph, dom, is_split);
    let (mut f, slots) = builder.finish();
    let report = slots.finish(&mut f, PHI_OPERANDS_MAX)?;
    Some((f, report))
}

/// Makes the graph of a function and its dominator tree. Returns whether the entry is split: if a block
/// branches to block 0, or the function is entered at another block, an empty one is put before it, and all blocks move by
/// one.
fn analyse(
    module: &VerifiedModule,
    func: u32,
    starts: &[u32],
    exits: &Exits<'_>,
    graph: &mut Cfg,
    dom: &mut DomTree,
    dom_scratch: &mut DomScratch,
) -> bool {
    let body = module.body(func).expect("the function is defined in the module");
    let is_split = !starts.is_empty() || body.succs.contains(&0);
    let starts = if is_split && starts.is_empty() { &[0] } else { starts };
    rebuild_graph(graph, body, starts, exits);
    dom.compute(graph, dom_scratch);
    is_split
}

/// Makes the graph of a verified function's basic blocks, after an empty entry that leads to some of them, if any are named.
/// Exits lead nowhere.
fn rebuild_graph(graph: &mut Cfg, body: &Body, first: &[u32], exits: &Exits<'_>) {
    let shift = u32::from(!first.is_empty());
    let lists = (!first.is_empty()).then_some(first).into_iter();
    let succs = |block: usize| if exits.has(block as u32) { &[][..] } else { body.succs(block) };
    let lists = lists.chain((0..body.blocks.len()).map(succs));
    graph.rebuild(0, lists.map(|list| list.iter().map(move |&succ| succ + shift)));
}

/// The state of building a function.
struct Builder<'a, S> {
    module: &'a VerifiedModule,
    body: &'a Body,
    code: &'a [u8],
    labels: &'a [Label],
    def: &'a Func,
    options: BuildOptions,
    /// The blocks where the function is entered, if that is not its start.
    starts: &'a [u32],
    /// Whether operands lie in the same cells at all of these.
    fits: bool,
    exits: &'a Exits<'a>,
    /// The number of the bytecode block that is translated.
    number: u32,
    /// The number of values in the frames that were noted at calls.
    n_waiting: usize,
    /// The locals that may be read in a frame that waits in the block, once it is known.
    waiting_locals: Option<Vec<FrameSlot>>,
    f: Function,
    /// The slot of each local, [`NO_SLOT`] for escaping ones.
    local_slots: &'a [u32],
    stack: AbstractStack<'a>,
    slots: S,
    /// The address that `frame.push` returned, if the function has a frame in linear memory.
    frame: Value,
    /// The code offset of the instruction being translated.
    offset: u32,
    /// The next entry of the body's direct accesses.
    next_direct: usize,
    /// Scratch space for result types.
    result_types: Vec<ValType>,
}

impl<'a, S: Slots> Builder<'a, S> {
    fn new(
        (module, func): (&'a VerifiedModule, u32),
        exits: &'a Exits<'a>,
        options: BuildOptions,
        mut f: Function,
        local_slots: &'a mut Vec<u32>,
        stack: &'a mut StackScratch,
        slots: S,
    ) -> Builder<'a, S> {
        let body = module.body(func).expect("the function is defined in the module");
        let def = module.func(func).expect("the function is defined in the module");
        f.func = func;
        f.name.push_str(module.module().names.func(func).unwrap_or_default());
        f.ty = module.func_type(func).clone();
        local_slots.clear();
        for (i, local) in body.locals.iter().enumerate() {
            let promotable = local.storage == Storage::Promotable;
            local_slots.push(if promotable { f.slots.len() as u32 } else { NO_SLOT });
            if promotable {
                f.slots.push(SlotData::new(local.ty, SlotOrigin::Local(i as u32)));
            }
        }
        let n_insts = body.blocks.iter().map(|block| block.cost as usize).sum::<usize>();
        f.reserve(n_insts, body.blocks.len(), body.succs.len());
        Builder {
            module,
            body,
            code: &def.code,
            labels: &def.labels,
            def,
            options,
            starts: &[],
            fits: true,
            exits,
            number: 0,
            n_waiting: 0,
            waiting_locals: None,
            f,
            local_slots,
            stack: AbstractStack::new(stack),
            slots,
            frame: Value::default(),
            offset: 0,
            next_direct: 0,
            result_types: Vec::new(),
        }
    }

    /// Translates the blocks in preorder of the dominator tree.
    fn all_blocks(&mut self, graph: &Cfg, dom: &DomTree, is_split: bool) {
        let body = self.body;
        for &node in dom.preorder() {
            let index = (node as usize).checked_sub(usize::from(is_split));
            let bytecode_block = index.map(|index| &body.blocks[index]);
            let label = bytecode_block.and_then(|block| block.label);
            let offset = bytecode_block.map_or(0, |block| block.start);
            let block = self.f.start_block(label, offset);
            self.slots.start_block(&mut self.f, block.0);
            if block == Function::ENTRY {
                match self.starts {
                    [] => self.prologue(),
                    _ => self.enter_loop(),
                }
            }
            match bytecode_block {
                Some(_) if index.is_some_and(|index| self.exits.has(index as u32)) => {
                    self.exit(node - u32::from(is_split));
                }
                Some(block) => {
                    self.number = node - u32::from(is_split);
                    self.waiting_locals = None;
                    self.block(block);
                }
                None => self.leave_entry(),
            }
            for &succ in graph.succs(node) {
                let number = dom.number(succ).expect("what follows a reachable block is reachable");
                self.f.append_edge(Block(number));
            }
            self.f.end_block();
            self.slots.end_block(&mut self.f);
        }
    }

    /// Emits the operations before the first instruction, in the entry block.
    fn prologue(&mut self) {
        let module = self.module;
        let params = &module.func_type(self.f.func).params;
        for &ty in params {
            self.f.append_param(ty);
        }
        if self.options.stack_cells {
            self.emit_ir(IrOp::StackPush, self.body.call_cells(), &[], &[]);
        }
        if self.body.frame_bytes > 0 {
            self.emit_ir(IrOp::FramePush, self.body.frame_bytes, &[], &[ValType::I32]);
            self.frame = self.last_value();
        }
        for i in 0..params.len() as u32 {
            // The parameters are the first values.
            self.write_local(i, Value(i));
        }
    }

    /// Sets all slots that exist at the starts of blocks from the frame of the interpreter, in the entry block.
    fn enter_loop(&mut self) {
        let (body, module) = (self.body, self.module);
        self.offset = body.blocks[self.starts[0] as usize].start;
        self.f.ty.params.clear();
        let mut places = Vec::new();
        for local in frame_locals(body) {
            places.push(FramePlace::Cell(local.cell));
            let value = self.append_entry_param(local.ty);
            self.write_slot(local, value);
        }
        let mut cells: HashMap<(SlotOrigin, ValType), u32> = HashMap::new();
        for &start in self.starts {
            for operand in frame_operands(module, body, start) {
                let FrameSlot { origin, ty, cell } = operand;
                if let Some(&known) = cells.get(&(origin, ty)) {
                    self.fits &= known == cell;
                    continue;
                }
                cells.insert((origin, ty), cell);
                places.push(FramePlace::Cell(cell));
                let value = self.append_entry_param(ty);
                self.write_slot(operand, value);
            }
        }
        if body.frame_bytes > 0 {
            places.push(FramePlace::FrameSp);
            self.frame = self.append_entry_param(ValType::I32);
        }
        if self.starts.len() > 1 {
            places.push(FramePlace::Block);
            self.append_entry_param(ValType::I32);
        }
        let blocks = self.starts.to_vec();
        let state = FrameState { func: self.f.func, blocks, call: None, places, caller: None };
        self.f.entry = Entry::Frame(state);
    }

    /// Writes a slot of a frame.
    fn write_slot(&mut self, FrameSlot { origin, ty, .. }: FrameSlot, value: Value) {
        match origin {
            SlotOrigin::Local(local) => self.write_local(local, value),
            SlotOrigin::Stack(depth) => {
                let slot = self.stack.slot(depth, ty, &mut self.f);
                self.slots.write(&mut self.f, slot, value, self.offset);
            }
            SlotOrigin::Inlined(_) => unreachable!("nothing is inlined yet"),
        }
    }

    /// Emits the branch of an entry block that is none of the bytecode's: where there are several to go to, by the last
    /// parameter.
    fn leave_entry(&mut self) {
        if self.starts.len() <= 1 {
            return self.jump();
        }
        let number = self.last_value();
        self.emit(Opcode::Op(Op::BrTable), Imm::NONE, &[number], &[]);
    }

    /// Appends a parameter of a function that is entered in a loop.
    fn append_entry_param(&mut self, ty: ValType) -> Value {
        self.f.ty.params.push(ty);
        self.f.append_param(ty);
        self.last_value()
    }

    /// Releases the frame and the stack cells of the function before it is left.
    fn epilogue(&mut self) {
        if self.body.frame_bytes > 0 {
            self.emit_ir(IrOp::FramePop, self.body.frame_bytes, &[], &[]);
        }
        if self.options.stack_cells {
            self.emit_ir(IrOp::StackPop, self.body.call_cells(), &[], &[]);
        }
    }

    /// Emits the unconditional branch of a block that falls through to the next one.
    fn jump(&mut self) {
        self.emit(Opcode::Op(Op::Br), Imm::NONE, &[], &[]);
    }

    /// The location of the instruction being translated.
    fn loc(&mut self) -> Loc {
        loc_at(&mut self.f, self.offset)
    }

    /// Appends an instruction.
    fn emit(&mut self, op: Opcode, imm: Imm, operands: &[Value], results: &[ValType]) {
        self.f.operand_pool.extend_from_slice(operands);
        self.emit_of_pool(op, imm, operands.len() as u32, results);
    }

    /// Appends an instruction whose operands are the last of the operand pool.
    #[inline]
    fn emit_of_pool(&mut self, op: Opcode, imm: Imm, n_operands: u32, results: &[ValType]) {
        let loc = self.loc();
        let inst = self.f.make_inst_of_pool(op, imm, n_operands, results, loc);
        self.f.layout.push(inst);
    }

    fn emit_ir(&mut self, op: IrOp, imm: u32, operands: &[Value], results: &[ValType]) {
        self.emit(Opcode::Ir(op), Imm::index(imm), operands, results);
    }

    /// The most recent value.
    fn last_value(&self) -> Value {
        Value::new(self.f.n_values() - 1)
    }

    fn finish(mut self) -> (Function, S) {
        self.stack.forget_slots(&self.f.slots);
        self.f.compute_preds();
        (self.f, self.slots)
    }
}

/// The location of a code offset of the function itself. Instructions are made in runs of one
/// offset, so looking at the last location avoids almost all duplicates.
#[inline]
fn loc_at(f: &mut Function, offset: u32) -> Loc {
    if f.locs.last().is_none_or(|last| last.offset != offset) {
        f.locs.push(LocData { func: f.func, offset, inlined_at: None });
    }
    Loc::new(f.locs.len() - 1)
}

#[cfg(test)]
mod ssa_tests;
#[cfg(test)]
mod tests;
