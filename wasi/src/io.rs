//! Reads, writes and positions.
//!
//! The position and the append mode of a file are those of the host's descriptor. So writes of other
//! processes that append to the same file are not lost.

use std::fs::File;
use std::io::{IoSlice, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::retry_on_intr;

use crate::ctx::WasiCtx;
use crate::errno::{Errno, Result};
use crate::memory::{Buffer, GuestMemory, Span};
use crate::table::Kind;
use crate::types::Rights;

/// Reads into the buffers in order until the end. After an error, bytes that were already read still count.
fn fill(
    memory: &mut GuestMemory<'_>,
    buffers: &[Buffer],
    mut read: impl FnMut(&mut [u8], usize) -> std::io::Result<usize>,
) -> Result<usize> {
    let mut n_read = 0;
    for buffer in buffers {
        let n = match read(memory.buffer_mut(buffer), n_read) {
            Ok(n) => n,
            Err(error) if n_read == 0 => return Err(error.into()),
            Err(_) => break,
        };
        n_read += n;
        if n < buffer.len() {
            break;
        }
    }
    Ok(n_read)
}

/// Whether a read may block forever, so that it should stop at what is available.
fn may_wait(file: &File) -> Result<bool> {
    Ok(!file.metadata()?.is_file())
}

pub(crate) fn fd_read(
    ctx: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    fd: u32,
    buffers: Span,
    n_out: u32,
) -> Result<()> {
    let descriptor = ctx.table.get_mut(fd)?;
    if matches!(descriptor.kind, Kind::Output(_) | Kind::Directory(_)) {
        return Err(Errno::Badf);
    }
    descriptor.need(Rights::FD_READ)?;
    let buffers = memory.transfer(buffers, n_out)?;
    let first = buffers.get(..1).unwrap_or_default();
    let n = match &mut descriptor.kind {
        Kind::File(file) => {
            let one_is_enough = buffers.len() > 1 && may_wait(file)?;
            let buffers = if one_is_enough { first } else { &buffers };
            fill(memory, buffers, |into, _| retry(|| file.read(into)))?
        }
        Kind::Input(input) => match first {
            [] => 0,
            [buffer, ..] => input.read(memory.buffer_mut(buffer))?,
        },
        Kind::Output(_) | Kind::Directory(_) => unreachable!("it has been checked"),
    };
    memory.write_u32(n_out, n as u32)
}

pub(crate) fn fd_pread(
    ctx: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    fd: u32,
    buffers: Span,
    offset: u64,
    n_out: u32,
) -> Result<()> {
    let file = ctx.table.get(fd)?.seekable(Rights::FD_READ | Rights::FD_SEEK)?;
    let buffers = memory.transfer(buffers, n_out)?;
    let n = fill(memory, &buffers, |into, n_read| {
        retry(|| file.read_at(into, offset.saturating_add(n_read as u64)))
    })?;
    memory.write_u32(n_out, n as u32)
}

pub(crate) fn fd_write(
    ctx: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    fd: u32,
    buffers: Span,
    n_out: u32,
) -> Result<()> {
    let descriptor = ctx.table.get_mut(fd)?;
    if matches!(descriptor.kind, Kind::Input(_) | Kind::Directory(_)) {
        return Err(Errno::Badf);
    }
    descriptor.need(Rights::FD_WRITE)?;
    let buffers = memory.transfer(buffers, n_out)?;
    let from = memory.gather(&buffers);
    let n = match &mut descriptor.kind {
        _ if from.is_empty() => 0,
        Kind::File(file) => retry_on_intr(|| rustix::io::writev(&*file, &from))?,
        Kind::Output(output) => output.write(&from)?,
        Kind::Input(_) | Kind::Directory(_) => unreachable!("it has been checked"),
    };
    memory.write_u32(n_out, n as u32)
}

pub(crate) fn fd_pwrite(
    ctx: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    fd: u32,
    buffers: Span,
    offset: u64,
    n_out: u32,
) -> Result<()> {
    let file = ctx.table.get(fd)?.seekable(Rights::FD_WRITE | Rights::FD_SEEK)?;
    let buffers = memory.transfer(buffers, n_out)?;
    let n = write_at(file, &memory.gather(&buffers), offset)?;
    memory.write_u32(n_out, n as u32)
}

/// Writes at an offset, even if the file is in append mode, where Linux would ignore the offset.
fn write_at(file: &File, from: &[IoSlice<'_>], offset: u64) -> Result<usize> {
    if from.is_empty() {
        return Ok(0);
    }
    let flags = fcntl_getfl(file)?;
    let appends = flags.contains(OFlags::APPEND);
    if appends {
        fcntl_setfl(file, flags - OFlags::APPEND)?;
    }
    let written = retry_on_intr(|| rustix::io::pwritev(file, from, offset));
    if appends {
        fcntl_setfl(file, flags)?;
    }
    Ok(written?)
}

/// Retries an operation while signals interrupt it.
fn retry<T>(mut read: impl FnMut() -> std::io::Result<T>) -> std::io::Result<T> {
    loop {
        match read() {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

pub(crate) fn fd_seek(
    ctx: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    fd: u32,
    offset: i64,
    whence: u32,
    out: u32,
) -> Result<()> {
    let descriptor = ctx.table.get(fd)?;
    let mut file = descriptor.seekable(Rights::empty())?;
    let to = match whence {
        0 => SeekFrom::Start(u64::try_from(offset).map_err(|_| Errno::Inval)?),
        1 => SeekFrom::Current(offset),
        2 => SeekFrom::End(offset),
        _ => return Err(Errno::Inval),
    };
    // Querying the position needs only `FD_TELL`.
    if !(to == SeekFrom::Current(0) && descriptor.rights.contains(Rights::FD_TELL)) {
        descriptor.need(Rights::FD_SEEK)?;
    }
    memory.check(out, 8)?;
    memory.write_u64(out, file.seek(to)?)
}

pub(crate) fn fd_tell(
    ctx: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    fd: u32,
    out: u32,
) -> Result<()> {
    let descriptor = ctx.table.get(fd)?;
    let mut file = descriptor.seekable(Rights::empty())?;
    if !descriptor.rights.intersects(Rights::FD_TELL | Rights::FD_SEEK) {
        return Err(Errno::Notcapable);
    }
    memory.check(out, 8)?;
    memory.write_u64(out, file.stream_position()?)
}
