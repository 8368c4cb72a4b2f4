//! Programs to measure: finding, loading, compiling and running them.
//!
//! A WASI program exports `_start`; the comment at the top of its source names its arguments and files. Any
//! other program exports `main`, which takes a size.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use slotvm::{Config, Engine, Func, Module, PassSet, SlotMode, Store, Tier, Val};
use slotvm_bytecode::builder::ModuleBuilder;
use slotvm_bytecode::{Op, encode};
use slotvm_wasi::I32Exit;
use tempfile::TempDir;

use super::command::Command;
use vmrun_base::error::CliError;
use vmrun_base::host::{self, Host};
use vmrun_base::load::load;

/// The size of a program whose source has no `bench-size: N`.
const DEFAULT_SIZE: i32 = 10;

/// Returns the given files, and the `.bc` and `.wasm` files of given folders, sorted by name in each folder.
///
/// # Errors
/// Fails if a folder cannot be read, or no program is found.
pub fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CliError> {
    let mut programs = Vec::new();
    for path in paths {
        if !path.is_dir() {
            programs.push(path.clone());
            continue;
        }
        let mut found = Vec::new();
        for entry in fs::read_dir(path).map_err(CliError::file(path))? {
            let path = entry?.path();
            if path.extension().is_some_and(|ending| ending == "bc" || ending == "wasm") {
                found.push(path);
            }
        }
        found.sort();
        programs.extend(found);
    }
    match programs.is_empty() {
        true => Err(CliError::Usage("no programs found".into())),
        false => Ok(programs),
    }
}

/// The name of the program in a file.
pub fn name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// A native engine in a slot mode, with these passes.
///
/// # Errors
/// Fails if native code is not supported on this machine.
pub fn engine(slots: SlotMode, passes: PassSet) -> Result<Engine, CliError> {
    engine_at(slots, passes, 0)
}

/// A native engine in a slot mode that places code elsewhere than those with other numbers.
///
/// # Errors
/// Fails if native code is not supported on this machine.
pub fn engine_at(slots: SlotMode, passes: PassSet, placement: usize) -> Result<Engine, CliError> {
    Ok(Engine::new(&config_at(slots, passes, placement))?)
}

/// The configuration of such an engine.
pub fn config_at(slots: SlotMode, passes: PassSet, placement: usize) -> Config {
    let mut config = Config::new();
    config.tier(Tier::Jit).slots(slots).passes(passes);
    config.code_offset(placement * PLACEMENT_STEP_BYTES);
    config
}

/// The distance of one placement from the next: other pages, and in these 16 different starts in two cache lines.
const PLACEMENT_STEP_BYTES: usize = 3 * 4096 + 200;

/// A program to measure.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// The size that it runs with; `None` for WASI programs.
    pub size: Option<i32>,
    /// The number of bytecode instructions of all its functions.
    pub n_ops: u64,
    path: PathBuf,
    binary: Vec<u8>,
    /// Its arguments, input and directories, if it is a WASI program.
    command: Option<Command>,
}

impl Program {
    /// Loads a program. Without a `size`, its size is that in its source, which is beside the binary.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is not a program, or a file that its source names cannot be
    /// read.
    pub fn load(path: &Path, size: Option<i32>) -> Result<Program, CliError> {
        let verified = load(path)?.module;
        let is_command = verified.module().exports.iter().any(|export| export.name == "_start");
        let command = is_command.then(|| Command::of(path)).transpose()?;
        let bodies = (0..verified.n_funcs()).filter_map(|func| verified.body(func));
        Ok(Program {
            name: name(path),
            size: (!is_command).then(|| size.unwrap_or_else(|| bench_size(path))),
            n_ops: bodies.flat_map(|body| &body.blocks).map(|block| u64::from(block.cost)).sum(),
            path: path.to_owned(),
            binary: encode(verified.module()),
            command,
        })
    }

