//! What slotvm programs run in.
//!
//! The story of the crate, in the order in which a program meets it:
//!
//! * A [`Store`] owns everything: [`memory`], [`table`], globals, [`host`] functions and [`instance`]s.
//!   [`Store::instantiate`] links a module ([`LinkError`] says why it cannot) and runs its start
//!   function.
//! * [`Store::call`] is the only way into guest code. An [`Executor`] runs it: the [`interp`]reter, the
//!   semantic reference, or native code, which shares the data through the structures of [`context`]
//!   and calls the runtime through [`context::Libcalls`].
//! * A program that stops before it returns gives a [`Trap`], everything else that fails an [`Error`].
//! * A program whose code polls can be stopped, by the epochs of the host or by time: [`Interruption`].
//! * [`limits`] has the names of all limits; a [`limiter`] of the embedder decides beside them.

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
pub mod store;
pub mod table;
mod ticker;
pub mod trap;

pub use config::{Executor, HostTrampoline, StoreConfig};
pub use entities::{Extern, FuncHandle, GlobalHandle, MemoryHandle, TableHandle};
pub use error::{Error, LinkError};
pub use funcs::EntryPoints;
pub use host::{HostCall, HostFn};
pub use image::MemoryImage;
pub use instance::{InstanceId, Natives};
pub use interrupt::{EpochCallback, Interruption, UpdateDeadline};
pub use libcalls::leave_pending;
pub use limiter::{ResourceLimiter, StoreLimits, StoreLimitsBuilder};
pub use limits::Limits;
pub use memory::{Memory, MemoryPlan, access_end_max};
pub use store::{FuncTarget, Store};
pub use table::Table;
pub use ticker::Ticker;
pub use trap::{Frame, Trap};
