//! wasmi, which interprets.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use wasmi::{CompilationMode, Config};
use wasmi_wasi::WasiCtx;
use wasmi_wasi::sync::{Dir, WasiCtxBuilder, ambient_authority};
use wasmi_wasi::wasi_common::pipe::{ReadPipe, WritePipe};

common!(wasmi);

type Provider = WasiCtx;
type Output = Arc<RwLock<Vec<u8>>>;

pub(super) struct Wasmi {
    host: Host,
}

impl Wasmi {
    pub(super) fn new() -> Wasmi {
        let mut config = Config::default();
        config.compilation_mode(CompilationMode::Eager);
        Wasmi { host: Host::new(Engine::new(&config)) }
    }
}

impl super::Engine for Wasmi {
    fn name(&self) -> &'static str {
        "wasmi"
    }

    fn is_compiler(&self) -> bool {
        false
    }

    fn compile(&self, code: &Code) -> Result<Box<dyn super::Compiled>, Failure> {
        self.host.compile(code)
    }
}

fn provide(wasi: &Wasi, dirs: Option<&Path>) -> Result<(Provider, Output), Failure> {
    let output = Output::default();
    let mut builder = WasiCtxBuilder::new();
    builder.args(&wasi.args).and_then(|builder| builder.envs(&wasi.env)).map_err(failure)?;
    builder.stdin(Box::new(ReadPipe::from(wasi.stdin.clone())));
    builder.stdout(Box::new(WritePipe::from_shared(output.clone())));
    // By itself it has none at all.
    builder.stderr(Box::new(WritePipe::new(std::io::sink())));
    for (name, _) in &wasi.dirs {
        let place = dirs.ok_or("expected directories")?.join(name);
        let dir = Dir::open_ambient_dir(place, ambient_authority()).map_err(failure)?;
        builder.preopened_dir(dir, name).map_err(failure)?;
    }
    Ok((builder.build(), output))
}

fn printed(output: Output) -> Vec<u8> {
    std::mem::take(&mut *output.write().unwrap_or_else(PoisonError::into_inner))
}

fn add_wasi(linker: &mut Linker<Data>) -> Result<(), Failure> {
    wasmi_wasi::add_to_linker(linker, |data: &mut Data| &mut data.wasi).map_err(failure)
}

fn instantiate(
    linker: &Linker<Data>,
    store: &mut Store<Data>,
    module: &Module,
) -> Result<Instance, Error> {
    linker.instantiate_and_start(store, module)
}

fn exit_code(error: &Error) -> Option<i32> {
    error.i32_exit_status()
}
