//! Random numbers, those of the system.

use crate::errno::{Errno, Result};

/// Fills bytes with random numbers that nobody can predict.
pub(crate) fn fill(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes).map_err(|_| Errno::Io)
}
