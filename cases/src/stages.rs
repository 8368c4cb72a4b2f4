//! Prints modules at the stages of the pipeline, one function after the other.

use slotvm::{Config, Engine, Module, ParseSlotModeError, PassSet, SlotMode, Tier};
use slotvm_bytecode::VerifiedModule;
use slotvm_bytecode::text::{self, PrintOptions};
use slotvm_ssa::construction::braun::BraunOptions;
use slotvm_ssa::construction::build::{BuildOptions, BuildScratch, SsaOptions, build, build_ssa};
use slotvm_ssa::construction::construct::Construction;
use slotvm_ssa::construction::promote::{PromoteOptions, Scratch, promote_with};
use slotvm_ssa::ir::Function;
use slotvm_ssa::ir::print::print;
use slotvm_ssa::ir::verify::{Form, verify};
use slotvm_ssa::pipeline::{self, Product, Row, Style};
use std::sync::Arc;

/// The names of the stages: `bytecode`, the views of the IR, and the rows of the [pipeline] that leave a
/// function.
/// `clif` shows mode `ssa`; `clif MODE` shows another mode.
pub fn names() -> Vec<&'static str> {
    let native = pipeline::TABLE.iter().filter(|row| row.makes == Product::Clif);
    [BYTECODE].into_iter().chain(pipeline::names()).chain(native.map(|row| row.name)).collect()
}

const BYTECODE: &str = "bytecode";

/// Prints all functions that a module defines, at a stage.
///
/// # Errors
/// Fails if the stage is unknown, or a stage leaves an invalid function.
pub fn show(module: &Arc<VerifiedModule>, stage: &str) -> Result<String, String> {
    if stage == BYTECODE {
        let options = PrintOptions { offsets: true };
        return text::print_with(module.module(), options).map_err(|e| e.to_string());
    }
    let (name, mode) = match stage.split_once(' ') {
        Some((name, mode)) => (name, mode.parse().map_err(|e: ParseSlotModeError| e.to_string())?),
        None => (stage, SlotMode::Ssa),
    };
    if !names().contains(&name) {
        return Err(format!("unknown stage {name:?}; expected {}", names().join(", ")));
    }
    if pipeline::row(name).is_some_and(|row| row.makes == Product::Clif) {
        return Ok(clif(module, mode, PassSet::all())?.join("\n"));
    }
    let one =
        |func| pipeline::show(module, func, name, &mut Style::Text).map_err(|e| e.to_string());
    let texts: Result<Vec<String>, String> =
        (module.n_imported_funcs()..module.n_funcs()).map(one).collect();
    Ok(texts?.join("\n"))
}

/// All constructions of promotion: by placement, from the most phis to the fewest, and on the fly.
pub fn constructions() -> impl Iterator<Item = Construction> {
    let on_the_fly = Construction::Braun(BraunOptions::default());
    Construction::ALL.iter().copied().chain([on_the_fly])
}

/// The functions that a module defines, after a row that leaves our IR. Every stage is verified.
///
/// # Errors
/// Fails if a stage leaves an invalid function.
pub fn functions_after(module: &VerifiedModule, row: &Row) -> Result<Vec<Function>, String> {
    let slots = functions(module, Form::Slots, BuildOptions::default())?;
    let after = |f| pipeline::after(row, f, module).map_err(|error| error.to_string());
    slots.into_iter().map(after).collect()
}

/// The functions that a module defines, in this form, verified.
///
/// # Errors
/// Fails if the IR verifier finds a violation.
pub fn functions(
    module: &VerifiedModule,
    form: Form,
    options: BuildOptions,
) -> Result<Vec<Function>, String> {
    let promotion = (form == Form::Ssa).then(PromoteOptions::default);
    functions_with(module, promotion, options)
}

/// The functions that a module defines, promoted with these options or in slot form, verified.
///
/// # Errors
/// Fails if the IR verifier finds a violation.
pub fn functions_with(
    module: &VerifiedModule,
    promotion: Option<PromoteOptions>,
    options: BuildOptions,
) -> Result<Vec<Function>, String> {
    let (mut build_scratch, mut scratch) = (BuildScratch::default(), Scratch::default());
    let one = |func| {
        let mut f = build(module, func, &options, &mut build_scratch);
        f.take_names(module);
        let mut form = Form::Slots;
        if let Some(promotion) = promotion {
            promote_with(&mut f, promotion, &mut scratch);
            form = Form::Ssa;
        }
        let violation = |v| format!("function {func}, {promotion:?}: {v}\n{}", print(&f));
        verify(&f, form, module).map_err(violation)?;
        Ok(f)
    };
    (module.n_imported_funcs()..module.n_funcs()).map(one).collect()
}

/// The functions that a module defines, in SSA form constructed directly from bytecode, verified.
///
/// # Errors
/// Fails if the IR verifier finds a violation, or a function is too large.
pub fn functions_on_the_fly(
    module: &VerifiedModule,
    options: &SsaOptions,
) -> Result<Vec<Function>, String> {
    let mut scratch = BuildScratch::default();
    let one = |func| {
        let (f, report) = build_ssa(module, func, options, &mut scratch)
            .ok_or_else(|| format!("function {func} is too large"))?;
        let violation = |v| format!("function {func} by {options:?}: {v}\n{}", print(&f));
        verify(&f, Form::Ssa, module).map_err(violation)?;
        if report.n_left != f.n_phis() {
            return Err(format!("function {func} has {} phis: {report:?}", f.n_phis()));
        }
        Ok(f)
    };
    (module.n_imported_funcs()..module.n_funcs()).map(one).collect()
}

/// The CLIF of the functions that a module defines, in a slot mode and with these passes.
///
/// # Errors
/// Fails if the module cannot be compiled.
pub fn clif(
    module: &Arc<VerifiedModule>,
    slots: SlotMode,
    passes: PassSet,
) -> Result<Vec<String>, String> {
    let mut config = Config::new();
    config.tier(Tier::Jit).slots(slots).passes(passes);
    let engine = Engine::new(&config).map_err(|e| e.to_string())?;
    let compiled = Module::from_verified(&engine, Arc::clone(module)).map_err(|e| e.to_string())?;
    let one = |func| match compiled.clif(func) {
        Ok(text) => Ok(text.expect("the engine compiles")),
        Err(error) => Err(error.to_string()),
    };
    (module.n_imported_funcs()..module.n_funcs()).map(one).collect()
}
