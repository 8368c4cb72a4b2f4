//! Reading a directory.

use crate::ctx::WasiCtx;
use crate::errno::{Errno, Result};
use crate::listing::Listing;
use crate::memory::{GuestMemory, Span};
use crate::table::Kind;
use crate::types::Rights;

pub(crate) fn fd_readdir(
    ctx: &mut WasiCtx,
    memory: &mut GuestMemory<'_>,
    fd: u32,
    buffer: Span,
    cookie: u64,
    n_out: u32,
) -> Result<()> {
    let descriptor = ctx.table.get_mut(fd)?;
    descriptor.directory(Rights::FD_READDIR)?;
    let Kind::Directory(directory) = &mut descriptor.kind else {
        return Err(Errno::Notdir);
    };
    memory.check(n_out, 4)?;
    let into = memory.slice_mut(buffer.address, buffer.len)?;
    let mut listing = match directory.listing.take() {
        Some(listing) if cookie > 0 && listing.first <= cookie => listing,
        _ => Listing::begin(&directory.dir)?,
    };
    listing.skip_to(cookie)?;
    // There are no entries after the end.
    let n = if listing.first == cookie { listing.write(into)? } else { 0 };
    directory.listing = Some(listing);
    memory.write_u32(n_out, n as u32)
}
