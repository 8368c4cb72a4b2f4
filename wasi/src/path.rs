//! Operations on paths, except opening, which is in `open`.
//!
//! cap-std resolves a path below a directory of the program. It never leads out: not with `..`, not with a
//! leading `/`, and not through symbolic links, no matter who creates them and when. A path that would lead
//! out fails with `perm`.

use std::time::{Duration, UNIX_EPOCH};

use cap_fs_ext::{DirExt, SystemTimeSpec};
use cap_std::time::SystemTime;

use crate::ctx::WasiCtx;
use crate::ending::{Ending, Place};
use crate::errno::{Errno, Result};
use crate::fd::{NewTime, new_times};
use crate::memory::{GuestMemory, Span};
use crate::types::{FileStat, LookupFlags, Rights, flags};

pub(crate) fn path_create_directory(
    ctx: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    fd: u32,
    path: Span,
) -> Result<()> {
    let directory = ctx.table.get(fd)?.directory(Rights::PATH_CREATE_DIRECTORY)?;
    let place = Place::new(&directory.dir, memory.path(path)?);
    if place.is_dots()? {
        return Err(Errno::Exist);
    }
    Ok(directory.dir.create_dir(place.named())?)
}

pub(crate) fn path_filestat_get(
    ctx: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    fd: u32,
    lookup: u32,
    path: Span,
    out: u32,
) -> Result<()> {
    let directory = ctx.table.get(fd)?.directory(Rights::PATH_FILESTAT_GET)?;
    let lookup = flags::<LookupFlags>(lookup)?;
    let place = Place::new(&directory.dir, memory.path(path)?);
    let metadata = match lookup.contains(LookupFlags::SYMLINK_FOLLOW) {
        true => place.followed()?,
        false => place.found()?,
    };
    memory.write(out, &FileStat::from(&metadata).to_bytes())
}

/// The requested times of a file.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Times {
    pub(crate) atim: u64,
    pub(crate) mtim: u64,
    pub(crate) flags: u32,
}

pub(crate) fn path_filestat_set_times(
    ctx: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    fd: u32,
    lookup: u32,
    path: Span,
    times: Times,
) -> Result<()> {
    let directory = ctx.table.get(fd)?.directory(Rights::PATH_FILESTAT_SET_TIMES)?;
    let lookup = flags::<LookupFlags>(lookup)?;
    let path = memory.path(path)?;
    let [atim, mtim] = new_times(times.atim, times.mtim, times.flags)?.map(|time| match time {
        NewTime::Keep => None,
        NewTime::Now => Some(SystemTimeSpec::SymbolicNow),
        NewTime::At(time) => {
            let time = SystemTime::from_std(UNIX_EPOCH + Duration::from_nanos(time));
            Some(SystemTimeSpec::Absolute(time))
        }
    });
    match lookup.contains(LookupFlags::SYMLINK_FOLLOW) {
        true => directory.dir.set_times(path, atim, mtim)?,
        false => directory.dir.set_symlink_times(path, atim, mtim)?,
    }
    Ok(())
}

pub(crate) fn path_link(
    ctx: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    old_fd: u32,
    old_lookup: u32,
    old_path: Span,
    new_fd: u32,
    new_path: Span,
) -> Result<()> {
    let old = ctx.table.get(old_fd)?.directory(Rights::PATH_LINK_SOURCE)?;
    let new = ctx.table.get(new_fd)?.directory(Rights::PATH_LINK_TARGET)?;
    let lookup = flags::<LookupFlags>(old_lookup)?;
    let (old_path, new_path) = (memory.path(old_path)?, memory.path(new_path)?);
    // Hard links to the target of a symbolic link are not supported, as in other engines.
    if lookup.contains(LookupFlags::SYMLINK_FOLLOW) {
        return Err(Errno::Inval);
    }
    let found = Place::new(&old.dir, old_path).found()?;
    let new_path = Place::new(&new.dir, new_path).for_new_entry()?;
    if found.is_dir() {
        // A directory has one name.
        let new = Place::new(&new.dir, new_path);
        new.check_parent()?;
        return Err(if new.entry().is_ok() { Errno::Exist } else { Errno::Perm });
    }
    Ok(old.dir.hard_link(old_path, &new.dir, new_path)?)
}

