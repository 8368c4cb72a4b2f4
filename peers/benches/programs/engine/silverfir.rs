//! Silverfir-nano: a compiler with a back end of its own, and an interpreter. Its WASI has no other standard output than that of the
//! process, so it runs kernels only.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use sf_nano_core::{Caller, Config, Engine, Import, Instance, Tier, Value, WasmError};
use vmrun::bench::clock::thread_cpu_time;

use super::{Code, Failure, repeat};
use crate::program::{Entry, Outcome, Run};

pub(super) struct Silverfir {
    engine: Rc<Engine>,
    tier: Tier,
}

impl Silverfir {
    pub(super) fn jit() -> Result<Silverfir, Failure> {
        Silverfir::new(Tier::Jit)
    }

    pub(super) fn interpreter() -> Result<Silverfir, Failure> {
        Silverfir::new(Tier::Interp)
    }

    fn new(tier: Tier) -> Result<Silverfir, Failure> {
        let config = Config::new().tier(tier).parallel_compilation(false);
        let engine = Engine::new(config).map_err(|error| format!("Silverfir-nano: {error:?}"))?;
        Ok(Silverfir { engine: Rc::new(engine), tier })
    }
}

impl super::Engine for Silverfir {
    fn name(&self) -> &'static str {
        match self.tier {
            Tier::Jit => "Silverfir-nano",
            Tier::Interp => "Silverfir-nano, interpreter",
        }
    }

    fn is_compiler(&self) -> bool {
        self.tier == Tier::Jit
    }

    fn compile(&self, code: &Code) -> Result<Box<dyn super::Compiled>, Failure> {
        let before = thread_cpu_time();
        let program = Program::new(&self.engine, &code.wasm)?;
        let taken = thread_cpu_time() - before;
        let (engine, wasm) = (Rc::clone(&self.engine), code.wasm.clone());
        Ok(Box::new(Compiled { engine, wasm, taken, next: RefCell::new(Some(program)) }))
    }
}

/// An instance, and where it prints. Modules are compiled as they are instantiated.
struct Program {
    instance: Instance,
    printed: Rc<RefCell<Vec<u8>>>,
}

impl Program {
    fn new(engine: &Engine, wasm: &[u8]) -> Result<Program, Failure> {
        let printed = Rc::default();
        let instance = Instance::new(engine, wasm, &imports(&printed)).map_err(failure)?;
        Ok(Program { instance, printed })
    }
}

struct Compiled {
    engine: Rc<Engine>,
    wasm: Vec<u8>,
    /// The time of compiling.
    taken: Duration,
    /// The instance for the next run, if it is made already.
    next: RefCell<Option<Program>>,
}

impl super::Compiled for Compiled {
    fn compile_time(&self) -> Option<Duration> {
        Some(self.taken)
    }

    fn run(&self, run: &Run, n: u32) -> Result<(Outcome, Duration), Failure> {
        let Entry::Main(size) = run.entry else {
            return Err("expected a kernel, found a WASI program".to_owned());
        };
        repeat(n, || {
            let next = self.next.borrow_mut().take();
            let mut program = match next {
                Some(program) => program,
                None => Program::new(&self.engine, &self.wasm)?,
            };
            let before = thread_cpu_time();
            let results = program.instance.invoke("main", &[Value::I32(size)]).map_err(failure)?;
            let taken = thread_cpu_time() - before;
            let Some(&Value::I32(exit)) = results.first() else {
                return Err("expected an exit code".to_owned());
            };
            Ok((Outcome { printed: program.printed.take(), exit }, taken))
        })
    }
}

fn failure(error: WasmError) -> Failure {
    format!("{error:?}")
}

/// The host functions of `vmrun` that kernels import.
fn imports(printed: &Rc<RefCell<Vec<u8>>>) -> Vec<Import> {
    let print = |name: &str, bytes: fn(&Caller<'_>, &[Value]) -> Option<Vec<u8>>| {
        let printed = Rc::clone(printed);
        let call = move |caller: &mut Caller<'_>, args: &[Value], _: &mut [Value]| {
            let bytes = bytes(caller, args).ok_or_else(|| WasmError::trap("wrong arguments"))?;
            printed.borrow_mut().extend(bytes);
            Ok(())
        };
        Import::func("env", name, call)
    };
    let number = |_: &Caller<'_>, args: &[Value]| match args {
        [Value::I32(value)] => Some(value.to_string().into_bytes()),
        [Value::I64(value)] => Some(value.to_string().into_bytes()),
        [Value::F64(value)] => Some(value.to_string().into_bytes()),
        _ => None,
    };
    let char = |_: &Caller<'_>, args: &[Value]| match args {
        [Value::I32(code)] => Some(char::from_u32(*code as u32)?.to_string().into_bytes()),
        _ => None,
    };
    let text = |caller: &Caller<'_>, args: &[Value]| match args {
        [Value::I32(start), Value::I32(len)] => {
            let (start, len) = (*start as u32 as usize, *len as u32 as usize);
            Some(caller.memory()?.get(start..start.checked_add(len)?)?.to_vec())
        }
        _ => None,
    };
    vec![
        print("print_i32", number),
        print("print_i64", number),
        print("print_f64", number),
        print("print_char", char),
        print("print_str", text),
    ]
}
