//! The flags and records of WASI, and how they lie in the memory of the program.

use bitflags::{Flags, bitflags};

use crate::errno::{Errno, Result};

bitflags! {
    /// The permitted operations of a descriptor; names and numbers are those of the specification.
    #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
    pub struct Rights: u64 {
        /// `fd_datasync`, and `path_open` with `dsync`.
        const FD_DATASYNC = 1 << 0;
        /// `fd_read`, and with [`Rights::FD_SEEK`] `fd_pread`.
        const FD_READ = 1 << 1;
        /// `fd_seek`; it implies [`Rights::FD_TELL`].
        const FD_SEEK = 1 << 2;
        /// `fd_fdstat_set_flags`.
        const FD_FDSTAT_SET_FLAGS = 1 << 3;
        /// `fd_sync`, and `path_open` with `rsync` and `sync`.
        const FD_SYNC = 1 << 4;
        /// `fd_tell`, and an `fd_seek` that does not move the position.
        const FD_TELL = 1 << 5;
        /// `fd_write`, and with [`Rights::FD_SEEK`] `fd_pwrite`.
        const FD_WRITE = 1 << 6;
        /// `fd_advise`.
        const FD_ADVISE = 1 << 7;
        /// `fd_allocate`.
        const FD_ALLOCATE = 1 << 8;
        /// `path_create_directory`.
        const PATH_CREATE_DIRECTORY = 1 << 9;
        /// `path_open` with `creat`.
        const PATH_CREATE_FILE = 1 << 10;
        /// `path_link`, as the source directory.
        const PATH_LINK_SOURCE = 1 << 11;
        /// `path_link`, as the target directory.
        const PATH_LINK_TARGET = 1 << 12;
        /// `path_open`.
        const PATH_OPEN = 1 << 13;
        /// `fd_readdir`.
        const FD_READDIR = 1 << 14;
        /// `path_readlink`.
        const PATH_READLINK = 1 << 15;
        /// `path_rename`, as the source directory.
        const PATH_RENAME_SOURCE = 1 << 16;
        /// `path_rename`, as the target directory.
        const PATH_RENAME_TARGET = 1 << 17;
        /// `path_filestat_get`.
        const PATH_FILESTAT_GET = 1 << 18;
        /// `path_open` with `trunc`.
        const PATH_FILESTAT_SET_SIZE = 1 << 19;
        /// `path_filestat_set_times`.
        const PATH_FILESTAT_SET_TIMES = 1 << 20;
        /// `fd_filestat_get`.
        const FD_FILESTAT_GET = 1 << 21;
        /// `fd_filestat_set_size`.
        const FD_FILESTAT_SET_SIZE = 1 << 22;
        /// `fd_filestat_set_times`.
        const FD_FILESTAT_SET_TIMES = 1 << 23;
        /// `path_symlink`.
        const PATH_SYMLINK = 1 << 24;
        /// `path_remove_directory`.
        const PATH_REMOVE_DIRECTORY = 1 << 25;
        /// `path_unlink_file`.
        const PATH_UNLINK_FILE = 1 << 26;
        /// `poll_oneoff` for reading and writing, together with the right to read or write.
        const POLL_FD_READWRITE = 1 << 27;
        /// `sock_shutdown`.
        const SOCK_SHUTDOWN = 1 << 28;
        /// `sock_accept`.
        const SOCK_ACCEPT = 1 << 29;
    }
}

impl Rights {
    /// The rights that apply to files.
    pub const FILE: Rights = Rights::FD_DATASYNC
        .union(Rights::FD_READ)
        .union(Rights::FD_SEEK)
        .union(Rights::FD_FDSTAT_SET_FLAGS)
        .union(Rights::FD_SYNC)
        .union(Rights::FD_TELL)
        .union(Rights::FD_WRITE)
        .union(Rights::FD_ADVISE)
        .union(Rights::FD_ALLOCATE)
        .union(Rights::FD_FILESTAT_GET)
        .union(Rights::FD_FILESTAT_SET_SIZE)
        .union(Rights::FD_FILESTAT_SET_TIMES)
        .union(Rights::POLL_FD_READWRITE);

