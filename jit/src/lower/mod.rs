//! Lowering of the IR to CLIF, shared by both forms.
//!
//! The slot form and the SSA form differ in their slot accesses only, and [`slots`] lowers those for each
//! [`SlotMode`]. Everything else is lowered by the same code, which makes the comparison of modes fair.
//!
//! * Blocks keep their parameters, which are made explicitly; critical edges stay, the back end splits
//!   them. Blocks are filled in reverse postorder, so that operands are lowered before their uses.
//! * Each instruction carries its location id as CLIF source location, so that a pc leads to a
//!   location of the IR function, and that to a bytecode offset.
//! * Memory is split into a few alias regions ([`Regions`]); more would cost compile time.
//!
//! Assumes that the function has passed the IR's verifier and belongs to the given module. Produces CLIF
//! that passes Cranelift's verifier, with the signature of [`crate::lower::abi::guest_signature`].

pub(crate) mod abi;
mod accounting;
mod bounds;
mod bulk;
mod calls;
mod checks;
pub(crate) mod cold;
mod cold_sides;
mod conditions;
mod control;
mod counts;
mod division;
pub(crate) mod exits;
pub(crate) mod glue;
pub(crate) mod hot_loop;
pub(crate) mod isa;
mod memo;
pub(crate) mod memory;
pub(crate) mod names;
mod numeric;
pub(crate) mod order;
mod pairs;
mod roots;
mod slots;
mod state;
pub(crate) mod traps;
mod vector;

use std::collections::HashMap;
use std::sync::Arc;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self, AliasRegion, AliasRegionData, GlobalValueData, InstBuilder, MemFlagsData, SourceLoc,
};
use cranelift_codegen::isa::{OwnedTargetIsa, TargetIsa};
use cranelift_codegen::packed_option::ReservedValue;
use cranelift_codegen::settings::OptLevel;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use slotvm_bytecode::pairs::is_pair;
use slotvm_bytecode::{Access, Effect, FuncType, Imm, Op, TrapCode, ValType, VerifiedModule};
use slotvm_runtime::MemoryPlan;
use slotvm_runtime::native::{access_end_max, offsets};
use slotvm_ssa::graphs::loops::LoopForest;
use slotvm_ssa::ir::entity::{Block, Inst, Loc, Value};
use slotvm_ssa::ir::frame::FramePlace;
use slotvm_ssa::ir::irop::{IrOp, Opcode};
use slotvm_ssa::ir::{Entry, Function};

use crate::config::counts::{Counters, FunctionCounters};
use crate::config::slot_mode::SlotMode;
use abi::POINTER;
use cold::ColdCalls;
use cold_sides::{ColdSides, is_never_left};
use conditions::Conditions;
use exits::CodeExits;
use memo::Memo;
use names::ClifNames;
use roots::PollWithRoots;
use slots::Slots;
use traps::StoredBytes;

/// The way in which code traps.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trapping {
    /// Faulting instructions, caught by the process's signal handlers.
    Signals,
    /// Calls of the runtime; no instruction faults.
    Calls,
}

/// The inputs of the lowering besides the function.
#[derive(Clone)]
pub(crate) struct LowerOptions {
    /// The machine, made for the same slot mode.
    pub(crate) isa: OwnedTargetIsa,
    /// The place of slots.
    pub(crate) slots: SlotMode,
    /// The address space of each memory that the code will run with, at least. Code that traps by calls
    /// relies on none.
    pub(crate) memory: MemoryPlan,
    /// Whether bulk operations can be interrupted, as the functions can whose IR has polls.
    pub(crate) polls: bool,
    /// The way in which the code traps.
    pub(crate) trapping: Trapping,
    /// Whether calls of functions that the module defines go where [`VmCtx::entries`] leads. Otherwise they are direct.
    ///
    /// [`VmCtx::entries`]: slotvm_runtime::native::VmCtx::entries
    pub(crate) loads_entries: bool,
    /// The imported functions in their order, if they are code of the module's own unit ([`crate::raw`]). Otherwise
    /// they are called by their records.
    pub(crate) imports: Option<Arc<[UnitImport]>>,
    /// The code for calls of imports that are rarely called, if the module has any.
    pub(crate) cold: Option<Arc<ColdCalls>>,
    /// The counters of the module whose blocks are counted. They live as long as its code.
    pub(crate) counters: Option<Arc<Counters>>,
    /// The exits of the function, if it has any.
    pub(crate) exits: Option<CodeExits>,
}

