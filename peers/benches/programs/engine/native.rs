//! The C source of a kernel as clang compiles it for this machine, without vectors: what is left to gain. Each run
//! is a process that tells the CPU time between its start and its end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use tempfile::TempDir;

use super::{Code, Failure, repeat};
use crate::program::{Entry, Outcome, Run};

/// As the modules are made, but for this machine. WebAssembly has only the vectors that a program asks for.
const FLAGS: [&str; 7] = [
    "-std=gnu11",
    "-O2",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-vectorize",
    "-fno-slp-vectorize",
    "-Wno-everything",
];

pub(super) struct Native {
    clang: Rc<Clang>,
}

/// A compiler, and what all kernels are linked with.
struct Clang {
    command: String,
    folder: TempDir,
}

impl Native {
    pub(super) fn new() -> Result<Native, Failure> {
        let command = std::env::var("CLANG").unwrap_or_else(|_| "clang-19".to_owned());
        let folder = TempDir::new().map_err(|error| error.to_string())?;
        let clang = Clang { command, folder };
        clang.host()?;
        Ok(Native { clang: Rc::new(clang) })
    }
}

impl Clang {
    /// Compiles the host functions, and a `main` that takes the time of theirs.
    fn host(&self) -> Result<(), Failure> {
        let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs/wasm");
        let timed = self.folder.path().join("timed.c");
        fs::write(&timed, include_str!("timed.c")).map_err(|error| error.to_string())?;
        self.run(&[
            path(&kernels.join("native.c")),
            "-Dmain=kernel_main",
            "-c",
            "-o",
            &self.file("native.o"),
        ])?;
        self.run(&[path(&timed), "-c", "-o", &self.file("timed.o")])
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).to_string_lossy().into_owned()
    }

    fn run(&self, args: &[&str]) -> Result<(), Failure> {
        let output = Command::new(&self.command).args(FLAGS).args(args).output();
        let output = output.map_err(|error| format!("{}: {error}", self.command))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }
}

fn path(path: &Path) -> &str {
    path.to_str().expect("the repository's path is UTF-8")
}

impl super::Engine for Native {
    fn name(&self) -> &'static str {
        "native clang"
    }

    fn compile(&self, code: &Code) -> Result<Box<dyn super::Compiled>, Failure> {
        let folder =
            TempDir::new_in(self.clang.folder.path()).map_err(|error| error.to_string())?;
        let executable = folder.path().join("kernel");
        let filler = folder.path().join("filler.h");
        let text = format!("__asm__(\".text\\n.skip {}, 0x90\");\n", code.placement.native_bytes());
        fs::write(&filler, text).map_err(|error| error.to_string())?;
        let (native, timed) = (self.clang.file("native.o"), self.clang.file("timed.o"));
        let inputs = ["-include", path(&filler), path(&code.source), &native, &timed];
        self.clang.run(&[&inputs[..], &["-lm", "-o", path(&executable)]].concat())?;
        Ok(Box::new(Compiled { executable, _folder: folder, _clang: Rc::clone(&self.clang) }))
    }
}

struct Compiled {
    executable: PathBuf,
    _folder: TempDir,
    /// Has the folder around it.
    _clang: Rc<Clang>,
}

impl super::Compiled for Compiled {
    fn compile_time(&self) -> Option<Duration> {
        None
    }

    fn run(&self, run: &Run, n: u32) -> Result<(Outcome, Duration), Failure> {
        let Entry::Main(size) = run.entry else {
            return Err("expected a kernel, found a WASI program".to_owned());
        };
        repeat(n, || {
            let output = Command::new(&self.executable).arg(size.to_string()).output();
            let output = output.map_err(|error| error.to_string())?;
            let exit = output.status.code().ok_or_else(|| format!("ended by {}", output.status))?;
            let said = String::from_utf8_lossy(&output.stderr);
            let nanoseconds = said.trim().parse().map_err(|_| format!("no time in {said:?}"))?;
            let outcome = Outcome { printed: output.stdout, exit };
            Ok((outcome, Duration::from_nanos(nanoseconds)))
        })
    }
}
