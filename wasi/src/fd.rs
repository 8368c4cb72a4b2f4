//! Descriptors: their flags, rights and numbers, and the attributes of their files.

use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{
    Advice, FallocateFlags, OFlags, Timestamps, UTIME_NOW, UTIME_OMIT, fadvise, fallocate,
    fcntl_getfl, fcntl_setfl, futimens,
};
use rustix::time::Timespec;

use crate::ctx::WasiCtx;
use crate::errno::{Errno, Result};
use crate::memory::{GuestMemory, Span};
use crate::table::{Descriptor, Kind};
use crate::types::{FdFlags, FileStat, Rights, TimeFlags, flags, rights};

pub(crate) fn fd_advise(
    ctx: &mut WasiCtx,
    _: &mut GuestMemory<'_>,
    fd: u32,
    offset: u64,
    len: u64,
    advice: u32,
) -> Result<()> {
    let file = ctx.table.get(fd)?.file(Rights::FD_ADVISE)?;
    let advice = match advice {
        0 => Advice::Normal,
        1 => Advice::Sequential,
        2 => Advice::Random,
        3 => Advice::WillNeed,
        4 => Advice::DontNeed,
        5 => Advice::NoReuse,
        _ => return Err(Errno::Inval),
    };
    Ok(fadvise(file, offset, NonZeroU64::new(len), advice)?)
}

pub(crate) fn fd_allocate(
    ctx: &mut WasiCtx,
    _: &mut GuestMemory<'_>,
    fd: u32,
    offset: u64,
    len: u64,
) -> Result<()> {
    let file = ctx.table.get(fd)?.file(Rights::FD_ALLOCATE)?;
    Ok(fallocate(file, FallocateFlags::empty(), offset, len)?)
}

pub(crate) fn fd_close(ctx: &mut WasiCtx, _: &mut GuestMemory<'_>, fd: u32) -> Result<()> {
    ctx.table.remove(fd).map(|_| ())
}

/// Returns the host's descriptor of a file or directory that has all these rights.
fn host_with(ctx: &WasiCtx, fd: u32, rights: Rights) -> Result<BorrowedFd<'_>> {
    let descriptor = ctx.table.get(fd)?;
    let host = host(descriptor)?;
    descriptor.need(rights)?;
    Ok(host)
}

/// Returns the host's descriptor of a file or directory. Streams have none that the program may use this
/// way.
fn host(descriptor: &Descriptor) -> Result<BorrowedFd<'_>> {
    match &descriptor.kind {
        Kind::File(file) => Ok(file.as_fd()),
        Kind::Directory(directory) => Ok(directory.dir.as_fd()),
        Kind::Input(_) | Kind::Output(_) => Err(Errno::Badf),
    }
}

pub(crate) fn fd_datasync(ctx: &mut WasiCtx, _: &mut GuestMemory<'_>, fd: u32) -> Result<()> {
    Ok(rustix::fs::fdatasync(host_with(ctx, fd, Rights::FD_DATASYNC)?)?)
}

pub(crate) fn fd_sync(ctx: &mut WasiCtx, _: &mut GuestMemory<'_>, fd: u32) -> Result<()> {
    Ok(rustix::fs::fsync(host_with(ctx, fd, Rights::FD_SYNC)?)?)
}

/// The flags for synchronised writes.
const SYNC: FdFlags = FdFlags::SYNC.union(FdFlags::RSYNC).union(FdFlags::DSYNC);

/// Returns the flags of a descriptor.
fn fd_flags(descriptor: &Descriptor) -> Result<FdFlags> {
    let file = match &descriptor.kind {
        Kind::Input(input) => return Ok(input.flags),
        Kind::Output(output) => return Ok(output.flags),
        Kind::Directory(_) => return Ok(FdFlags::empty()),
        Kind::File(file) => file,
    };
    let host = fcntl_getfl(file)?;
    let pairs = [
        (OFlags::APPEND, FdFlags::APPEND),
        (OFlags::NONBLOCK, FdFlags::NONBLOCK),
        // On Linux the three are the same.
        (OFlags::SYNC, SYNC),
    ];
    let set = pairs.into_iter().filter(|&(flag, _)| host.contains(flag));
    Ok(set.fold(FdFlags::empty(), |flags, (_, flag)| flags | flag))
}

