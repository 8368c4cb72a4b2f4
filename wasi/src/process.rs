//! Program exit, signals, and yielding.

use slotvm::Error;

use crate::ctx::WasiCtx;
use crate::errno::{Errno, Result};
use crate::memory::GuestMemory;

/// The greatest signal number: `sys`.
const SIGNAL_MAX: u32 = 30;

/// The program has ended itself with `proc_exit`. The call into it fails with this error, wrapped in an
/// [`Error::Host`]; [`I32Exit::of`] finds it there.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("exited with code {0}")]
pub struct I32Exit(
    /// The exit code that the program passed. Zero means success; processes have 8 bits for it.
    pub i32,
);

impl I32Exit {
    /// Returns the exit if the error is one.
    pub fn of(error: &Error) -> Option<I32Exit> {
        match error {
            Error::Host(error) => error.downcast_ref().copied(),
            _ => None,
        }
    }
}

/// Fails: signals are not delivered, since the process belongs to the host.
pub(crate) fn proc_raise(_: &mut WasiCtx, _: &mut GuestMemory<'_>, signal: u32) -> Result<()> {
    Err(if signal <= SIGNAL_MAX { Errno::Notsup } else { Errno::Inval })
}

pub(crate) fn sched_yield(_: &mut WasiCtx, _: &mut GuestMemory<'_>) -> Result<()> {
    std::thread::yield_now();
    Ok(())
}
