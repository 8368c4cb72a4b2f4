//! Arguments and environment.

use crate::ctx::WasiCtx;
use crate::errno::{Errno, Result};
use crate::memory::GuestMemory;

pub(crate) fn args_get(
    ctx: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    argv: u32,
    buffer: u32,
) -> Result<()> {
    write(memory, &ctx.args, argv, buffer)
}

pub(crate) fn args_sizes_get(
    ctx: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    count: u32,
    bytes: u32,
) -> Result<()> {
    write_sizes(memory, &ctx.args, count, bytes)
}

pub(crate) fn environ_get(
    ctx: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    environ: u32,
    buffer: u32,
) -> Result<()> {
    write(memory, &ctx.env, environ, buffer)
}

pub(crate) fn environ_sizes_get(
    ctx: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    count: u32,
    bytes: u32,
) -> Result<()> {
    write_sizes(memory, &ctx.env, count, bytes)
}

/// Returns the number of strings and their total size in bytes, each with a terminating zero byte.
fn sizes(strings: &[String]) -> Result<(u32, u32)> {
    let bytes: usize = strings.iter().map(|string| string.len() + 1).sum();
    let fit = |n: usize| u32::try_from(n).map_err(|_| Errno::Overflow);
    Ok((fit(strings.len())?, fit(bytes)?))
}

fn write_sizes(
    memory: &mut GuestMemory<'_>,
    strings: &[String],
    count: u32,
    bytes: u32,
) -> Result<()> {
    let (n, n_bytes) = sizes(strings)?;
    memory.check(bytes, 4)?;
    memory.write_u32(count, n)?;
    memory.write_u32(bytes, n_bytes)
}

/// Writes the strings one after the other, and the address of each.
fn write(
    memory: &mut GuestMemory<'_>,
    strings: &[String],
    pointers: u32,
    buffer: u32,
) -> Result<()> {
    let (n, n_bytes) = sizes(strings)?;
    memory.check(pointers, n.checked_mul(4).ok_or(Errno::Overflow)?)?;
    memory.check(buffer, n_bytes)?;
    let (mut pointer, mut at) = (pointers, buffer);
    for string in strings {
        let len = string.len() as u32;
        memory.write_u32(pointer, at)?;
        memory.write(at, string.as_bytes())?;
        memory.write(at + len, &[0])?;
        // The last pointer or string may end at the end of a memory of 4 GiB.
        pointer = pointer.wrapping_add(4);
        at = at.wrapping_add(len + 1);
    }
    Ok(())
}
