//! `vmrun dump`: shows a program at a stage of the pipeline.

use std::sync::Arc;

use slotvm::{Compile, Config, Engine, Module, PassSet, Tier};
use slotvm_bytecode::VerifiedModule;
use slotvm_bytecode::printable::Printable;
use slotvm_bytecode::text::{self, PrintOptions, Printer};
use slotvm_ssa::pipeline::{self, Product, Style, User};
use slotvm_ssa::tools::llvm;

use crate::cli::{DumpArgs, Format, is_native};
use crate::entry::no_function;
use crate::error::{CliError, note};
use crate::load::load;
use crate::output::print;
use slotvm_views::drawing::svg;

pub(super) fn dump(args: &DumpArgs) -> Result<(), CliError> {
    let module = Arc::new(load(&args.program)?.module);
    let row = pipeline::row(&args.stage);
    if args.dot || args.svg {
        return draw(args, &module, &compiled(args, &module, Compile::Lazy)?);
    }
    if args.format == Format::Llvm && !row.is_some_and(|row| row.is_of_ir()) {
        let names: Vec<&str> =
            pipeline::TABLE.iter().filter(|row| row.is_of_ir()).map(|row| row.name).collect();
        let message = format!("--format llvm requires one of the stages {}", names.join(", "));
        return Err(CliError::Usage(message));
    }
    let funcs = funcs(args, &module)?;
    if args.stage == BYTECODE && args.func.name.is_none() {
        let text = text::print_with(module.module(), PrintOptions { offsets: true });
        return print(&text.map_err(|error| CliError::module(&args.program, error))?);
    }
    let native = row.map(|row| row.makes).filter(|&product| is_native(product));
    let compile = if native.is_some() { Compile::Eager } else { Compile::Lazy };
    let compiled = compiled(args, &module, compile)?;
    note_idle(args, &compiled, &funcs);
    let mut llvm = llvm::Printer::new(&module);
    let mut style = match args.format {
        Format::Llvm => Style::Llvm(&mut llvm),
        Format::Text => Style::Text,
    };
    for (i, &func) in funcs.iter().enumerate() {
        if i > 0 {
            print("\n")?;
        }
        let text = match native {
            Some(Product::Clif) => compiled.clif(func)?,
            Some(_) => compiled.asm(func)?,
            None if args.stage == BYTECODE => Some(bytecode(args, &module, func)?),
            None => Some(of_ir(args, &module, &compiled, func, &mut style)?),
        };
        print(&text.expect("the engine compiles all defined functions"))?;
    }
    match llvm.declarations() {
        declarations if args.format == Format::Llvm && !declarations.is_empty() => {
            print(&format!("\n{declarations}"))
        }
        _ => Ok(()),
    }
}

/// The functions to show.
fn funcs(args: &DumpArgs, module: &VerifiedModule) -> Result<Vec<u32>, CliError> {
    match &args.func.name {
        Some(name) => Ok(vec![find_func(module, name)?]),
        None => Ok((module.n_imported_funcs()..module.n_funcs()).collect()),
    }
}

/// Prints graphs, as DOT one after the other or as the one document that SVG is.
fn draw(args: &DumpArgs, module: &VerifiedModule, compiled: &Module) -> Result<(), CliError> {
    let option = if args.svg { "--svg" } else { "--dot" };
    let graphs = pipeline::graph_names();
    if !graphs.contains(&args.stage.as_str()) {
        let message = format!("{option} requires one of the stages {}", graphs.join(", "));
        return Err(CliError::Usage(message));
    }
    if args.format == Format::Llvm {
        return Err(CliError::Usage(format!("{option} requires --format text")));
    }
    let funcs = funcs(args, module)?;
    if args.svg && funcs.len() != 1 {
        let message = format!("--svg draws one function, not {}; name it with --func", funcs.len());
        return Err(CliError::Usage(message));
    }
    note_idle(args, compiled, &funcs);
    for (i, &func) in funcs.iter().enumerate() {
        let drawing = pipeline::draw_with(module, func, &args.stage, passes(args, compiled, func));
        let drawing = drawing.map_err(|error| failed(module, func, &error))?;
        let text = match args.svg {
            true => svg(&drawing).map_err(|error| failed(module, func, &error))?,
            false => drawing.to_dot(),
        };
        print(if i > 0 { "\n" } else { "" })?;
        print(&text)?;
    }
    Ok(())
}

/// The stage that shows a program before its graph is built.
const BYTECODE: &str = "bytecode";

fn bytecode(args: &DumpArgs, module: &VerifiedModule, func: u32) -> Result<String, CliError> {
    let text = Printer::new(module.module()).func(func).text(PrintOptions { offsets: true });
    text.map_err(|error| CliError::module(&args.program, error))
}

fn of_ir(
    args: &DumpArgs,
    module: &VerifiedModule,
    compiled: &Module,
    func: u32,
    style: &mut Style<'_, '_>,
) -> Result<String, CliError> {
    pipeline::show_with(module, func, &args.stage, passes(args, compiled, func), style)
        .map_err(|error| failed(module, func, &error))
}

/// A function that cannot be shown.
fn failed(module: &VerifiedModule, func: u32, error: &dyn std::error::Error) -> CliError {
    CliError::Failed(format!("function `{}`: {error}", Printable(&module.func_name(func))))
}

/// A function that the module defines, by name or number.
pub(super) fn find_func(module: &VerifiedModule, name: &str) -> Result<u32, CliError> {
    let all = 0..module.n_funcs();
    let by_name = all.clone().find(|&func| module.func_name(func) == name);
    let by_number = || name.parse().ok().filter(|func| all.contains(func));
    let defined = module.n_imported_funcs()..module.n_funcs();
    match by_name.or_else(by_number) {
        Some(func) if defined.contains(&func) => Ok(func),
        Some(_) => Err(CliError::Usage(format!("function `{name}` is imported; it has no code"))),
        None => {
            let names = defined.map(|func| module.func_name(func));
            Err(CliError::Usage(no_function("defines", name, names)))
        }
    }
}

/// The passes before a stage: those of native code, of which some have nothing to do on a machine, or those of `vmrun opt`.
fn passes(args: &DumpArgs, compiled: &Module, func: u32) -> PassSet {
    let is_of_jit = pipeline::row(&args.stage).is_none_or(|row| row.is_used_by(User::Jit));
    let of_jit = compiled.passes_of(func).filter(|_| is_of_jit);
    of_jit.unwrap_or(args.code.passes.set)
}

/// Says so if the stage is a pass that has nothing to do here.
fn note_idle(args: &DumpArgs, compiled: &Module, funcs: &[u32]) {
    let stage = &args.stage;
    let is_run = |&func: &u32| passes(args, compiled, func).contains(stage);
    if args.code.passes.set.contains(stage) && !funcs.iter().any(is_run) {
        let why = "guard pages make checks of accesses needless";
        note(format_args!("`{stage}` is not run, since {why}; this is what would reach it"));
    }
}

fn compiled(
    args: &DumpArgs,
    module: &Arc<VerifiedModule>,
    compile: Compile,
) -> Result<Module, CliError> {
    let mut config = Config::new();
    config.tier(Tier::Jit).compile(compile).slots(args.code.slots).passes(args.code.passes.set);
    let engine = Engine::new(&config)?;
    Ok(Module::from_verified(&engine, module.clone())?)
}