    /// The rights that apply to directories.
    pub const DIRECTORY: Rights = Rights::FD_DATASYNC
        .union(Rights::FD_SYNC)
        .union(Rights::PATH_CREATE_DIRECTORY)
        .union(Rights::PATH_CREATE_FILE)
        .union(Rights::PATH_LINK_SOURCE)
        .union(Rights::PATH_LINK_TARGET)
        .union(Rights::PATH_OPEN)
        .union(Rights::FD_READDIR)
        .union(Rights::PATH_READLINK)
        .union(Rights::PATH_RENAME_SOURCE)
        .union(Rights::PATH_RENAME_TARGET)
        .union(Rights::PATH_FILESTAT_GET)
        .union(Rights::PATH_FILESTAT_SET_SIZE)
        .union(Rights::PATH_FILESTAT_SET_TIMES)
        .union(Rights::FD_FILESTAT_GET)
        .union(Rights::FD_FILESTAT_SET_TIMES)
        .union(Rights::PATH_SYMLINK)
        .union(Rights::PATH_REMOVE_DIRECTORY)
        .union(Rights::PATH_UNLINK_FILE);

    /// The rights that do not change files and directories. Linking is not included: another directory
    /// might allow writes through the second name.
    pub const READ_ONLY: Rights = Rights::FD_READ
        .union(Rights::FD_SEEK)
        .union(Rights::FD_FDSTAT_SET_FLAGS)
        .union(Rights::FD_TELL)
        .union(Rights::FD_ADVISE)
        .union(Rights::PATH_OPEN)
        .union(Rights::FD_READDIR)
        .union(Rights::PATH_READLINK)
        .union(Rights::PATH_FILESTAT_GET)
        .union(Rights::FD_FILESTAT_GET)
        .union(Rights::POLL_FD_READWRITE);

    /// The rights of standard input.
    pub(crate) const INPUT: Rights = Rights::FD_READ
        .union(Rights::FD_FDSTAT_SET_FLAGS)
        .union(Rights::FD_FILESTAT_GET)
        .union(Rights::POLL_FD_READWRITE);

    /// The rights of standard output. Programs take a device without a position for a terminal.
    pub(crate) const OUTPUT: Rights = Rights::FD_WRITE
        .union(Rights::FD_FDSTAT_SET_FLAGS)
        .union(Rights::FD_FILESTAT_GET)
        .union(Rights::POLL_FD_READWRITE);

    /// The rights that need a host descriptor that is open for writing.
    pub(crate) const WRITES: Rights =
        Rights::FD_WRITE.union(Rights::FD_ALLOCATE).union(Rights::FD_FILESTAT_SET_SIZE);

    /// The rights that need a host descriptor that is open for reading.
    pub(crate) const READS: Rights = Rights::FD_READ.union(Rights::FD_READDIR);
}

bitflags! {
    /// The modes of a descriptor: `fdflags`.
    #[derive(Copy, Clone, Debug, PartialEq, Eq)]
    pub(crate) struct FdFlags: u16 {
        const APPEND = 1;
        const DSYNC = 2;
        const NONBLOCK = 4;
        const RSYNC = 8;
        const SYNC = 16;
    }

    /// The modes of `path_open`.
    #[derive(Copy, Clone, Debug, PartialEq, Eq)]
    pub(crate) struct OpenFlags: u16 {
        const CREAT = 1;
        const DIRECTORY = 2;
        const EXCL = 4;
        const TRUNC = 8;
    }

    /// The modes of path resolution.
    #[derive(Copy, Clone, Debug, PartialEq, Eq)]
    pub(crate) struct LookupFlags: u32 {
        const SYMLINK_FOLLOW = 1;
    }

    /// The times to set.
    #[derive(Copy, Clone, Debug, PartialEq, Eq)]
    pub(crate) struct TimeFlags: u16 {
        const ATIM = 1;
        const ATIM_NOW = 2;
        const MTIM = 4;
        const MTIM_NOW = 8;
    }

    /// The modes of a clock subscription.
    #[derive(Copy, Clone, Debug, PartialEq, Eq)]
    pub(crate) struct ClockFlags: u16 {
        const ABSTIME = 1;
    }

    /// The modes of receiving a message.
    #[derive(Copy, Clone, Debug, PartialEq, Eq)]
    pub(crate) struct ReceiveFlags: u16 {
        const PEEK = 1;
        const WAITALL = 2;
    }

    /// The directions in which a socket is shut down.
    #[derive(Copy, Clone, Debug, PartialEq, Eq)]
    pub(crate) struct ShutdownFlags: u8 {
        const RD = 1;
        const WR = 2;
    }
}

/// Returns the flags that a program has passed.
///
/// # Errors
/// Fails with `inval` if some are unknown.
pub(crate) fn flags<F>(raw: u32) -> Result<F>
where
    F: Flags,
    F::Bits: TryFrom<u32>,
{
    let bits = F::Bits::try_from(raw).map_err(|_| Errno::Inval)?;
    F::from_bits(bits).ok_or(Errno::Inval)
}

