//! From the bytecode of one function to its machine code: the stages in a row, and what each cost.
//!
//! 1. `build`: bytecode to the slot form of the IR;
//! 2. `promote`: slot form to SSA form, in the mode that wants it, unless the first stage made it;
//! 3. `lower`: IR to CLIF ([`crate::lower`]);
//! 4. `cranelift`: CLIF to machine code.
//!
//! What would cost too much is decided from counts, and compiled otherwise than the slot mode says:
//! * Cranelift's alias analysis, which only the optimiser runs, costs time that grows faster than the
//!   square of the depth of loop nests. Functions whose nests are too deep for it, see
//!   [`NESTING_MAX`], are compiled without the optimiser.
//! * The register allocator's dominators walk up the tree from the source of each edge back to a loop,
//!   which takes the square of the depth of nests, and of the length of a loop with many such edges.
//!   Functions whose walks are too long, see [`BACK_STEPS_MAX`], get their registers in one pass over
//!   the code, which is fast and makes slow code, and are compiled without the optimiser.
//! * Registers for all slots can take memory by the square of a function's size. Functions that
//!   [`promote_with()`] finds too large, and in mode `variables` those with more than
//!   [`VARIABLE_EDGES_MAX`], are compiled as in mode `memory`.
//!
//! A function that [`is_buildable`] refuses has no native code.
//!
//! The result is a [`MachineCode`], which [`crate::code`] places, with the tables that lead from a pc
//! to a trap and to the bytecode.

use std::time::{Duration, Instant};

use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::isa::{OwnedTargetIsa, TargetIsa};
use cranelift_codegen::{CodegenError, CompiledCode, Context, MachSrcLoc};
use cranelift_frontend::FunctionBuilderContext;
use slotvm_bytecode::VerifiedModule;
use slotvm_ssa::build::{
    BuildOptions, BuildScratch, OPERANDS_MAX, SsaOptions, build, build_ssa, is_buildable,
};
use slotvm_ssa::entity::Loc;
use slotvm_ssa::graph::dom_tree;
use slotvm_ssa::ir::Function;
use slotvm_ssa::loops::LoopForest;
use slotvm_ssa::promote::{self, PromoteOptions, PromotionReport, promote_with};

use crate::SlotMode;
use crate::code::MachineCode;
use crate::isa::{IsaError, in_one_pass, without_optimiser};
use crate::lower::order::find_loops;
use crate::lower::traps::{self, Trapping};
use crate::lower::{self, CHECKED_FRAME_BYTES_MAX, LowerOptions, Lowered};
use crate::pctable::{Place, PlaceId, TrapReason};

/// The optimiser is left out of functions whose blocks lie in more loops than this on average, if they
/// have at least [`NESTED_MIN`] in sum. Ordinary functions stay below 10.
pub(crate) const NESTING_MAX: u64 = 64;
/// The sum of loop depths of blocks below which the optimiser is harmless: about 0.1 s.
pub(crate) const NESTED_MIN: u64 = 100_000;

/// Registers are allocated in one pass where the edges back to loops lie more steps of the dominator tree
/// below them than this in sum: 0.5 s.
pub(crate) const BACK_STEPS_MAX: u64 = 1 << 27;

/// Variables times edges that cranelift-frontend may have: each variable can become a parameter of each
/// block.
pub(crate) const VARIABLE_EDGES_MAX: usize = 1 << 25;

/// How functions are compiled.
#[derive(Clone)]
pub(crate) struct CompileOptions {
    /// What the code charges for.
    pub(crate) build: BuildOptions,
    /// How slots are promoted in the mode that does.
    pub(crate) promotion: PromoteOptions,
    /// How that mode makes SSA form without promotion, if it does. It charges for the same.
    pub(crate) on_the_fly: Option<SsaOptions>,
    /// Machine, slot mode, memories.
    pub(crate) lower: LowerOptions,
    /// Whether to keep the CLIF as text.
    pub(crate) keep_clif: bool,
    /// Whether to keep the machine code as text.
    pub(crate) keep_asm: bool,
}

/// Machine code of a function, and what there is to say about it.
pub(crate) struct CompiledFunction {
    /// The code, to be placed.
    pub(crate) code: MachineCode,
    /// What promotion did, if there was any.
    pub(crate) promotion: Option<PromotionReport>,
    /// Whether the optimiser was left out since loops are nested too deep for it.
    pub(crate) is_nested_too_deep: bool,
    /// Whether registers were allocated in one pass, without the optimiser, since edges lead back too
    /// far.
    pub(crate) is_allocated_in_one_pass: bool,
    /// Whether the slots are in memory since registers for them would take too much of it.
    pub(crate) has_too_many_slots: bool,
    /// Sizes.
    pub(crate) sizes: Sizes,
    /// What each stage took.
    pub(crate) times: StageTimes,
    /// The CLIF before optimisation, if asked for.
    pub(crate) clif: Option<String>,
    /// The machine code in words, before it was relocated, if asked for.
    pub(crate) asm: Option<String>,
}