pub(crate) fn path_readlink(
    ctx: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    fd: u32,
    path: Span,
    buffer: Span,
    n_out: u32,
) -> Result<()> {
    let directory = ctx.table.get(fd)?.directory(Rights::PATH_READLINK)?;
    memory.check(n_out, 4)?;
    memory.check(buffer.address, buffer.len)?;
    let place = Place::new(&directory.dir, memory.path(path)?);
    if place.ending != Ending::Nothing {
        // It is a directory, if it is anything.
        place.followed()?;
        return Err(Errno::Inval);
    }
    let target = directory.dir.read_link(place.named())?;
    let target = target.as_os_str().as_encoded_bytes();
    let into = memory.slice_mut(buffer.address, buffer.len)?;
    let n = target.len().min(into.len());
    into[..n].copy_from_slice(&target[..n]);
    memory.write_u32(n_out, n as u32)
}

pub(crate) fn path_remove_directory(
    ctx: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    fd: u32,
    path: Span,
) -> Result<()> {
    let directory = ctx.table.get(fd)?.directory(Rights::PATH_REMOVE_DIRECTORY)?;
    let place = Place::new(&directory.dir, memory.path(path)?);
    match (place.is_dots()?, place.ending) {
        (true, Ending::Dot) => Err(Errno::Inval),
        (true, _) => Err(Errno::Notempty),
        // A slash only says that it is a directory, which is required anyway.
        (false, _) => Ok(directory.dir.remove_dir(place.named())?),
    }
}

pub(crate) fn path_rename(
    ctx: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    old_fd: u32,
    old_path: Span,
    new_fd: u32,
    new_path: Span,
) -> Result<()> {
    let old = ctx.table.get(old_fd)?.directory(Rights::PATH_RENAME_SOURCE)?;
    let new = ctx.table.get(new_fd)?.directory(Rights::PATH_RENAME_TARGET)?;
    let from = Place::new(&old.dir, memory.path(old_path)?);
    let to = Place::new(&new.dir, memory.path(new_path)?);
    if [from.ending, to.ending] != [Ending::Nothing; 2] {
        from.check_parent()?;
        to.check_parent()?;
        if from.is_dots()? || to.is_dots()? {
            return Err(Errno::Busy);
        }
        if !from.entry()?.is_dir() {
            return Err(Errno::Notdir);
        }
    }
    Ok(old.dir.rename(from.named(), &new.dir, to.named())?)
}

/// Creates a symbolic link. Absolute targets fail with `perm`: the program could not follow them, but
/// others would.
pub(crate) fn path_symlink(
    ctx: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    target: Span,
    fd: u32,
    path: Span,
) -> Result<()> {
    let directory = ctx.table.get(fd)?.directory(Rights::PATH_SYMLINK)?;
    let (target, path) = (memory.path(target)?, memory.path(path)?);
    let path = Place::new(&directory.dir, path).for_new_entry()?;
    Ok(DirExt::symlink(&directory.dir, target, path)?)
}

pub(crate) fn path_unlink_file(
    ctx: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    fd: u32,
    path: Span,
) -> Result<()> {
    let directory = ctx.table.get(fd)?.directory(Rights::PATH_UNLINK_FILE)?;
    let place = Place::new(&directory.dir, memory.path(path)?);
    if place.is_dots()? {
        return Err(Errno::Isdir);
    }
    if place.ending == Ending::Slash {
        let is_dir = place.entry()?.is_dir();
        return Err(if is_dir { Errno::Isdir } else { Errno::Notdir });
    }
    Ok(directory.dir.remove_file(place.named())?)
}
