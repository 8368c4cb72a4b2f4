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

mod bulk;
pub mod config;
pub mod context;
pub mod entities;
mod entry;
pub mod error;
mod funcs;
mod growth;
pub mod host;
mod image;
pub mod instance;
pub mod interp;
mod interrupt;
mod libcalls;
pub mod limiter;
pub mod limits;
mod link;
pub mod memory;
mod pieces;
mod pinned;
pub mod stack;
pub mod store;
pub mod table;
mod ticker;
pub mod trap;

pub use config::{Executor, HostTrampoline, NativeCode, NativeHooks, StoreConfig};
pub use entities::{Extern, FuncHandle, GlobalHandle, MemoryHandle, TableHandle};
pub use error::{Error, LinkError};
pub use funcs::EntryPoints;
pub use host::{HostCall, HostFn};
pub use image::MemoryImage;
pub use instance::{InstanceId, Natives};
pub use interrupt::{EpochCallback, Interruption, UpdateDeadline};
pub use libcalls::{interrupts_wait, leave_pending};
pub use limiter::{ResourceLimiter, StoreLimits, StoreLimitsBuilder};
pub use limits::Limits;
pub use memory::{Memory, MemoryPlan, access_end_max};
pub use store::{FuncTarget, Store};
pub use table::Table;
pub use ticker::Ticker;
pub use trap::{Frame, Trap};