/// Sizes of a compiled function.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Basic blocks of the IR.
    pub n_blocks: usize,
    /// Instructions of the IR.
    pub n_insts: usize,
    /// Block parameters of the IR, the function's own left out.
    pub n_phis: usize,
    /// Instructions of the CLIF, before optimisation.
    pub n_clif_insts: usize,
    /// Parameters of CLIF blocks, before optimisation, the function's own left out.
    pub n_clif_params: usize,
    /// Machine code, constants included.
    pub code_bytes: usize,
    /// The native frame below the frame pointer.
    pub frame_bytes: u32,
    /// Of these, slots and return areas; what is left is spilled values, saved registers and
    /// arguments.
    pub slot_bytes: u32,
}

/// Time by stage.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StageTimes {
    /// Bytecode to slot form.
    pub(crate) build: Duration,
    /// Slot form to SSA form.
    pub(crate) promote: Duration,
    /// IR to CLIF.
    pub(crate) lower: Duration,
    /// CLIF to machine code.
    pub(crate) cranelift: Duration,
}

impl std::ops::AddAssign for StageTimes {
    fn add_assign(&mut self, other: StageTimes) {
        self.build += other.build;
        self.promote += other.promote;
        self.lower += other.lower;
        self.cranelift += other.cranelift;
    }
}

/// Why a function has no machine code.
#[derive(Clone, Debug, thiserror::Error)]
#[error("function {name} cannot be compiled: {reason}")]
pub(crate) struct CompileError {
    /// The function, in the module's index space.
    pub(crate) func: u32,
    /// Its name.
    pub(crate) name: String,
    /// What Cranelift says.
    pub(crate) reason: String,
}

/// Compiles one function after the other, in memory that it reuses.
pub(crate) struct Compiler {
    options: CompileOptions,
    /// The options without the optimiser; made for the first function that needs them.
    unoptimised: Option<LowerOptions>,
    /// The same with registers in one pass.
    one_pass: Option<LowerOptions>,
    build: BuildScratch,
    promote: promote::Scratch,
    frontend: FunctionBuilderContext,
    context: Context,
}

impl Compiler {
    /// A compiler with empty memory.
    pub(crate) fn new(options: CompileOptions) -> Compiler {
        Compiler {
            options,
            unoptimised: None,
            one_pass: None,
            build: BuildScratch::default(),
            promote: promote::Scratch::default(),
            frontend: FunctionBuilderContext::new(),
            context: Context::new(),
        }
    }

    /// Compiles a function that the module defines.
    ///
    /// # Errors
    /// If it is too large.
    pub(crate) fn compile(
        &mut self,
        module: &VerifiedModule,
        func: u32,
    ) -> Result<CompiledFunction, CompileError> {
        if !is_buildable(module, func) {
            let reason = format!("its instructions have more than {OPERANDS_MAX} operands");
            return Err(CompileError { func, name: module.func_name(func), reason });
        }
        let mut times = StageTimes::default();
        let (function, promotion) = self.form(module, func, &mut times);
        self.compile_form(module, &function, promotion, times)
    }

    /// The form of a function that the slot mode compiles.
    pub(crate) fn form(
        &mut self,
        module: &VerifiedModule,
        func: u32,
        times: &mut StageTimes,
    ) -> (Function, Option<PromotionReport>) {
        let is_promoted = self.options.lower.slots.is_promoted();
        let start = Instant::now();
        if let Some(options) = self.options.on_the_fly.filter(|_| is_promoted)
            && let Some((function, _)) = build_ssa(module, func, &options, &mut self.build)
        {
            times.build = start.elapsed();
            return (function, None);
        }
        let mut function = build(module, func, &self.options.build, &mut self.build);
        times.build = start.elapsed();
        if !is_promoted {
            return (function, None);
        }
        let start = Instant::now();
        let report = promote_with(&mut function, self.options.promotion, &mut self.promote);
        times.promote = start.elapsed();
        (function, Some(report))
    }