    /// A program that does nothing.
    pub(super) fn idle() -> Program {
        let mut builder = ModuleBuilder::new();
        let main = builder.declare_func("main", &[], &[]);
        let mut body = builder.define(main);
        body.op(Op::Return);
        body.finish().expect("it returns");
        builder.export_func("main", main);
        let module = builder.finish().expect("it is complete");
        let (name, binary) = ("idle".to_owned(), encode(&module));
        Program { name, size: None, n_ops: 1, path: PathBuf::new(), binary, command: None }
    }

    /// Compiles the binary form, so that the module's timings include every stage.
    ///
    /// # Errors
    /// Fails if a function cannot be compiled.
    pub fn compile(&self, engine: &Engine) -> Result<Module, CliError> {
        Module::new(engine, &self.binary).map_err(|error| CliError::module(&self.path, error))
    }

    /// Makes an instance in a store of its own, and discards its output.
    ///
    /// # Errors
    /// Fails if the instance cannot be made, has neither `_start` nor `main`, or a directory of a WASI
    /// program cannot be copied.
    pub fn start(&self, module: &Module) -> Result<Run, CliError> {
        let linker = host::linker(module.engine())?;
        let mut host = Host::new(io::sink(), io::empty(), &[]);
        let mut place = None;
        if let Some(command) = &self.command {
            let (wasi, dirs) = command.context()?;
            host = host.with_wasi(wasi);
            place = dirs;
        }
        let mut store = Store::new(module.engine(), host);
        let instance = linker.instantiate(&mut store, module)?;
        let name = if self.command.is_some() { "_start" } else { "main" };
        let Some(func) = instance.get_func(&store, name) else {
            let message = "no function to measure; expected an export `main`, or `_start` (WASI)";
            return Err(CliError::Usage(message.into()));
        };
        let ty = func.ty(&store);
        let params = vec![Val::I32(self.size.unwrap_or_default()); ty.params.len()];
        let results = ty.results.iter().map(|&ty| Val::default_for(ty)).collect();
        let exit = self.command.as_ref().map_or(0, |command| command.exit);
        Ok(Run { name: self.name.clone(), store, func, params, results, exit, _place: place })
    }
}

/// The `bench-size:` in the program's source, which is beside its binary: NAME.vasm, or NAME.c for NAME.wasm
/// or NAME.O2.wasm, which a compiler made of it. It is in a comment on a line of its own.
fn bench_size(path: &Path) -> i32 {
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = file_name.split('.').next().unwrap_or_default();
    let said_by = |ending: &str, comment: &str| {
        let source = fs::read_to_string(path.with_file_name(format!("{name}.{ending}"))).ok()?;
        let prefix = format!("{comment} bench-size:");
        source.lines().find_map(|line| line.strip_prefix(&prefix)?.trim().parse().ok())
    };
    said_by("vasm", ";").or_else(|| said_by("c", "//")).unwrap_or(DEFAULT_SIZE)
}

/// A program that is about to run.
pub struct Run {
    name: String,
    store: Store<Host>,
    func: Func,
    params: Vec<Val>,
    results: Vec<Val>,
    /// The expected exit code; returning counts as 0.
    exit: i32,
    /// The directories that it may use, which are removed on drop.
    _place: Option<TempDir>,
}

impl Run {
    /// Runs the program. It may change its memory so that the next call behaves differently.
    ///
    /// # Errors
    /// Fails if the program fails, or ends with an unexpected exit code.
    pub fn call(&mut self) -> Result<(), CliError> {
        let result = self.func.call(&mut self.store, &self.params, &mut self.results);
        let code = match result {
            Ok(()) => 0,
            Err(error) => match I32Exit::of(&error) {
                Some(I32Exit(code)) => code,
                None => return Err(error.into()),
            },
        };
        match code == self.exit {
            true => Ok(()),
            false => {
                let (name, exit) = (&self.name, self.exit);
                Err(CliError::Failed(format!("{name}: expected exit code {exit}, found {code}")))
            }
        }
    }
}
