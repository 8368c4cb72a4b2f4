//! `vmrun dump`: a program at a stage of the pipeline.

use std::sync::Arc;

use slotvm::{Config, Engine, Module, Tier};
use slotvm_bytecode::VerifiedModule;
use slotvm_bytecode::printable::Printable;
use slotvm_bytecode::text::{self, PrintOptions, Printer};
use slotvm_ssa::build::{BuildOptions, BuildScratch, build, is_buildable};
use slotvm_ssa::graph::{print_cfg, print_dom};
use slotvm_ssa::ir::Function;
use slotvm_ssa::llvm;
use slotvm_ssa::promote::{Scratch, promote, report};

use super::{no_function, print};
use crate::cli::{DumpArgs, Format, Stage};
use crate::error::CliError;
use crate::load::load;

pub(super) fn dump(args: &DumpArgs) -> Result<(), CliError> {
    let module = Arc::new(load(&args.program)?.module);
    if args.dot && !matches!(args.stage, Stage::Cfg | Stage::Dom) {
        return Err(CliError::Usage("--dot goes with the stages cfg and dom".into()));
    }
    if args.format == Format::Llvm && !matches!(args.stage, Stage::Slots | Stage::Ssa) {
        let message = "--format llvm goes with the stages slots and ssa";
        return Err(CliError::Usage(message.into()));
    }
    let funcs: Vec<u32> = match &args.func {
        Some(name) => vec![find_func(&module, name)?],
        None => (module.n_imported_funcs()..module.n_funcs()).collect(),
    };
    if args.stage == Stage::Bytecode && args.func.is_none() {
        let text = text::print_with(module.module(), PrintOptions { offsets: true });
        return print(&text.map_err(|error| CliError::module(&args.program, error))?);
    }
    let compiled = match args.stage {
        Stage::Clif | Stage::Asm => Some(compiled(args, &module)?),
        _ => None,
    };
    let mut scratch = (BuildScratch::default(), Scratch::default());
    let mut llvm = (args.format == Format::Llvm).then(|| llvm::Printer::new(&module));
    for (i, &func) in funcs.iter().enumerate() {
        if i > 0 {
            print("\n")?;
        }
        let text = match &compiled {
            Some(compiled) => native_stage(args, compiled, func)?,
            None => stage(args, &module, func, &mut scratch, &mut llvm)?,
        };
        print(&text)?;
    }
    match llvm.map(|llvm| llvm.declarations()) {
        Some(declarations) if !declarations.is_empty() => print(&format!("\n{declarations}")),
        _ => Ok(()),
    }
}

/// A function that the module defines, by name or number.
fn find_func(module: &VerifiedModule, name: &str) -> Result<u32, CliError> {
    let all = 0..module.n_funcs();
    let by_name = all.clone().find(|&func| module.func_name(func) == name);
    let by_number = || name.parse().ok().filter(|func| all.contains(func));
    let defined = module.n_imported_funcs()..module.n_funcs();
    match by_name.or_else(by_number) {
        Some(func) if defined.contains(&func) => Ok(func),
        Some(_) => Err(CliError::Usage(format!("function `{name}` is imported: there is no code"))),
        None => {
            let names = defined.map(|func| module.func_name(func));
            Err(CliError::Usage(no_function("defines", name, names)))
        }
    }
}

/// A stage before native code.
fn stage(
    args: &DumpArgs,
    module: &VerifiedModule,
    func: u32,
    scratch: &mut (BuildScratch, Scratch),
    llvm: &mut Option<llvm::Printer<'_>>,
) -> Result<String, CliError> {
    let is_of_ir = args.stage != Stage::Bytecode;
    if is_of_ir && !is_buildable(module, func) {
        let message =
            format!("function `{}` is too large for the IR", Printable(&module.func_name(func)));
        return Err(CliError::Failed(message));
    }
    let mut slots = || {
        let mut f = build(module, func, &BuildOptions::default(), &mut scratch.0);
        f.name_labels(module);
        f
    };
    let mut text = |f: &Function| match llvm {
        Some(llvm) => llvm.define(f),
        None => slotvm_ssa::print::print(f),
    };
    Ok(match args.stage {
        Stage::Bytecode => {
            let text =
                Printer::new(module.module()).func(func).text(PrintOptions { offsets: true });
            text.map_err(|error| CliError::module(&args.program, error))?
        }
        Stage::Cfg => print_cfg(&slots(), args.dot),
        Stage::Dom => print_dom(&slots(), args.dot),
        Stage::Slots => text(&slots()),
        Stage::Promotion => {
            let mut f = slots();
            let report = promote(&mut f, &mut scratch.1);
            report::print(&f, module, &report, &scratch.1)
        }
        Stage::Ssa => {
            let mut f = slots();
            promote(&mut f, &mut scratch.1);
            text(&f)
        }
        Stage::Clif | Stage::Asm => unreachable!("these are stages of native code"),
    })
}

fn native_stage(args: &DumpArgs, module: &Module, func: u32) -> Result<String, CliError> {
    let text = match args.stage {
        Stage::Clif => module.clif(func),
        _ => module.asm(func),
    };
    Ok(text?.expect("the engine compiles what is defined"))
}

fn compiled(args: &DumpArgs, module: &Arc<VerifiedModule>) -> Result<Module, CliError> {
    let engine = Engine::new(Config::new().tier(Tier::Jit).slots(args.slots))?;
    Ok(Module::from_verified(&engine, module.clone())?)
}