impl LowerOptions {
    /// Whether the code is described to debuggers.
    pub(crate) fn describes_code(&self) -> bool {
        self.isa.flags().unwind_info()
    }

    /// Whether accesses of memory 0 are checked, and stay in bounds once they are. A memory that the host lends code may
    /// be exchanged by each call.
    pub(crate) fn relies_on_checks(&self) -> bool {
        let access = access_end_max(Op::I32Load8U, Imm::mem(0));
        !self.memory.covers(access) && self.imports.is_none()
    }
}

/// An imported function that is code of the unit, by its number.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum UnitImport {
    /// Called by its number.
    Stub,
    /// A load or store at a host address, which replaces the call.
    Access(Access),
}

/// The results of the lowering besides the CLIF.
#[derive(Debug, Default)]
pub(crate) struct Lowered {
    /// The locations of the loads that have trap codes of loads, see [`traps::load_of`].
    pub(crate) load_locs: Vec<Loc>,
    /// Names for the text of the CLIF, if the function has any.
    pub(crate) names: Option<ClifNames>,
    /// The locals with names that are in the frame: their numbers, the part of the frame, and the byte in it. Only if the code
    /// is described to debuggers.
    pub(crate) locals_in_frame: Vec<(u32, ir::StackSlot, u32)>,
    /// The signatures of cold calls, by their numbers in [`ColdCalls`], in the order of the names that the code calls them by.
    pub(crate) cold: Vec<usize>,
    /// The counters that the code adds to, if blocks are counted. They must live as long as the code.
    pub(crate) counters: Option<FunctionCounters>,
}

impl Lowered {
    /// Whether several loads share a trap code.
    pub(crate) fn loads_share_codes(&self) -> bool {
        self.load_locs.len() > traps::LOAD_CODES
    }
}

/// Lowers a function, of which `loops` are the loops, into an empty CLIF function.
pub(crate) fn lower_function(
    func: &Function,
    loops: &LoopForest,
    module: &VerifiedModule,
    options: &LowerOptions,
    clif: &mut ir::Function,
    context: &mut FunctionBuilderContext,
) -> Lowered {
    clif.signature = signature(func);
    clif.name = ir::UserFuncName::User(abi::func_name(func.func));
    debug_assert!(
        options.trapping == Trapping::Signals || options.memory == MemoryPlan::CHECKED,
        "code that traps by calls relies on no guard pages"
    );
    if options.trapping == Trapping::Signals {
        check_stack_in_prologue(clif);
    }
    let mut lowering = Lowering::new(func, loops, module, options, clif, context);
    lowering.lower_blocks();
    let names = lowering.names();
    let locals_in_frame = lowering.locals_in_frame();
    lowering.builder.finalize(options.isa.frontend_config());
    let counters = lowering.counters.map(|(counters, _)| counters);
    let Lowering { load_locs, cold, .. } = lowering;
    Lowered { load_locs, names, locals_in_frame, cold, counters }
}

/// The signature of a function. Where it is entered in a loop, its parameter is the address of the interpreter's frame.
fn signature(func: &Function) -> ir::Signature {
    match func.entry {
        Entry::Call => abi::guest_signature(&func.ty),
        Entry::Frame(_) => {
            abi::guest_signature(&FuncType::new([ValType::I64], &func.ty.results[..]))
        }
    }
}

/// Makes the prologue compare the stack pointer, less the size of the frame, with the limit in the
/// context, before it touches the frame. Its trap has no source location: it belongs to offset 0.
fn check_stack_in_prologue(clif: &mut ir::Function) {
    let flags = MemFlagsData::trusted().with_readonly();
    let flags = clif.dfg.mem_flags.insert(flags).expect("a first entry fits");
    let load = |base, offset: i32| GlobalValueData::Load {
        base,
        offset: offset.into(),
        global_type: POINTER,
        flags,
    };
    let context = clif.create_global_value(GlobalValueData::VMContext);
    let shared = clif.create_global_value(load(context, offsets::VMCTX_SHARED));
    let limit = clif.create_global_value(load(shared, offsets::SHARED_STACK_LIMIT));
    clif.stack_limit = Some(limit);
}