    fn compile_form(
        &mut self,
        module: &VerifiedModule,
        function: &Function,
        promotion: Option<PromotionReport>,
        mut times: StageTimes,
    ) -> Result<CompiledFunction, CompileError> {
        let error = |reason| {
            let (func, name) = (function.func, function.name.clone());
            CompileError { func, name, reason }
        };
        let start = Instant::now();
        let loops = find_loops(function);
        let slots = self.options.lower.slots;
        let has_too_many_slots = match slots {
            SlotMode::Ssa => promotion.is_some_and(|report| report.too_large.is_some()),
            SlotMode::Variables => has_too_many_variables(function),
            SlotMode::Memory | SlotMode::MemoryOpt | SlotMode::MemoryForwarded => false,
        };
        let is_nested_too_deep = slots != SlotMode::Memory && is_nested_too_deep(function, &loops);
        let is_allocated_in_one_pass = leads_back_too_far(function);
        let options = if is_allocated_in_one_pass {
            cheaper(&mut self.one_pass, &self.options.lower, in_one_pass)
        } else if is_nested_too_deep || has_too_many_slots {
            cheaper(&mut self.unoptimised, &self.options.lower, without_optimiser)
        } else {
            Ok(self.options.lower.clone())
        };
        let mut options = options.map_err(|isa| error(isa.to_string()))?;
        if has_too_many_slots {
            options.slots = SlotMode::Memory;
        }
        let lowered = self.lower(module, function, &loops, &options);
        times.lower = start.elapsed();
        let clif = self.options.keep_clif.then(|| self.context.func.display().to_string());
        let mut sizes = self.clif_sizes(function);

        let start = Instant::now();
        self.generate(&options).map_err(error)?;
        if options.trapping == Trapping::Calls && self.frame_bytes() > CHECKED_FRAME_BYTES_MAX {
            self.context.clear();
            let clif = &mut self.context.func;
            let frontend = &mut self.frontend;
            lower::lower_overflow(function, &loops, module, &options, clif, frontend);
            self.generate(&options).map_err(error)?;
        }
        times.cranelift = start.elapsed();
        sizes.frame_bytes = self.frame_bytes();

        let compiled = self.context.compiled_code().expect("it was compiled");
        sizes.code_bytes = compiled.code_buffer().len();
        let code = machine_code(compiled, &self.context.func, function, &lowered, options.trapping);
        let asm = compiled.vcode.clone();
        Ok(CompiledFunction {
            code,
            promotion,
            is_nested_too_deep,
            is_allocated_in_one_pass,
            has_too_many_slots,
            sizes,
            times,
            clif,
            asm,
        })
    }

    /// Leaves the function's CLIF in the context.
    fn lower(
        &mut self,
        module: &VerifiedModule,
        function: &Function,
        loops: &LoopForest,
        options: &LowerOptions,
    ) -> Lowered {
        self.context.clear();
        let clif = &mut self.context.func;
        lower::lower_function(function, loops, module, options, clif, &mut self.frontend)
    }

    /// Makes machine code of the CLIF in the context, and leaves it there.
    fn generate(&mut self, options: &LowerOptions) -> Result<(), String> {
        self.context.set_disasm(self.options.keep_asm);
        let compiled = self.context.compile(&*options.isa, &mut ControlPlane::default());
        compiled.map(|_| ()).map_err(|refusal| describe(&refusal.inner))
    }

    /// The frame of the machine code in the context.
    fn frame_bytes(&self) -> u32 {
        let compiled = self.context.compiled_code().expect("it was compiled");
        compiled.buffer.frame_layout().map_or(0, |layout| layout.frame_to_fp_offset)
    }

    fn clif_sizes(&self, function: &Function) -> Sizes {
        let clif = &self.context.func;
        let blocks = clif.layout.blocks().skip(1);
        Sizes {
            n_blocks: function.n_blocks(),
            n_insts: function.blocks().map(|block| function.insts(block).len()).sum(),
            n_phis: function.n_phis(),
            n_clif_insts: clif.dfg.num_insts(),
            n_clif_params: blocks.map(|block| clif.dfg.num_block_params(block)).sum(),
            slot_bytes: clif.fixed_stack_size(),
            ..Sizes::default()
        }
    }
}

/// Whether the optimiser would take too long, see [`NESTING_MAX`].
fn is_nested_too_deep(function: &Function, loops: &LoopForest) -> bool {
    let depths = function.blocks().map(|block| u64::from(loops.depth_of_block(block.0)));
    let depth: u64 = depths.sum();
    depth >= NESTED_MIN && depth > NESTING_MAX * function.n_blocks() as u64
}

/// The options with a machine that takes less time to compile for, from `made` if they were made before.
fn cheaper(
    made: &mut Option<LowerOptions>,
    options: &LowerOptions,
    machine: fn(&dyn TargetIsa) -> Result<OwnedTargetIsa, IsaError>,
) -> Result<LowerOptions, IsaError> {
    if let Some(made) = made {
        return Ok(made.clone());
    }
    let isa = machine(&*options.isa)?;
    Ok(made.insert(LowerOptions { isa, ..options.clone() }).clone())
}

