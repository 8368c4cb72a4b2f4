//! What a program is given: [`WasiCtx`], and [`WasiCtxBuilder`], which makes one.

use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use cap_std::fs::Dir;
use rustix::fs::OFlags;

use crate::clock::Clocks;
use crate::errno::Errno;
use crate::stdio::{Input, Output, Sink, Source};
use crate::table::{Descriptor, Directory, Kind, Table};
use crate::types::Rights;

/// What a program is given, and what has become of it: arguments, environment, clocks, and descriptors. It is
/// a part of the embedder's data in the store of the program.
pub struct WasiCtx {
    /// Without the zero bytes at their ends.
    pub(crate) args: Vec<String>,
    /// Each as `NAME=VALUE`, without the zero bytes at their ends.
    pub(crate) env: Vec<String>,
    pub(crate) clocks: Clocks,
    pub(crate) table: Table,
}

impl WasiCtx {
    /// Begins to make one.
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

/// Makes a [`WasiCtx`].
///
/// What is not asked for, the program does not get: it has no arguments, no environment and no directories,
/// its input is empty, and its output is thrown away. Clocks and random numbers it always has.
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
    /// Begins with nothing.
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

    /// Adds an argument. The first one is the name of the program, by custom. Programs in C see an argument
    /// end at its first zero byte.
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

    /// Adds an environment variable. None is taken from the process of the host.
    pub fn env(&mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> &mut WasiCtxBuilder {
        self.env.push(format!("{}={}", name.as_ref(), value.as_ref()));
        self
    }

    /// Lets the program read what a reader gives.
    pub fn stdin(&mut self, reader: impl Read + Send + 'static) -> &mut WasiCtxBuilder {
        self.stdin = Source::Reader(Box::new(reader));
        self
    }

    /// Sends what the program prints to a writer, such as a [`MemoryOutput`](crate::MemoryOutput). It is
    /// flushed each time.
    pub fn stdout(&mut self, writer: impl Write + Send + 'static) -> &mut WasiCtxBuilder {
        self.stdout = Sink::Writer(Box::new(writer));
        self
    }

    /// Sends what the program prints as errors to a writer.
    pub fn stderr(&mut self, writer: impl Write + Send + 'static) -> &mut WasiCtxBuilder {
        self.stderr = Sink::Writer(Box::new(writer));
        self
    }

    /// Lets the program read the standard input of the process. What [`io::stdin`] has read ahead, the
    /// program does not see.
    pub fn inherit_stdin(&mut self) -> &mut WasiCtxBuilder {
        self.stdin = Source::Inherited(io::stdin());
        self
    }

    /// Lets the program write to the standard output of the process, past the buffer of [`io::stdout`].
    pub fn inherit_stdout(&mut self) -> &mut WasiCtxBuilder {
        self.stdout = Sink::Stdout(io::stdout());
        self
    }

    /// Lets the program write to the standard error of the process.
    pub fn inherit_stderr(&mut self) -> &mut WasiCtxBuilder {
        self.stderr = Sink::Stderr(io::stderr());
        self
    }

    /// Gives the program all standard streams of the process.
    pub fn inherit_stdio(&mut self) -> &mut WasiCtxBuilder {
        self.inherit_stdin().inherit_stdout().inherit_stderr()
    }

    /// Opens a directory of the host, by any path, and lets the program do everything in it. The program
    /// knows it by another name: `/` or `.` if it should find files by paths without more.
    ///
    /// # Errors
    /// If there is no such directory, it cannot be opened, or
    /// [too many](crate::limits::DESCRIPTORS_MAX) are open.
    pub fn preopened_dir(
        &mut self,
        host: impl AsRef<Path>,
        guest: impl Into<String>,
    ) -> io::Result<&mut WasiCtxBuilder> {
        self.preopened_dir_with(host, guest, Rights::all())
    }

    /// As [`WasiCtxBuilder::preopened_dir`], but the program has only some rights there, such as
    /// [`Rights::READ_ONLY`].
    ///
    /// # Errors
    /// As for [`WasiCtxBuilder::preopened_dir`].
    pub fn preopened_dir_with(
        &mut self,
        host: impl AsRef<Path>,
        guest: impl Into<String>,
        rights: Rights,
    ) -> io::Result<&mut WasiCtxBuilder> {
        if N_STREAMS + self.directories.len() >= crate::limits::DESCRIPTORS_MAX {
            return Err(io::Error::other(Errno::Mfile));
        }
        // What cap-std opens by itself is good for paths only, and cannot be listed or synchronised.
        let flags = OFlags::DIRECTORY.bits() as i32;
        let dir = fs::OpenOptions::new().read(true).custom_flags(flags).open(host)?;
        let dir = Dir::from_std_file(dir);
        let preopened_as = Some(guest.into());
        self.directories.push(Descriptor {
            kind: Kind::Directory(Directory { dir, preopened_as, listing: None }),
            rights: rights & Rights::DIRECTORY,
            // All of them: programs that ask for every right ask for those of sockets, too.
            inheriting: rights,
        });
        Ok(self)
    }

    /// Makes what the program is given. The builder begins again with nothing.
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
            table.insert(descriptor).expect("the builder has counted them");
        }
        WasiCtx { args: builder.args, env: builder.env, clocks: Clocks::new(), table }
    }
}

/// Standard input, output and error.
const N_STREAMS: usize = 3;