/// Bytes of the frame of a function that traps by calls, at most: what a function that finds itself below the limit
/// of the stack takes of the room that [`slotvm_runtime::native::limit_below`] leaves there. Cranelift writes to the
/// frame before the function can look at the limit.
pub(crate) const CHECKED_FRAME_BYTES_MAX: u32 = 96 << 10;

/// Fills an empty CLIF function with a stack-overflow trap.
pub(crate) fn lower_overflow(
    func: &Function,
    loops: &LoopForest,
    module: &VerifiedModule,
    options: &LowerOptions,
    clif: &mut ir::Function,
    context: &mut FunctionBuilderContext,
) {
    clif.signature = signature(func);
    clif.name = ir::UserFuncName::User(abi::func_name(func.func));
    let mut lowering = Lowering::new(func, loops, module, options, clif, context);
    let entry = lowering.builder.create_block();
    lowering.builder.append_block_params_for_function_params(entry);
    lowering.builder.switch_to_block(entry);
    lowering.context = lowering.builder.block_params(entry)[0];
    lowering.trap(TrapCode::StackOverflow);
    lowering.builder.seal_all_blocks();
    lowering.builder.finalize(options.isa.frontend_config());
}

/// Kinds of memory that do not overlap.
#[derive(Copy, Clone)]
struct Regions {
    /// The slots in the native frame.
    frame: AliasRegion,
    /// Linear memory.
    memory: AliasRegion,
    /// The instance: its context, globals, tables and what they point to.
    context: AliasRegion,
    /// Return areas.
    results: AliasRegion,
}

impl Regions {
    fn new(clif: &mut ir::Function) -> Regions {
        let mut ids = 0..;
        let mut region = |description: &'static str| {
            let user_id = ids.next().expect("the range has no end");
            let data = AliasRegionData { user_id, description: description.into() };
            clif.dfg.alias_regions.insert(data)
        };
        Regions {
            frame: region("frame"),
            memory: region("memory"),
            context: region("context"),
            results: region("results"),
        }
    }

    /// The region of root cells, which only functions with such cells have.
    fn roots(clif: &mut ir::Function) -> AliasRegion {
        clif.dfg.alias_regions.insert(AliasRegionData { user_id: 5, description: "roots".into() })
    }

    /// The region of counters, which only code with counters has.
    fn counts(clif: &mut ir::Function) -> AliasRegion {
        clif.dfg.alias_regions.insert(AliasRegionData { user_id: 4, description: "counts".into() })
    }
}

/// The state of the lowering of one function.
struct Lowering<'a, 'f> {
    func: &'a Function,
    module: &'a VerifiedModule,
    options: &'a LowerOptions,
    builder: FunctionBuilder<'f>,
    /// Whether Cranelift's optimiser will run.
    optimises: bool,
    regions: Regions,
    /// The CLIF block of each block.
    blocks: Vec<ir::Block>,
    /// The CLIF value of each value lowered so far.
    values: Vec<ir::Value>,
    /// The context, parameter 0.
    context: ir::Value,
    /// The return area of the function itself, parameter 1 if there is one.
    return_area: Option<ir::Value>,
    /// The area for the results of the functions that this one calls, and its size so far.
    callee_area: Option<(ir::StackSlot, u32)>,
    slots: Slots,
    root_cells: Option<roots::RootCells>,
    /// The list of the safepoint whose call comes next.
    safepoint: Option<u32>,
    extent: bounds::Extent,
    /// The block that defines each value, if checks depend on it.
    block_of: Vec<Block>,
    loops: &'a LoopForest,
    marking: hot_loop::Marking,
    /// The cold sides of branches, once a branch with a hint was lowered. No block before it is cold.
    cold_sides: Option<ColdSides>,
    n_imported_globals: u32,
    memo: Memo,
    conditions: Conditions,
    /// Signatures imported so far, by type index.
    signatures: HashMap<u32, ir::SigRef>,
    /// Those of leaf functions.
    leaf_signatures: HashMap<u32, ir::SigRef>,
    /// The signatures of cold calls so far, and their keepers in the same order.
    cold: Vec<usize>,
    keepers: Vec<ir::FuncRef>,
    /// Functions imported so far, by function index.
    functions: HashMap<u32, ir::FuncRef>,
    /// The signature of the trap function, imported at the first trap by a call.
    raise_signature: Option<ir::SigRef>,
    /// The signature of the poll function, imported at the first poll.
    poll_signature: Option<ir::SigRef>,
    load_locs: Vec<Loc>,
    /// The last store of the block, if it can fault and nothing has observed it for the optimiser.
    unobserved_store: Option<StoredBytes>,
    /// The counters of the function's blocks, and the current block, if blocks are counted.
    counters: Option<(FunctionCounters, Block)>,
    /// The memory of counters.
    counts_region: Option<AliasRegion>,
}

