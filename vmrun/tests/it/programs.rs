//! The programs, and how to run them with the host functions of `vmrun`.

use std::io::{self, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use slotvm::compiler::OnTheFly;
use slotvm::{Config, Engine, Error, Instance, Module, SlotMode, Store, Tier, Val};
use slotvm_bytecode::{self as bytecode, VerifiedModule, text, verify};
use slotvm_ssa::ir::Function;
use slotvm_ssa::ir::eval::{self, HostCall, Imports, Machine, Options};
use vmrun::host::{self, Host};

/// A program.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// Its name, without an extension.
    pub(crate) name: String,
    /// The path of its source.
    pub(crate) path: PathBuf,
    /// Its text.
    pub(crate) source: String,
}

/// All programs, by name.
///
/// # Panics
/// Panics if a file cannot be read.
pub(crate) fn all() -> Vec<Program> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs");
    let entries = folder.read_dir().expect("the folder of programs is there");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the folder can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "vasm"))
        .collect();
    paths.sort();
    paths.into_iter().map(load).collect()
}

fn load(path: PathBuf) -> Program {
    let read = |path: &Path| match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => panic!("{}: {error}", path.display()),
    };
    let name = path.file_stem().expect("a program has a name").to_string_lossy().into_owned();
    let source = read(&path);
    Program { name, path, source }
}

/// Checks all programs, several at once. Panics with all failures, not just the first.
pub(crate) fn check_all(check: impl Fn(&Program) -> Result<(), String> + Sync) {
    let programs = all();
    assert!(programs.len() >= 40, "only {} programs found", programs.len());
    check_each(&programs, |program| &program.name, check);
}

/// Checks things that have names, several at once. Panics with all failures, not just the first.
pub(crate) fn check_each<T: Sync>(
    things: &[T],
    name: impl Fn(&T) -> &str + Sync,
    check: impl Fn(&T) -> Result<(), String> + Sync,
) {
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let work = || {
        while let Some(thing) = things.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = check(thing) {
                let failure = format!("{}: {error}", name(thing));
                failures.lock().expect("no other worker panics").push(failure);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, |n| n.get()) {
            scope.spawn(work);
        }
    });
    let mut failures = failures.into_inner().expect("no worker panics");
    failures.sort();
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

impl Program {
    /// The program, assembled as by `vmrun asm`, with the lines of the source.
    ///
    /// # Panics
    /// Panics if its text is malformed.
    pub(crate) fn module(&self) -> bytecode::Module {
        match text::parse_with(&self.source, text::ParseOptions { record_lines: true }) {
            Ok(module) => module,
            Err(error) => panic!("{}: {error}", self.name),
        }
    }

    /// The program, assembled and verified.
    ///
    /// # Panics
    /// Panics if it is malformed.
    pub(crate) fn verified(&self) -> Arc<VerifiedModule> {
        match verify::verify(self.module()) {
            Ok(module) => Arc::new(module),
            Err(error) => panic!("{}: {error}", self.name),
        }
    }

    /// The size for which the benchmarks run it: the number after `; bench-size:`.
    pub(crate) fn bench_size(&self) -> Option<i32> {
        let line = self.source.lines().find_map(|line| line.strip_prefix("; bench-size:"))?;
        line.trim().parse().ok()
    }
}

/// The outcome of a run of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Its output.
    pub(crate) output: Vec<u8>,
    /// The result of `main`.
    pub(crate) exit_code: i32,
    /// The fuel left, if it was limited.
    pub(crate) fuel: Option<u64>,
}

/// An engine for a tier and a slot mode, with or without fuel, which verifies each pass.
///
/// # Panics
/// Panics if native code is not supported on this machine.
pub(crate) fn engine(tier: Tier, slots: SlotMode, consume_fuel: bool) -> Engine {
    let mut config = Config::new();
    config.tier(tier).slots(slots).consume_fuel(consume_fuel).verify_passes(true);
    Engine::new(&config).expect("the tests run where native code does")
}

/// A native engine without signals.
///
/// # Panics
/// Panics if native code is not supported on this machine.
pub(crate) fn engine_without_signals(slots: SlotMode, consume_fuel: bool) -> Engine {
    let mut config = Config::new();
    config.tier(Tier::Jit).slots(slots).consume_fuel(consume_fuel).verify_passes(true);
    config.signals_based_traps(false);
    Engine::new(&config).expect("the tests run where native code does")
}

