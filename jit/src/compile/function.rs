//! Compiles one function from bytecode to machine code, by the rows of [`slotvm_ssa::pipeline`].
//!
//! Without promotion, the slot form is lowered. Between the passes and lowering, [`crate::compile::attempts`] chooses
//! how much effort a function is worth.
//!
//! A function that has too many operands ([`OperandCounts::is_buildable`]) has no native code.
//!
//! The result is a [`MachineCode`], which [`crate::code::unit`] places, with the tables that lead from a pc
//! to a trap and to the bytecode.

pub(crate) mod form;

use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::{CodegenError, CompiledCode, Context};
use cranelift_frontend::FunctionBuilderContext;
use slotvm_bytecode::VerifiedModule;
use slotvm_ssa::construction::build::{
    BuildOptions, OperandCounts, SLOT_FORM_OPERANDS_MAX, SsaOptions,
};
use slotvm_ssa::construction::promote::{PromoteOptions, PromotionReport};
use slotvm_ssa::graphs::loops::LoopForest;
use slotvm_ssa::ir::Function;
use slotvm_ssa::pipeline::{PassScratch, PassSet, Stage, StageError, Times};
use tracing::trace_span;

use self::form::Origin;
use crate::code::error::CodeError;
use crate::code::machine_code::MachineCode;
use crate::compile::budget::{Cause, Effort, Share, TooMuchWork, Work};
use crate::compile::clif_text;
use crate::compile::contain::Containment;
use crate::compile::debug_code;
use crate::compile::error::CompileError;
use crate::compile::failure::{CompileFailure, Fails};
use crate::compile::folds::Folds;
use crate::compile::function_info::{FunctionInfo, Sizes};
use crate::compile::hot_loop::{anchor, is_placed};
use crate::compile::listing::FunctionCode;
use crate::compile::places::{self, machine_code};
use crate::compile::subject::Subject;
use crate::config::passes::Passes;
use crate::config::slot_mode::SlotMode;
use crate::lower::exits::CodeExits;
use crate::lower::hot_loop::is_marked;
use crate::lower::isa::{
    IN_ONE_PASS, IsaError, Settings, WITHOUT_BLOCKS, WITHOUT_OPTIMISER, has_vectors, with_settings,
};
use crate::lower::{self, CHECKED_FRAME_BYTES_MAX, LowerOptions, Lowered, Trapping};

/// Settings of the compilation of functions.
#[derive(Clone)]
pub(crate) struct CompileOptions {
    /// The charges in the code.
    pub(crate) build: BuildOptions,
    /// The options of promotion, for the mode that promotes.
    pub(crate) promotion: PromoteOptions,
    /// Options of a mode that makes SSA form without promotion. The budget is the same.
    pub(crate) on_the_fly: Option<SsaOptions>,
    /// The optional passes.
    pub(crate) passes: Passes,
    /// Machine, slot mode, memories.
    pub(crate) lower: LowerOptions,
    /// Whether the IR is verified after each stage and pass.
    pub(crate) verify: bool,
    /// Whether to keep the CLIF as text.
    pub(crate) keep_clif: bool,
    /// Whether to keep the machine code as text.
    pub(crate) keep_asm: bool,
    /// Whether to keep the machine code with what its parts mean.
    pub(crate) keep_listing: bool,
    /// What becomes of compilations that fail.
    pub(crate) containment: Containment,
}

/// Machine code of a function, and what there is to say about it.
pub(crate) struct CompiledFunction {
    /// The code, to be placed.
    pub(crate) code: MachineCode,
    /// The functions whose bodies are in it as well.
    pub(crate) inlined: Vec<u32>,
    /// Whether it is entered in the first of the loops that it was asked for, and in no other.
    pub(crate) is_alone: bool,
    /// The report of promotion, if there was any.
    pub(crate) promotion: Option<PromotionReport>,
    /// The effort level, and the reason for it.
    pub(crate) work: Work,
    /// Sizes.
    pub(crate) sizes: Sizes,
    /// The time of each stage.
    pub(crate) times: Times,
    /// The CLIF before optimisation, if asked for.
    pub(crate) clif: Option<String>,
    /// The machine code in words, before it was relocated, if asked for.
    pub(crate) asm: Option<String>,
    /// The machine code with what its parts mean, before it is placed, if asked for.
    pub(crate) listing: Option<FunctionCode>,
    /// Its exits, which must live as long as the code.
    pub(crate) exits: Option<CodeExits>,
}