impl<'a, 'f> Lowering<'a, 'f> {
    fn new(
        func: &'a Function,
        loops: &'a LoopForest,
        module: &'a VerifiedModule,
        options: &'a LowerOptions,
        clif: &'f mut ir::Function,
        context: &'f mut FunctionBuilderContext,
    ) -> Lowering<'a, 'f> {
        let regions = Regions::new(clif);
        let is_counted = options.counters.is_some();
        let counts_region = is_counted.then(|| Regions::counts(clif));
        let mut builder = FunctionBuilder::new(clif, context);
        let blocks = func.blocks().map(|_| builder.create_block()).collect();
        if options.describes_code() {
            builder.func.dfg.collect_debug_info();
        }
        Lowering {
            func,
            module,
            options,
            optimises: options.isa.flags().opt_level() != OptLevel::None,
            regions,
            blocks,
            values: vec![ir::Value::reserved_value(); func.n_values()],
            context: ir::Value::reserved_value(),
            return_area: None,
            callee_area: None,
            root_cells: None,
            safepoint: None,
            slots: Slots::default(),
            extent: bounds::Extent::default(),
            block_of: Vec::new(),
            loops,
            marking: hot_loop::Marking::new(func, loops),
            cold_sides: None,
            n_imported_globals: n_imported_globals(module),
            memo: Memo::default(),
            conditions: Conditions::find(func),
            signatures: HashMap::new(),
            leaf_signatures: HashMap::new(),
            cold: Vec::new(),
            keepers: Vec::new(),
            functions: HashMap::new(),
            raise_signature: None,
            poll_signature: None,
            load_locs: Vec::new(),
            unobserved_store: None,
            counters: is_counted.then(|| (counts::counters(func), Function::ENTRY)),
            counts_region,
            builder,
        }
    }

    fn lower_blocks(&mut self) {
        let loops = self.loops;
        let mut sealing = order::Sealing::new(self.func);
        for block in loops.reverse_postorder().map(Block) {
            self.start_block(block);
            self.count_block(block);
            let mut insts = self.func.insts(block);
            while let Some((&inst, rest)) = insts.split_first() {
                let has_roots = self.root_cells.is_some();
                match has_roots.then(|| PollWithRoots::first_of(self.func, insts)).flatten() {
                    Some(poll) => {
                        self.lower_poll_with_roots(block, &poll);
                        insts = &insts[poll.n_insts()..];
                    }
                    None => {
                        self.lower_inst(block, inst);
                        insts = rest;
                    }
                }
            }
            sealing.filled(self.func, block, |block| {
                self.builder.seal_block(self.blocks[block.index()]);
            });
        }
    }

