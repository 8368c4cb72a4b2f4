//! The end of a program, signals, and giving way to others.

use slotvm::Error;

use crate::ctx::WasiCtx;
use crate::errno::{Errno, Result};
use crate::memory::GuestMemory;

/// The greatest number of a signal: `sys`.
const SIGNAL_MAX: u32 = 30;

/// A program has ended itself by `proc_exit`. The call that was made into it fails with this error, as an
/// [`Error::Host`]; [`I32Exit::of`] finds it there.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("exited with code {0}")]
pub struct I32Exit(
    /// The code that the program has passed. Zero means success; processes have 8 bits for it.
    pub i32,
);

impl I32Exit {
    /// The exit that an error is, if it is one.
    pub fn of(error: &Error) -> Option<I32Exit> {
        match error {
            Error::Host(error) => error.downcast_ref().copied(),
            _ => None,
        }
    }
}

/// Signals are not delivered: the process belongs to the host.
pub(crate) fn proc_raise(_: &mut WasiCtx, _: &mut GuestMemory<'_>, signal: u32) -> Result<()> {
    Err(if signal <= SIGNAL_MAX { Errno::Notsup } else { Errno::Inval })
}

pub(crate) fn sched_yield(_: &mut WasiCtx, _: &mut GuestMemory<'_>) -> Result<()> {
    std::thread::yield_now();
    Ok(())
}
