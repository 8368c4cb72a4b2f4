//! Programs to run: the kernels and the WASI programs below `programs/wasm`.

use std::fs;
use std::path::{Path, PathBuf};

use vmrun::bench::description::{Description, source};

/// A program.
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) wasm: Vec<u8>,
    /// The path of the module's source.
    pub(crate) source: PathBuf,
    /// Run with the expected output.
    pub(crate) small: Run,
    /// Measured run.
    pub(crate) large: Run,
}

/// One way to run a program.
#[derive(Clone)]
pub(crate) struct Run {
    /// Size of the run beyond that of the small one.
    pub(crate) what: String,
    pub(crate) entry: Entry,
    /// Expected output, if it is known from elsewhere than from another engine.
    pub(crate) expected: Option<Vec<u8>>,
    /// The exit code it must end with.
    pub(crate) exit: i32,
}

/// Function to call.
#[derive(Clone)]
pub(crate) enum Entry {
    /// `main`, with a size.
    Main(i32),
    /// `_start`, as a program of WASI.
    Start(Wasi),
}

/// Inputs of a WASI program.
#[derive(Clone, Default)]
pub(crate) struct Wasi {
    /// The arguments, its name first.
    pub(crate) args: Vec<String>,
    /// The variables of the environment: names and values.
    pub(crate) env: Vec<(String, String)>,
    pub(crate) stdin: Vec<u8>,
    /// Directories by their names: the names and contents of the files in them.
    pub(crate) dirs: Vec<(String, Vec<File>)>,
}

/// A name and contents.
pub(crate) type File = (String, Vec<u8>);

/// Outcome of a run.
#[derive(PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) printed: Vec<u8>,
    pub(crate) exit: i32,
}

/// All kernels, as compilers made them in one of several ways, which is in the names of the modules.
pub(crate) fn kernels(level: &str) -> Vec<Program> {
    modules(&folder(), level).iter().map(|path| kernel(path)).collect()
}

/// All WASI programs, as compilers optimised them.
pub(crate) fn wasi() -> Vec<Program> {
    modules(&folder().join("wasi"), "O2").iter().map(|path| command(path)).collect()
}

/// The WASI programs below the folder of `--other=FOLDER`. The files beside a program are in its directory `.`.
pub(crate) fn others() -> Vec<Program> {
    let folder = std::env::args().find_map(|arg| arg.strip_prefix("--other=").map(PathBuf::from));
    let mut folders: Vec<PathBuf> = folder.into_iter().collect();
    let mut modules = Vec::new();
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).expect("the folder is there");
        let paths = entries.map(|entry| entry.expect("the folder can be listed").path());
        let (inside, files): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
        folders.extend(inside);
        modules
            .extend(files.into_iter().filter(|path| path.extension().is_some_and(|e| e == "wasm")));
    }
    modules.sort();
    modules.into_iter().map(other).collect()
}

fn other(path: PathBuf) -> Program {
    let folder = path.parent().expect("it is a file");
    let module_name = |path: &Path| path.with_extension("").to_string_lossy().into_owned();
    let mut name = module_name(Path::new(path.file_name().expect("it is a file")));
    if name == "benchmark" {
        name = module_name(Path::new(folder.file_name().expect("it has a name")));
    }
    let is_input = |file: &File| !file.0.ends_with(".wasm");
    let wasi = Wasi {
        args: vec![name.clone()],
        dirs: vec![(".".to_owned(), files(folder).into_iter().filter(is_input).collect())],
        ..Wasi::default()
    };
    let run = Run { what: String::new(), entry: Entry::Start(wasi), expected: None, exit: 0 };
    Program { name, wasm: read(&path), source: path, small: run.clone(), large: run }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs/wasm")
}

/// The modules of a folder, by name.
fn modules(folder: &Path, level: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("the folder can be listed").path());
    let ending = format!(".{level}.wasm");
    let mut modules: Vec<_> =
        paths.filter(|path| path.to_string_lossy().ends_with(&ending)).collect();
    modules.sort();
    modules
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The name of the program in a file, its source, and the description in that.
fn described(path: &Path) -> (String, PathBuf, Description) {
    let file = path.file_name().expect("it is a file").to_string_lossy();
    let name = file.split('.').next().expect("there is a first part").to_owned();
    let source = source(path);
    let description = Description::read(&source).expect("the program has a source");
    (name, source, description)
}

