//! `vmrun PROGRAM`: runs a program, interpreted or as native code.
//!
//! [`entry`] says which functions are called. The `i32` result of `main`, if it has one, is the exit code. `--invoke`
//! prints the results of the function.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::mem;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use slotvm::{
    Cache, CacheConfig, Compile, Config, Engine, Error, Instance, Limits, Linker, Module,
    ProfilingStrategy, Store, Tier, TrapCode, UnknownImportError, Val,
};
use slotvm_wasi::I32Exit;

use slotvm_bytecode::VerifiedModule;

use super::times::{Fuel, Times};
use crate::cli::wasi;
use crate::cli::{GuestArgs, LimitArgs, Profiler, RunArgs};
use crate::error::CliError;
use crate::host::{self, Host};
use crate::load::{self, load, load_bytes, load_lazily};
use crate::progress::Progress;
use crate::{backtrace, entry, tier_log, trace};
use slotvm_cases::values;

/// The memory that an element of a table takes.
const TABLE_ELEM_BYTES: u64 = 8;

/// The native stack that a program may use whose depth of calls is counted: the most that the main thread has.
const NATIVE_STACK_BYTES: usize = 8 << 20;

/// Bytes of code from which starting threads to compile pays.
const PARALLEL_CODE_BYTES_MIN: usize = 64 << 10;

pub(super) fn run(args: &RunArgs) -> Result<u8, CliError> {
    let start = Instant::now();
    if args.tier_log {
        tier_log::start();
    }
    let is_precompiled = match load::is_standard(&args.program) {
        true => Engine::detect_precompiled(&load::read(&args.program)?),
        false => {
            Engine::detect_precompiled_file(&args.program).map_err(CliError::file(&args.program))?
        }
    };
    let is_kept = is_precompiled || args.cache.is_some();
    let progress = Progress::spinner("loading");
    let (module, mut times) = match is_kept {
        true => kept_module(args, is_precompiled)?,
        false => module(args)?,
    };
    drop(progress);
    let engine = module.engine().clone();
    let mut store = Store::new(&engine, host(&args.program, &args.guest, &module, args.trace)?);
    if let Some(fuel) = args.limits.fuel.max {
        store.set_fuel(fuel)?;
    }
    if args.trace {
        store.set_trace(Some(trace::to_stderr()));
    }
    let result = instantiate_and_call(args, &module, &mut store, &mut times);
    let flushed = store.data_mut().flush();
    if args.time {
        let mut report = times.report(start.elapsed(), args.lazy.then_some(&module));
        if let Some(fuel) = args.limits.fuel.max {
            let left = store.get_fuel()?;
            report.fuel = Some(Fuel { used: fuel - left, left });
        }
        report.print(args.json);
    }
    if args.tier_log {
        tier_log::end(&module.compile_stats(), module.exits_taken());
    }
    if tier(args) == Tier::Auto && !is_kept {
        // Nobody waits for what is still being compiled: it ends with the process.
        mem::forget((store, module, engine));
    }
    // A failure of the program comes first: it may be the reason why its output cannot be written.
    let code = exit_code(result).map_err(|error| explained(error, &args.program, &args.limits))?;
    flushed?;
    Ok(code)
}

/// Loads the program.
fn module(args: &RunArgs) -> Result<(Module, Times), CliError> {
    let loaded = match tier(args) {
        Tier::Interpreter | Tier::Auto => load_lazily(&args.program)?,
        Tier::Jit => load(&args.program)?,
    };
    let code_bytes: usize = loaded.module.module().funcs.iter().map(|func| func.code.len()).sum();
    let mut config = config(args);
    config.parallel_compilation(code_bytes >= PARALLEL_CODE_BYTES_MIN);
    let engine = Engine::new(&config)?;
    let mut times = Times(vec![("load", loaded.load), ("verify", loaded.verify)]);
    let verified = Arc::new(loaded.module);
    if tier(args) == Tier::Jit && !args.lazy {
        check_imports(&args.program, &args.guest, &verified)?;
    }
    let module = Module::from_verified(&engine, verified)
        .map_err(|error| CliError::module(&args.program, error))?;
    // `load` has measured the first stages, not the engine. The interpreter has no further stages.
    let timings = *module.timings();
    let stages = timings.stages().skip(times.0.len());
    times.0.extend(stages.filter(|_| tier(args) == Tier::Jit));
    Ok((module, times))
}

