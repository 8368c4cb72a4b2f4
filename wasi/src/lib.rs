//! WASI preview 1 for programs that run in slotvm: arguments, environment, clocks, random numbers, standard
//! streams, and files below directories that are opened for them.
//!
//! The names are those of wasmtime's crate. What a program is given is a [`WasiCtx`], which a
//! [`WasiCtxBuilder`] makes and which is a part of the data of the program's store; [`add_to_linker`] provides
//! all functions of `wasi_snapshot_preview1`.
//!
//! ```
//! use slotvm::{Engine, Linker, Module, Store};
//! use slotvm_wasi::{I32Exit, MemoryOutput, WasiCtx, add_to_linker};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let engine = Engine::default();
//!     // A compiler would have made it from `puts("hello"); exit(7);`
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
//!     // Programs that call `proc_exit` end by an error.
//!     let error = start.call(&mut store, ()).expect_err("it exits");
//!     assert_eq!(I32Exit::of(&error), Some(I32Exit(7)));
//!     assert_eq!(output.contents(), b"hello\n");
//!     Ok(())
//! }
//! ```
//!
//! # What a program can reach
//!
//! * Of files only those below the directories that [`WasiCtxBuilder::preopened_dir`] opens. No path leads
//!   out of them: neither by `..` nor by a `/` at its start nor by symbolic links, whoever makes them and
//!   whenever. That is cap-std's work; on Linux the system itself resolves paths so.
//! * What its descriptors have the [`Rights`] for. Those of a directory are inherited at most by what is
//!   opened by way of it, so a directory can be [given](WasiCtxBuilder::preopened_dir_with) to be read only.
//! * No network, no processes, no signals. The functions are there and say that there is none.
//!
//! # What programs pass
//!
//! Every address, length, number and flag may be anything. What makes no sense is an [`Errno`] of the
//! specification, never a panic, and nothing has then been done: `fault` for addresses outside of the memory,
//! `inval` for flags that do not exist, `badf` for descriptors that are not open or of another kind,
//! `notcapable` for missing rights. The specification lets addresses outside of the memory trap instead, and
//! lets misaligned ones trap, too; here addresses need not be aligned. What can be asked for at once has
//! [limits].
//!
//! # What it does not do
//!
//! * Sockets: no descriptor is one, `sock_accept` and the others answer `notsock`.
//! * Signals: `proc_raise` answers `notsup`.
//! * Hard links to what a symbolic link stands for: `path_link` answers `inval` if it should follow one.
//! * Waiting for CPU time: `poll_oneoff` answers `notsup` for these clocks, which can be read.
//!
//! While a program waits in `poll_oneoff`, or for the standard input of the process, deadlines of the store
//! interrupt it. They do not while a reader of the embedder reads, or while the system writes or opens
//! something, such as a pipe that lies in a directory.

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
