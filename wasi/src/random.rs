//! Random numbers of the operating system.

use crate::errno::{Errno, Result};

/// Fills bytes with unpredictable random numbers.
pub(crate) fn fill(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes).map_err(|_| Errno::Io)
}
