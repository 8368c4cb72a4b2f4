//! `vmrun profile`: runs a program, and shows how often each block was executed.

use std::sync::Arc;
use std::time::Instant;

use slotvm::compiler::{Effort, FunctionCounts};
use slotvm::{Config, Engine, Module, Store, Tier};
use slotvm_bytecode::VerifiedModule;
use slotvm_bytecode::printable::Printable;
use slotvm_bytecode::text::{PrintOptions, Printer};
use slotvm_ssa::pipeline::{self, Product, Style};

use super::dump::find_func;
use super::run;
use crate::cli::{ProfileArgs, ProfileStage};
use crate::error::CliError;
use crate::load;
use crate::output::{print, write_text};
use crate::profile::collect::Collector;
#[cfg(feature = "explain")]
use crate::profile::native;
use crate::profile::{Profile, folded, listing};
#[cfg(feature = "explain")]
use slotvm_views::disassembly::disassemble;
use slotvm_views::names::func_name;

/// Runs and reports, and returns the program's exit code. The report comes even if the program fails, once it has
/// executed anything.
pub(super) fn profile(args: &ProfileArgs) -> Result<u8, CliError> {
    let is_bytecode = args.stage == ProfileStage::Bytecode;
    if !is_bytecode && (args.json.is_some() || args.folded.is_some()) {
        let message =
            "--json and --folded have the counts of the bytecode; expected no other --stage";
        return Err(CliError::Usage(message.into()));
    }
    for output in [&args.json, &args.folded].into_iter().flatten() {
        load::check_output(output, &args.program)?;
    }
    let verified = Arc::new(load::load(&args.program)?.module);
    let only = args.func.name.as_deref().map(|name| find_func(&verified, name)).transpose()?;
    let is_shown = |func: u32| only.is_none_or(|only| only == func);
    if !is_bytecode {
        run::check_imports(&args.program, &args.guest, &verified)?;
    }
    let mut config = Config::new();
    let tier = if is_bytecode { Tier::Interpreter } else { Tier::Jit };
    config.tier(tier).slots(args.code.slots).passes(args.code.passes.set).count_blocks(true);
    run::limit(&mut config, &args.limits);
    let module = Module::from_verified(&Engine::new(&config)?, verified.clone())
        .map_err(|error| CliError::module(&args.program, error))?;
    let collector = Collector::new(args.folded.is_some());
    let code = run(args, &module, is_bytecode.then_some(&collector));
    if is_bytecode {
        let profile = collector.profile(&verified);
        if code.is_err() && profile.functions.is_empty() {
            return code;
        }
        write(args, &profile, &collector, &verified)?;
        let mut outputs = [&args.json, &args.folded].into_iter().flatten();
        if !outputs.any(|path| load::is_standard(path)) {
            print(&by_bytecode(args, &profile, &verified, is_shown)?)?;
        }
        return code;
    }
    let mut counts = module.block_counts();
    counts.retain(|counts| counts.blocks.iter().any(|block| block.count > 0));
    if code.is_ok() || !counts.is_empty() {
        print(&by_blocks(args, &module, &verified, counts, is_shown)?)?;
    }
    code
}

/// Runs the program, with its output as usual.
fn run(args: &ProfileArgs, module: &Module, collector: Option<&Collector>) -> Result<u8, CliError> {
    let host = run::host(&args.program, &args.guest, module, false)?;
    let mut store = Store::new(module.engine(), host);
    if let Some(fuel) = args.limits.fuel.max {
        store.set_fuel(fuel)?;
    }
    store.set_trace(collector.map(Collector::trace));
    let deadline = args.limits.deadline(Instant::now());
    let result = run::instantiate(&args.guest, module, &mut store)
        .and_then(|instance| run::call(&args.guest, &mut store, instance, deadline))
        .map(|results| if args.guest.invoke.is_none() { run::code_of(&results) } else { 0 });
    let flushed = store.data_mut().flush();
    let code = run::exit_code(result);
    let code = code.map_err(|error| run::explained(error, &args.program, &args.limits))?;
    flushed?;
    Ok(code)
}

/// Writes the files that were asked for.
fn write(
    args: &ProfileArgs,
    profile: &Profile,
    collector: &Collector,
    module: &VerifiedModule,
) -> Result<(), CliError> {
    if let Some(path) = &args.json {
        let json = serde_json::to_string_pretty(profile).expect("the profile is plain data");
        write_text(path, &(json + "\n"))?;
    }
    if let Some(path) = &args.folded {
        write_text(path, &folded::render(collector, module))?;
    }
    Ok(())
}

