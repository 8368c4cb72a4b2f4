//! The state of a running script, its modules and instances, and the execution of directives.

use std::collections::HashMap;

use slotvm::{CompileStats, Config, Engine, Error, Instance, Linker, Module, Store, TrapCode, Val};
use slotvm_bytecode::wasm;
use wast::token::Id;
use wast::{QuoteWat, WastDirective, WastExecute, WastInvoke, Wat};

use super::{Reason, spectest, values};

type Outcome<T = ()> = Result<T, Reason>;

/// Modules or instances by name, or the reason why the directive that defines one was refused or failed.
type Named<T> = HashMap<Option<String>, Result<T, Absent>>;

/// The reason why a module or instance that later directives need is missing.
#[derive(Clone, Debug)]
enum Absent {
    Failed,
    Refused(String),
}

impl Absent {
    fn reason(&self) -> Reason {
        match self {
            Absent::Failed => {
                Reason::failed("the module or instance that it needs has failed above")
            }
            Absent::Refused(what) => Reason::Refused(what.clone()),
        }
    }
}

impl From<&Reason> for Absent {
    fn from(reason: &Reason) -> Absent {
        match reason {
            Reason::Failed(_) => Absent::Failed,
            Reason::Refused(what) => Absent::Refused(what.clone()),
        }
    }
}

/// The reason why a module was not made.
enum Rejection {
    /// The module is invalid, regardless of proposals.
    Invalid(String),
    /// The module is valid, but unsupported.
    Unsupported(String),
}

impl From<Rejection> for Reason {
    fn from(rejection: Rejection) -> Reason {
        match rejection {
            Rejection::Invalid(message) => Reason::Failed(message),
            Rejection::Unsupported(what) => Reason::Refused(what),
        }
    }
}

pub(super) struct Session {
    engine: Engine,
    store: Store<()>,
    linker: Linker<()>,
    /// Definitions of modules. The key `None` is the last one.
    modules: Named<Module>,
    /// Instances. The key `None` is the last one.
    instances: Named<Instance>,
    /// Names under which missing instances were registered.
    unregistered: HashMap<String, Absent>,
}

impl Session {
    /// # Panics
    /// Panics if the engine cannot be made.
    pub(super) fn new(config: &Config) -> Session {
        let engine = Engine::new(config).expect("the configuration is valid");
        let mut store = Store::new(&engine, ());
        let mut linker = Linker::new(&engine);
        linker.allow_shadowing(true);
        spectest::define(&mut linker, &mut store).expect("a new store has room");
        let (modules, instances) = (HashMap::new(), HashMap::new());
        Session { engine, store, linker, modules, instances, unregistered: HashMap::new() }
    }

    /// Ends the script. Returns the statistics of compilations, all of which have ended.
    pub(super) fn end(self) -> CompileStats {
        let engine = self.engine.clone();
        drop(self);
        engine.compile_stats()
    }

    pub(super) fn directive(&mut self, directive: WastDirective<'_>) -> Outcome {
        match directive {
            WastDirective::Module(mut module) => {
                let name = name_of(module.name());
                let module = self.quoted(&mut module).map_err(Reason::from);
                let instance = module.and_then(|module| self.instantiate(&module));
                self.keep_instance(name, instance)
            }
            WastDirective::ModuleDefinition(mut module) => {
                let name = name_of(module.name());
                let module = self.quoted(&mut module).map_err(Reason::from);
                keep(&mut self.modules, name, module)
            }
            WastDirective::ModuleInstance { instance, module, .. } => {
                let definition = find(&self.modules, module).cloned();
                let made = definition.and_then(|module| self.instantiate(&module));
                self.keep_instance(name_of(instance), made)
            }
            WastDirective::Register { name, module, .. } => self.register(name, module),
            WastDirective::Invoke(invoke) => self.invoke(&invoke).map(drop),
            WastDirective::AssertReturn { exec, results, .. } => {
                let found = self.execute(exec)?;
                values::compare(&found, &results, &self.store)
            }
            WastDirective::AssertTrap { exec, message, .. } => {
                expect_trap(self.try_execute(exec)?, message)
            }
            WastDirective::AssertExhaustion { call, message, .. } => {
                expect_trap(self.try_invoke(&call)?.map(drop), message)
            }
            WastDirective::AssertInvalid { mut module, .. }
            | WastDirective::AssertMalformed { mut module, .. } => self.expect_bad(&mut module),
            WastDirective::AssertUnlinkable { module, .. } => self.expect_unlinkable(module),
            WastDirective::AssertInvalidCustom { .. }
            | WastDirective::AssertMalformedCustom { .. } => {
                Err(Reason::Refused("checks of custom sections".into()))
            }
            WastDirective::AssertException { .. } => {
                Err(Reason::Refused("exception handling".into()))
            }
            WastDirective::AssertSuspension { .. } => {
                Err(Reason::Refused("stack switching".into()))
            }
            WastDirective::Thread(_) | WastDirective::Wait { .. } => {
                Err(Reason::Refused("threads".into()))
            }
        }
    }

