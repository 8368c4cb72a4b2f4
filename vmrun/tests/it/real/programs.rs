//! WASI programs by other authors, published in packages, run unmodified by the command line.
//!
//! The folder of a run holds its inputs: the files `in`, which it knows as `/`, and `stdin`. It also holds
//! the expected outputs, made by V8 and wasmtime: the files `made`, `stdout` and `stderr`. Missing ones are
//! empty.
//!
//! The interpreter and native code always run every program, all slot modes with `SLOTVM_FULL=1`. Programs of
//! 20 MB are compiled lazily, and completely with `SLOTVM_FULL=1`. Release builds also run them by the library, which
//! compiles every function and loop when it is first reached. If a package cannot be fetched, its program is skipped with
//! a message.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Write, stderr};
use std::path::{Path, PathBuf};

use slotvm::{
    CompileFailure, Config, Engine, Error, Linker, Module, Store, Tier, TierCompilation,
    TierThresholds,
};
use slotvm_filetests::packages::{BOOLECTOR, CIRCOM, ESBUILD, PackageFile, YOSYS};
use slotvm_wasi::{I32Exit, MemoryOutput, WasiCtx, add_to_linker};

use crate::binary::{ENGINES, Folder, command, root};
use crate::programs::check_each;

/// A program in a package.
struct Program {
    name: &'static str,
    file: PackageFile,
    /// The size of its module, which checks that the right one was fetched.
    len: u64,
    /// A folder beside it that it reads, under the same name in `/`.
    reads: Option<&'static str>,
    runs: &'static [Run],
}

/// One run of a program.
struct Run {
    /// The name of its folder.
    name: &'static str,
    args: &'static [&'static str],
    code: i32,
    engines: &'static Engines,
}

/// The engines that run a program.
struct Engines {
    always: &'static [&'static str],
    /// The engines with `SLOTVM_FULL=1`.
    full: &'static [&'static str],
}

/// The maximum number of bytes that a program writes to a stream of a run by the library.
const OUTPUT_MAX: usize = 1 << 20;

const EVERY: [&str; 7] =
    [ENGINES[0], ENGINES[1], ENGINES[2], ENGINES[3], ENGINES[4], ENGINES[5], "--lazy"];
/// Engines for programs that compile in seconds.
const SMALL: Engines = Engines { always: &["", "--interp", "--jit"], full: &EVERY };
/// Engines for programs that take a minute to compile, unless they are compiled lazily.
const LARGE: Engines = Engines { always: &["", "--interp", "--lazy"], full: &EVERY };
/// Engines for further runs of such a program.
const AGAIN: Engines = Engines { always: &[""], full: &["", "--lazy"] };

const PROGRAMS: [Program; 4] = [
    Program {
        name: "boolector",
        file: BOOLECTOR,
        len: 1_260_293,
        reads: None,
        runs: &[
            // A product is factored; the exit code means that there is a solution.
            Run { name: "solver", args: &["--smt2", "-m", "-d"], code: 10, engines: &SMALL },
            // The exit code means that there is no solution.
            Run { name: "arrays", args: &["--smt2", "/adders.smt2"], code: 20, engines: &SMALL },
        ],
    },
    Program {
        name: "circom",
        file: CIRCOM,
        len: 9_288_739,
        reads: None,
        runs: &[Run {
            name: "circuit",
            args: &["/main.circom", "--r1cs", "--sym", "--json", "--O2", "-o", "/"],
            code: 0,
            engines: &SMALL,
        }],
    },
    Program {
        name: "esbuild",
        file: ESBUILD,
        len: 19_858_962,
        reads: None,
        runs: &[
            Run {
                name: "bundle",
                args: &[
                    "/main.tsx",
                    "--bundle",
                    "--minify",
                    "--target=es2019",
                    "--sourcemap",
                    "--outdir=/out",
                    "--log-level=error",
                ],
                code: 0,
                engines: &LARGE,
            },
            Run { name: "minify", args: &["--loader=ts", "--minify"], code: 0, engines: &AGAIN },
            Run {
                name: "mistake",
                args: &["/broken.js", "--bundle", "--outfile=/out.js", "--log-limit=0"],
                code: 1,
                engines: &AGAIN,
            },
        ],
    },
    Program {
        name: "yosys",
        file: YOSYS,
        len: 21_712_677,
        reads: Some("share"),
        // It finds that two parts of the circuit compute the same.
        runs: &[Run {
            name: "synthesis",
            args: &[
                "-q",
                "-p",
                "read_verilog /adder.v; opt; simplemap; abc -g AND,XOR; opt_clean -purge; \
                 write_verilog -noattr /mapped.v",
            ],
            code: 0,
            engines: &LARGE,
        }],
    },
];

