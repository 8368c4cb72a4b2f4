//! wasmtime, with Cranelift.

use std::path::Path;

use wasmtime::{Config, Inlining};
use wasmtime_wasi::p1::{WasiP1Ctx, add_to_linker_sync};
use wasmtime_wasi::p2::pipe::{MemoryInputPipe, MemoryOutputPipe};
use wasmtime_wasi::{FsPerms, I32Exit, WasiCtxBuilder};

common!(wasmtime);

/// More than any of the programs prints.
const PRINTED_BYTES_MAX: usize = 64 << 20;

type Provider = WasiP1Ctx;
type Output = MemoryOutputPipe;

pub(super) struct Wasmtime {
    name: &'static str,
    host: Host,
}

/// Ways to check each access of memory.
#[derive(Copy, Clone)]
pub(super) enum Accesses {
    /// With a mask of the address, so that speculation cannot pass the check.
    Masked,
    Unmasked,
    /// Without masks, and without instructions that fault.
    NoSignals,
}

impl Wasmtime {
    pub(super) fn new() -> Wasmtime {
        Wasmtime::of("wasmtime", &Config::new())
    }

    pub(super) fn inlining() -> Wasmtime {
        Wasmtime::of("wasmtime, inliner", Config::new().compiler_inlining(Inlining::Yes))
    }

    pub(super) fn checked(accesses: Accesses) -> Wasmtime {
        let mut config = Config::new();
        config.memory_reservation(0).memory_guard_size(0).memory_reservation_for_growth(0);
        config.signals_based_traps(!matches!(accesses, Accesses::NoSignals));
        let name = match accesses {
            Accesses::Masked => "wasmtime, checks and masks",
            Accesses::Unmasked => "wasmtime, checks",
            Accesses::NoSignals => "wasmtime, no signals",
        };
        if !matches!(accesses, Accesses::Masked) {
            // SAFETY: the flag is one of Cranelift's settings that wasmtime itself leaves to embedders. Without it,
            // code still checks each address before it uses it; only speculation is not held back, and the modules
            // that run here are the repository's own.
            unsafe { config.cranelift_flag_set("enable_heap_access_spectre_mitigation", "false") };
        }
        Wasmtime::of(name, &config)
    }

    fn of(name: &'static str, config: &Config) -> Wasmtime {
        // It is built without its feature `parallel-compilation`.
        let engine = Engine::new(config).expect("there is native code for this machine");
        Wasmtime { name, host: Host::new(engine) }
    }
}

impl super::Engine for Wasmtime {
    fn name(&self) -> &'static str {
        self.name
    }

    fn compile(&self, code: &Code) -> Result<Box<dyn super::Compiled>, Failure> {
        self.host.compile(code)
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