/// Loads the program with code that was kept.
fn kept_module(args: &RunArgs, is_precompiled: bool) -> Result<(Module, Times), CliError> {
    let mut directory = CacheConfig::new();
    if let Some(Some(path)) = &args.cache {
        directory.with_directory(path);
    }
    let cache = Cache::new(&directory)?;
    let mut config = config(args);
    let module = if is_precompiled {
        config.code_key(Some(*cache.key()));
        let engine = Engine::new(&config)?;
        match load::is_standard(&args.program) {
            true => Module::deserialize_authenticated(&engine, load::read(&args.program)?),
            false => Module::deserialize_file_authenticated(&engine, &args.program),
        }
    } else {
        let bytes = load_bytes(&args.program)?;
        config.parallel_compilation(bytes.len() >= PARALLEL_CODE_BYTES_MIN).cache(Some(cache));
        Module::new(&Engine::new(&config)?, bytes)
    };
    let module = module.map_err(|error| CliError::module(&args.program, error))?;
    let timings = *module.timings();
    let times = timings.stages().filter(|(_, time)| !time.is_zero()).collect();
    Ok((module, Times(times)))
}

/// The exit code of a program that has returned or called exit. As for any process, it has 8 bits.
pub(super) fn exit_code(result: Result<u8, CliError>) -> Result<u8, CliError> {
    match result {
        Err(CliError::Program(error)) => match I32Exit::of(&error) {
            Some(I32Exit(code)) => Ok(code as u8),
            None => Err(CliError::Program(error)),
        },
        result => result,
    }
}

/// An error of the program in words of the command line and of the program's source.
pub(super) fn explained(error: CliError, program: &Path, limits: &LimitArgs) -> CliError {
    let CliError::Program(error) = error else { return error };
    match (&*error, limits.max_memory) {
        (Error::Trap(trap), _) => {
            let mut message = trap.message();
            if let (TrapCode::Interrupted, Some(timeout)) = (trap.code, limits.timeout) {
                message = format!("interrupted after {timeout:?}, as --timeout asks");
            }
            CliError::Trap(backtrace::text(&message, trap.backtrace(), program))
        }
        (Error::Host(failure), _) => {
            let message = backtrace::text(&failure.to_string(), failure.backtrace(), program);
            match UnknownImportError::of(&error) {
                Some(_) => CliError::Trap(message),
                None => CliError::Failed(message),
            }
        }
        (Error::Limit { name, .. }, Some(max)) if name.ends_with("_total_max") => {
            CliError::Failed(format!("{error}; --max-memory allows {max} bytes"))
        }
        _ => CliError::Program(error),
    }
}

/// The host functions of a program, with the standard streams of this process.
pub(super) fn host(
    program: &Path,
    guest: &GuestArgs,
    module: &Module,
    is_traced: bool,
) -> Result<Host, CliError> {
    let input = io::BufReader::new(io::stdin());
    let out: Box<dyn Write + Send> = if wasi::is_imported_by(module) {
        // WASI output is not buffered, so other output must not be either, to keep their order.
        Box::new(File::from(io::stdout().as_fd().try_clone_to_owned()?))
    } else {
        // With a trace, output should appear between the instructions that print it.
        let buffer_bytes = if is_traced { 0 } else { 64 << 10 };
        Box::new(BufWriter::with_capacity(buffer_bytes, io::stdout()))
    };
    Ok(Host::new(out, input, &guest.args).with_wasi(wasi::context(program, guest, true)?))
}

fn tier(args: &RunArgs) -> Tier {
    let is_native = args.native.is_asked() || args.lazy;
    let is_interpreted = args.interp || args.trace || !Tier::ALL.contains(&Tier::Auto);
    match (is_native, is_interpreted) {
        (true, _) => Tier::Jit,
        (false, true) => Tier::Interpreter,
        (false, false) => Tier::Auto,
    }
}