impl CompiledFunction {
    /// Returns the statistics of the function.
    pub(crate) fn info(&self, module: &VerifiedModule, func: u32) -> FunctionInfo {
        FunctionInfo {
            func,
            name: module.func_name(func),
            work: self.work,
            sizes: self.sizes,
            compile_time: self.times.rows().map(|(_, time)| time).sum(),
            promotion: self.promotion,
        }
    }
}

/// Operands that one branch must keep before those of all branches are counted ahead of building the IR.
const KEPT_OPERANDS_MIN: usize = 64;

/// Compiles one function after the other, in memory that it reuses.
pub(crate) struct Compiler {
    pub(super) options: CompileOptions,
    /// Machines by how code is generated (as asked, without the optimiser, in one pass), without and with a list of
    /// the blocks of the machine code. Each is made for the first function that needs it.
    isas: [[Option<OwnedTargetIsa>; 2]; 3],
    pub(super) passes: PassScratch,
    frontend: FunctionBuilderContext,
    context: Context,
    /// The machine code of the CLIF in the context.
    compiled: Option<CompiledCode>,
}

impl Compiler {
    /// A compiler with empty memory.
    pub(crate) fn new(options: CompileOptions) -> Compiler {
        let mut isas = <[[_; 2]; 3]>::default();
        isas[0][1] = Some(options.lower.isa.clone());
        Compiler {
            options,
            isas,
            passes: PassScratch::default(),
            frontend: FunctionBuilderContext::new(),
            context: Context::new(),
            compiled: None,
        }
    }

    /// Compiles a function that the module defines and that has this share of its budget.
    ///
    /// # Errors
    /// Fails if it is too large, or takes too much work.
    pub(crate) fn compile(
        &mut self,
        module: &VerifiedModule,
        func: u32,
        share: Share,
    ) -> Result<CompiledFunction, CompileError> {
        self.compile_at(module, Origin::of_func(func), share)
    }

    /// Compiles a function from its bytecode as [`Compiler::compile`] does, or what follows in it at the start of one of some
    /// loops, for frames of the interpreter: see [`build_loop`](slotvm_ssa::construction::build::build_loop). Its exits leave
    /// for the interpreter.
    ///
    /// # Errors
    /// Fails if it is too large, or takes too much work.
    pub(crate) fn compile_at(
        &mut self,
        module: &VerifiedModule,
        origin: Origin<'_>,
        share: Share,
    ) -> Result<CompiledFunction, CompileError> {
        let (func, loops) = (origin.func(), origin.loops());
        let subject = Subject::of(module, func, loops);
        let name = || module.func_name(func);
        self.contained(subject, name, |compiler| {
            #[cfg(test)]
            crate::compile::faults::inject(module, func, loops)?;
            compiler.try_compile_at(module, origin, share)
        })
    }

    /// Calls `compile` with itself, and counts the result.
    pub(super) fn contained(
        &mut self,
        subject: Subject,
        name: impl Fn() -> String,
        compile: impl FnOnce(&mut Compiler) -> Result<CompiledFunction, CompileError>,
    ) -> Result<CompiledFunction, CompileError> {
        let containment = self.options.containment.clone();
        let result = containment.run(subject, name, || compile(self));
        match &result {
            Ok(_) => containment.counts.add_compiled(),
            Err(error) if error.failure.is_bug() => *self = Compiler::new(self.options.clone()),
            Err(_) => {}
        }
        result
    }

    /// Does what [`Compiler::compile_at`] says, which catches panics.
    fn try_compile_at(
        &mut self,
        module: &VerifiedModule,
        origin: Origin<'_>,
        share: Share,
    ) -> Result<CompiledFunction, CompileError> {
        let func = origin.func();
        let _function = trace_span!("function", func, name = module.func_name(func)).entered();
        let error = |refusal| CompileError::new(func, module.func_name(func), refusal);
        let operands = OperandCounts::new(module, func);
        if !operands.is_buildable() {
            let reason =
                format!("its instructions have more than {SLOT_FORM_OPERANDS_MAX} operands");
            return Err(error(CompileFailure::NotBuildable.because(reason)));
        }
        let too_much = |cause| error(CompileFailure::Budget.because(TooMuchWork { cause }));
        if share.has_wide_types && !share.has_room_for_operands(operands.n_wide()) {
            return Err(too_much(Cause::WideOperands));
        }
        // A branch that keeps many operands goes to a label with as many shapes.
        let may_keep_many = module.module().shapes.len() >= KEPT_OPERANDS_MIN;
        if may_keep_many && !share.has_room_for_operands(operands.n_kept()) {
            return Err(too_much(Cause::PhiOperands));
        }
        self.check_machine(module, func)?;
        self.attempt(module, origin, share)
    }