fn by_bytecode(
    args: &ProfileArgs,
    profile: &Profile,
    module: &VerifiedModule,
    is_shown: impl Fn(u32) -> bool,
) -> Result<String, CliError> {
    let mut text = format!("Executed instructions: {}\n", profile.instructions);
    let mut functions: Vec<_> = profile.functions.iter().filter(|f| is_shown(f.func)).collect();
    functions.sort_by_key(|function| std::cmp::Reverse(function.instructions));
    let printer = Printer::new(module.module());
    for function in functions {
        let (name, n) = (func_name(module, function.func), function.instructions);
        let name = Printable(&name);
        let share = share(n, profile.instructions);
        text += &format!("\n{name}: {n} instructions, {share}\n       count  share\n");
        let listed = printer.func(function.func).text(PrintOptions { offsets: true });
        let listed = listed.map_err(|error| CliError::module(&args.program, error))?;
        let name = |func| Printable(&func_name(module, func)).to_string();
        text += &listing::bytecode(&listed, function, profile.instructions, name);
    }
    Ok(text)
}

/// The functions of the module in the form of a stage, the most executed ones first.
fn by_blocks(
    args: &ProfileArgs,
    module: &Module,
    verified: &VerifiedModule,
    counts: Vec<FunctionCounts>,
    is_shown: impl Fn(u32) -> bool,
) -> Result<String, CliError> {
    let mut functions = Vec::new();
    for counts in counts {
        let form = form(args, module, verified, &counts)?;
        functions.push((listing::executed(&form, &counts), form, counts));
    }
    functions.sort_by_key(|&(executed, ..)| std::cmp::Reverse(executed));
    let total = functions.iter().map(|&(executed, ..)| executed).sum();
    let mut text = format!("Executed instructions of this form: {total}\n");
    for (executed, form, counts) in functions.iter().filter(|(.., counts)| is_shown(counts.func)) {
        let name = func_name(verified, counts.func);
        let share = share(*executed, total);
        text += &format!(
            "\n{}: {executed} instructions, {share}\n       count  share\n",
            Printable(&name)
        );
        text += &match args.stage {
            ProfileStage::Asm => machine_code(module, form, counts)?,
            _ => listing::blocks(form, counts, total),
        };
    }
    Ok(text)
}

/// The machine code of a function, which was lowered from the IR with this text.
#[cfg(feature = "explain")]
fn machine_code(module: &Module, ir: &str, counts: &FunctionCounts) -> Result<String, CliError> {
    let code = module.machine_code(counts.func)?.expect("native code was made of it");
    Ok(native::render(&code, &disassemble(&code)?, ir, counts))
}

#[cfg(not(feature = "explain"))]
fn machine_code(_: &Module, _: &str, _: &FunctionCounts) -> Result<String, CliError> {
    Err(CliError::NotBuilt { what: "machine code", feature: "explain" })
}

fn share(part: u64, total: u64) -> String {
    format!("{:.1}%", part as f64 / total.max(1) as f64 * 100.0)
}

/// The text of a function as it was lowered, or Cranelift's IR of it, whose first blocks have the same numbers.
fn form(
    args: &ProfileArgs,
    module: &Module,
    verified: &VerifiedModule,
    counts: &FunctionCounts,
) -> Result<String, CliError> {
    let func = counts.func;
    if args.stage == ProfileStage::Clif {
        return Ok(module.clif(func)?.expect("native code was made of it"));
    }
    let failed = |message: String| {
        let name = verified.func_name(func);
        CliError::Failed(format!("function `{}`: {message}", Printable(&name)))
    };
    let code = module.machine_code(func)?.expect("native code was made of it");
    if code.work.effort >= Effort::SlotsInMemory {
        let message = "was compiled from its slot form, to stay within the budget of compile time";
        return Err(failed(message.to_owned()));
    }
    let last = last_row(if args.code.slots.is_promoted() { Product::Ssa } else { Product::Slots });
    pipeline::show_with(verified, func, last, code.passes, &mut Style::Text)
        .map_err(|error| failed(error.to_string()))
}

/// The name of the last row of the JIT that leaves such a form.
fn last_row(product: Product) -> &'static str {
    let rows = pipeline::TABLE.iter().rev();
    let mut rows = rows.filter(|row| row.makes == product && row.is_used_by(pipeline::User::Jit));
    rows.next().expect("the JIT has such a row").name
}
