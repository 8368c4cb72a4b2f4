//! Programs to measure: finding, loading, compiling and running them.
//!
//! A program of WASI exports `_start`; what it is given, the comment at the top of its source says. Any other
//! exports `main`, which takes a size.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use slotvm::{Config, Engine, Func, Linker, Module, SlotMode, Store, Tier, Val};
use slotvm_bytecode::encode;
use slotvm_wasi::I32Exit;
use tempfile::TempDir;

use super::command::Command;
use crate::error::CliError;
use crate::host::{self, Host};
use crate::load::load;

/// The size of a program whose source does not say `bench-size: N`.
const DEFAULT_SIZE: i32 = 10;

/// The files named, and the `.bc` and `.wasm` files of folders named, which are sorted.
///
/// # Errors
/// If a folder cannot be read, or there are no programs.
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
        true => Err(CliError::Usage("there are no programs".into())),
        false => Ok(programs),
    }
}

/// The name of the program in a file.
pub fn name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// An engine that makes native code with slots kept in this way.
///
/// # Errors
/// If there is no native code for this machine.
pub fn engine(slots: SlotMode) -> Result<Engine, CliError> {
    Ok(Engine::new(Config::new().tier(Tier::Jit).slots(slots))?)
}

/// A program to measure.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// The size that it runs with. A program of WASI has none.
    pub size: Option<i32>,
    /// The bytecode instructions of all its functions.
    pub n_ops: u64,
    path: PathBuf,
    binary: Vec<u8>,
    /// What it is given, if it is a program of WASI.
    command: Option<Command>,
}

impl Program {
    /// Loads a program. Its size is this one, or that which its source, beside its binary, says.
    ///
    /// # Errors
    /// If the file cannot be read or is no program, or what its source names cannot be read.
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

    /// Makes a module of the binary form, so that its timings have every stage.
    ///
    /// # Errors
    /// If a function cannot be compiled.
    pub fn compile(&self, engine: &Engine) -> Result<Module, CliError> {
        Module::new(engine, &self.binary).map_err(|error| CliError::module(&self.path, error))
    }

    /// Makes an instance, whose output is thrown away, in a store of its own.
    ///
    /// # Errors
    /// If the instance cannot be made, or has neither `_start` nor `main`, or what a program of WASI is given
    /// cannot be had.
    pub fn start(&self, module: &Module) -> Result<Run, CliError> {
        let mut linker = Linker::new(module.engine());
        host::define(&mut linker)?;
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
            let message = "a program to measure exports `main`, or `_start` as those of WASI do";
            return Err(CliError::Usage(message.into()));
        };
        let ty = func.ty(&store);
        let params = vec![Val::I32(self.size.unwrap_or_default()); ty.params.len()];
        let results = ty.results.iter().map(|&ty| Val::default_for(ty)).collect();
        let exit = self.command.as_ref().map_or(0, |command| command.exit);
        Ok(Run { name: self.name.clone(), store, func, params, results, exit, _place: place })
    }
}

/// The size that the program's source, beside its binary, says to measure it with, in a comment on a line
/// of its own: NAME.vasm, or NAME.c for what compilers have made of it, NAME.wasm or NAME.O2.wasm.
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
    /// The code that it ends with, if it ends by one.
    exit: i32,
    /// The directories that it may use.
    _place: Option<TempDir>,
}

impl Run {
    /// Runs the program. It may leave its memory so that it does something else the next time.
    ///
    /// # Errors
    /// If the program fails, or ends with another exit code than it should.
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
                Err(CliError::Failed(format!("{name}: exit code {code}, not {exit}")))
            }
        }
    }
}
