//! The standard streams: those of the host's process, or readers and writers of the embedder.

use std::fmt;
use std::io::{self, IoSlice, IsTerminal, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::retry_on_intr;

use crate::errno::{Errno, Result};
use crate::types::{FdFlags, FileType};

/// What a program reads from.
pub(crate) struct Input {
    pub(crate) source: Source,
    /// Only `nonblock` is ever set.
    pub(crate) flags: FdFlags,
}

/// Where input comes from.
pub(crate) enum Source {
    /// The standard input of the process. It is read past the buffer that the standard library keeps, so
    /// that what can be read now is what the system says.
    Inherited(io::Stdin),
    /// A reader of the embedder, which is always ready.
    Reader(Box<dyn Read + Send>),
}

/// What a program writes to.
pub(crate) struct Output {
    pub(crate) sink: Sink,
    /// Only `nonblock` is ever set.
    pub(crate) flags: FdFlags,
}

/// Where output goes.
pub(crate) enum Sink {
    /// The standard output of the process; nothing is buffered.
    Stdout(io::Stdout),
    /// Its standard error.
    Stderr(io::Stderr),
    /// A writer of the embedder, which is always ready.
    Writer(Box<dyn Write + Send>),
}

/// Programs take devices for terminals.
fn file_type(is_terminal: bool) -> FileType {
    if is_terminal { FileType::CharacterDevice } else { FileType::Unknown }
}

/// Whether a descriptor of the host is ready, after some time has been waited for that.
pub(crate) fn is_ready(fd: BorrowedFd<'_>, events: PollFlags, wait: Duration) -> bool {
    let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
    let mut fds = [PollFd::from_borrowed_fd(fd, events)];
    // A signal or an error ends the wait; reading or writing will tell.
    rustix::event::poll(&mut fds, Some(&wait)).map_or(true, |n| n > 0)
}

impl Input {
    pub(crate) fn new(source: Source) -> Input {
        Input { source, flags: FdFlags::empty() }
    }

    pub(crate) fn file_type(&self) -> FileType {
        file_type(matches!(&self.source, Source::Inherited(stdin) if stdin.is_terminal()))
    }

    /// The descriptor of the host that tells when there is something to read; without one there always is.
    pub(crate) fn host(&self) -> Option<BorrowedFd<'_>> {
        match &self.source {
            Source::Inherited(stdin) => Some(stdin.as_fd()),
            Source::Reader(_) => None,
        }
    }

    /// Reads once; `again` if it should not wait and would have to.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        if self.flags.contains(FdFlags::NONBLOCK)
            && self.host().is_some_and(|fd| !is_ready(fd, PollFlags::IN, Duration::ZERO))
        {
            return Err(Errno::Again);
        }
        match &mut self.source {
            Source::Inherited(stdin) => {
                Ok(retry_on_intr(|| rustix::io::read(&*stdin, &mut *into))?)
            }
            // A reader that says that it has read more than it could must not harm anybody.
            Source::Reader(reader) => Ok(reader.read(into)?.min(into.len())),
        }
    }
}

impl Output {
    pub(crate) fn new(sink: Sink) -> Output {
        Output { sink, flags: FdFlags::empty() }
    }

    pub(crate) fn file_type(&self) -> FileType {
        file_type(match &self.sink {
            Sink::Stdout(stdout) => stdout.is_terminal(),
            Sink::Stderr(stderr) => stderr.is_terminal(),
            Sink::Writer(_) => false,
        })
    }

    /// The descriptor of the host that tells when it can be written to; without one it always can.
    pub(crate) fn host(&self) -> Option<BorrowedFd<'_>> {
        match &self.sink {
            Sink::Stdout(stdout) => Some(stdout.as_fd()),
            Sink::Stderr(stderr) => Some(stderr.as_fd()),
            Sink::Writer(_) => None,
        }
    }

    /// Writes once; `again` if it should not wait and would have to.
    pub(crate) fn write(&mut self, from: &[IoSlice<'_>]) -> Result<usize> {
        if self.flags.contains(FdFlags::NONBLOCK)
            && self.host().is_some_and(|fd| !is_ready(fd, PollFlags::OUT, Duration::ZERO))
        {
            return Err(Errno::Again);
        }
        match &mut self.sink {
            Sink::Stdout(stdout) => Ok(retry_on_intr(|| rustix::io::writev(&*stdout, from))?),
            Sink::Stderr(stderr) => Ok(retry_on_intr(|| rustix::io::writev(&*stderr, from))?),
            Sink::Writer(writer) => {
                let n_max: usize = from.iter().map(|slice| slice.len()).sum();
                let n = writer.write_vectored(from)?;
                writer.flush()?;
                Ok(n.min(n_max))
            }
        }
    }
}

/// A writer that keeps what is written to it, for [`WasiCtxBuilder::stdout`](crate::WasiCtxBuilder::stdout)
/// and [`stderr`](crate::WasiCtxBuilder::stderr). Clones share what they keep.
#[derive(Clone)]
pub struct MemoryOutput {
    bytes: Arc<Mutex<Vec<u8>>>,
    bytes_max: usize,
}

impl MemoryOutput {
    /// A writer that keeps at most so many bytes. Writing more is an error, `nospc` for the program.
    pub fn new(bytes_max: usize) -> MemoryOutput {
        MemoryOutput { bytes: Arc::default(), bytes_max }
    }

    /// What has been written.
    pub fn contents(&self) -> Vec<u8> {
        self.bytes().clone()
    }

    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        // Nothing that holds the lock can panic half way.
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MemoryOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryOutput").field("bytes_max", &self.bytes_max).finish_non_exhaustive()
    }
}

impl Write for MemoryOutput {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        let mut bytes = self.bytes();
        let room = self.bytes_max.saturating_sub(bytes.len());
        if room == 0 && !from.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let n = from.len().min(room);
        bytes.extend_from_slice(&from[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
