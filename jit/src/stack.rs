//! How much native stack guest code may use.
//!
//! Guest functions compare the stack pointer with a limit when they are entered. The limit leaves room
//! below it for host functions and for the signal handler's frame, so that running out of stack is
//! always a trap and never a fault.

use std::cell::Cell;
use std::ptr;

/// Bytes below the limit that guest code leaves to host functions and signal handlers.
const HOST_BYTES_MIN: usize = 192 * 1024;

thread_local! {
    /// What [`bounds`] has found.
    static BOUNDS: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

/// A number of the thread, which no other thread has while it lives. Never 0.
#[inline]
pub(crate) fn thread() -> usize {
    BOUNDS.with(|bounds| ptr::from_ref(bounds).addr())
}

/// Guest code entered at the stack pointer `sp` may use `bytes_max`, or less if the thread has less.
#[inline]
pub(crate) fn limit_below(sp: usize, bytes_max: usize) -> usize {
    let by_budget = sp.saturating_sub(bytes_max);
    let (low, high) = bounds();
    // On a stack that is not the thread's own, of a fiber for instance, only the budget counts.
    if (low..high).contains(&sp) {
        by_budget.max(low.saturating_add(HOST_BYTES_MIN))
    } else {
        // 0 means that no limit is set.
        by_budget.max(1)
    }
}

/// Bytes of stack in which any function can be compiled.
const COMPILE_BYTES: usize = 1 << 20;
/// The stack of a thread that is made to have that many.
const THREAD_BYTES: usize = 4 << 20;

/// Compiles something on this thread's stack, if there is enough left of it, or else on a new thread.
///
/// # Panics
/// If `compile` panics, or a thread is needed and the system makes none.
pub(crate) fn with_room<R: Send>(compile: impl FnOnce() -> R + Send) -> R {
    let marker = 0u8;
    let here = (&raw const marker).addr();
    let (low, high) = bounds();
    if (low..high).contains(&here) && here - low >= COMPILE_BYTES {
        return compile();
    }
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().stack_size(THREAD_BYTES);
        let thread = builder.spawn_scoped(scope, compile).expect("the system makes a thread");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The lowest usable address of the thread's stack and the first address above it, or an empty range
/// if the system does not tell.
#[inline]
fn bounds() -> (usize, usize) {
    BOUNDS.get().unwrap_or_else(|| {
        let bounds = ask_for_bounds().unwrap_or((0, 0));
        BOUNDS.set(Some(bounds));
        bounds
    })
}

#[cfg(target_os = "linux")]
fn ask_for_bounds() -> Option<(usize, usize)> {
    let mut low = ptr::null_mut();
    let (mut bytes, mut guard_bytes) = (0, 0);
    // SAFETY: attributes are initialised by the first call, read, and destroyed; the pointers are to
    // local variables.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &mut attributes) != 0 {
            return None;
        }
        let failed = libc::pthread_attr_getstack(&attributes, &mut low, &mut bytes) != 0
            || libc::pthread_attr_getguardsize(&attributes, &mut guard_bytes) != 0;
        libc::pthread_attr_destroy(&mut attributes);
        if failed {
            return None;
        }
    }
    let high = low.addr().checked_add(bytes)?;
    Some((low.addr().saturating_add(guard_bytes), high))
}

#[cfg(not(target_os = "linux"))]
fn ask_for_bounds() -> Option<(usize, usize)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_lies_inside_the_stack_of_the_thread() {
        let check = || {
            let here = 0u8;
            let sp = (&raw const here).addr();
            let (low, high) = bounds();
            assert!(low < sp && sp < high, "{low:x} {sp:x} {high:x}");
            assert_eq!(limit_below(sp, 4096), sp - 4096);
            assert_eq!(limit_below(sp, usize::MAX), low + HOST_BYTES_MIN);
        };
        check();
        std::thread::Builder::new().stack_size(1 << 20).spawn(check).unwrap().join().unwrap();
    }
}
