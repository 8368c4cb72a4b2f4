//! A dialogue: programs that run one after the other and share their globals.

use slotvm::builder::BuildError;
use slotvm::{
    Config, Engine, Error, Global, GlobalType, Instance, Limits, Linker, Module, Store, Val,
    ValType,
};

use crate::compile::{Shared, compile};
use crate::heap::{Exports, Heap, Output};
use crate::syntax::{Function, SyntaxError};
use crate::value::Value;
use crate::{library, parser};

/// Error of a program.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    #[error("{file}:{error}")]
    Syntax { file: String, error: SyntaxError },
    /// A limit of slotvm is exceeded.
    #[error("{file}: {error}")]
    Build { file: String, error: Box<BuildError> },
    #[error(transparent)]
    Run(Error),
}

pub(crate) struct Session {
    engine: Engine,
    store: Store<Heap>,
    linker: Linker<Heap>,
    /// The instance that each program extends, once there is one.
    program: Option<Instance>,
    shared: Shared,
}

impl Session {
    /// Begins a dialogue. Under stress, whatever allocates in the host collects all garbage.
    pub(crate) fn new(
        config: &Config,
        is_stressed: bool,
        output: Box<dyn Output>,
    ) -> Result<Session, Error> {
        // Each program is an instance.
        let limits = Limits { instances_max: u32::MAX, ..Limits::default() };
        let engine = Engine::new(config.clone().limits(limits))?;
        let store = Store::new(&engine, Heap::new(is_stressed, output));
        let mut linker = Linker::new(&engine);
        library::link(&mut linker)?;
        Ok(Session { engine, store, linker, program: None, shared: Shared::default() })
    }

    /// Runs a program, and returns the value that it ends with as text, unless it is `nil`.
    pub(crate) fn run(&mut self, file: &str, source: &str) -> Result<Option<String>, ProgramError> {
        let syntax = |error| ProgramError::Syntax { file: file.to_owned(), error };
        let program = parser::parse(source).map_err(syntax)?;
        let functions = program.functions.iter().map(|Function { name, .. }| name);
        let declared = functions.chain(&program.globals).cloned();
        let globals = declared.chain(self.shared.globals.iter().cloned()).collect();
        parser::check_names(&program, &globals).map_err(syntax)?;
        let compiled = compile(&program, file, &self.shared, self.store.data_mut());
        let (module, n_functions) = compiled.map_err(|error| ProgramError::Build {
            file: file.to_owned(),
            error: Box::new(error),
        })?;
        let module = Module::from_bytecode(&self.engine, module).map_err(ProgramError::Run)?;
        let instance = self.instantiate(&module).map_err(ProgramError::Run)?;
        self.shared = Shared { globals, is_started: true, n_functions };
        self.call_main(instance).map_err(ProgramError::Run)
    }

    fn instantiate(&mut self, module: &Module) -> Result<Instance, Error> {
        let Some(program) = self.program else { return self.begin(module) };
        program.extend(&mut self.store, module, &self.linker)
    }

    /// Makes an instance of the first module, which has what all share.
    fn begin(&mut self, module: &Module) -> Result<Instance, Error> {
        let instance = self.linker.instantiate(&mut self.store, module)?;
        let none = || Error::Usage("the first module exports what all share".to_owned());
        let memory = instance.get_memory(&self.store, "memory").ok_or_else(none)?;
        let table = instance.get_table(&self.store, "functions").ok_or_else(none)?;
        let pointer = |name| instance.get_global(&self.store, name).ok_or_else(none);
        let (next, limit) = (pointer("next")?, pointer("limit")?);
        let ty = GlobalType { ty: ValType::Ref, mutable: true };
        let thrown = Global::new(&mut self.store, ty, Val::Ref(None))?;
        self.store.data_mut().exports = Some(Exports { memory, next, limit, table, thrown });
        self.program = Some(instance);
        Ok(instance)
    }

    fn call_main(&mut self, instance: Instance) -> Result<Option<String>, Error> {
        let mut scope = slotvm::RootScope::new(&mut self.store);
        let main = instance.get_typed_func::<(), Option<slotvm::Rooted>>(&scope, "main")?;
        let value = Value(main.call(&mut scope, ())?.map_or(0, |value| value.bits(&scope)));
        drop(scope);
        let memory = self.store.data().exports().memory;
        let (bytes, heap) = memory.data_and_store_mut(&mut self.store);
        Ok((value != Value::NIL).then(|| library::written(bytes, heap, value)))
    }

    /// Has what was printed appear.
    pub(crate) fn flush(&mut self) -> std::io::Result<()> {
        self.store.data_mut().output.flush()
    }

    /// Collections so far.
    #[cfg(test)]
    pub(crate) fn n_collections(&self) -> u64 {
        self.store.data().space.n_collections
    }
}

/// An error with the place and the functions of the program that were active.
pub(crate) fn report(error: &ProgramError) -> String {
    let ProgramError::Run(error) = error else { return format!("error: {error}") };
    let mut report = format!("error: {}", library::message(error));
    let Some(backtrace) = error.backtrace() else { return report };
    // Code that is not the program's has no place.
    let frames = backtrace.frames().iter().filter_map(|frame| {
        let (file, place) = (frame.file()?, frame.place()?);
        Some(format!("\n    at {} ({file}:{place})", frame.func_name()))
    });
    let frames: Vec<String> = frames.collect();
    for equal in frames.chunk_by(|a, b| a == b) {
        report += &equal[0];
        if equal.len() > 1 {
            report += &format!("\n    ... {} times more", equal.len() - 1);
        }
    }
    if backtrace.n_frames_omitted() > 0 {
        report += &format!("\n    ... {} more frames", backtrace.n_frames_omitted());
    }
    report
}