    /// Makes a module from a binary.
    fn module(&self, bytes: &[u8]) -> Result<Module, Rejection> {
        Module::new(&self.engine, bytes).map_err(|error| match error {
            Error::Wasm(wasm::Error::Unsupported { proposals, .. }) => {
                Rejection::Unsupported(proposals.join(", "))
            }
            error => Rejection::Invalid(error.to_string()),
        })
    }

    fn text(&self, module: &mut Wat<'_>) -> Result<Module, Rejection> {
        let bytes = module.encode().map_err(|error| Rejection::Invalid(error.to_string()))?;
        self.module(&bytes)
    }

    fn quoted(&self, module: &mut QuoteWat<'_>) -> Result<Module, Rejection> {
        let bytes = module.encode().map_err(|error| Rejection::Invalid(error.to_string()))?;
        self.module(&bytes)
    }

    /// Makes an instance. The directive fails if that fails.
    fn instantiate(&mut self, module: &Module) -> Outcome<Instance> {
        self.try_instantiate(module)?.map_err(Reason::failed)
    }

    /// Makes an instance. Importing from an instance that was refused is refused, too.
    fn try_instantiate(&mut self, module: &Module) -> Outcome<Result<Instance, Error>> {
        let mut imports = module.imports();
        if let Some(absent) = imports.find_map(|import| self.unregistered.get(import.module())) {
            return Err(absent.reason());
        }
        Ok(self.linker.instantiate(&mut self.store, module))
    }

    fn keep_instance(&mut self, name: Option<String>, made: Outcome<Instance>) -> Outcome {
        keep(&mut self.instances, name, made)
    }

    fn register(&mut self, name: &str, module: Option<Id<'_>>) -> Outcome {
        match find(&self.instances, module) {
            Ok(&instance) => {
                self.unregistered.remove(name);
                let linker = &mut self.linker;
                linker.instance(&self.store, name, instance).map_err(Reason::failed)?;
                Ok(())
            }
            Err(reason) => {
                self.unregistered.insert(name.to_owned(), Absent::from(&reason));
                Err(reason)
            }
        }
    }

    fn execute(&mut self, exec: WastExecute<'_>) -> Outcome<Vec<Val>> {
        match exec {
            WastExecute::Get { module, global, .. } => {
                let instance = find(&self.instances, module)?;
                let found = instance.get_global(&self.store, global);
                let global = found.ok_or_else(|| Reason::failed("unknown global"))?;
                Ok(vec![global.get(&self.store)])
            }
            WastExecute::Invoke(invoke) => self.invoke(&invoke),
            WastExecute::Wat(mut module) => {
                let module = self.text(&mut module)?;
                self.instantiate(&module).map(|_| Vec::new())
            }
        }
    }

    /// Executes a directive that should trap.
    fn try_execute(&mut self, exec: WastExecute<'_>) -> Outcome<Result<(), Error>> {
        match exec {
            WastExecute::Invoke(invoke) => Ok(self.try_invoke(&invoke)?.map(drop)),
            WastExecute::Wat(mut module) => {
                let module = self.text(&mut module)?;
                Ok(self.try_instantiate(&module)?.map(drop))
            }
            WastExecute::Get { .. } => Err(Reason::failed("reading a global cannot trap")),
        }
    }

