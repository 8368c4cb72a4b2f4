//! Parents and children after a fork.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a closure in both processes, checks that neither panics, and ends the child. `child` is the result of the
/// fork.
///
/// # Panics
/// Panics if the closure panics in one of them.
pub(crate) fn in_both<R>(child: i32, run: impl FnOnce() -> R) -> R {
    assert_ne!(child, -1);
    let result = catch_unwind(AssertUnwindSafe(run));
    if child == 0 {
        // SAFETY: ends the child without what the parent has to do.
        unsafe { libc::_exit(if result.is_ok() { 42 } else { 1 }) }
    }
    let mut status = 0;
    // SAFETY: the status is written.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!((libc::WIFEXITED(status), libc::WEXITSTATUS(status)), (true, 42));
    result.unwrap()
}
