//! The context of a C function.

use std::ffi::c_void;
use std::fmt;
use std::ptr;

use slotvm_runtime::Error;
use slotvm_runtime::native::{MemoryDef, Shared, VmCtx};

use crate::api::engine::Engine;

/// The status after an error of the host.
pub(crate) const HOST_STATUS: u32 = 31;

/// The state of the calls of one thread: the memory that they access, what they may use, and how the last
/// one ended. It belongs to no code: with any context any compiled function can be called.
///
/// While a function runs it has its context; only functions that it imports may use that, by the pointer
/// that they get, until they return. Between calls it may be moved.
#[repr(C)]
pub struct Context {
    /// The first field: a context is the first argument of guest functions.
    pub(super) vm: VmCtx,
    pub(super) shared: Shared,
    pub(super) memory: MemoryDef,
    pub(super) status: u32,
    pub(super) error: Option<Error>,
    pub(super) stack_bytes_max: usize,
    user: *mut c_void,
}

/// Epoch that never reaches its deadline; code does not poll here.
static NEVER: [std::sync::atomic::AtomicU64; 2] =
    [std::sync::atomic::AtomicU64::new(0), std::sync::atomic::AtomicU64::new(u64::MAX)];

impl Context {
    /// A context without memory and without fuel. The functions that it is used for may take as much stack
    /// as the [configuration](crate::Config::max_native_stack) of the engine says, and less if the
    /// thread has less.
    pub fn new(engine: &Engine) -> Context {
        Context {
            vm: VmCtx::EMPTY,
            shared: Shared { epoch: &NEVER[0], poll_at: &NEVER[1], ..Shared::EMPTY },
            memory: MemoryDef { base: ptr::null_mut(), bytes: 0 },
            status: 0,
            error: None,
            stack_bytes_max: engine.config().native_stack_bytes_max,
            user: ptr::null_mut(),
        }
    }

    /// Returns how the last call ended: 0 if it returned, the number of the [`TrapCode`](crate::TrapCode) if it
    /// trapped, 31 if an imported function [failed](Context::fail).
    #[inline]
    pub fn status(&self) -> u32 {
        self.status
    }

    /// Takes the error of the last call; its status is 0 then.
    ///
    /// # Errors
    /// Fails if the call did not return: [`Error::Trap`] for a trap, with the functions that were active, or the
    /// error with which an imported function failed.
    #[inline]
    pub fn check(&mut self) -> Result<(), Error> {
        if self.status == 0 { Ok(()) } else { Err(self.take_error()) }
    }

    #[cold]
    fn take_error(&mut self) -> Error {
        self.status = 0;
        self.error.take().expect("a status comes with an error")
    }

    /// Ends the calling function with an error once the imported function, which calls this, has returned. Its
    /// results are ignored.
    pub fn fail(&mut self, error: Error) {
        self.status = error.trap_code().map_or(HOST_STATUS, |code| code.number().into());
        self.error = Some(error);
    }

    /// Sets the memory that loads and stores access from the next one on; an imported function may do so,
    /// too. A null pointer with length 0 is none.
    ///
    /// # Safety
    /// While functions run with this context, the bytes may be read and written, unless the functions have
    /// no stores; no references to them exist.
    pub unsafe fn set_memory(&mut self, base: *mut u8, bytes: usize) {
        self.memory = MemoryDef { base, bytes: bytes as u64 };
    }

    /// Sets the fuel that is left, for code of engines that [consume](crate::Config::consume_fuel) it.
    /// More than `i64::MAX` is cut to that.
    pub fn set_fuel(&mut self, fuel: u64) {
        self.shared.fuel = fuel.min(i64::MAX as u64) as i64;
    }

    /// The fuel that is left.
    pub fn fuel(&self) -> u64 {
        self.shared.fuel as u64
    }

    /// Sets the pointer that [`Context::user`] returns, for imported functions.
    pub fn set_user(&mut self, user: *mut c_void) {
        self.user = user;
    }

    /// The embedder's pointer, null at first.
    #[inline]
    pub fn user(&self) -> *mut c_void {
        self.user
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("memory", &self.memory)
            .field("status", &self.status)
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}
