//! What slotvm programs run in.
//!
//! The story of the crate, in the order in which a program meets it:
//!
//! * A [`Store`] owns everything: [`memory`], [`table`], globals, [`host`] functions and [`instance`]s.
//!   [`Store::instantiate`] links a module ([`LinkError`] says why it cannot) and runs its start
//!   function.
//! * [`Store::call`] is the only way into guest code, and respects the limits of the host's [`stack`]. The
//!   [`interp`]reter, the semantic reference, runs it, or native code by an [`Executor`]; that shares the data
//!   through the structures of [`context`] and calls the runtime through [`context::Libcalls`].
//! * A program that stops before it returns gives a [`Trap`], everything else that fails an [`Error`].
//! * A program whose code polls can be stopped, by the epochs of the host or by time: [`Interruption`].
//! * [`limits`] has the names of all limits; a [`limiter`] of the embedder decides beside them.
//!
//! # What is unsafe
//! Whoever makes native code tells a store of it by addresses: [`Store::new_native`],
//! [`Store::instantiate_native`] and [`Store::set_entry_point`] are unsafe, and everything else that takes an
//! address is unsafe or private. A store of [`Store::new`] interprets and takes none, so it cannot be led
//! astray:
//!
//! ```compile_fail,E0133
//! # use slotvm_runtime::{FuncHandle, Store, context::Entry};
//! fn lead_astray(store: &mut Store, entry: Entry) {
//!     store.set_entry_point(0, entry);
//! }
//! ```
//! ```compile_fail,E0133
//! # use slotvm_runtime::{EntryPoints, Natives, Store};
//! # use std::sync::Arc;
//! fn forge(store: &mut Store, module: Arc<slotvm_bytecode::VerifiedModule>) {
//!     let code: EntryPoints = Arc::new(|_| 0x1234 as *const u8);
//!     let natives = || Ok(Natives { code: &code, memory_span_bytes: 0, image: None });
//!     store.instantiate_native(module, &[], natives().unwrap(), natives);
//! }
//! ```
//! ```compile_fail,E0133
//! # use slotvm_runtime::{NativeHooks, Store, StoreConfig};
//! fn hook(hooks: NativeHooks) -> Store {
//!     Store::new_native(StoreConfig::default(), Box::new(()), hooks)
//! }
//! ```

mod calls;
mod const_expr;
pub mod context;
mod data;
pub mod entities;
pub mod error;
mod interp;
pub mod limits;
mod memory;
mod pinned;
pub mod stack;
mod steps;
mod store;
pub mod trap;

pub use calls::instantiate::Natives;
pub use data::Data;
pub use entities::{
    Extern, FuncHandle, FuncTarget, GlobalHandle, InstanceId, MemoryHandle, TableHandle,
};
pub use error::{Error, LinkError};
pub use limits::Limits;
pub use memory::image::MemoryImage;
pub use memory::limiter::{ResourceLimiter, StoreLimits, StoreLimitsBuilder};
pub use memory::linear::{Memory, MemoryPlan, access_end_max};
pub use memory::table::Table;
pub use steps::trace::{TraceEvent, TraceFn};
pub use store::config::StoreConfig;
pub use store::funcs::EntryPoints;
pub use store::host::{HostCall, HostFn};
pub use store::interrupt::{Interruption, UpdateDeadline};
pub use store::libcalls::{interrupts_wait, leave_pending};
pub use store::ticker::Ticker;
pub use store::{EpochCallback, Executor, HostTrampoline, NativeCode, NativeHooks, Store};
pub use trap::{Frame, Trap};
