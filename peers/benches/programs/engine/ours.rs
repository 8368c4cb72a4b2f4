//! slotvm: native code with guard pages and with explicit checks, and the interpreter.

use std::io::Cursor;
use std::path::Path;

use slotvm::{Config, MemoryPlan, Tier};
use slotvm_wasi::{I32Exit, MemoryOutput, WasiCtx};

common!(slotvm);

/// More than any of the programs prints.
const PRINTED_BYTES_MAX: usize = 64 << 20;

type Provider = WasiCtx;
type Output = MemoryOutput;

pub(super) struct Ours {
    name: &'static str,
    host: Host,
}

impl Ours {
    pub(super) fn jit() -> Ours {
        Ours::new("slotvm", Config::new().tier(Tier::Jit))
    }

    pub(super) fn checked() -> Ours {
        let memory = Some(MemoryPlan::CHECKED);
        Ours::new("slotvm, checks", Config::new().tier(Tier::Jit).memory(memory))
    }

    pub(super) fn without_signals() -> Ours {
        let config = &mut Config::new();
        Ours::new("slotvm, no signals", config.tier(Tier::Jit).signals_based_traps(false))
    }

    pub(super) fn interpreter() -> Ours {
        Ours::new("slotvm, interpreter", Config::new().tier(Tier::Interpreter))
    }

    fn new(name: &'static str, config: &mut Config) -> Ours {
        config.parallel_compilation(false);
        let engine = Engine::new(config).expect("there is native code for this machine");
        Ours { name, host: Host::new(engine) }
    }
}

impl super::Engine for Ours {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_compiler(&self) -> bool {
        self.host.engine.tier() == Tier::Jit
    }

    fn compile(&self, code: &Code) -> Result<Box<dyn super::Compiled>, Failure> {
        self.host.compile(code)
    }
}

fn provide(wasi: &Wasi, dirs: Option<&Path>) -> Result<(Provider, Output), Failure> {
    let output = MemoryOutput::new(PRINTED_BYTES_MAX);
    let mut builder = WasiCtx::builder();
    builder.args(&wasi.args).stdin(Cursor::new(wasi.stdin.clone())).stdout(output.clone());
    for (name, value) in &wasi.env {
        builder.env(name, value);
    }
    for (name, _) in &wasi.dirs {
        let place = dirs.ok_or("expected directories")?.join(name);
        builder.preopened_dir(place, name).map_err(failure)?;
    }
    Ok((builder.build(), output))
}

fn printed(output: Output) -> Vec<u8> {
    output.contents()
}

fn add_wasi(linker: &mut Linker<Data>) -> Result<(), Failure> {
    slotvm_wasi::add_to_linker(linker, |data: &mut Data| &mut data.wasi).map_err(failure)
}

fn instantiate(
    linker: &Linker<Data>,
    store: &mut Store<Data>,
    module: &Module,
) -> Result<Instance, Error> {
    linker.instantiate(store, module)
}

fn exit_code(error: &Error) -> Option<i32> {
    I32Exit::of(error).map(|exit| exit.0)
}
