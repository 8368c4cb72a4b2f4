//! Arguments, input and directories of a WASI program that is measured.

use std::fs;
use std::io::{self, Cursor};
use std::path::{Path, PathBuf};

use slotvm_wasi::WasiCtx;
use tempfile::TempDir;

use super::description::{Description, source};
use vmrun_base::error::CliError;

/// The comment at the top of a program's source, with the input that it names. A program without a source
/// has no arguments, no input and no directories.
#[derive(Clone, Debug)]
pub(super) struct Command {
    /// The arguments, beginning with the program's name.
    args: Vec<String>,
    env: Vec<String>,
    input: Vec<u8>,
    /// Host directories that the program gets copies of, and their names in the program.
    dirs: Vec<(PathBuf, String)>,
    /// The expected exit code.
    pub(super) exit: i32,
}

impl Command {
    /// Reads the source of the program in a file.
    pub(super) fn of(path: &Path) -> Result<Command, CliError> {
        let file_name = path.file_name().unwrap_or_default().to_string_lossy();
        let source = source(path);
        let described = match Description::read(&source) {
            Ok(description) => description,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Description::default(),
            Err(error) => return Err(CliError::file(&source)(error)),
        };
        let input = described.stdin.map(|file| path.with_file_name(file));
        let input = input.map(|file| fs::read(&file).map_err(CliError::file(&file))).transpose()?;
        Ok(Command {
            args: [file_name.into_owned()].into_iter().chain(described.args).collect(),
            env: described.env,
            input: input.unwrap_or_default(),
            dirs: described.dirs.into_iter().map(|dir| (path.with_file_name(&dir), dir)).collect(),
            exit: described.exit,
        })
    }

    /// The context of one run, which discards the program's output. The copies of the directories are removed
    /// when the returned `TempDir` is dropped.
    pub(super) fn context(&self) -> Result<(WasiCtx, Option<TempDir>), CliError> {
        let mut builder = WasiCtx::builder();
        builder.args(&self.args).stdin(Cursor::new(self.input.clone()));
        for variable in &self.env {
            let (name, value) = variable.split_once('=').unwrap_or((variable, ""));
            builder.env(name, value);
        }
        let place = (!self.dirs.is_empty()).then(TempDir::new).transpose()?;
        if let Some(place) = &place {
            for (from, name) in &self.dirs {
                let to = place.path().join(name);
                copy(from, &to).map_err(CliError::file(from))?;
                builder.preopened_dir(&to, name).map_err(CliError::file(&to))?;
            }
        }
        Ok((builder.build(), place))
    }
}

/// Copies a directory of files.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}