    fn start_block(&mut self, block: Block) {
        let clif_block = self.blocks[block.index()];
        self.builder.switch_to_block(clif_block);
        if block == Function::ENTRY {
            self.builder.seal_block(clif_block);
            self.start_entry(clif_block);
            return;
        }
        let is_cold = self.is_on_cold_side(block);
        if is_cold || is_never_left(self.func, block) || self.calls_rarely(block) {
            self.builder.set_cold_block(clif_block);
        }
        for &param in self.func.params(block) {
            let ty = abi::clif_type(self.func.value_type(param));
            let value = self.builder.append_block_param(clif_block, ty);
            self.define(param, value);
        }
    }

    /// Whether hints say that a block rarely runs.
    fn is_on_cold_side(&self, block: Block) -> bool {
        self.cold_sides.as_ref().is_some_and(|sides| sides.has(block))
    }

    fn start_entry(&mut self, entry: ir::Block) {
        self.builder.append_block_params_for_function_params(entry);
        let params = self.builder.block_params(entry).to_vec();
        self.context = params[0];
        if abi::returns_by_area(&self.func.ty) {
            self.return_area = Some(params[1]);
        }
        let func = self.func;
        let own = &params[abi::n_leading_params(&func.ty)..];
        let own_params = func.params(Function::ENTRY);
        match &func.entry {
            Entry::Call => {
                debug_assert_eq!(own.len(), own_params.len(), "they are the function's");
                own_params.iter().zip(own).for_each(|(&param, &value)| self.define(param, value));
            }
            Entry::Frame(state) => self.read_frame(own_params, state.places(), own[0]),
        }
        if self.traps_by_calls() {
            self.check_stack();
        }
        // Slot initialisation gets the location of the function's first instruction.
        if let Some(&first) = self.func.insts(Function::ENTRY).first() {
            self.locate(Function::ENTRY, first);
        }
        self.start_slots();
        self.start_roots();
        self.start_extent();
    }

    /// Defines the parameters of a function that is entered in a loop by what lies in the interpreter's frame. Calls of the
    /// function overwrite the frame, so it is all read here.
    fn read_frame(
        &mut self,
        params: &[Value],
        places: impl Iterator<Item = FramePlace>,
        frame: ir::Value,
    ) {
        for (&param, place) in params.iter().zip(places) {
            let ty = self.func.value_type(param);
            let value = match place {
                FramePlace::Cell(cell) => {
                    let at = cell as i32 * abi::CELL_BYTES as i32;
                    let flags = abi::cell_flags(ty, self.result_flags());
                    self.builder.ins().load(abi::clif_type(ty), flags, frame, at)
                }
                FramePlace::FrameSp => self.frame_sp(),
                FramePlace::Callee => unreachable!("only exits have a callee"),
                FramePlace::Block => {
                    let (shared, flags) = (self.shared(), self.context_flags());
                    self.builder.ins().load(ir::types::I32, flags, shared, offsets::SHARED_SELECTOR)
                }
            };
            self.define(param, value);
        }
    }

    /// Compares the stack pointer, which lies below the frame, with the limit in the context. The trap has
    /// no source location: it belongs to offset 0.
    fn check_stack(&mut self) {
        let shared = self.shared();
        // The host sets the limit at each entry, so it is constant meanwhile.
        let limit = self.constant_pointer(shared, offsets::SHARED_STACK_LIMIT);
        let sp = self.builder.ins().get_stack_pointer(POINTER);
        let below = self.builder.ins().icmp(IntCC::UnsignedLessThan, sp, limit);
        self.trap_if(below, TrapCode::StackOverflow);
    }

    /// Lowers one instruction.
    fn lower_inst(&mut self, block: Block, inst: Inst) {
        self.locate(block, inst);
        let opcode = self.func.opcode(inst);
        self.observe_store_before(opcode);
        match opcode {
            Opcode::Op(op) => self.lower_op(block, inst, op),
            Opcode::Ir(op) => self.lower_ir_op(inst, op),
        }
        // Polls see to it themselves.
        if matches!(opcode, Opcode::Op(_))
            && bounds::may_grow_memory(opcode)
            && !opcode.is_terminator()
        {
            self.load_extent();
        }
    }

    fn locate(&mut self, block: Block, inst: Inst) {
        let mark = match self.is_on_cold_side(block) {
            false => self.marking.mark(self.loops, block, self.func.opcode(inst)),
            true => 0,
        };
        self.builder.set_srcloc(SourceLoc::new(self.func.loc(inst).0 | mark));
    }

