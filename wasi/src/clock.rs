//! Clocks.

use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};

use crate::ctx::WasiCtx;
use crate::errno::{Errno, Result};
use crate::memory::GuestMemory;
use crate::types::timestamp;

/// The clocks of a program.
pub(crate) struct Clocks {
    /// The reading of the host's monotonic clock when the program's was zero. The program need not know how
    /// long the host has been running.
    started: u64,
}

fn nanoseconds(time: Timespec) -> u64 {
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

pub(crate) fn clock_res_get(
    _: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    id: u32,
    resolution: u32,
) -> Result<()> {
    let clock = host_clock(id)?;
    // Zero would mean that the clock does not exist.
    memory.write_u64(resolution, nanoseconds(clock_getres(clock)).max(1))
}

pub(crate) fn clock_time_get(
    ctx: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    id: u32,
    _precision: u64,
    time: u32,
) -> Result<()> {
    let clock = host_clock(id)?;
    memory.write_u64(time, ctx.clocks.now(clock))
}
