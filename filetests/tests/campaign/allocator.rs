//! The allocator of the campaign: the system allocator, with a count of each thread's memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use slotvm_filetests::campaign::Meter;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Counting;

thread_local! {
    // They have no destructors, so an allocator may use them at any time.
    static LIVE: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

/// The memory that a thread uses. Memory that other threads free counts until the meter is reset.
pub(crate) const METER: Meter = Meter {
    reset: || {
        LIVE.set(0);
        PEAK.set(0);
    },
    peak: || PEAK.get() as u64,
};

fn add(bytes: i64) {
    let live = LIVE.get() + bytes;
    LIVE.set(live);
    PEAK.set(PEAK.get().max(live));
}

// SAFETY: all memory comes from the system allocator, which upholds the contract; counting neither
// allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as i64);
        // SAFETY: the caller upholds the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as i64);
        // SAFETY: the caller upholds the contract of `alloc_zeroed`, which is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        add(-(layout.size() as i64));
        // SAFETY: the caller upholds the contract of `dealloc`, and the system allocator made the block.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        add(bytes as i64 - layout.size() as i64);
        // SAFETY: the caller upholds the contract of `realloc`, and the system allocator made the block.
        unsafe { System.realloc(at, layout, bytes) }
    }
}
