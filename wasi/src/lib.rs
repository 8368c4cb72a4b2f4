//! WASI preview 1 for programs that run in slotvm: all functions of `wasi_snapshot_preview1`.
#![forbid(unsafe_code)]

mod args;
mod clock;
mod ctx;
mod errno;
mod fd;
mod io;
pub mod limits;
mod linker;
mod memory;
mod open;
mod path;
mod poll;
mod process;
mod random;
mod readdir;
mod socket;
mod stdio;
mod table;
mod types;

pub use ctx::{WasiCtx, WasiCtxBuilder};
pub use errno::Errno;
pub use linker::{MODULE, add_to_linker};
pub use process::I32Exit;
pub use stdio::MemoryOutput;
pub use types::Rights;
