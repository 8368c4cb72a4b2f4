//! Runs the real binary, and makes folders for its files.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Exit code and output of a run of the binary.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// The standard output of a run that must have succeeded without complaints.
    #[track_caller]
    pub(crate) fn output(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{self:?}");
        self.stdout
    }

    /// The standard error of a run that must have failed with this code, before it printed anything.
    #[track_caller]
    pub(crate) fn error(self, code: i32) -> String {
        assert_eq!((self.code, self.stdout.as_str()), (code, ""), "{self:?}");
        self.stderr
    }
}

/// The root of the repository, where the binary runs.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate has a folder of its own")
}

/// The binary, to be run in the root of the repository, without input.
pub(crate) fn command(args: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vmrun"));
    // The help must not depend on the terminal.
    command.args(args).current_dir(root()).env_remove("COLUMNS").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the binary.
pub(crate) fn vmrun(args: &[impl AsRef<OsStr>]) -> Ran {
    vmrun_with_input(args, "")
}

/// Runs the binary with this input.
pub(crate) fn vmrun_with_input(args: &[impl AsRef<OsStr>], input: &str) -> Ran {
    let mut child = command(args).stdin(Stdio::piped()).spawn().expect("the binary starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    // The binary may exit without reading its input.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("it writes UTF-8");
    Ran {
        code: output.status.code().expect("no signal ends it"),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// Runs the binary with the words of a line as arguments, and one more before them.
pub(crate) fn vmrun_line(program: &Path, line: &str) -> Ran {
    let args = line.split_whitespace().map(OsStr::new);
    vmrun(&[program.as_os_str()].into_iter().chain(args).collect::<Vec<_>>())
}

/// The options that select each engine.
pub(crate) const ENGINES: [&str; 6] = [
    "",
    "--slots memory",
    "--slots memory-opt",
    "--slots memory-forwarded",
    "--slots variables",
    "--jit",
];

/// An empty folder for a test, which is kept for debugging failures.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// The folder for a test with this name.
    pub(crate) fn new(test: &str) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        if path.exists() {
            fs::remove_dir_all(&path).expect("the folder can be removed");
        }
        fs::create_dir_all(&path).expect("the folder can be made");
        Folder(path)
    }

    /// A path in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, contents).expect("the file can be written");
        path
    }
}