    /// Fails if the machine lacks instructions that the module needs.
    fn check_machine(&self, module: &VerifiedModule, func: u32) -> Result<(), CompileError> {
        if module.uses_vectors() && !has_vectors(&*self.options.lower.isa) {
            let reason = "vectors need SSSE3 and SSE4.1, which this machine lacks";
            let refusal = CompileFailure::Machine.because(reason);
            return Err(CompileError::new(func, module.func_name(func), refusal));
        }
        Ok(())
    }

    /// Compiles a function of the module from its slot form, which has passed the verifier of the IR,
    /// whatever its bytecode is.
    ///
    /// # Errors
    /// Fails if it takes too much work.
    pub(crate) fn compile_slot_form(
        &mut self,
        module: &VerifiedModule,
        function: &Function,
        share: Share,
    ) -> Result<CompiledFunction, CompileError> {
        let (subject, name) = (Subject::Function(function.func), || function.name.clone());
        self.contained(subject, name, |compiler| {
            let _function = trace_span!("function", func = function.func, name = function.name);
            let _function = _function.entered();
            compiler.check_machine(module, function.func)?;
            compiler.attempt_from(module, Origin::SlotForm(function), share)
        })
    }

    /// Returns the lowering options of an effort level, with machines that are made when they are first needed.
    pub(super) fn lower_options(&mut self, work: &Work) -> Result<LowerOptions, IsaError> {
        let (row, settings): (_, &Settings) = match work.effort {
            Effort::AsAsked => (0, &[]),
            Effort::Unoptimised | Effort::SlotsInMemory => (1, WITHOUT_OPTIMISER),
            Effort::OnePass => (2, IN_ONE_PASS),
        };
        let blocks = if is_placed(&work.counts) { &[] } else { WITHOUT_BLOCKS };
        let isa = &mut self.isas[row][usize::from(blocks.is_empty())];
        if isa.is_none() {
            *isa = Some(with_settings(&*self.options.lower.isa, settings.iter().chain(blocks))?);
        }
        let isa = isa.clone().expect("it was made");
        let mut options = LowerOptions { isa, ..self.options.lower.clone() };
        if work.effort >= Effort::SlotsInMemory {
            options.slots = SlotMode::Memory;
        }
        Ok(options)
    }

    pub(super) fn compile_form(
        &mut self,
        module: &VerifiedModule,
        function: &Function,
        loops: &LoopForest,
        options: &LowerOptions,
        Report { passes, promotion, inlined, work, mut times }: Report,
    ) -> Result<CompiledFunction, CompileError> {
        let mut lowered = times.stage(Stage::Clif, || self.lower(module, function, loops, options));
        let keeps_clif = self.options.keep_clif;
        let text = || clif_text::print(&self.context.func, function, lowered.names.as_ref());
        let clif = keeps_clif.then(text);
        let mut sizes = self.clif_sizes(function);

        let folds =
            self.generate_checked(module, function, loops, options, &mut lowered, &mut times)?;
        sizes.frame_bytes = self.frame_bytes();

        let compiled = self.compiled.as_ref().expect("it was compiled");
        let (clif_func, folds) = (&self.context.func, folds.as_ref());
        let mut code = machine_code(compiled, clif_func, function, &lowered, folds, options);
        if let Some(debug) = &mut code.debug {
            let clif = (clif_func, folds);
            debug_code::describe(debug, compiled, &*options.isa, clif, function, &lowered);
        }
        code.anchor = anchor(compiled, |bits| match folds {
            Some(folds) => folds.is_marked(bits),
            None => is_marked(bits),
        });
        code.has_addresses = options.exits.is_some();
        self.append_keepers(&mut code, &lowered.cold).map_err(|error| {
            let refusal = error.failure().because(error);
            CompileError::new(function.func, function.name.as_str(), refusal)
        })?;
        sizes.code_bytes = code.bytes.len();
        let asm = compiled.vcode.clone();
        let list = || places::listing(compiled, clif_func, function, folds, &code, (passes, work));
        let listing = self.options.keep_listing.then(list);
        if let (Some(all), Some(counters)) = (&options.counters, lowered.counters.take()) {
            all.add(counters);
        }
        let is_alone = false;
        Ok(CompiledFunction {
            code,
            inlined,
            is_alone,
            promotion,
            work,
            sizes,
            times,
            clif,
            asm,
            listing,
            exits: options.exits.clone(),
        })
    }

