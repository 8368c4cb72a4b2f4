//! The clocks that programs read.

use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::errno::{Errno, Result};
use crate::types::timestamp;

/// The clocks of a program.
pub(crate) struct Clocks {
    /// The reading of the host's monotonic clock when the program's was zero. The program need not know how
    /// long the host has been running.
    started: u64,
}

pub(crate) fn nanoseconds(time: Timespec) -> u64 {
    timestamp(time.tv_sec, time.tv_nsec)
}

fn now(clock: ClockId) -> u64 {
    nanoseconds(clock_gettime(clock))
}

/// Returns the host's clock for a clock id, or `inval` if the id is unknown.
pub(crate) fn host_clock(id: u32) -> Result<ClockId> {
    Ok(match id {
        0 => ClockId::Realtime,
        1 => ClockId::Monotonic,
        2 => ClockId::ProcessCPUTime,
        3 => ClockId::ThreadCPUTime,
        _ => return Err(Errno::Inval),
    })
}

impl Clocks {
    pub(crate) fn new() -> Clocks {
        Clocks { started: now(ClockId::Monotonic) }
    }

    /// Returns the time of a clock in nanoseconds.
    pub(crate) fn now(&self, clock: ClockId) -> u64 {
        match clock {
            ClockId::Monotonic => now(clock) - self.started,
            _ => now(clock),
        }
    }
}
