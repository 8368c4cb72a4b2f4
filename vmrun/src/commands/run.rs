//! `vmrun PROGRAM`: runs a program, interpreted or as native code.
//!
//! A program exports `main`. Its `i32` parameter, if it has one, is the first program argument, or the
//! exported global `default_size` where none is given; its `i32` result, if it has one, is the exit
//! code. `--invoke` calls any exported function and prints its results.

use std::io::{self, BufWriter, Write};
use std::time::{Duration, Instant};

use slotvm::{Config, Engine, Func, Instance, Linker, Module, Store, Tier, Val, ValType};

use crate::cli::RunArgs;
use crate::error::CliError;
use crate::host::{self, Host};
use crate::load::load;
use crate::trace;
use slotvm_filetests::values;

pub(super) fn run(args: &RunArgs) -> Result<u8, CliError> {
    let loaded = load(&args.program)?;
    let engine = Engine::new(&config(args))?;
    let mut times = vec![("load", loaded.load), ("verify", loaded.verify)];
    let module = Module::from_verified(&engine, loaded.module).map_err(slotvm::Error::from)?;
    // What `load` has measured, the engine has not seen.
    times.extend(module.timings().stages().into_iter().skip(2));
    let mut linker = Linker::new(&engine);
    host::define(&mut linker)?;
    let output = BufWriter::new(io::stdout());
    let host = Host::new(output, io::BufReader::new(io::stdin()), &args.args);
    let mut store = Store::new(&engine, host);
    if let Some(fuel) = args.fuel {
        store.set_fuel(fuel)?;
    }
    if args.trace {
        store.runtime_mut().set_trace(Some(trace::to_stderr()));
    }
    let start = Instant::now();
    let result = call(args, &linker, &mut store, &module);
    times.push(("run", start.elapsed()));
    store.data_mut().flush()?;
    if args.time {
        print_times(&times);
    }
    result
}

fn config(args: &RunArgs) -> Config {
    let mut config = Config::new();
    match (args.slots, args.jit) {
        (Some(mode), _) => config.tier(Tier::Jit).slots(mode),
        (None, true) => config.tier(Tier::Jit),
        (None, false) => config.tier(Tier::Interpreter),
    };
    config.consume_fuel(args.fuel.is_some());
    config
}

fn call(
    args: &RunArgs,
    linker: &Linker<Host>,
    store: &mut Store<Host>,
    module: &Module,
) -> Result<u8, CliError> {
    let instance = linker.instantiate(&mut *store, module)?;
    if let [name, values @ ..] = args.invoke.as_slice() {
        return invoke(store, &instance, name, values);
    }
    let Some(main) = instance.get_func(&*store, "main") else {
        let message = "the program exports no function `main`; call another one with --invoke";
        return Err(CliError::Usage(message.into()));
    };
    let ty = main.ty(&*store);
    let params = match ty.params.as_slice() {
        [] => vec![],
        [ValType::I32] => vec![Val::I32(size(args, store, &instance)?)],
        _ => return Err(CliError::Usage(format!("`main` has the type {ty}, not (i32) -> (i32)"))),
    };
    match results(store, main, &params)?.as_slice() {
        [Val::I32(code)] => Ok(*code as u8),
        _ => Ok(0),
    }
}

/// The size to run a program with.
fn size(args: &RunArgs, store: &mut Store<Host>, instance: &Instance) -> Result<i32, CliError> {
    if let Some(arg) = args.args.first() {
        return arg.parse().map_err(|_| {
            CliError::Usage(format!("the first program argument is the size, not {arg:?}"))
        });
    }
    match instance.get_global(&*store, "default_size").map(|global| global.get(&*store)) {
        Some(Val::I32(size)) => Ok(size),
        _ => Err(CliError::Usage("`main` takes an i32: give it behind `--`".into())),
    }
}

fn invoke(
    store: &mut Store<Host>,
    instance: &Instance,
    name: &str,
    args: &[String],
) -> Result<u8, CliError> {
    let Some(func) = instance.get_func(&*store, name) else {
        return Err(CliError::Usage(format!("the program exports no function `{name}`")));
    };
    let ty = func.ty(&*store);
    if args.len() != ty.params.len() {
        let message = format!("`{name}` has the type {ty}, but {} arguments are given", args.len());
        return Err(CliError::Usage(message));
    }
    let params: Result<Vec<Val>, _> =
        args.iter().zip(&ty.params).map(|(arg, &ty)| values::parse_val(arg, ty)).collect();
    let results = results(store, func, &params.map_err(CliError::Usage)?)?;
    // What the program itself has printed comes first.
    store.data_mut().flush()?;
    let mut out = io::stdout().lock();
    for value in results {
        writeln!(out, "{}", values::print(&value))?;
    }
    Ok(0)
}

fn results(store: &mut Store<Host>, func: Func, params: &[Val]) -> Result<Vec<Val>, CliError> {
    let ty = func.ty(&*store);
    let mut results: Vec<Val> = ty.results.iter().map(|&ty| Val::default_for(ty)).collect();
    func.call(store, params, &mut results)?;
    Ok(results)
}

fn print_times(times: &[(&str, Duration)]) {
    for (stage, time) in times {
        eprintln!("{stage:>10}  {:>12.3} ms", time.as_secs_f64() * 1e3);
    }
}