impl Run {
    /// A path in the folder of the run.
    fn at(&self, name: &str) -> PathBuf {
        root().join("vmrun/tests/it/real").join(self.name).join(name)
    }

    /// The expected outputs of the run: its streams and all files.
    fn expected(&self) -> BTreeMap<String, Vec<u8>> {
        let mut expected = files(&self.at("in"), "/");
        expected.extend(files(&self.at("made"), "/"));
        for stream in ["stdout", "stderr"] {
            let contents = fs::read(self.at(stream)).unwrap_or_default();
            expected.insert(stream.to_owned(), contents);
        }
        expected
    }

    /// Makes the folder that a run works in, with its inputs, in a place of its own.
    fn work_in(&self, place: &Folder) -> PathBuf {
        let work = place.path("work");
        fs::create_dir(&work).expect("it can be made");
        for (name, contents) in files(&self.at("in"), "") {
            fs::write(work.join(name), contents).expect("it can be written");
        }
        // Some programs keep temporary files there while they run.
        fs::create_dir(work.join("tmp")).expect("it can be made");
        work
    }

    /// Checks the outputs of a run in an engine of the command line.
    fn check(&self, module: &Path, reads: Option<&str>, engine: &str) -> Result<(), String> {
        let place = Folder::new(&format!("real_{}_{}", self.name, engine.replace(' ', "_")));
        let work = self.work_in(&place);
        let mut child = command(&[module]);
        child.args(engine.split_whitespace());
        child.args(["--dir", &format!("{}::/", work.display())]);
        if let Some(reads) = reads {
            let host = module.with_file_name(reads);
            child.args(["--dir", &format!("{}::/{reads}", host.display())]);
        }
        if let Ok(input) = File::open(self.at("stdin")) {
            child.stdin(input);
        }
        child.arg("--").args(self.args);
        let output = child.output().expect("the binary starts");
        let streams = [output.stdout, output.stderr];
        self.check_ended(&format!("`{engine}`"), &work, streams, output.status.code())
    }

    /// Checks the outputs of a run by the library, with every function and loop in native code when it is first reached, and
    /// that each of them could be compiled.
    fn check_hot(&self, module: &Path, reads: Option<&str>) -> Result<(), String> {
        let place = Folder::new(&format!("real_{}_hot", self.name));
        let work = self.work_in(&place);
        let mut wasi = WasiCtx::builder();
        let (stdout, stderr) = (MemoryOutput::new(OUTPUT_MAX), MemoryOutput::new(OUTPUT_MAX));
        let name = module.file_name().expect("it is a file").to_string_lossy();
        let args = self.args.iter().copied();
        wasi.arg(name).args(args).stdout(stdout.clone()).stderr(stderr.clone());
        if let Ok(input) = File::open(self.at("stdin")) {
            wasi.stdin(input);
        }
        wasi.preopened_dir(&work, "/").expect("it is there");
        if let Some(reads) = reads {
            let host = module.with_file_name(reads);
            wasi.preopened_dir(host, format!("/{reads}")).expect("it is there");
        }
        let mut config = Config::new();
        config.tier(Tier::Auto).tier_compilation(TierCompilation::Synchronous);
        config.tier_thresholds(Some(TierThresholds { calls: 1, rounds: 1 }));
        let engine = Engine::new(&config).expect("the configuration is valid");
        let code = run(&engine, module, wasi.build()).map_err(|error| error.to_string())?;
        let failures: Vec<_> = engine.compile_stats().all_failures().collect();
        if failures.iter().any(|&(reason, _)| reason != CompileFailure::DifferentOperands) {
            return Err(format!("not everything was compiled: {failures:?}"));
        }
        let streams = [stdout.contents(), stderr.contents()];
        self.check_ended("thresholds of 1", &work, streams, Some(code))
    }

