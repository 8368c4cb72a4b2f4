//! Room on the stack for the code generator, which recurses and may be called deep in the stack of a guest.
//! Guest code uses the stack down to [`slotvm_runtime::native::limit_below`].

use std::io;

use slotvm_runtime::native::bytes_left;

/// Bytes of stack in which any function can be compiled.
const COMPILE_BYTES: usize = 1 << 20;
/// The stack of a thread that is made to have that many.
pub(crate) const THREAD_BYTES: usize = 4 << 20;

/// Compiles something on this thread's stack, if there is enough left of it, or else on a new thread.
///
/// # Errors
/// Fails if a thread is needed and the system starts none.
///
/// # Panics
/// Panics if `compile` panics.
pub(crate) fn with_room<R: Send>(compile: impl FnOnce() -> R + Send) -> io::Result<R> {
    if bytes_left() >= COMPILE_BYTES {
        return Ok(compile());
    }
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().stack_size(THREAD_BYTES);
        let thread = builder.spawn_scoped(scope, compile)?;
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
