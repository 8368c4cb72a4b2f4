//! Address space for machine code, near the code of the program.
//!
//! Native code calls functions of the program, and they call it. Processors may predict indirect calls faster between
//! addresses whose upper bits are the same (docs/decisions.md, "Code near the program", has the measurement).
//!
//! Pages are reserved together, opened one after the other to be written, and sealed to be executed. No page is ever both.

use std::io;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use cranelift_jit::BranchProtection;
use wasmtime_jit_icache_coherence::{clear_cache, pipeline_flush_mt};

/// Bytes between this code and the first mapping, so that the heap of the program, which may come right after its code, has
/// room.
const DISTANCE: usize = 16 << 30;
/// The bytes in which mappings are placed, one after the other, as far as they are free.
const SPAN: usize = 64 << 30;

/// A range of pages.
pub(super) struct Mapping {
    start: *mut u8,
    bytes: usize,
    /// The offsets of those that were opened and not yet sealed. None after them was opened.
    open: Range<usize>,
}

// SAFETY: it owns the pages that its pointer leads to.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Reserves whole pages, none of which is accessible.
    ///
    /// # Errors
    /// Fails if the system has no such address space.
    pub(super) fn reserve(bytes: usize) -> io::Result<Mapping> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: the address is a wish only, so the mapping takes the place of no other.
        let start = unsafe { libc::mmap(near(bytes), bytes, libc::PROT_NONE, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        start.expose_provenance();
        Ok(Mapping { start: start.cast(), bytes, open: 0..0 })
    }

    /// Lets the next pages be written. Returns the address of the first.
    ///
    /// # Errors
    /// Fails if there are not so many left, or the system refuses.
    pub(super) fn open(&mut self, bytes: usize) -> io::Result<*mut u8> {
        let start = self.open.end;
        if bytes > self.bytes - start {
            return Err(io::Error::other("the code is larger than its size estimate"));
        }
        self.protect(start..start + bytes, libc::PROT_READ | libc::PROT_WRITE)?;
        self.open.end += bytes;
        // SAFETY: the offset lies in the mapping.
        Ok(unsafe { self.start.add(start) })
    }

    /// Lets the open pages be executed, and no longer written.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub(super) fn seal(&mut self, protection: BranchProtection) -> io::Result<()> {
        /// Pages whose targets of indirect branches the processor checks.
        const PROT_BTI: i32 = 0x10;
        if self.open.is_empty() {
            return Ok(());
        }
        // SAFETY: the offset lies in the mapping.
        let start = unsafe { self.start.add(self.open.start) };
        // SAFETY: the pages are ours, and can be read.
        unsafe { clear_cache(start.cast(), self.open.len())? };
        let extra = match protection {
            BranchProtection::BTI if cfg!(target_arch = "aarch64") => PROT_BTI,
            _ => 0,
        };
        self.protect(self.open.clone(), libc::PROT_READ | libc::PROT_EXEC | extra)?;
        self.open.start = self.open.end;
        pipeline_flush_mt()
    }

    fn protect(&self, pages: Range<usize>, protection: i32) -> io::Result<()> {
        // SAFETY: the pages are in the mapping, which we own. Those that were sealed are not among them, so nothing that is
        // executed or shared changes.
        let changed = unsafe {
            let start = self.start.add(pages.start);
            libc::mprotect(start.cast(), pages.len(), protection)
        };
        if changed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the pages are ours. The last owner of the code is gone, so nothing executes or calls it.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}

/// The preferred address of the next mapping.
fn near(bytes: usize) -> *mut libc::c_void {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let here = (near as *const ()).addr() & !(page_bytes() - 1);
    let offset = NEXT.fetch_add(bytes, Ordering::Relaxed) % SPAN;
    ptr::without_provenance_mut(here.wrapping_add(DISTANCE + offset))
}

/// The size of a page.
pub(super) fn page_bytes() -> usize {
    // SAFETY: the call has no preconditions.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_lie_near_this_code() {
        let mapping = Mapping::reserve(4 * page_bytes()).unwrap();
        let distance = mapping.start.addr().abs_diff((near as *const ()).addr());
        assert!(distance < DISTANCE + SPAN + (1 << 30), "{distance:#x}");
    }

    #[test]
    fn pages_are_opened_in_their_order_and_sealed() {
        let page = page_bytes();
        let mut mapping = Mapping::reserve(3 * page).unwrap();
        let first = mapping.open(page).unwrap();
        let second = mapping.open(page).unwrap();
        assert_eq!(second.addr() - first.addr(), page);
        // SAFETY: both pages are open.
        unsafe {
            first.write(1);
            second.write(2);
        }
        mapping.seal(BranchProtection::None).unwrap();
        let third = mapping.open(page).unwrap();
        // SAFETY: the third page is open, and the others can be read.
        let read = unsafe {
            third.write(3);
            [*first, *second, *third]
        };
        assert_eq!(read, [1, 2, 3]);
        assert!(mapping.open(page).is_err());
    }
}