/// Whether the register allocator's dominators would take too long, see [`BACK_STEPS_MAX`].
fn leads_back_too_far(function: &Function) -> bool {
    // No edge leads back over more blocks than there are.
    let most = (function.n_edges() as u64).saturating_mul(function.n_blocks() as u64);
    if most <= BACK_STEPS_MAX {
        return false;
    }
    let tree = dom_tree(function);
    let level = |block: u32| u64::from(tree.level(block).expect("all blocks are reachable"));
    let steps = function.blocks().flat_map(|block| function.succ_edges(block)).map(|edge| {
        let (source, target) = (function.edge_src(edge).0, function.edge_dst(edge).0);
        let is_back = tree.dominates(target, source);
        if is_back { level(source) - level(target) } else { 0 }
    });
    steps.sum::<u64>() > BACK_STEPS_MAX
}

/// Whether cranelift-frontend could need too much memory, see [`VARIABLE_EDGES_MAX`].
fn has_too_many_variables(function: &Function) -> bool {
    function.slots.len().saturating_mul(function.n_edges()) > VARIABLE_EDGES_MAX
}

fn describe(error: &CodegenError) -> String {
    match error {
        // Says which rule, and the instruction: not for users, but it is no user's fault either.
        CodegenError::Verifier(errors) => format!("invalid CLIF: {errors}"),
        CodegenError::ImplLimitExceeded | CodegenError::CodeTooLarge => {
            "it is too large for the code generator".to_owned()
        }
        error => error.to_string(),
    }
}

/// Takes over the code with its tables of traps and calls.
fn machine_code(
    compiled: &CompiledCode,
    clif: &cranelift_codegen::ir::Function,
    function: &Function,
    lowered: &Lowered,
    trapping: Trapping,
) -> MachineCode {
    let srclocs = compiled.buffer.get_srclocs_sorted();
    let mut places = Places::new(function);
    let place = |offset: u32, trap: Option<cranelift_codegen::ir::TrapCode>| {
        let load = trap.and_then(traps::load_of);
        let loc = load.map(|load| lowered.load_locs[load]).or_else(|| loc_at(srclocs, offset));
        places.place(loc)
    };
    let reason = |code| match trapping {
        Trapping::Signals => {
            Some(traps::trap_code_of(code).map_or(TrapReason::HostError, TrapReason::Guest))
        }
        // What could fault is never executed, or never with operands for which it does.
        Trapping::Calls => None,
    };
    let mut code = MachineCode::new(compiled, clif, reason, place, Vec::new());
    debug_assert!(code.traps.is_sorted_by(|a, b| a.offset < b.offset), "one trap for each pc");
    code.places = places.places;
    code
}

/// The location of the instruction at a code offset. The prologue has none.
fn loc_at(srclocs: &[MachSrcLoc<cranelift_codegen::Final>], offset: u32) -> Option<Loc> {
    let after = srclocs.partition_point(|range| range.start <= offset);
    let range = &srclocs[after.checked_sub(1)?];
    (offset < range.end && !range.loc.is_default()).then(|| Loc(range.loc.bits()))
}

/// Collects the locations that tables mention.
struct Places<'a> {
    function: &'a Function,
    /// Number in `places`, by location.
    numbers: Vec<PlaceId>,
    /// Number of the function's start.
    start: PlaceId,
    places: Vec<Place>,
}

impl<'a> Places<'a> {
    fn new(function: &'a Function) -> Places<'a> {
        let numbers = vec![PlaceId::NONE; function.locs.len()];
        Places { function, numbers, start: PlaceId::NONE, places: Vec::new() }
    }

    fn push(&mut self, place: Place) -> PlaceId {
        self.places.push(place);
        PlaceId(self.places.len() as u32 - 1)
    }

    /// The number of a location; without one, of the function's start.
    fn place(&mut self, loc: Option<Loc>) -> PlaceId {
        let Some(loc) = loc else {
            if self.start == PlaceId::NONE {
                let inlined_at = PlaceId::NONE;
                self.start = self.push(Place { func: self.function.func, offset: 0, inlined_at });
            }
            return self.start;
        };
        // The calls around come first, outermost first.
        let mut chain = vec![loc];
        while let Some(&loc) = chain.last()
            && self.numbers[loc.index()] == PlaceId::NONE
            && let Some(outer) = self.function.locs[loc.index()].inlined_at
        {
            chain.push(outer);
        }
        for loc in chain.into_iter().rev() {
            if self.numbers[loc.index()] == PlaceId::NONE {
                let data = self.function.locs[loc.index()];
                let outer = data.inlined_at.map_or(PlaceId::NONE, |at| self.numbers[at.index()]);
                let place = Place { func: data.func, offset: data.offset, inlined_at: outer };
                self.numbers[loc.index()] = self.push(place);
            }
        }
        self.numbers[loc.index()]
    }
}

#[cfg(test)]
mod tests;
