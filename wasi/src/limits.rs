//! What a program can ask of the host has limits, and each has a name.

use std::time::Duration;

/// Descriptors that a program can have open at once: fewer than a process usually may, since the host needs
/// some itself. Opening more gives `mfile`.
pub const DESCRIPTORS_MAX: usize = 512;

/// Buffers that one call can read into or write from, as in `IOV_MAX` of POSIX. More give `inval`.
pub const BUFFERS_MAX: u32 = 1024;

/// Bytes that one call reads or writes; it ends short of what it was asked for, as calls may. In between the
/// program can be interrupted.
pub const TRANSFER_BYTES_MAX: u64 = 64 << 20;

/// Bytes of a path, as in `PATH_MAX` of Linux. More give `nametoolong`.
pub const PATH_BYTES_MAX: u32 = 4096;

/// Subscriptions of one `poll_oneoff`. More give `inval`.
pub const SUBSCRIPTIONS_MAX: u32 = 4096;

/// Bytes that are filled with random numbers before the program can be interrupted.
pub(crate) const RANDOM_BYTES_MAX: usize = 1 << 20;

/// For how long a program waits for input or for time to pass before it is looked whether it has been
/// interrupted.
pub(crate) const WAIT_MAX: Duration = Duration::from_millis(20);
