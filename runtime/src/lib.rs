//! The runtime of slotvm programs: stores, instances, memories, traps and the interpreter.
//!
//! The story of the crate, in the order in which a program meets it:
//!
//! * A [`Store`] owns everything: [`Memory`], [`Table`], globals, host functions ([`HostFn`]) and instances
//!   ([`InstanceId`]). [`Store::instantiate`] links a module ([`LinkError`] states why it cannot) and runs its start
//!   function.
//! * [`Store::call`] is the only way into guest code, and respects the limits of the host's stack. The
//!   interpreter runs it, or native code from another crate, by the
//!   module `native`.
//! * A program that stops before it returns fails with a [`Trap`], everything else with an [`Error`].
//! * A program whose code polls can be stopped, by the epochs of the host or by time: [`Interruption`].
//! * [`limits`] has the names of all limits; a [`ResourceLimiter`] of the embedder decides beside them.
//!
//! Its folders import each other one way only, from `calls` down: `calls` from the host and the making of
//! instances, the `interp`reter, the `store`, `steps` (what the interpreter keeps in one), `memory`, and the files
//! beside them.
//!
//! # What is unsafe
//! Whoever makes native code tells a store of it by addresses: [`Store::new_native`],
//! [`Store::instantiate_native`] and [`Store::set_entry_trampoline`] are unsafe, and everything else that takes an
//! address is unsafe or private. A store of [`Store::new`] interprets and takes none, so it cannot be led
//! astray:
//!
//! ```compile_fail,E0133
//! # use slotvm_runtime::{FuncHandle, Store, native::EntryTrampoline};
//! fn lead_astray(store: &mut Store, entry: EntryTrampoline) {
//!     store.set_entry_trampoline(0, entry, std::sync::Arc::new(()));
//! }
//! ```
//! ```compile_fail,E0133
//! # use slotvm_runtime::{Store, native::{Natives, OnCall}};
//! # use std::sync::{Arc, atomic::AtomicPtr};
//! static ENTRIES: [AtomicPtr<u8>; 1] = [AtomicPtr::new(0x1234 as *mut u8)];
//! fn forge(store: &mut Store, module: Arc<slotvm_bytecode::VerifiedModule>) {
//!     let entries = ENTRIES.as_ptr();
//!     let natives = || Ok(Natives { entries, on_call: OnCall::NONE, memory_span_bytes: 0, image: None, tiers: None });
//!     store.instantiate_native(module, &[], natives().unwrap(), &Default::default(), natives);
//! }
//! ```
//! ```compile_fail,E0133
//! # use slotvm_runtime::{Store, StoreConfig, native::NativeHooks};
//! fn hook(hooks: NativeHooks) -> Store {
//!     Store::new_native(StoreConfig::default(), Box::new(()), hooks)
//! }
//! ```

mod backtrace;
mod calls;
mod const_expr;
mod context;
mod data;
mod entities;
mod error;
mod exit;
mod interp;
pub mod limits;
mod memory;
mod part;
mod pinned;
mod stack;
mod steps;
mod store;
mod trap;

pub use backtrace::{Backtrace, Frame};
pub use entities::{
    Extern, FuncHandle, FuncTarget, GlobalHandle, InstanceId, MemoryHandle, TableHandle,
};
pub use error::{Error, HostError, LinkError};
pub use limits::Limits;
pub use memory::limiter::{ResourceLimiter, StoreLimits, StoreLimitsBuilder};
pub use memory::linear::{Memory, MemoryPlan};
pub use memory::table::Table;
pub use steps::module_code::InterpreterCode;
pub use steps::trace::{TraceEvent, TraceFn};
pub use store::config::StoreConfig;
pub use store::host::{HostCall, HostFn};
pub use store::interrupt::{Interruption, UpdateDeadline};
pub use store::roots::{RootHandle, RootMark};
pub use store::ticker::Ticker;
pub use store::{EpochCallback, Store};
pub use trap::Trap;

/// Internals for producers of native code, as the crate `slotvm` is: the structures that it shares with the
/// runtime, and facts about it that a store needs. Not a public interface; it changes with that crate.
#[doc(hidden)]
pub mod native {
    pub use crate::calls::instantiate::Natives;
    pub use crate::context::*;
    pub use crate::data::Data;
    pub use crate::exit::{CodeVersion, EXIT_CELLS_MAX, Exit, ExitFrame, ExitPlace, WaitingFrame};
    pub use crate::interp::interpret;
    pub use crate::memory::image::MemoryImage;
    pub use crate::memory::linear::access_end_max;
    pub use crate::part::Part;
    pub use crate::stack::{bytes_left, limit_below};
    pub use crate::steps::module_code::{TieredCode, Tiers};
    pub use crate::store::called_from::{NativePlace, NativeRoots, WalkNative};
    pub use crate::store::libcalls::{interrupts_wait, leave_pending, move_bytes, set_bytes};
    pub use crate::store::native::find_host_code;
    pub use crate::store::{
        Executor, HostTrampoline, NativeCallee, NativeCode, NativeHooks, TierHooks,
    };
}
