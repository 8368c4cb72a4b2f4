//! Socket calls. The host opens no sockets for programs, so all of them fail.

use crate::ctx::WasiCtx;
use crate::errno::{Errno, Result};
use crate::memory::{GuestMemory, Span};
use crate::types::{FdFlags, ReceiveFlags, ShutdownFlags, flags};

/// Fails with `notsock`, or with `badf` if the descriptor is not open.
fn not_a_socket(ctx: &WasiCtx, fd: u32) -> Result<()> {
    ctx.table.get(fd)?;
    Err(Errno::Notsock)
}

pub(crate) fn sock_accept(
    ctx: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    fd: u32,
    fd_flags: u32,
    out: u32,
) -> Result<()> {
    ctx.table.get(fd)?;
    flags::<FdFlags>(fd_flags)?;
    memory.check(out, 4)?;
    not_a_socket(ctx, fd)
}

pub(crate) fn sock_recv(
    ctx: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    fd: u32,
    buffers: Span,
    receive_flags: u32,
    n_out: u32,
    flags_out: u32,
) -> Result<()> {
    ctx.table.get(fd)?;
    flags::<ReceiveFlags>(receive_flags)?;
    memory.transfer(buffers, n_out)?;
    memory.check(flags_out, 2)?;
    not_a_socket(ctx, fd)
}

pub(crate) fn sock_send(
    ctx: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    fd: u32,
    buffers: Span,
    send_flags: u32,
    n_out: u32,
) -> Result<()> {
    ctx.table.get(fd)?;
    // No send flags are defined.
    if send_flags != 0 {
        return Err(Errno::Inval);
    }
    memory.transfer(buffers, n_out)?;
    not_a_socket(ctx, fd)
}

pub(crate) fn sock_shutdown(
    ctx: &mut WasiCtx,
    _: &mut GuestMemory<'_>,
    fd: u32,
    how: u32,
) -> Result<()> {
    ctx.table.get(fd)?;
    flags::<ShutdownFlags>(how)?;
    not_a_socket(ctx, fd)
}
