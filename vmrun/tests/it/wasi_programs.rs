//! WASI programs in C, C++ and Rust with their libraries, compiled to WebAssembly.
//!
//! The expected outputs are those of the same sources as native programs, checked for undefined behaviour.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use similar::TextDiff;
use vmrun::bench::description::{Description, source};

use crate::binary::{ENGINES, Folder, command, root};
use crate::programs::check_each;

/// The optimisation levels of the modules of C programs. Others have the second only.
const LEVELS: [&str; 2] = ["O0", "O2"];
/// The entries of the folder that belong to no program.
const SHARED: [&str; 3] = ["README.md", "build", "work"];

fn folder() -> PathBuf {
    root().join("programs/wasm/wasi")
}

/// A program, and its settings in the comment at the top of its source.
struct Program {
    name: String,
    /// Ending of its source.
    language: String,
    runs: Description,
}

impl Program {
    fn new(name: &str) -> Program {
        let source = source(&folder().join(name));
        let runs = Description::read(&source).expect("the program has a source");
        let language = source.extension().expect("it has an ending").to_string_lossy();
        Program { name: name.to_owned(), language: language.into_owned(), runs }
    }

    fn levels(&self) -> &'static [&'static str] {
        if self.language == "c" { &LEVELS } else { &LEVELS[1..] }
    }

    /// Checks the output of the module of an optimisation level in an engine.
    fn check(&self, level: &str, engine: &str) -> Result<(), String> {
        let at = format!("{level} {engine}");
        let place =
            Folder::new(&format!("wasi_{}_{level}_{}", self.name, engine.replace(' ', "_")));
        let mut args = vec![folder().join(format!("{}.{level}.wasm", self.name)).into_os_string()];
        args.extend(engine.split_whitespace().map(Into::into));
        for dir in &self.runs.dirs {
            copy(&folder().join(dir), &place.path(dir));
            args.extend(["--dir".into(), dir.into()]);
        }
        args.extend(self.runs.env.iter().flat_map(|variable| ["--env".into(), variable.into()]));
        args.push("--".into());
        args.extend(self.runs.args.iter().map(Into::into));
        let mut child = command(&args);
        child.current_dir(place.path(""));
        if let Some(input) = &self.runs.stdin {
            child.stdin(fs::File::open(folder().join(input)).expect("the input is there"));
        }
        // Files, since a pipe that nobody reads would fill up.
        let mut stdout = file(&place.path("stdout"));
        child.stdout(stdout.try_clone().expect("there are descriptors"));
        child.stderr(file(&place.path("stderr")));
        let code = child.status().expect("the binary starts").code();
        let mut printed = Vec::new();
        stdout.rewind().and_then(|()| stdout.read_to_end(&mut printed)).expect("it can be read");
        let expected = fs::read(folder().join(format!("{}.expected", self.name)));
        let expected = expected.expect("the program has an expected output");
        if printed != expected {
            let (expected, printed) =
                (String::from_utf8_lossy(&expected), String::from_utf8_lossy(&printed));
            let diff = TextDiff::from_lines(&expected, &printed);
            return Err(format!("{at}: wrong output\n{}", diff.unified_diff()));
        }
        match code {
            Some(code) if code == self.runs.exit => Ok(()),
            code => Err(format!("{at}: exit code {code:?}")),
        }
    }
}

fn file(path: &Path) -> fs::File {
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create_new(true).open(path).expect("the file can be made")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("the directory can be made");
    for entry in fs::read_dir(from).expect("the directory is there") {
        let entry = entry.expect("the directory can be listed");
        fs::copy(entry.path(), to.join(entry.file_name())).expect("the file can be copied");
    }
}

/// The names of all programs, from the table in the folder's README.
fn names() -> Vec<String> {
    let readme = fs::read_to_string(folder().join("README.md")).expect("it is there");
    let rows = readme.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.split('|').nth(1).expect("a row has cells").trim().to_owned()).collect()
}

#[test]
fn the_folder_holds_what_its_readme_lists() {
    let mut expected: BTreeSet<String> = SHARED.map(str::to_owned).into();
    for name in names() {
        let program = Program::new(&name);
        expected.extend(program.levels().iter().map(|level| format!("{name}.{level}.wasm")));
        expected.extend([&program.language, "expected"].map(|ending| format!("{name}.{ending}")));
        expected.extend(program.runs.stdin);
    }
    let files = fs::read_dir(folder()).expect("the folder is there");
    let found = files.map(|file| file.expect("it can be listed").file_name().into_string());
    assert_eq!(found.collect::<Result<BTreeSet<_>, _>>(), Ok(expected));
}

#[test]
fn every_wasi_program_in_every_engine() {
    let programs: Vec<Program> = names().iter().map(|name| Program::new(name)).collect();
    assert!(programs.len() >= 10, "only {} programs found", programs.len());
    let runs: Vec<(&Program, &str, &str)> = programs
        .iter()
        .flat_map(|program| program.levels().iter().map(move |&level| (program, level)))
        .flat_map(|(program, level)| ENGINES.map(|engine| (program, level, engine)))
        .collect();
    check_each(&runs, |run| &run.0.name, |(program, level, engine)| program.check(level, engine));
}

#[test]
fn what_one_program_writes_another_one_reads() {
    let run = |name: &str, arg: &str, input: &[u8]| {
        let place = Folder::new(&format!("wasi_pipe_{name}_{arg}"));
        let module = folder().join(format!("{name}.O2.wasm"));
        let mut child =
            command(&[module.as_os_str(), "--jit".as_ref(), "--".as_ref(), arg.as_ref()]);
        let mut file = file(&place.path("input"));
        file.write_all(input).and_then(|()| file.rewind()).expect("it can be written");
        let output = child.stdin(file).output().expect("the binary starts");
        assert!(output.status.success(), "{name} {arg}: {output:?}");
        output.stdout
    };
    let text = fs::read(folder().join("lisp.c")).expect("it is there");
    let packed = run("lz", "-c", &text);
    assert!(packed.len() < text.len() * 2 / 3, "{} of {}", packed.len(), text.len());
    assert!(run("lz", "-d", &packed) == text, "it is not what it was");
}