pub(crate) fn fd_fdstat_get(
    ctx: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    fd: u32,
    out: u32,
) -> Result<()> {
    let descriptor = ctx.table.get(fd)?;
    let mut stat = [0; 24];
    stat[0] = descriptor.file_type()? as u8;
    stat[2..4].copy_from_slice(&fd_flags(descriptor)?.bits().to_le_bytes());
    stat[8..16].copy_from_slice(&descriptor.rights.bits().to_le_bytes());
    stat[16..24].copy_from_slice(&descriptor.inheriting.bits().to_le_bytes());
    memory.write(out, &stat)
}

pub(crate) fn fd_fdstat_set_flags(
    ctx: &mut WasiCtx,
    _: &mut GuestMemory<'_>,
    fd: u32,
    raw: u32,
) -> Result<()> {
    let descriptor = ctx.table.get_mut(fd)?;
    if matches!(descriptor.kind, Kind::Directory(_)) {
        return Err(Errno::Badf);
    }
    let wanted = flags::<FdFlags>(raw)?;
    descriptor.need(Rights::FD_FDSTAT_SET_FLAGS)?;
    let is_synchronised = fd_flags(descriptor)?.intersects(SYNC);
    match &mut descriptor.kind {
        // Standard streams are shared with the host and other processes, which do not expect non-blocking
        // ones. So the flag is not set on the stream; this crate checks whether it would block.
        Kind::Input(input) => input.flags = only(wanted, FdFlags::NONBLOCK)?,
        Kind::Output(output) => output.flags = only(wanted, FdFlags::NONBLOCK)?,
        Kind::File(file) => {
            // The system cannot change this on an open file.
            if wanted.intersects(SYNC) != is_synchronised {
                return Err(Errno::Notsup);
            }
            let mut host = fcntl_getfl(&*file)?;
            host.set(OFlags::APPEND, wanted.contains(FdFlags::APPEND));
            host.set(OFlags::NONBLOCK, wanted.contains(FdFlags::NONBLOCK));
            fcntl_setfl(&*file, host)?;
        }
        Kind::Directory(_) => unreachable!("it has been checked"),
    }
    Ok(())
}

/// Returns the flags, or `notsup` if they include any except these.
fn only(flags: FdFlags, these: FdFlags) -> Result<FdFlags> {
    if these.contains(flags) { Ok(flags) } else { Err(Errno::Notsup) }
}

pub(crate) fn fd_fdstat_set_rights(
    ctx: &mut WasiCtx,
    _: &mut GuestMemory<'_>,
    fd: u32,
    base: u64,
    inheriting: u64,
) -> Result<()> {
    let descriptor = ctx.table.get_mut(fd)?;
    let (base, inheriting) = (rights(base)?, rights(inheriting)?);
    // Rights can be dropped but not gained.
    if !descriptor.rights.contains(base) || !descriptor.inheriting.contains(inheriting) {
        return Err(Errno::Notcapable);
    }
    (descriptor.rights, descriptor.inheriting) = (base, inheriting);
    Ok(())
}

pub(crate) fn fd_filestat_get(
    ctx: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    fd: u32,
    out: u32,
) -> Result<()> {
    let descriptor = ctx.table.get(fd)?;
    descriptor.need(Rights::FD_FILESTAT_GET)?;
    let stat = match &descriptor.kind {
        Kind::Input(input) => FileStat::of_stream(input.file_type()),
        Kind::Output(output) => FileStat::of_stream(output.file_type()),
        Kind::File(file) => FileStat::from(&file.metadata()?),
        Kind::Directory(directory) => FileStat::from(&directory.dir.dir_metadata()?),
    };
    memory.write(out, &stat.to_bytes())
}