    /// Checks what a run has left behind.
    fn check_ended(
        &self,
        engine: &str,
        work: &Path,
        [stdout, stderr]: [Vec<u8>; 2],
        code: Option<i32>,
    ) -> Result<(), String> {
        let mut found = files(work, "/");
        found.insert("stdout".to_owned(), stdout);
        found.insert("stderr".to_owned(), stderr);
        let at = format!("{engine}, exit code {code:?}");
        for (name, expected) in self.expected() {
            let found = found.remove(&name);
            if found.as_ref() != Some(&expected) {
                let found = found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                return Err(format!("{at}: {name} is not as expected\n{found:?}"));
            }
        }
        match (code == Some(self.code), found.keys().next()) {
            (true, None) => Ok(()),
            (false, _) => Err(at),
            (true, Some(name)) => Err(format!("{at}: {name} is not expected")),
        }
    }
}

/// Runs a WASI program. Returns its exit code.
fn run(engine: &Engine, module: &Path, wasi: WasiCtx) -> Result<i32, Error> {
    let module = Module::new(engine, fs::read(module).expect("it can be read"))?;
    let mut store = Store::new(engine, wasi);
    let mut linker = Linker::new(engine);
    add_to_linker(&mut linker, |wasi: &mut WasiCtx| wasi)?;
    let instance = linker.instantiate(&mut store, &module)?;
    let start = instance.get_typed_func::<(), ()>(&store, "_start")?;
    match start.call(&mut store, ()) {
        Ok(()) => Ok(0),
        Err(error) => I32Exit::of(&error).map(|exit| exit.0).ok_or(error),
    }
}

/// The files in a folder and its subfolders, by their paths with a prefix. Returns none if the folder does
/// not exist.
fn files(folder: &Path, before: &str) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![(folder.to_owned(), before.to_owned())];
    while let Some((folder, before)) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("it can be listed").path();
            let name = path.file_name().expect("it has a name").to_string_lossy();
            let name = format!("{before}{name}");
            match path.is_dir() {
                true => folders.push((path, format!("{name}/"))),
                false => {
                    found.insert(name, fs::read(&path).expect("it can be read"));
                }
            }
        }
    }
    found
}

/// The programs that can be fetched, and their files.
fn fetched() -> Vec<(&'static Program, PathBuf)> {
    let mut all = Vec::new();
    for program in &PROGRAMS {
        let module = match program.file.fetch() {
            Ok(module) => module,
            Err(reason) => {
                // Not captured, so that it is always visible.
                let _ = writeln!(stderr(), "{} is left out: {reason}", program.name);
                continue;
            }
        };
        let len = fs::metadata(&module).expect("it is there").len();
        assert_eq!(len, program.len, "{}", module.display());
        all.push((program, module));
    }
    all
}

/// Unoptimised builds would take long to compile each function that is called of large programs.
#[test]
fn programs_of_others_do_the_same_when_everything_is_hot() {
    const UNOPTIMISED_LEN_MAX: u64 = 2_000_000;
    let mut checks = Vec::new();
    let is_checked =
        |program: &Program| !cfg!(debug_assertions) || program.len <= UNOPTIMISED_LEN_MAX;
    for (program, module) in fetched().into_iter().filter(|(program, _)| is_checked(program)) {
        checks.extend(program.runs.iter().map(|run| (program, run, module.clone())));
    }
    check_each(
        &checks,
        |(_, run, _)| run.name,
        |(program, run, module)| run.check_hot(module, program.reads),
    );
}

#[test]
fn programs_of_others_do_in_every_engine_what_they_do_elsewhere() {
    let is_full = std::env::var("SLOTVM_FULL").as_deref() == Ok("1");
    let mut checks = Vec::new();
    for (program, module) in fetched() {
        for run in program.runs {
            let engines = if is_full { run.engines.full } else { run.engines.always };
            checks.extend(engines.iter().map(|engine| (program, run, module.clone(), *engine)));
        }
    }
    check_each(
        &checks,
        |(_, run, ..)| run.name,
        |(program, run, module, engine)| run.check(module, program.reads, engine),
    );
}