    fn lower_op(&mut self, block: Block, inst: Inst, op: Op) {
        if let Some(access) = op.access() {
            return self.lower_access(block, inst, op, access);
        }
        if op.is_vector() {
            return match op.vector_access() {
                Some(access) => self.lower_vector_access(inst, op, access),
                None => self.lower_vector(inst, op),
            };
        }
        if is_pair(op) {
            return self.lower_pair(inst, op);
        }
        match op.effect() {
            Effect::Control => self.lower_control(block, inst, op),
            Effect::Call => self.lower_call(inst, op),
            Effect::Read | Effect::Write => self.lower_state(inst, op),
            Effect::Pure | Effect::Trap => self.lower_pure(inst, op),
            Effect::Stack | Effect::Local => unreachable!("the IR has no `{}`", op.mnemonic()),
        }
    }

    fn lower_ir_op(&mut self, inst: Inst, op: IrOp) {
        match op {
            IrOp::SlotGet => self.lower_slot_get(inst),
            IrOp::SlotSet => self.lower_slot_set(inst),
            IrOp::Fuel => self.lower_fuel(inst),
            IrOp::FuelBulk => self.lower_fuel_bulk(inst),
            IrOp::Poll => self.lower_poll(),
            IrOp::StackPush => self.lower_stack_push(inst),
            IrOp::StackPop => self.lower_stack_pop(inst),
            IrOp::FramePush => self.lower_frame_push(inst),
            IrOp::FramePop => self.lower_frame_pop(inst),
            IrOp::RefIsFunc => self.lower_ref_is_func(inst),
            IrOp::Safepoint => self.lower_safepoint(inst),
            IrOp::RootGet => self.lower_root_get(inst),
            IrOp::RootSet => self.lower_root_set(inst),
            IrOp::Exit => self.lower_exit(inst),
        }
    }

    /// The CLIF value of a value.
    fn value(&self, value: Value) -> ir::Value {
        let clif = self.values[value.index()];
        debug_assert!(!clif.is_reserved_value(), "{value} is used before it is defined");
        clif
    }

    fn define(&mut self, value: Value, clif: ir::Value) {
        self.values[value.index()] = clif;
        self.label_local(value, clif);
    }

    /// Defines the only result of an instruction.
    fn define_result(&mut self, inst: Inst, clif: ir::Value) {
        self.define(self.func.result(inst), clif);
    }

    /// An operand of an instruction.
    fn operand(&self, inst: Inst, index: usize) -> ir::Value {
        self.value(self.func.operands(inst)[index])
    }

    /// All operands of an instruction, of which there are `N`.
    fn operands<const N: usize>(&self, inst: Inst) -> [ir::Value; N] {
        let operands = self.func.operands(inst);
        debug_assert_eq!(operands.len(), N, "operands of {inst}");
        std::array::from_fn(|i| self.value(operands[i]))
    }

    fn isa(&self) -> &'a dyn TargetIsa {
        &*self.options.isa
    }

    fn func_type(&self, ty: u32) -> &'a FuncType {
        &self.module.module().types[ty as usize]
    }

    /// Flags for mutable state: registers of the context, globals, tables.
    fn context_flags(&self) -> MemFlagsData {
        MemFlagsData::trusted().with_alias_region(Some(self.regions.context))
    }

    /// Flags for state that never changes while the store lives.
    fn constant_flags(&self) -> MemFlagsData {
        self.context_flags().with_readonly().with_can_move()
    }

    /// Flags of linear memory, without what happens out of bounds.
    fn memory_flags(&self) -> MemFlagsData {
        MemFlagsData::new()
            .with_endianness(ir::Endianness::Little)
            .with_alias_region(Some(self.regions.memory))
    }

    /// State that all instances of the store share.
    fn shared(&mut self) -> ir::Value {
        self.constant_pointer(self.context, offsets::VMCTX_SHARED)
    }
}

fn n_imported_globals(module: &VerifiedModule) -> u32 {
    (module.globals().len() - module.module().globals.len()) as u32
}