pub(crate) fn fd_filestat_set_size(
    ctx: &mut WasiCtx,
    _: &mut GuestMemory<'_>,
    fd: u32,
    size: u64,
) -> Result<()> {
    let file = ctx.table.get(fd)?.file(Rights::FD_FILESTAT_SET_SIZE)?;
    Ok(file.set_len(size)?)
}

pub(crate) fn fd_filestat_set_times(
    ctx: &mut WasiCtx,
    _: &mut GuestMemory<'_>,
    fd: u32,
    atim: u64,
    mtim: u64,
    raw_flags: u32,
) -> Result<()> {
    let descriptor = ctx.table.get(fd)?;
    let host = host(descriptor)?;
    let [atim, mtim] = new_times(atim, mtim, raw_flags)?;
    descriptor.need(Rights::FD_FILESTAT_SET_TIMES)?;
    let timespec = |time| match time {
        NewTime::Keep => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        NewTime::Now => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        NewTime::At(time) => Timespec {
            tv_sec: (time / 1_000_000_000) as i64,
            tv_nsec: (time % 1_000_000_000) as i64,
        },
    };
    let times = Timestamps { last_access: timespec(atim), last_modification: timespec(mtim) };
    Ok(futimens(host, &times)?)
}

/// A change of a file's time.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum NewTime {
    /// Keeps the time.
    Keep,
    /// Sets the current time.
    Now,
    /// Sets this time, in nanoseconds since 1970.
    At(u64),
}

/// Returns the changes of the access and modification times, or `inval` if the flags contradict each other.
pub(crate) fn new_times(atim: u64, mtim: u64, raw_flags: u32) -> Result<[NewTime; 2]> {
    let flags = flags::<TimeFlags>(raw_flags)?;
    let new_time = |time, at, now| match (flags.contains(at), flags.contains(now)) {
        (false, false) => Ok(NewTime::Keep),
        (false, true) => Ok(NewTime::Now),
        (true, false) => Ok(NewTime::At(time)),
        (true, true) => Err(Errno::Inval),
    };
    Ok([
        new_time(atim, TimeFlags::ATIM, TimeFlags::ATIM_NOW)?,
        new_time(mtim, TimeFlags::MTIM, TimeFlags::MTIM_NOW)?,
    ])
}

/// Returns the name by which the program knows a preopened directory. For other descriptors it fails with
/// `badf`, which tells programs that there are no more.
fn preopened_as(ctx: &WasiCtx, fd: u32) -> Result<&str> {
    match &ctx.table.get(fd)?.kind {
        Kind::Directory(directory) => directory.preopened_as.as_deref().ok_or(Errno::Badf),
        _ => Err(Errno::Badf),
    }
}

pub(crate) fn fd_prestat_get(
    ctx: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    fd: u32,
    out: u32,
) -> Result<()> {
    let len = u32::try_from(preopened_as(ctx, fd)?.len()).map_err(|_| Errno::Overflow)?;
    let mut prestat = [0; 8];
    // The tag of a directory is 0.
    prestat[4..8].copy_from_slice(&len.to_le_bytes());
    memory.write(out, &prestat)
}

pub(crate) fn fd_prestat_dir_name(
    ctx: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    fd: u32,
    buffer: Span,
) -> Result<()> {
    let name = preopened_as(ctx, fd)?.as_bytes();
    let into = memory.slice_mut(buffer.address, buffer.len)?;
    into.get_mut(..name.len()).ok_or(Errno::Nametoolong)?.copy_from_slice(name);
    Ok(())
}

pub(crate) fn fd_renumber(
    ctx: &mut WasiCtx,
    _: &mut GuestMemory<'_>,
    from: u32,
    to: u32,
) -> Result<()> {
    ctx.table.renumber(from, to)
}
