//! WASI preview 1 for programs that run in slotvm: arguments, environment, clocks, random numbers, standard
//! streams, and files below directories that are opened for them.
//!
//! The names follow wasmtime's crate. A [`WasiCtx`] holds a program's arguments, environment and
//! descriptors; a [`WasiCtxBuilder`] builds it, and it is part of the data of the program's store.
//! [`add_to_linker`] defines all functions of `wasi_snapshot_preview1`.
//!
//! ```
//! use slotvm::{Engine, Linker, Module, Store};
//! use slotvm_wasi::{I32Exit, MemoryOutput, WasiCtx, add_to_linker};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let engine = Engine::default();
//!     // As a compiler could have produced it from `puts("hello"); exit(7);`
//!     let module = Module::from_text(&engine, r#"
//!         import "wasi_snapshot_preview1" "fd_write" func fd_write(i32, i32, i32, i32) -> i32
//!         import "wasi_snapshot_preview1" "proc_exit" func proc_exit(i32)
//!         memory m 1
//!         data buffer m at i32.const 0 "\x10\0\0\0\x06\0\0\0"
//!         data text m at i32.const 16 "hello\n"
//!         export "_start" func start
//!         func start() {
//!           i32.const 1  i32.const 0  i32.const 1  i32.const 8  call fd_write  drop
//!           i32.const 7  call proc_exit
//!           return
//!         }"#)?;
//!
//!     let output = MemoryOutput::new(1000);
//!     let wasi = WasiCtx::builder().arg("hello").stdout(output.clone()).build();
//!     let mut store = Store::new(&engine, wasi);
//!     let mut linker = Linker::new(&engine);
//!     add_to_linker(&mut linker, |wasi: &mut WasiCtx| wasi)?;
//!     let instance = linker.instantiate(&mut store, &module)?;
//!     let start = instance.get_typed_func::<(), ()>(&store, "_start")?;
//!     // Programs that call `proc_exit` end with an error.
//!     let error = start.call(&mut store, ()).expect_err("it exits");
//!     assert_eq!(I32Exit::of(&error), Some(I32Exit(7)));
//!     assert_eq!(output.contents(), b"hello\n");
//!     Ok(())
//! }
//! ```
//!
//! # Access of programs
//!
//! * Files: only those below the directories that [`WasiCtxBuilder::preopened_dir`] opens. No path leads
//!   out of them: not with `..`, not with a leading `/`, and not through symbolic links, no matter who
//!   creates them and when. cap-std enforces this; on Linux the kernel itself resolves paths this way.
//! * Operations: those that the [`Rights`] of a descriptor allow. Whatever is opened through a directory
//!   has at most the rights that the directory passes on. So a directory can be
//!   [opened](WasiCtxBuilder::preopened_dir_with) read-only.
//! * No network, no processes, no signals. The functions exist and fail.
//!
//! # Arguments of calls
//!
//! Programs may pass any address, length, number or flag. Invalid ones fail with an [`Errno`] of the
//! specification and have no effect; they never panic: `fault` for addresses outside of the memory, `inval`
//! for unknown flags, `badf` for descriptors that are not open or of another kind, `notcapable` for missing
//! rights. The specification also allows a trap for addresses outside of the memory and for misaligned
//! ones. Here addresses need not be aligned. The size of a request has [limits].
//!
//! # Limitations
//!
//! * Sockets: no descriptor is a socket; `sock_accept` and the other socket calls fail with `notsock`.
//! * Signals: `proc_raise` fails with `notsup`.
//! * Hard links to the target of a symbolic link: `path_link` fails with `inval` if it should follow one.
//! * Waiting for CPU time: `poll_oneoff` fails with `notsup` for these clocks, which can be read.
//!
//! Deadlines of the store interrupt a program that waits in `poll_oneoff` or for the standard input of the
//! process. They do not interrupt a reader of the embedder, nor the system while it writes or opens
//! something, such as a pipe in a directory.

#![forbid(unsafe_code)]

mod args;
mod clock;
mod clocks;
mod ctx;
mod ending;
mod errno;
mod fd;
mod io;
pub mod limits;
mod linker;
mod listing;
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
