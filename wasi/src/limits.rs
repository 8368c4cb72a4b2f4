//! Limits on the requests of a program to the host.

use std::time::Duration;

/// The most descriptors that a program can have open at once. This is below the usual limit of a process,
/// since the host needs some itself. Opening more fails with `mfile`.
pub const DESCRIPTORS_MAX: usize = 512;

/// The most buffers that one call can read into or write from, like `IOV_MAX` of POSIX. More fail with
/// `inval`.
pub const BUFFERS_MAX: u32 = 1024;

/// The most bytes that one call reads or writes. Longer requests end short, as POSIX allows. The program
/// can be interrupted between calls.
pub const TRANSFER_BYTES_MAX: u64 = 64 << 20;

/// The most bytes of a path, like `PATH_MAX` of Linux. Longer paths fail with `nametoolong`.
pub const PATH_BYTES_MAX: u32 = 4096;

/// The most subscriptions of one `poll_oneoff`. More fail with `inval`.
pub const SUBSCRIPTIONS_MAX: u32 = 4096;

/// The limits that a program can reach: name and maximum.
pub const ALL: [(&str, u64); 5] = [
    ("DESCRIPTORS_MAX", DESCRIPTORS_MAX as u64),
    ("BUFFERS_MAX", BUFFERS_MAX as u64),
    ("TRANSFER_BYTES_MAX", TRANSFER_BYTES_MAX),
    ("PATH_BYTES_MAX", PATH_BYTES_MAX as u64),
    ("SUBSCRIPTIONS_MAX", SUBSCRIPTIONS_MAX as u64),
];

/// The most random bytes that are generated before the program can be interrupted.
pub(crate) const RANDOM_BYTES_MAX: usize = 1 << 20;

/// The longest wait for input or time before checking whether the program has been interrupted.
pub(crate) const WAIT_MAX: Duration = Duration::from_millis(20);
