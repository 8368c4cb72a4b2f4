//! Reading clocks.

use rustix::time::clock_getres;

use crate::clocks::{host_clock, nanoseconds};
use crate::ctx::WasiCtx;
use crate::errno::Result;
use crate::memory::GuestMemory;

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
