//! The programs of the folder `programs/`, for tests.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use slotvm::{Config, Engine, Error, Module, SlotMode, Store, Tier};
use slotvm_bytecode::module::EntityKind;
use slotvm_bytecode::{self as bytecode, CodeReader, Op, VerifiedModule, text, verify};
use slotvm_ssa::eval::{self, HostCall, Imports, Machine, Options};
use slotvm_ssa::ir::Function;

use crate::host::{self, Console, HostFunc};

/// A program: its source and what it prints.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its name, without an extension.
    pub name: String,
    /// Where its source is.
    pub path: PathBuf,
    /// Its text.
    pub source: String,
    /// What it prints when it runs with its default size.
    pub expected: String,
}

/// All programs, by name.
///
/// # Panics
/// If a file cannot be read.
pub fn all() -> Vec<Program> {
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
    let (source, expected) = (read(&path), read(&path.with_extension("expected")));
    Program { name, path, source, expected }
}

impl Program {
    /// The program, assembled as `vmrun asm` does it: the lines of the source go into the module.
    ///
    /// # Panics
    /// If its text is malformed.
    pub fn module(&self) -> bytecode::Module {
        match text::parse_with(&self.source, text::ParseOptions { record_lines: true }) {
            Ok(module) => module,
            Err(error) => panic!("{}: {error}", self.name),
        }
    }

    /// The program, assembled and verified.
    ///
    /// # Panics
    /// If it is malformed.
    pub fn verified(&self) -> Arc<VerifiedModule> {
        match verify::verify(self.module()) {
            Ok(module) => Arc::new(module),
            Err(error) => panic!("{}: {error}", self.name),
        }
    }

    /// The size for which the benchmarks run it: the number behind `; bench-size:`.
    pub fn bench_size(&self) -> Option<i32> {
        let line = self.source.lines().find_map(|line| line.strip_prefix("; bench-size:"))?;
        line.trim().parse().ok()
    }
}

/// The size with which a program runs if none is given: its exported global `default_size`.
pub fn default_size(module: &bytecode::Module) -> Option<i32> {
    let export = module.export("default_size")?;
    if export.kind != EntityKind::Global {
        return None;
    }
    // No program imports a global.
    let init = &module.globals.get(export.index as usize)?.init;
    let inst = CodeReader::new(&init.code, 0).read().ok()?;
    (inst.op == Op::I32Const).then_some(inst.imm.low() as i32)
}

/// What a run of a program shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What it prints.
    pub output: Vec<u8>,
    /// What `main` returns.
    pub exit_code: i32,
    /// The fuel left, if it was limited.
    pub fuel: Option<u64>,
}

/// An engine for a tier and a slot mode, with fuel or without. Each pass of its compiler is checked.
///
/// # Panics
/// If native code cannot be made on this machine.
pub fn engine(tier: Tier, slots: SlotMode, consume_fuel: bool) -> Engine {
    let mut config = Config::new();
    config.tier(tier).slots(slots).consume_fuel(consume_fuel).verify_passes(true);
    Engine::new(&config).expect("the tests run where native code does")
}

/// Runs a program's `main`, with this much fuel if the engine consumes it.
///
/// # Errors
/// If it cannot be linked or traps.
///
/// # Panics
/// If native code cannot be made of it.
pub fn run(
    engine: &Engine,
    module: &Arc<VerifiedModule>,
    size: i32,
    fuel: Option<u64>,
) -> Result<Outcome, Error> {
    let module = match Module::from_verified(engine, module.clone()) {
        Ok(module) => module,
        Err(error) => panic!("{error}"),
    };
    let mut store = Store::new(engine, Console::default());
    if let Some(fuel) = fuel {
        store.set_fuel(fuel)?;
    }
    let instance = host::linker(engine).instantiate(&mut store, &module)?;
    let main = instance.get_typed_func::<i32, i32>(&store, "main")?;
    let exit_code = main.call(&mut store, size)?;
    let fuel = fuel.map(|_| store.get_fuel()).transpose()?;
    Ok(Outcome { output: std::mem::take(&mut store.data_mut().output), exit_code, fuel })
}

/// Runs a program's `main` by evaluating the IR of its functions.
///
/// # Errors
/// If it traps.
///
/// # Panics
/// If the module has imports that the host does not provide, or no function `main`.
pub fn evaluate(
    module: &VerifiedModule,
    functions: Vec<Function>,
    size: i32,
    fuel: Option<u64>,
) -> Result<Outcome, eval::Trap> {
    let host_funcs: Vec<HostFunc> = module
        .module()
        .imports
        .iter()
        .map(|import| HostFunc::from_import(import).expect("programs import functions of the host"))
        .collect();
    let mut console = Console::default();
    let host = Box::new(|call: HostCall<'_>| {
        let result = console.run(host_funcs[call.func as usize], call.args, call.memory)?;
        Ok(Vec::from_iter(result))
    });
    let imports = Imports { host, ..Imports::default() };
    let mut machine =
        Machine::new(module, functions, imports, Options { fuel, ..Options::default() });
    machine.instantiate()?;
    let main = module.module().export("main").expect("programs have a main");
    let results = machine.call(main.index, &[u64::from(size as u32)])?;
    let fuel = machine.fuel();
    drop(machine);
    Ok(Outcome { output: console.output, exit_code: results[0] as i32, fuel })
}
