//! An allocator for tests and measurements: the system allocator, with a count of each thread's memory.
//!
//! Memory that another thread frees counts in the thread that made it, until the peak is reset.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts bytes of the heap, as `#[global_allocator]` of a program.
pub struct Counting;

thread_local! {
    // They have no destructors, so an allocator may use them at any time.
    static LIVE: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

/// The most bytes that this thread has had at a time since [`reset_peak`], beyond those that it had then.
pub fn peak() -> u64 {
    PEAK.get().max(0) as u64
}

/// Lets this thread count from what it has now.
pub fn reset_peak() {
    LIVE.set(0);
    PEAK.set(0);
}

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