/// Returns the rights that a program has passed.
///
/// # Errors
/// Fails with `inval` if some are unknown.
pub(crate) fn rights(raw: u64) -> Result<Rights> {
    Rights::from_bits(raw).ok_or(Errno::Inval)
}

/// The type of a file: of the target of a descriptor or path.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FileType {
    Unknown = 0,
    BlockDevice = 1,
    CharacterDevice = 2,
    Directory = 3,
    RegularFile = 4,
    SymbolicLink = 7,
}

impl From<rustix::fs::FileType> for FileType {
    fn from(host: rustix::fs::FileType) -> FileType {
        match host {
            rustix::fs::FileType::BlockDevice => FileType::BlockDevice,
            rustix::fs::FileType::CharacterDevice => FileType::CharacterDevice,
            rustix::fs::FileType::Directory => FileType::Directory,
            rustix::fs::FileType::RegularFile => FileType::RegularFile,
            rustix::fs::FileType::Symlink => FileType::SymbolicLink,
            // WASI has no type for pipes, and the host does not report the kind of a socket.
            _ => FileType::Unknown,
        }
    }
}

/// The attributes of a file.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileStat {
    pub(crate) dev: u64,
    pub(crate) ino: u64,
    pub(crate) file_type: FileType,
    pub(crate) n_links: u64,
    pub(crate) size: u64,
    /// Access, modification and change, in nanoseconds since 1970.
    pub(crate) times: [u64; 3],
}

impl FileStat {
    /// Its size in the memory of the program.
    pub(crate) const BYTES: usize = 64;

    /// The attributes of a stream that is not a file.
    pub(crate) fn of_stream(file_type: FileType) -> FileStat {
        FileStat { dev: 0, ino: 0, file_type, n_links: 0, size: 0, times: [0; 3] }
    }

    pub(crate) fn to_bytes(self) -> [u8; FileStat::BYTES] {
        let mut bytes = [0; FileStat::BYTES];
        bytes[0..8].copy_from_slice(&self.dev.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.ino.to_le_bytes());
        bytes[16] = self.file_type as u8;
        bytes[24..32].copy_from_slice(&self.n_links.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.size.to_le_bytes());
        for (place, time) in bytes[40..].chunks_exact_mut(8).zip(self.times) {
            place.copy_from_slice(&time.to_le_bytes());
        }
        bytes
    }
}

macro_rules! file_stat_of {
    ($metadata:ty: $ext:path) => {
        impl From<&$metadata> for FileStat {
            fn from(metadata: &$metadata) -> FileStat {
                use $ext as _;
                let mode = rustix::fs::FileType::from_raw_mode(metadata.mode());
                FileStat {
                    dev: metadata.dev(),
                    ino: metadata.ino(),
                    file_type: mode.into(),
                    n_links: metadata.nlink(),
                    size: metadata.size(),
                    times: [
                        timestamp(metadata.atime(), metadata.atime_nsec()),
                        timestamp(metadata.mtime(), metadata.mtime_nsec()),
                        timestamp(metadata.ctime(), metadata.ctime_nsec()),
                    ],
                }
            }
        }
    };
}

file_stat_of!(std::fs::Metadata: std::os::unix::fs::MetadataExt);
file_stat_of!(cap_std::fs::Metadata: cap_std::fs::MetadataExt);

/// Converts a time to nanoseconds. Times before 1970 and after 2554 are clamped.
pub(crate) fn timestamp(seconds: i64, nanoseconds: i64) -> u64 {
    let time = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
    u64::try_from(time.max(0)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_do_not_fit_are_the_nearest_ones_that_do() {
        assert_eq!(timestamp(1, 5), 1_000_000_005);
        assert_eq!(timestamp(-1, 999_999_999), 0);
        assert_eq!(timestamp(i64::MAX, 0), u64::MAX);
        assert_eq!(timestamp(i64::MIN, i64::MIN), 0);
    }

    #[test]
    fn flags_that_do_not_exist_are_refused() {
        assert_eq!(flags::<FdFlags>(31), Ok(FdFlags::all()));
        for raw in [32, 0x1_0000, u32::MAX] {
            assert_eq!(flags::<FdFlags>(raw), Err(Errno::Inval));
        }
        assert_eq!(flags::<ShutdownFlags>(0x100), Err(Errno::Inval));
        assert_eq!(rights(1 << 30), Err(Errno::Inval));
    }
}
