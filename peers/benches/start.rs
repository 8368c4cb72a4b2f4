//! From the bytes of a module to an instance whose functions can be called, in interpreters: the module is made and
//! imports functions that do nothing. Lazy engines have to translate a function before its first instruction; that is
//! not a part of it. The figures are the least CPU time of several rounds, on one thread, and the bytes of the heap
//! at the peak, which the allocator counts.
//!
//! `cargo bench --bench start` prints the table; with parts of names as arguments only of those modules. With `--test`
//! every module starts once in every engine, and nothing is printed. Large modules are fetched from registries; those
//! that cannot be are left out.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use slotvm_filetests::allocator::{Counting, peak, reset_peak};
use slotvm_filetests::packages::{CIRCOM, ESBUILD, TYPESCRIPT_FORMATTER};
use slotvm_peers::stats::geometric_mean;
use vmrun::bench::clock::thread_cpu_time;
use vmrun::table::table;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Turns of each engine.
const ROUNDS: usize = 7;
/// Bytes of modules that have fewer turns.
const LARGE_BYTES: usize = 1 << 20;
const LARGE_ROUNDS: usize = 3;

/// Error message.
type Failure = String;

/// An engine: its name, and what it does with the bytes of a module.
type Contender = (&'static str, fn(&[u8]) -> Result<(), Failure>);

/// The first one is the one that the others are compared with.
const CONTENDERS: [Contender; 4] = [
    ("slotvm", slotvm),
    ("wasmi, eager", |bytes| wasmi(bytes, wasmi::CompilationMode::Eager)),
    ("wasmi, lazy translation", |bytes| wasmi(bytes, wasmi::CompilationMode::LazyTranslation)),
    ("wasmi, lazy", |bytes| wasmi(bytes, wasmi::CompilationMode::Lazy)),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let is_test = args.iter().any(|arg| arg == "--test");
    let filters: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let takes = |name: &str| filters.is_empty() || filters.iter().any(|part| name.contains(*part));
    let modules: Vec<_> = modules().into_iter().filter(|(name, _)| takes(name)).collect();
    let mut headers = vec!["module".to_owned(), "bytes".to_owned()];
    headers.extend(["µs", "ns/byte", "KiB"].map(|unit| format!("{} {unit}", CONTENDERS[0].0)));
    for (name, _) in &CONTENDERS[1..] {
        headers.extend([name.to_string(), "memory".to_owned()]);
    }
    let mut table = table(2, headers);
    let mut ratios = vec![Vec::new(); 2 * (CONTENDERS.len() - 1)];
    let mut n_failures = 0;
    for (name, bytes) in &modules {
        let rounds = match bytes.len() {
            _ if is_test => 1,
            LARGE_BYTES.. => LARGE_ROUNDS,
            _ => ROUNDS,
        };
        match measure(bytes, rounds) {
            Err(failure) => {
                eprintln!("{name}: {failure}");
                n_failures += 1;
            }
            Ok(starts) => {
                let Start { seconds, peak } = starts[0];
                let mut row = vec![name.clone(), bytes.len().to_string()];
                row.push(format!("{:.0}", seconds * 1e6));
                row.push(format!("{:.1}", seconds * 1e9 / bytes.len() as f64));
                row.push(format!("{:.0}", peak as f64 / 1024.0));
                for (i, start) in starts[1..].iter().enumerate() {
                    let pair = [seconds / start.seconds, peak as f64 / start.peak as f64];
                    for (k, ratio) in pair.into_iter().enumerate() {
                        ratios[2 * i + k].push(ratio);
                        row.push(format!("{ratio:.2}"));
                    }
                }
                table.add_row(row);
            }
        }
    }
    if !is_test && ratios[0].len() > 1 {
        let mut row = vec!["geometric mean".to_owned()];
        row.resize(5, String::new());
        row.extend(ratios.iter().map(|ratios| format!("{:.2}", geometric_mean(ratios))));
        table.add_row(row);
    }
    if !is_test {
        println!("{table}");
    }
    if n_failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A start of a module.
#[derive(Copy, Clone)]
struct Start {
    seconds: f64,
    /// Bytes of the heap.
    peak: usize,
}

/// Starts a module in all engines in turns. Returns the least of what it took in each.
fn measure(bytes: &[u8], rounds: usize) -> Result<Vec<Start>, Failure> {
    let mut starts = vec![Start { seconds: f64::INFINITY, peak: usize::MAX }; CONTENDERS.len()];
    for _ in 0..rounds {
        for ((name, start), least) in CONTENDERS.iter().zip(&mut starts) {
            reset_peak();
            let begun = thread_cpu_time();
            start(bytes).map_err(|failure| format!("{name}: {failure}"))?;
            let taken = (thread_cpu_time() - begun).as_secs_f64();
            least.seconds = least.seconds.min(taken);
            least.peak = least.peak.min(peak() as usize);
        }
    }
    Ok(starts)
}

/// Modules by name: the kernels, the WASI programs, and large ones.
fn modules() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs/wasm");
    let mut modules = Vec::new();
    for folder in [folder.clone(), folder.join("wasi")] {
        let entries = fs::read_dir(folder).expect("the folder is there");
        for entry in entries {
            let path = entry.expect("the folder can be listed").path();
            let name = path.file_name().expect("it is a file").to_string_lossy().into_owned();
            if name.ends_with(".O2.wasm") {
                modules.push((name, fs::read(path).expect("the module can be read")));
            }
        }
    }
    modules.sort();
    for file in [TYPESCRIPT_FORMATTER, CIRCOM, ESBUILD] {
        match file.read() {
            Ok(bytes) => modules.push((file.package.to_owned(), bytes)),
            Err(reason) => eprintln!("{} is left out: {reason}", file.package),
        }
    }
    modules
}

fn slotvm(bytes: &[u8]) -> Result<(), Failure> {
    use slotvm::{Config, Engine, Extern, Linker, Module, Store, Tier, Val};
    let mut config = Config::new();
    config.tier(Tier::Interpreter).parallel_compilation(false);
    let engine = Engine::new(&config).map_err(text)?;
    let module = Module::new(&engine, bytes).map_err(text)?;
    let mut store = Store::new(&engine, ());
    let mut linker = Linker::new(&engine);
    linker.allow_shadowing(true);
    for import in module.imports() {
        let slotvm::ExternType::Func(ty) = import.ty() else {
            return Err("expected imports of functions only".to_owned());
        };
        let nothing = |_: slotvm::Caller<'_, ()>, _: &[Val], _: &mut [Val]| Ok(());
        linker.func_new(import.module(), import.name(), ty.clone(), nothing).map_err(text)?;
    }
    let instance = linker.instantiate(&mut store, &module).map_err(text)?;
    let mut exports = module.exports().map(|export| export.name().to_owned());
    let is_func = |export| matches!(export, Some(Extern::Func(_)));
    match exports.any(|name| is_func(instance.get_export(&mut store, &name))) {
        true => Ok(()),
        false => Err("expected an exported function".to_owned()),
    }
}

fn wasmi(bytes: &[u8], mode: wasmi::CompilationMode) -> Result<(), Failure> {
    use wasmi::{Config, Engine, ExternType, Linker, Module, Store, Val};
    let mut config = Config::default();
    config.compilation_mode(mode);
    let engine = Engine::new(&config);
    let module = Module::new(&engine, bytes).map_err(text)?;
    let mut store = Store::new(&engine, ());
    let mut linker = Linker::new(&engine);
    linker.allow_shadowing(true);
    for import in module.imports() {
        let ExternType::Func(ty) = import.ty() else {
            return Err("expected imports of functions only".to_owned());
        };
        let nothing = |_: wasmi::Caller<'_, ()>, _: &[Val], _: &mut [Val]| Ok(());
        linker.func_new(import.module(), import.name(), ty.clone(), nothing).map_err(text)?;
    }
    let instance = linker.instantiate_and_start(&mut store, &module).map_err(text)?;
    let is_func = |export: wasmi::Export<'_>| export.into_func().is_some();
    match instance.exports(&store).any(is_func) {
        true => Ok(()),
        false => Err("expected an exported function".to_owned()),
    }
}

fn text(error: impl std::fmt::Display) -> Failure {
    error.to_string()
}
