//! Processes that fork, threads that C has made, and panics in great number.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use slotvm::TrapCode;

use crate::check_in_child;
use crate::fork::in_both;
use crate::guest::Guest;

#[test]
fn parent_and_child_trap_after_a_fork() {
    /// Forks below guest code. Returns the child's number, or 0 there.
    fn fork(_: i32) -> i32 {
        // SAFETY: the child runs what only this thread uses, until it exits.
        unsafe { libc::fork() }
    }
    check_in_child("process::parent_and_child_trap_after_a_fork", || {
        let mut guest = Guest::with_host(fork);
        guest.trap(8);
        let child = guest.call("through", 0).unwrap();
        in_both(child, || {
            guest.trap(1000);
            guest.trap_in_other_ways();
            Guest::new().trap(8);
        });
    });
}

#[test]
fn ten_thousand_panics_arrive() {
    check_in_child("process::ten_thousand_panics_arrive", || {
        std::panic::set_hook(Box::new(|_| ()));
        let mut guest = Guest::with_host(|n: i32| -> i32 { std::panic::panic_any(n) });
        for n in 0..10_000 {
            let panic = catch_unwind(AssertUnwindSafe(|| guest.call("through", n)));
            assert_eq!(panic.unwrap_err().downcast_ref(), Some(&n));
        }
        _ = std::panic::take_hook();
        guest.trap(8);
    });
}

/// Runs a closure in a thread that C makes, with a stack of a size and no other for signals.
fn in_pthread<F: FnMut() + Send>(stack_bytes: usize, mut body: F) {
    extern "C" fn run<F: FnMut()>(body: *mut libc::c_void) -> *mut libc::c_void {
        let mut signal_stack = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: 0, ss_size: 0 };
        // SAFETY: only asks.
        assert_eq!(unsafe { libc::sigaltstack(ptr::null(), &mut signal_stack) }, 0);
        assert_ne!(signal_stack.ss_flags & libc::SS_DISABLE, 0);
        // SAFETY: the address of the closure, which nothing else uses before the thread has ended.
        unsafe { (*body.cast::<F>())() }
        ptr::null_mut()
    }
    // SAFETY: the structures are initialised before use, and the closure lives until the thread has
    // ended.
    unsafe {
        let mut attributes = std::mem::zeroed();
        assert_eq!(libc::pthread_attr_init(&mut attributes), 0);
        assert_eq!(libc::pthread_attr_setstacksize(&mut attributes, stack_bytes), 0);
        let mut thread = std::mem::zeroed();
        let body = (&raw mut body).cast();
        assert_eq!(libc::pthread_create(&mut thread, &attributes, run::<F>, body), 0);
        assert_eq!(libc::pthread_join(thread, ptr::null_mut()), 0);
        assert_eq!(libc::pthread_attr_destroy(&mut attributes), 0);
    }
}

/// 64 KiB, or more where the C library wants more.
fn least_stack_bytes() -> usize {
    // SAFETY: only asks.
    let least = unsafe { libc::sysconf(libc::_SC_THREAD_STACK_MIN) };
    usize::try_from(least).unwrap_or(0).max(64 << 10)
}

#[test]
fn threads_of_c_trap_without_a_stack_for_signals() {
    check_in_child("process::threads_of_c_trap_without_a_stack_for_signals", || {
        for mut guest in Guest::of_both_kinds() {
            in_pthread(1 << 20, || {
                guest.trap(100);
                guest.trap_in_other_ways();
            });
            // Less than what is kept for the host: nothing of it is left to the guest.
            in_pthread(least_stack_bytes(), || {
                let error = guest.call("deep", 1).unwrap_err();
                assert_eq!(error.trap_code(), Some(TrapCode::StackOverflow));
                // What has no frame does not need more stack than its caller.
                guest.trap(8);
            });
            guest.trap(8);
        }
    });
}