    /// Makes machine code of the CLIF in the context, or of a function that overflows the stack, if its frame is larger than
    /// code that checks the stack can have.
    fn generate_checked(
        &mut self,
        module: &VerifiedModule,
        function: &Function,
        loops: &LoopForest,
        options: &LowerOptions,
        lowered: &mut Lowered,
        times: &mut Times,
    ) -> Result<Option<Folds>, CompileError> {
        let folds = times
            .stage(Stage::Asm, || self.generate(options, lowered))
            .map_err(|refusal| self.refused(refusal, module, function, loops, options))?;
        if options.trapping == Trapping::Calls && self.frame_bytes() > CHECKED_FRAME_BYTES_MAX {
            self.context.clear();
            lowered.locals_in_frame.clear();
            let clif = &mut self.context.func;
            let frontend = &mut self.frontend;
            times.stage(Stage::Clif, || {
                lower::lower_overflow(function, loops, module, options, clif, frontend);
            });
            times
                .stage(Stage::Asm, || self.generate(options, &Lowered::default()))
                .map_err(|refusal| self.refused(refusal, module, function, loops, options))?;
        }
        Ok(folds)
    }

    /// Appends what cold calls of a function call.
    fn append_keepers(&self, code: &mut MachineCode, cold: &[usize]) -> Result<(), CodeError> {
        let Some(calls) = self.options.lower.cold.as_deref() else { return Ok(()) };
        // However the function is compiled, so that all have the same.
        let isa = &*self.options.lower.isa;
        (0..).zip(cold).try_for_each(|(i, &number)| code.append(i, calls.keeper(number, isa)?))
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

    /// Makes machine code of the CLIF in the context. Numbers its instructions if that is how to tell its loads apart.
    fn generate(
        &mut self,
        options: &LowerOptions,
        lowered: &Lowered,
    ) -> Result<Option<Folds>, CodegenError> {
        let (context, isa) = (&mut self.context, &*options.isa);
        let control = &mut ControlPlane::default();
        context.set_disasm(self.options.keep_asm);
        if !lowered.loads_share_codes() {
            context.compile(isa, control).map_err(|refusal| refusal.inner)?;
            self.compiled = context.take_compiled_code();
            return Ok(None);
        }
        context.optimize(isa, control)?;
        let folds = Folds::number(&mut context.func);
        let allocator = &mut Default::default();
        let (func, tree) = (&context.func, &context.domtree);
        let stencil =
            isa.compile_function(func, tree, allocator, self.options.keep_asm, control)?;
        self.compiled = Some(stencil.apply_params(&func.params));
        Ok(Some(folds))
    }

    /// The error of a function that Cranelift refuses.
    fn refused(
        &mut self,
        refusal: CodegenError,
        module: &VerifiedModule,
        function: &Function,
        loops: &LoopForest,
        options: &LowerOptions,
    ) -> CompileError {
        let refusal = match refusal {
            CodegenError::Verifier(errors) => {
                // Cranelift verifies the CLIF that it is given and what each of its passes leaves. Verifying the
                // lowered function once more tells which of them failed.
                self.lower(module, function, loops, options);
                let input = cranelift_codegen::verify_function(&self.context.func, &*options.isa);
                let stage = if input.is_err() { Stage::Clif } else { Stage::Asm };
                CompileFailure::InvalidForm.because(StageError::of(stage, errors))
            }
            CodegenError::ImplLimitExceeded | CodegenError::CodeTooLarge => {
                let reason = "the function is too large for the code generator";
                CompileFailure::TooLarge.because(reason)
            }
            other => CompileFailure::CodeGenerator.because(other),
        };
        CompileError::new(function.func, function.name.as_str(), refusal)
    }

    /// The frame of the machine code in the context.
    fn frame_bytes(&self) -> u32 {
        let compiled = self.compiled.as_ref().expect("it was compiled");
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

/// The statistics of a function before it is lowered.
pub(super) struct Report {
    pub(super) passes: PassSet,
    pub(super) promotion: Option<PromotionReport>,
    pub(super) inlined: Vec<u32>,
    pub(super) work: Work,
    pub(super) times: Times,
}

#[cfg(test)]
mod tests;