/// A native engine with SSA form made straight from bytecode.
///
/// # Panics
/// Panics if native code is not supported on this machine.
pub(crate) fn engine_on_the_fly(options: OnTheFly, consume_fuel: bool) -> Engine {
    let mut config = Config::new();
    config.tier(Tier::Jit).on_the_fly(options).consume_fuel(consume_fuel).verify_passes(true);
    Engine::new(&config).expect("the tests run where native code does")
}

/// A buffer that keeps output.
#[derive(Clone, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl Output {
    fn take(&self) -> Vec<u8> {
        mem::take(&mut self.0.lock().expect("no writer panics"))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no writer panics").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Host functions without input and arguments that print into a buffer.
fn host() -> (Output, Host) {
    let output = Output::default();
    (output.clone(), Host::new(output, io::empty(), &[]))
}

/// An instance of a program in a store of its own.
pub(crate) struct Running {
    pub(crate) store: Store<Host>,
    pub(crate) instance: Instance,
    output: Output,
}

/// Instantiates a program, with this much fuel if the engine consumes it.
///
/// # Errors
/// Fails if it cannot be linked, or its start function fails.
pub(crate) fn instantiate(
    engine: &Engine,
    module: &Arc<VerifiedModule>,
    fuel: Option<u64>,
) -> Result<Running, Error> {
    let module = Module::from_verified(engine, module.clone())?;
    let (output, host) = host();
    let mut store = Store::new(engine, host);
    if let Some(fuel) = fuel {
        store.set_fuel(fuel)?;
    }
    let linker = host::linker(engine)?;
    let instance = linker.instantiate(&mut store, &module)?;
    Ok(Running { store, instance, output })
}

/// The default size of a program: its exported global `default_size`.
pub(crate) fn default_size(module: &Arc<VerifiedModule>) -> Result<i32, String> {
    let engine = engine(Tier::Interpreter, SlotMode::default(), false);
    let Running { store, instance, .. } =
        instantiate(&engine, module, None).map_err(|error| error.to_string())?;
    match instance.get_global(&store, "default_size").map(|global| global.get(&store)) {
        Some(Val::I32(size)) => Ok(size),
        other => Err(format!("the default size is {other:?}")),
    }
}

/// Runs a program's `main`, with this much fuel if the engine consumes it.
///
/// # Errors
/// Fails if it cannot be linked or traps.
pub(crate) fn run(
    engine: &Engine,
    module: &Arc<VerifiedModule>,
    size: i32,
    fuel: Option<u64>,
) -> Result<Outcome, Error> {
    let Running { mut store, instance, output } = instantiate(engine, module, fuel)?;
    let main = instance.get_typed_func::<i32, i32>(&store, "main")?;
    let exit_code = main.call(&mut store, size)?;
    let fuel = fuel.map(|_| store.get_fuel()).transpose()?;
    Ok(Outcome { output: output.take(), exit_code, fuel })
}

/// Runs a program's `main` by evaluating the IR of its functions.
///
/// # Errors
/// Fails if it traps.
pub(crate) fn evaluate(
    module: &VerifiedModule,
    functions: Vec<Function>,
    size: i32,
    fuel: Option<u64>,
) -> Result<Outcome, eval::Trap> {
    let imports = &module.module().imports;
    let (output, mut host) = host();
    let call = Box::new(|call: HostCall<'_>| {
        call_host(&mut host, &imports[call.func as usize].name, call)
            .map_err(|error| error.trap_code().expect("the host only traps"))
            .map(|()| Vec::new())
    });
    let imports = Imports { host: call, ..Imports::default() };
    let mut machine =
        Machine::new(module, functions, imports, Options { fuel, ..Options::default() });
    machine.instantiate()?;
    let main = module.module().export("main").expect("programs have a main");
    let results = machine.call(main.index, &[u128::from(size as u32)])?;
    let fuel = machine.fuel();
    drop(machine);
    Ok(Outcome { output: output.take(), exit_code: results[0] as i32, fuel })
}

/// The host functions that programs use, for the evaluator.
fn call_host(host: &mut Host, name: &str, call: HostCall<'_>) -> Result<(), Error> {
    match (name, call.args) {
        ("print_i32", &[v]) => host.print(v as i32),
        ("print_i64", &[v]) => host.print(v as i64),
        ("print_f64", &[v]) => host.print(f64::from_bits(v as u64)),
        ("print_char", &[code]) => host.print_char(code as u32),
        ("print_str", &[ptr, len]) => {
            host.print_bytes(host::bytes_at(call.memory, ptr as u32, len as u32)?)
        }
        (name, args) => panic!("`{name}` is called with {} arguments", args.len()),
    }
}
