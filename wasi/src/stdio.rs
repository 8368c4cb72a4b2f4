//! Standard streams: those of the host's process, or readers and writers of the embedder.

use std::fmt;
use std::io::{self, IoSlice, IsTerminal, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::retry_on_intr;

use crate::errno::{Errno, Result};
use crate::types::{FdFlags, FileType};

/// An input stream of a program.
pub(crate) struct Input {
    pub(crate) source: Source,
    /// `nonblock` is the only flag that is ever set.
    pub(crate) flags: FdFlags,
}

/// The source of an input stream.
pub(crate) enum Source {
    /// The standard input of the process. Reads bypass the buffer of the standard library, so that the
    /// system knows what can be read without blocking.
    Inherited(io::Stdin),
    /// A reader of the embedder, which is always ready.
    Reader(Box<dyn Read + Send>),
}

/// An output stream of a program.
pub(crate) struct Output {
    pub(crate) sink: Sink,
    /// `nonblock` is the only flag that is ever set.
    pub(crate) flags: FdFlags,
}

/// The sink of an output stream.
pub(crate) enum Sink {
    /// The standard output of the process, unbuffered.
    Stdout(io::Stdout),
    /// The standard error of the process, unbuffered.
    Stderr(io::Stderr),
    /// A writer of the embedder, which is always ready.
    Writer(Box<dyn Write + Send>),
}

/// Programs take character devices for terminals.
fn file_type(is_terminal: bool) -> FileType {
    if is_terminal { FileType::CharacterDevice } else { FileType::Unknown }
}

/// Whether a descriptor of the host is ready, after waiting for at most `wait`.
pub(crate) fn is_ready(fd: BorrowedFd<'_>, events: PollFlags, wait: Duration) -> bool {
    let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
    let mut fds = [PollFd::from_borrowed_fd(fd, events)];
    // A signal ends the wait early, and so does an error, which the read or write will report.
    rustix::event::poll(&mut fds, Some(&wait)).map_or(true, |n| n > 0)
}

impl Input {
    pub(crate) fn new(source: Source) -> Input {
        Input { source, flags: FdFlags::empty() }
    }

    pub(crate) fn file_type(&self) -> FileType {
        file_type(matches!(&self.source, Source::Inherited(stdin) if stdin.is_terminal()))
    }

    /// Returns the host's descriptor to poll before a read; `None` if reads never block.
    pub(crate) fn host(&self) -> Option<BorrowedFd<'_>> {
        match &self.source {
            Source::Inherited(stdin) => Some(stdin.as_fd()),
            Source::Reader(_) => None,
        }
    }

    /// Reads once; fails with `again` if it is non-blocking and would block.
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
            // Do not trust a reader that claims to have read more than the buffer holds.
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

    /// Returns the host's descriptor to poll before a write; `None` if writes never block.
    pub(crate) fn host(&self) -> Option<BorrowedFd<'_>> {
        match &self.sink {
            Sink::Stdout(stdout) => Some(stdout.as_fd()),
            Sink::Stderr(stderr) => Some(stderr.as_fd()),
            Sink::Writer(_) => None,
        }
    }

    /// Writes once; fails with `again` if it is non-blocking and would block.
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

/// A writer that keeps its output in memory, for [`WasiCtxBuilder::stdout`](crate::WasiCtxBuilder::stdout)
/// and [`stderr`](crate::WasiCtxBuilder::stderr). Clones share their contents.
#[derive(Clone)]
pub struct MemoryOutput {
    bytes: Arc<Mutex<Vec<u8>>>,
    bytes_max: usize,
}

impl MemoryOutput {
    /// Returns a writer that keeps at most `bytes_max` bytes. Further writes fail, with `nospc` for the
    /// program.
    pub fn new(bytes_max: usize) -> MemoryOutput {
        MemoryOutput { bytes: Arc::default(), bytes_max }
    }

    /// Returns the bytes written so far.
    pub fn contents(&self) -> Vec<u8> {
        self.bytes().clone()
    }

    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        // Ignore poisoning: no holder of the lock can panic halfway.
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
