//! wasmtime, with Cranelift.

use std::path::Path;

use wasmtime_wasi::p1::{WasiP1Ctx, add_to_linker_sync};
use wasmtime_wasi::p2::pipe::{MemoryInputPipe, MemoryOutputPipe};
use wasmtime_wasi::{FsPerms, I32Exit, WasiCtxBuilder};

common!(wasmtime);

/// More than any of the programs prints.
const PRINTED_BYTES_MAX: usize = 64 << 20;

type Provider = WasiP1Ctx;
type Output = MemoryOutputPipe;

pub(super) struct Wasmtime {
    host: Host,
}

impl Wasmtime {
    pub(super) fn new() -> Wasmtime {
        // It is built without its feature `parallel-compilation`.
        Wasmtime { host: Host::new(Engine::default()) }
    }
}

impl super::Engine for Wasmtime {
    fn name(&self) -> &'static str {
        "wasmtime"
    }

    fn compile(&self, wasm: &[u8]) -> Result<Box<dyn super::Compiled>, Failure> {
        self.host.compile(wasm)
    }
}

fn provide(wasi: &Wasi, dirs: Option<&Path>) -> Result<(Provider, Output), Failure> {
    let output = MemoryOutputPipe::new(PRINTED_BYTES_MAX);
    let mut builder = WasiCtxBuilder::new();
    // As its own command line does; else other threads would work for the program, whose time is not seen.
    builder.allow_blocking_current_thread(true);
    builder.args(&wasi.args).envs(&wasi.env);
    builder.stdin(MemoryInputPipe::new(wasi.stdin.clone())).stdout(output.clone());
    for (name, _) in &wasi.dirs {
        let place = dirs.ok_or("expected directories")?.join(name);
        builder.preopened_dir(place, name, FsPerms::ReadWrite).map_err(failure)?;
    }
    Ok((builder.build_p1(), output))
}

fn printed(output: Output) -> Vec<u8> {
    output.contents().to_vec()
}

fn add_wasi(linker: &mut Linker<Data>) -> Result<(), Failure> {
    add_to_linker_sync(linker, |data: &mut Data| &mut data.wasi).map_err(failure)
}

fn instantiate(
    linker: &Linker<Data>,
    store: &mut Store<Data>,
    module: &Module,
) -> Result<Instance, Error> {
    linker.instantiate(store, module)
}

fn exit_code(error: &Error) -> Option<i32> {
    error.downcast_ref::<I32Exit>().map(|exit| exit.0)
}