    fn invoke(&mut self, invoke: &WastInvoke<'_>) -> Outcome<Vec<Val>> {
        self.try_invoke(invoke)?.map_err(Reason::failed)
    }

    fn try_invoke(&mut self, invoke: &WastInvoke<'_>) -> Outcome<Result<Vec<Val>, Error>> {
        let instance = find(&self.instances, invoke.module)?;
        let func = instance.get_func(&self.store, invoke.name);
        let func = func.ok_or_else(|| Reason::failed("unknown function"))?;
        let args = invoke.args.iter().map(|arg| values::argument(arg, &mut self.store));
        let args: Vec<Val> = args.collect::<Result<_, _>>()?;
        let ty = func.ty(&self.store);
        let mut results: Vec<Val> = ty.results.iter().map(|&ty| Val::default_for(ty)).collect();
        Ok(func.call(&mut self.store, &args, &mut results).map(|()| results))
    }

    /// Expects a malformed or invalid module, as text or binary.
    fn expect_bad(&self, module: &mut QuoteWat<'_>) -> Outcome {
        match self.quoted(module) {
            Ok(_) => Err(Reason::failed("expected an invalid module, but it is valid")),
            // A module that only newer versions accept is invalid in the version of the script.
            Err(Rejection::Invalid(_) | Rejection::Unsupported(_)) => Ok(()),
        }
    }

    fn expect_unlinkable(&mut self, mut module: Wat<'_>) -> Outcome {
        let module = self.text(&mut module)?;
        match self.try_instantiate(&module)? {
            Err(Error::Link(_)) => Ok(()),
            Err(error) => Err(Reason::failed(format!("expected a link error, found: {error}"))),
            Ok(_) => Err(Reason::failed("expected a link error, but the module links")),
        }
    }
}

fn name_of(id: Option<Id<'_>>) -> Option<String> {
    id.map(|id| id.name().to_owned())
}

/// Stores the result of a directive under its name, and as the last one.
fn keep<T: Clone>(named: &mut Named<T>, name: Option<String>, made: Outcome<T>) -> Outcome {
    let kept = made.as_ref().map(T::clone).map_err(Absent::from);
    if name.is_some() {
        named.insert(name, kept.clone());
    }
    named.insert(None, kept);
    made.map(drop)
}

fn find<'n, T>(named: &'n Named<T>, id: Option<Id<'_>>) -> Outcome<&'n T> {
    match named.get(&name_of(id)) {
        Some(Ok(found)) => Ok(found),
        Some(Err(absent)) => Err(absent.reason()),
        None => Err(Reason::failed("unknown module")),
    }
}

fn expect_trap(result: Result<(), Error>, message: &str) -> Outcome {
    match result {
        Ok(()) => Err(Reason::failed(format!("expected trap: {message}; found none"))),
        Err(error) => match error.trap_code() {
            Some(code) if messages(code).iter().any(|m| message.starts_with(m)) => Ok(()),
            _ => Err(Reason::failed(format!("expected trap: {message}; found: {error}"))),
        },
    }
}

/// The names of a trap in scripts.
fn messages(code: TrapCode) -> &'static [&'static str] {
    match code {
        TrapCode::Unreachable => &["unreachable"],
        TrapCode::MemoryOutOfBounds => &["out of bounds memory access"],
        TrapCode::TableOutOfBounds => &["out of bounds table access", "undefined element"],
        TrapCode::IndirectCallToNull => &["uninitialized element"],
        TrapCode::BadSignature => &["indirect call type mismatch"],
        TrapCode::IntegerOverflow => &["integer overflow"],
        TrapCode::IntegerDivisionByZero => &["integer divide by zero"],
        TrapCode::BadConversionToInteger => &["invalid conversion to integer"],
        TrapCode::StackOverflow => &["call stack exhausted"],
        _ => &[],
    }
}
