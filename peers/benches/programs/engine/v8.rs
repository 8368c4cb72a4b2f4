//! V8, with its optimising compiler or its baseline compiler for all functions, in a process of Node.js for each
//! program.

use std::cell::RefCell;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Code, Failure, directories, repeat};
use crate::program::{Entry, Outcome, Program, Run, Wasi};

/// Everything is compiled before it runs. Programs that recurse deeply need more than the default stack.
const FLAGS: [&str; 3] = ["--no-warnings", "--no-wasm-lazy-compilation", "--stack-size=4000"];

pub(super) struct V8 {
    name: &'static str,
    flag: &'static str,
}

impl V8 {
    pub(super) fn turbofan() -> Result<V8, Failure> {
        V8 { name: "V8 TurboFan", flag: "--no-liftoff" }.found()
    }

    pub(super) fn liftoff() -> Result<V8, Failure> {
        V8 { name: "V8 Liftoff", flag: "--liftoff-only" }.found()
    }

    fn found(self) -> Result<V8, Failure> {
        let status = Command::new("node").args(FLAGS).args([self.flag, "--eval", "0"]).status();
        match status {
            Ok(status) if status.success() => Ok(self),
            Ok(status) => Err(format!("{}: node ends with {status}", self.name)),
            Err(error) => Err(format!("{}: node: {error}", self.name)),
        }
    }
}

impl super::Engine for V8 {
    fn name(&self) -> &'static str {
        self.name
    }

    fn runs(&self, program: &Program) -> bool {
        // Node.js does not find the file that a symbolic link in a subdirectory leads to.
        program.name != "files"
    }

    fn compile(&self, code: &Code) -> Result<Box<dyn super::Compiled>, Failure> {
        let folder = TempDir::new().map_err(failure)?;
        let place = |name: &str| folder.path().join(name);
        fs::write(place("runner.mjs"), include_str!("v8.mjs")).map_err(failure)?;
        fs::write(place("program.wasm"), &code.wasm).map_err(failure)?;
        let mut child = Command::new("node")
            .args(FLAGS)
            .arg(self.flag)
            .arg(place("runner.mjs"))
            .arg(place("program.wasm"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failure)?;
        let requests = child.stdin.take().ok_or("expected a pipe")?;
        let answers = BufReader::new(child.stdout.take().ok_or("expected a pipe")?);
        let mut node = Node { child, requests, answers };
        let taken = node.answer()?.time();
        Ok(Box::new(Compiled { folder, taken, node: RefCell::new(node) }))
    }
}

fn failure(error: impl std::fmt::Display) -> Failure {
    error.to_string()
}

/// A process that runs a program whenever it is asked to.
struct Node {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// A line that the process prints after compiling and after each run.
#[derive(Deserialize)]
struct Answer {
    microseconds: u64,
    exit: i32,
}

impl Answer {
    fn time(&self) -> Duration {
        Duration::from_micros(self.microseconds)
    }
}

impl Node {
    fn ask(&mut self, request: &Value) -> Result<Answer, Failure> {
        writeln!(self.requests, "{request}").map_err(failure)?;
        self.answer()
    }

    fn answer(&mut self) -> Result<Answer, Failure> {
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(failure)?;
        serde_json::from_str(&line).map_err(|error| format!("node says {line:?}: {error}"))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Nothing is lost if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Compiled {
    /// The program, its input and its output.
    folder: TempDir,
    /// The time of compiling.
    taken: Duration,
    node: RefCell<Node>,
}

impl super::Compiled for Compiled {
    fn compile_time(&self) -> Option<Duration> {
        Some(self.taken)
    }

    fn run(&self, run: &Run, n: u32) -> Result<(Outcome, Duration), Failure> {
        repeat(n, || self.once(run))
    }
}

impl Compiled {
    fn once(&self, run: &Run) -> Result<(Outcome, Duration), Failure> {
        let output = self.folder.path().join("output");
        let (request, _dirs) = match &run.entry {
            Entry::Main(size) => (json!({ "size": size, "output": output }), None),
            Entry::Start(wasi) => {
                let dirs = directories(wasi)?;
                let input = self.folder.path().join("input");
                fs::write(&input, &wasi.stdin).map_err(failure)?;
                let mut request = wasi_request(wasi, dirs.as_ref().map(TempDir::path))?;
                request["input"] = json!(input);
                request["output"] = json!(output);
                (request, dirs)
            }
        };
        let answer = self.node.borrow_mut().ask(&request)?;
        let printed = fs::read(&output).map_err(failure)?;
        Ok((Outcome { printed, exit: answer.exit }, answer.time()))
    }
}

fn wasi_request(wasi: &Wasi, dirs: Option<&Path>) -> Result<Value, Failure> {
    let env: serde_json::Map<String, Value> =
        wasi.env.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let mut preopens = serde_json::Map::new();
    for (name, _) in &wasi.dirs {
        let place = dirs.ok_or("expected directories")?.join(name);
        preopens.insert(name.clone(), json!(place));
    }
    Ok(json!({ "args": wasi.args, "env": env, "preopens": preopens }))
}