fn config(args: &RunArgs) -> Config {
    let mut config = Config::new();
    config.tier(tier(args)).slots(args.native.slots.unwrap_or_default());
    config.passes(args.native.passes.unwrap_or_default());
    config.compile(if args.lazy { Compile::Lazy } else { Compile::Eager });
    limit(&mut config, &args.limits);
    config.profiler(match args.profile {
        None => ProfilingStrategy::None,
        Some(Profiler::Perfmap) => ProfilingStrategy::PerfMap,
        Some(Profiler::Jitdump) => ProfilingStrategy::JitDump,
    });
    config
}

/// Has what a program may use counted.
pub(super) fn limit(config: &mut Config, limits: &LimitArgs) {
    config.consume_fuel(limits.fuel.max.is_some()).timeout(limits.timeout);
    if limits.deterministic_stack.is_some() {
        // The native stack is not to end first.
        config.deterministic_stack(limits.deterministic_stack).max_native_stack(NATIVE_STACK_BYTES);
    }
    if let Some(bytes) = limits.max_memory {
        config.limits(Limits {
            memory_bytes_total_max: bytes,
            table_elems_total_max: bytes / TABLE_ELEM_BYTES,
            ..Limits::default()
        });
    }
}

fn instantiate_and_call(
    args: &RunArgs,
    module: &Module,
    store: &mut Store<Host>,
    times: &mut Times,
) -> Result<u8, CliError> {
    let start = Instant::now();
    let instance = instantiate(&args.guest, module, store)?;
    times.0.push(("instantiate", start.elapsed()));
    let called = Instant::now();
    let result = call(&args.guest, store, instance, args.limits.deadline(start));
    let result = match result {
        Ok(results) if args.guest.invoke.is_some() => print(store, &results).map(|()| 0),
        result => result.map(|results| code_of(&results)),
    };
    times.0.push(("run", called.elapsed()));
    result
}

/// Refuses a program whose imports are missing, before native code is made of it, which may take long.
pub(super) fn check_imports(
    program: &Path,
    guest: &GuestArgs,
    module: &Arc<VerifiedModule>,
) -> Result<(), CliError> {
    let engine = Engine::new(Config::new().tier(Tier::Interpreter))?;
    let module = Module::from_verified(&engine, module.clone())
        .map_err(|error| CliError::module(program, error))?;
    linker(guest, &module)?.instantiate_pre(&module)?;
    Ok(())
}

/// The host functions of a program.
fn linker(guest: &GuestArgs, module: &Module) -> Result<Linker<Host>, CliError> {
    let mut linker = host::linker(module.engine())?;
    if let Some(how) = guest.unknown_imports {
        how.define(&mut linker, module);
    }
    Ok(linker)
}

/// Instantiates a program with the host functions.
pub(super) fn instantiate(
    guest: &GuestArgs,
    module: &Module,
    store: &mut Store<Host>,
) -> Result<Instance, CliError> {
    Ok(linker(guest, module)?.instantiate(store, module)?)
}

/// Calls the program, which may run until a time, and returns its results.
pub(super) fn call(
    guest: &GuestArgs,
    store: &mut Store<Host>,
    instance: Instance,
    deadline: Option<Instant>,
) -> Result<Vec<Val>, CliError> {
    let mut results = Vec::new();
    for call in entry::calls(guest.invoke.as_deref(), &guest.args, store, &instance)? {
        if let Some(deadline) = deadline {
            // The time is that of all calls together.
            let left = deadline.saturating_duration_since(Instant::now());
            store.set_timeout(Some(left.max(Duration::from_nanos(1))))?;
        }
        results = call.run(store)?;
    }
    Ok(results)
}

/// The exit code of a program whose function `main` has returned.
pub(super) fn code_of(results: &[Val]) -> u8 {
    match results {
        [Val::I32(code)] => *code as u8,
        _ => 0,
    }
}

/// Prints the results of an invoked function, after the program's own output.
fn print(store: &mut Store<Host>, results: &[Val]) -> Result<(), CliError> {
    store.data_mut().flush()?;
    let mut out = io::stdout().lock();
    for value in results {
        writeln!(out, "{}", values::print(value))?;
    }
    Ok(())
}
