//! The limit of the host's stack for calls from the host.
//!
//! Native code takes its frames from the host's stack; the interpreter does not, but host functions that call
//! back do, in every engine. So each call from the host has a limit ([`Shared::stack_limit`]), which native
//! functions compare the stack pointer with when they are entered, and the runtime whenever the host calls. It
//! leaves room below it for host functions and for the signal handler's frame: running out of stack is a trap
//! and never a fault.
//!
//! A call that a host function makes shares the limit of the outermost call, unless it is made on another
//! thread, which has a stack of its own.
//!
//! [`Shared::stack_limit`]: crate::context::Shared::stack_limit

use std::cell::Cell;
use std::ptr;

use crate::context::Shared;
use crate::limits::LEAF_STACK_BYTES_MAX;

/// Bytes below the limit that guest code leaves to host functions and signal handlers.
const HOST_BYTES_MIN: usize = 192 * 1024;
// A signal handler may run on top of a leaf function.
const _: () = assert!(LEAF_STACK_BYTES_MAX <= HOST_BYTES_MIN / 2);

thread_local! {
    /// The result of [`bounds`].
    static BOUNDS: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

/// A number of the thread, which no other thread has while it lives. Never 0.
#[inline]
pub(crate) fn thread() -> usize {
    BOUNDS.with(|bounds| ptr::from_ref(bounds).addr())
}

/// The limit for guest code that is entered at the stack pointer `sp` and may use `bytes_max`, or less if the
/// thread has less. Never 0.
#[inline]
pub fn limit_below(sp: usize, bytes_max: usize) -> usize {
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

/// Bytes of the thread's stack that are left below its caller; 0 if the system does not tell.
pub fn bytes_left() -> usize {
    let (low, high) = bounds();
    let here = here();
    if (low..high).contains(&here) { here - low } else { 0 }
}

/// An address in the frame of its caller, or near it.
#[inline(always)]
pub(crate) fn here() -> usize {
    let marker = 0u8;
    (&raw const marker).addr()
}

impl Shared {
    /// Sets the limit of the stack for a call that begins here, unless it shares that of a call below.
    #[inline]
    pub fn limit_stack(&mut self, bytes_max: usize) {
        let thread = thread();
        if self.stack_thread != thread {
            self.stack_limit = limit_below(here(), bytes_max);
            self.stack_thread = thread;
        }
    }
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
            let sp = here();
            let (low, high) = bounds();
            assert!(low < sp && sp < high, "{low:x} {sp:x} {high:x}");
            assert_eq!(limit_below(sp, 4096), sp - 4096);
            assert_eq!(limit_below(sp, usize::MAX), low + HOST_BYTES_MIN);
            assert!(bytes_left() <= high - low);
        };
        check();
        std::thread::Builder::new().stack_size(1 << 20).spawn(check).unwrap().join().unwrap();
    }
}