fn kernel(path: &Path) -> Program {
    let (name, source, description) = described(path);
    let run = |size: Option<i32>, expected| {
        let size = size.expect("the source of a kernel says its sizes");
        Run { what: size.to_string(), entry: Entry::Main(size), expected, exit: 0 }
    };
    let expected = read(&path.with_file_name(format!("{name}.expected")));
    Program {
        wasm: read(path),
        small: run(description.default_size, Some(expected)),
        large: run(description.bench_size, None),
        source,
        name,
    }
}

fn command(path: &Path) -> Program {
    let (name, source, description) = described(path);
    let beside = |name: &str| path.with_file_name(name);
    let mut args = vec![name.clone()];
    args.extend(description.args);
    let variable = |text: &String| {
        let (name, value) = text.split_once('=').expect("a variable has a value");
        (name.to_owned(), value.to_owned())
    };
    let wasi = Wasi {
        args,
        env: description.env.iter().map(variable).collect(),
        stdin: description.stdin.map_or(Vec::new(), |file| read(&beside(&file))),
        dirs: description.dirs.iter().map(|dir| (dir.clone(), files(&beside(dir)))).collect(),
    };
    let small = Run {
        what: String::new(),
        entry: Entry::Start(wasi.clone()),
        expected: Some(read(&beside(&format!("{name}.expected")))),
        exit: description.exit,
    };
    let large = larger(&name, &small, wasi);
    Program { name, wasm: read(path), source, small, large }
}

/// The files of a directory.
fn files(dir: &Path) -> Vec<File> {
    let entries = fs::read_dir(dir).expect("the directory is there");
    let paths = entries.map(|entry| entry.expect("the directory can be listed").path());
    let file = |path: PathBuf| {
        (path.file_name().expect("it is a file").to_string_lossy().into_owned(), read(&path))
    };
    paths.filter(|path| path.is_file()).map(file).collect()
}

/// More work for a program, where it takes more.
fn larger(name: &str, small: &Run, mut wasi: Wasi) -> Run {
    let mut repeated = |n: usize| {
        wasi.stdin = wasi.stdin.repeat(n);
        (format!("input {n} times"), None)
    };
    let (what, expected) = match name {
        "big" => repeated(8),
        "lz" => repeated(30),
        "match" => repeated(8),
        "sudoku" => repeated(12),
        "words" => repeated(150),
        "phrases" => {
            wasi.args[1] = "300".to_owned();
            repeated(20)
        }
        "events" => {
            wasi.args[1] = "4000".to_owned();
            ("4,000 steps".to_owned(), None)
        }
        "chess" => {
            wasi.args[1] = "3".to_owned();
            ("depth 3".to_owned(), None)
        }
        "diff" => {
            wasi.dirs[0].1 = vec![texts(1), texts(2)];
            wasi.args.splice(1.., ["work/1.txt".to_owned(), "work/2.txt".to_owned()]);
            ("1,500 lines each".to_owned(), None)
        }
        "heap" => {
            wasi.args[1] = "20000".to_owned();
            ("20,000 rounds".to_owned(), None)
        }
        "json" => {
            let values = vec![wasi.stdin.as_slice(); 200];
            wasi.stdin = [b"[", values.join(&b","[..]).as_slice(), b"]"].concat();
            ("array of 200".to_owned(), None)
        }
        "lisp" => {
            wasi.stdin.extend(b"(try 7 0 nil 7)\n(fib 20)\n");
            ("7 queens, fib 20".to_owned(), None)
        }
        "raster" => {
            wasi.args.splice(1.., ["640".to_owned(), "480".to_owned()]);
            ("640 by 480".to_owned(), None)
        }
        // They know one size only, and run as often as it takes.
        _ => (String::new(), small.expected.clone()),
    };
    Run { what, entry: Entry::Start(wasi), expected, exit: small.exit }
}

/// A file of lines that have much in common with those of another number.
fn texts(number: u32) -> File {
    let mut state = number;
    let mut text = String::new();
    for line in 0..1500 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // One of eight lines is another one.
        let is_other = state >> 29 == 0;
        text += &format!("line {} of a text\n", if is_other { state } else { line });
    }
    (format!("{number}.txt"), text.into_bytes())
}
