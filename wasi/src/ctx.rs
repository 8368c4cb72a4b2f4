//! The state of a WASI program, [`WasiCtx`], and its builder, [`WasiCtxBuilder`].

use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use cap_std::fs::Dir;
use rustix::fs::OFlags;

use crate::clocks::Clocks;
use crate::errno::Errno;
use crate::stdio::{Input, Output, Sink, Source};
use crate::table::{Descriptor, Directory, Kind, Table};
use crate::types::Rights;

/// The WASI state of a program: arguments, environment, clocks, and descriptors. It is part of the
/// embedder's data in the program's store.
pub struct WasiCtx {
    /// Arguments without terminating zero bytes.
    pub(crate) args: Vec<String>,
    /// Each as `NAME=VALUE`, without the terminating zero byte.
    pub(crate) env: Vec<String>,
    pub(crate) clocks: Clocks,
    pub(crate) table: Table,
}

impl WasiCtx {
    /// Returns a new builder.
    pub fn builder() -> WasiCtxBuilder {
        WasiCtxBuilder::new()
    }
}

impl fmt::Debug for WasiCtx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("WasiCtx");
        f.field("args", &self.args).field("env", &self.env).finish_non_exhaustive()
    }
}

/// Builds a [`WasiCtx`].
///
/// A program gets only what is asked for. By default it has no arguments, no environment and no
/// directories, its input is empty, and its output is discarded. Clocks and random numbers are always
/// available.
pub struct WasiCtxBuilder {
    args: Vec<String>,
    env: Vec<String>,
    stdin: Source,
    stdout: Sink,
    stderr: Sink,
    directories: Vec<Descriptor>,
}

impl Default for WasiCtxBuilder {
    fn default() -> WasiCtxBuilder {
        WasiCtxBuilder::new()
    }
}

impl fmt::Debug for WasiCtxBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("WasiCtxBuilder");
        f.field("args", &self.args).field("env", &self.env).finish_non_exhaustive()
    }
}

impl WasiCtxBuilder {
    /// Returns a builder with the defaults.
    pub fn new() -> WasiCtxBuilder {
        WasiCtxBuilder {
            args: Vec::new(),
            env: Vec::new(),
            stdin: Source::Reader(Box::new(io::empty())),
            stdout: Sink::Writer(Box::new(io::sink())),
            stderr: Sink::Writer(Box::new(io::sink())),
            directories: Vec::new(),
        }
    }

    /// Adds an argument. By convention the first one is the name of the program. In C programs an argument
    /// ends at its first zero byte.
    pub fn arg(&mut self, arg: impl Into<String>) -> &mut WasiCtxBuilder {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    pub fn args<S: Into<String>>(
        &mut self,
        args: impl IntoIterator<Item = S>,
    ) -> &mut WasiCtxBuilder {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Adds an environment variable. The environment of the host's process is not inherited.
    pub fn env(&mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> &mut WasiCtxBuilder {
        self.env.push(format!("{}={}", name.as_ref(), value.as_ref()));
        self
    }

    /// Makes a reader the program's standard input.
    pub fn stdin(&mut self, reader: impl Read + Send + 'static) -> &mut WasiCtxBuilder {
        self.stdin = Source::Reader(Box::new(reader));
        self
    }

    /// Sends the program's standard output to a writer, such as a [`MemoryOutput`](crate::MemoryOutput).
    /// The writer is flushed after each write.
    pub fn stdout(&mut self, writer: impl Write + Send + 'static) -> &mut WasiCtxBuilder {
        self.stdout = Sink::Writer(Box::new(writer));
        self
    }

    /// Sends the program's standard error to a writer.
    pub fn stderr(&mut self, writer: impl Write + Send + 'static) -> &mut WasiCtxBuilder {
        self.stderr = Sink::Writer(Box::new(writer));
        self
    }

    /// Lets the program read the standard input of the process. The program does not see bytes that
    /// [`io::stdin`] has already buffered.
    pub fn inherit_stdin(&mut self) -> &mut WasiCtxBuilder {
        self.stdin = Source::Inherited(io::stdin());
        self
    }

    /// Lets the program write to the standard output of the process, bypassing the buffer of
    /// [`io::stdout`].
    pub fn inherit_stdout(&mut self) -> &mut WasiCtxBuilder {
        self.stdout = Sink::Stdout(io::stdout());
        self
    }

    /// Lets the program write to the standard error of the process.
    pub fn inherit_stderr(&mut self) -> &mut WasiCtxBuilder {
        self.stderr = Sink::Stderr(io::stderr());
        self
    }

    /// Lets the program use all standard streams of the process.
    pub fn inherit_stdio(&mut self) -> &mut WasiCtxBuilder {
        self.inherit_stdin().inherit_stdout().inherit_stderr()
    }

    /// Opens a directory of the host and lets the program do everything in it.
    ///
    /// The host's path may be any. The program knows the directory by another name: `/` or `.` if plain
    /// paths should be found in it.
    ///
    /// # Errors
    /// Fails if the directory does not exist, if it cannot be opened, or if [too
    /// many](crate::limits::DESCRIPTORS_MAX) descriptors are open.
    pub fn preopened_dir(
        &mut self,
        host: impl AsRef<Path>,
        guest: impl Into<String>,
    ) -> io::Result<&mut WasiCtxBuilder> {
        self.preopened_dir_with(host, guest, Rights::all())
    }

    /// Opens a directory like [`WasiCtxBuilder::preopened_dir`], with limited rights, such as
    /// [`Rights::READ_ONLY`].
    ///
    /// # Errors
    /// Fails like [`WasiCtxBuilder::preopened_dir`].
    pub fn preopened_dir_with(
        &mut self,
        host: impl AsRef<Path>,
        guest: impl Into<String>,
        rights: Rights,
    ) -> io::Result<&mut WasiCtxBuilder> {
        if N_STREAMS + self.directories.len() >= crate::limits::DESCRIPTORS_MAX {
            return Err(io::Error::other(Errno::Mfile));
        }
        // cap-std itself opens directories for path lookup only; those cannot be listed or synchronised.
        let flags = OFlags::DIRECTORY.bits() as i32;
        let dir = fs::OpenOptions::new().read(true).custom_flags(flags).open(host)?;
        let dir = Dir::from_std_file(dir);
        let preopened_as = Some(guest.into());
        self.directories.push(Descriptor {
            kind: Kind::Directory(Directory { dir, preopened_as, listing: None }),
            rights: rights & Rights::DIRECTORY,
            // Not limited to valid ones: programs that ask for every right also ask for those of sockets.
            inheriting: rights,
        });
        Ok(self)
    }

    /// Builds the state of a program. This resets the builder.
    pub fn build(&mut self) -> WasiCtx {
        let builder = std::mem::take(self);
        let mut table = Table::default();
        let stream = |kind, rights| Descriptor { kind, rights, inheriting: Rights::empty() };
        let streams = [
            stream(Kind::Input(Input::new(builder.stdin)), Rights::INPUT),
            stream(Kind::Output(Output::new(builder.stdout)), Rights::OUTPUT),
            stream(Kind::Output(Output::new(builder.stderr)), Rights::OUTPUT),
        ];
        for descriptor in streams.into_iter().chain(builder.directories) {
            table.insert(descriptor).expect("the builder checks the number of descriptors");
        }
        WasiCtx { args: builder.args, env: builder.env, clocks: Clocks::new(), table }
    }
}

/// Standard input, output and error.
const N_STREAMS: usize = 3;
