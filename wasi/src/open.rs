//! Opening of files and directories: `path_open`, and the rights of the new descriptor.

use std::fs::File;

use cap_fs_ext::{
    FollowSymlinks, OpenOptionsFollowExt, OpenOptionsMaybeDirExt, OpenOptionsSyncExt,
};
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use rustix::fs::OFlags;

use crate::ctx::WasiCtx;
use crate::errno::{Errno, Result};
use crate::memory::{GuestMemory, Span};
use crate::table::{Descriptor, Directory, Kind};
use crate::types::{FdFlags, LookupFlags, OpenFlags, Rights, flags, rights};

/// The arguments of `path_open` as the program passed them.
#[derive(Copy, Clone, Debug)]
pub(crate) struct How {
    pub(crate) lookup: u32,
    pub(crate) open: u32,
    pub(crate) base: u64,
    pub(crate) inheriting: u64,
    pub(crate) fd: u32,
}

/// The validated arguments.
struct Wanted {
    follow: bool,
    open: OpenFlags,
    base: Rights,
    inheriting: Rights,
    fd: FdFlags,
}

impl Wanted {
    fn new(how: How) -> Result<Wanted> {
        let wanted = Wanted {
            follow: flags::<LookupFlags>(how.lookup)?.contains(LookupFlags::SYMLINK_FOLLOW),
            open: flags(how.open)?,
            base: rights(how.base)?,
            inheriting: rights(how.inheriting)?,
            fd: flags(how.fd)?,
        };
        let makes_files = OpenFlags::CREAT | OpenFlags::EXCL | OpenFlags::TRUNC;
        let is_contradiction =
            wanted.open.contains(OpenFlags::DIRECTORY) && wanted.open.intersects(makes_files);
        if is_contradiction { Err(Errno::Inval) } else { Ok(wanted) }
    }

    /// Returns the rights that the directory itself must have.
    fn needs(&self) -> Rights {
        let mut needs = Rights::PATH_OPEN;
        needs.set(Rights::PATH_CREATE_FILE, self.open.contains(OpenFlags::CREAT));
        needs.set(Rights::PATH_FILESTAT_SET_SIZE, self.open.contains(OpenFlags::TRUNC));
        needs
    }

    /// Returns the rights that the directory must pass on.
    fn needs_inherited(&self) -> Rights {
        let mut needs = self.base | self.inheriting;
        if self.fd.contains(FdFlags::DSYNC) {
            needs |= Rights::FD_DATASYNC;
        }
        if self.fd.intersects(FdFlags::SYNC | FdFlags::RSYNC) {
            needs |= Rights::FD_SYNC;
        }
        needs
    }

    fn options(&self) -> OpenOptions {
        let has = |flag| self.open.contains(flag);
        let changes = has(OpenFlags::CREAT) || has(OpenFlags::TRUNC);
        let writes = changes || self.base.intersects(Rights::WRITES);
        // A descriptor of the host must allow reading or writing; one of the program need not.
        let reads = self.base.intersects(Rights::READS) || !self.base.intersects(Rights::WRITES);
        let mut options = OpenOptions::new();
        options.read(reads).write(writes).truncate(has(OpenFlags::TRUNC));
        match has(OpenFlags::EXCL) {
            true => options.create_new(has(OpenFlags::CREAT)),
            false => options.create(has(OpenFlags::CREAT)),
        };
        let mut custom = OFlags::NOCTTY;
        custom.set(OFlags::DIRECTORY, has(OpenFlags::DIRECTORY));
        options.custom_flags(custom.bits() as i32);
        options.maybe_dir(true);
        options.follow(if self.follow { FollowSymlinks::Yes } else { FollowSymlinks::No });
        options.sync(self.fd.contains(FdFlags::SYNC)).dsync(self.fd.contains(FdFlags::DSYNC));
        options.rsync(self.fd.contains(FdFlags::RSYNC));
        options.nonblock(self.fd.contains(FdFlags::NONBLOCK));
        options
    }

    /// Returns the descriptor of an opened file or directory, without the rights that do not apply to it.
    fn descriptor(&self, file: File) -> Result<Descriptor> {
        if file.metadata()?.is_dir() {
            let dir = Dir::from_std_file(file);
            return Ok(Descriptor {
                kind: Kind::Directory(Directory { dir, preopened_as: None, listing: None }),
                rights: self.base & Rights::DIRECTORY,
                inheriting: self.inheriting,
            });
        }
        if self.fd.contains(FdFlags::APPEND) {
            let host = rustix::fs::fcntl_getfl(&file)?;
            rustix::fs::fcntl_setfl(&file, host | OFlags::APPEND)?;
        }
        Ok(Descriptor {
            kind: Kind::File(file),
            rights: self.base & Rights::FILE,
            inheriting: Rights::empty(),
        })
    }
}

pub(crate) fn path_open(
    ctx: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    fd: u32,
    path: Span,
    how: How,
    out: u32,
) -> Result<()> {
    let descriptor = ctx.table.get(fd)?;
    descriptor.directory(Rights::empty())?;
    let wanted = Wanted::new(how)?;
    let directory = descriptor.directory(wanted.needs())?;
    if !descriptor.inheriting.contains(wanted.needs_inherited()) {
        return Err(Errno::Notcapable);
    }
    memory.check(out, 4)?;
    let path = memory.path(path)?;
    ctx.table.check_room()?;
    let file = directory.dir.open_with(path, &wanted.options())?.into_std();
    let opened = ctx.table.insert(wanted.descriptor(file)?)?;
    memory.write_u32(out, opened)
}
