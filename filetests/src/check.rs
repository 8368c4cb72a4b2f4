//! The comparison of engines: one generated case in the interpreter, in the SSA evaluator on slot form
//! and on SSA form, and as native code in every slot mode.
//!
//! Everything that a program can do must be equal: results, or trap code and place; the fuel left; the
//! memory, globals and table it leaves behind; the calls of host functions and their arguments. NaNs
//! are canonical and call stacks deterministic, so that no difference is to be expected.

use std::fmt;
use std::sync::Arc;

use slotvm::{Caller, Config, Engine, Error, Linker, Module, SlotMode, Store, Tier, Val};
use slotvm_bytecode::{TrapCode, ValType, VerifiedModule, verify};
use slotvm_ssa::build::BuildOptions;
use slotvm_ssa::eval;
use slotvm_ssa::verify::Form;

use crate::generate::{Case, MAIN};
use crate::stages;
use crate::values;

/// The cells of the deterministic call stack.
const STACK_CELLS_MAX: u64 = 2_000;
/// The argument for which the host function `mix` fails.
const MIX_FAILS_AT: i32 = 13;

/// What an engine made of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How the program ended.
    pub end: End,
    /// The fuel left.
    pub fuel: u64,
    /// The arguments of the calls of host functions, as bits.
    pub log: Vec<u64>,
    /// The final memory.
    pub memory: Vec<u8>,
    /// The final globals, references as null or not.
    pub globals: Vec<u64>,
    /// The final table: null or not.
    pub table: Vec<bool>,
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// With results, references as null or not.
    Returned(Vec<u64>),
    /// With a trap.
    Trapped {
        /// Why.
        code: TrapCode,
        /// The function that trapped.
        func: u32,
        /// The code offset there.
        offset: u32,
    },
    /// With the error of a host function.
    HostFailed,
}

/// Two engines that disagree.
#[derive(Clone, Debug)]
pub struct Difference {
    engine: String,
    expected: Box<Outcome>,
    found: Box<Outcome>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { engine, expected, found } = self;
        writeln!(f, "{engine} differs from the interpreter:")?;
        let mut line = |what: &str, a: &dyn fmt::Debug, b: &dyn fmt::Debug| {
            writeln!(f, "  {what}: {b:?} instead of {a:?}")
        };
        if expected.end != found.end {
            line("end", &expected.end, &found.end)?;
        }
        if expected.fuel != found.fuel {
            line("fuel", &expected.fuel, &found.fuel)?;
        }
        if expected.log != found.log {
            line("host calls", &expected.log, &found.log)?;
        }
        if expected.globals != found.globals {
            line("globals", &expected.globals, &found.globals)?;
        }
        if expected.table != found.table {
            line("table", &expected.table, &found.table)?;
        }
        if expected.memory != found.memory {
            let (a, b) = (&expected.memory, &found.memory);
            let at = a.iter().zip(b).position(|(a, b)| a != b);
            let lens = (a.len(), b.len());
            line("memory lengths and first difference", &lens, &at)?;
        }
        Ok(())
    }
}

/// Runs a case in every engine; gives what the interpreter made of it.
///
/// # Errors
/// The first engine that differs from the interpreter.
///
/// # Panics
/// If the case does not verify, an engine refuses it, or the IR verifier finds a violation.
pub fn check(case: &Case) -> Result<Outcome, Difference> {
    let module = Arc::new(verify(case.module.clone()).expect("cases verify"));
    let mut interpreter = config();
    interpreter.tier(Tier::Interpreter);
    let expected = run_engine(&interpreter, &module, case);
    let compare = |engine: String, found: Outcome| match found == expected {
        true => Ok(()),
        false => {
            Err(Difference { engine, expected: Box::new(expected.clone()), found: Box::new(found) })
        }
    };
    for form in [Form::Slots, Form::Ssa] {
        compare(format!("evaluator on {form:?}"), run_evaluator(&module, form, case))?;
    }
    for mode in SlotMode::ALL {
        let mut native = config();
        native.tier(Tier::Jit).slots(mode);
        compare(format!("native code, {mode}"), run_engine(&native, &module, case))?;
    }
    Ok(expected)
}

fn config() -> Config {
    let mut config = Config::new();
    config.consume_fuel(true).canonical_nans(true).deterministic_stack(Some(STACK_CELLS_MAX));
    config
}

// --- The host ------------------------------------------------------------------------------------

/// What the host functions of all engines do.
#[derive(Default)]
struct Host {
    log: Vec<u64>,
}

impl Host {
    /// `env.mix`; `None` is a failure.
    fn mix(&mut self, a: i32, b: i64) -> Option<i64> {
        self.log.extend([a as u32 as u64, b as u64]);
        (a != MIX_FAILS_AT).then(|| b.rotate_left(a as u32 & 63) ^ i64::from(a))
    }

    /// `env.note`.
    fn note(&mut self, bits: u64) {
        self.log.push(bits);
    }
}

// --- Interpreter and native code --------------------------------------------------------------------

fn run_engine(config: &Config, module: &Arc<VerifiedModule>, case: &Case) -> Outcome {
    const WORKS: &str = "the engine takes what verifies";
    let engine = Engine::new(config).expect(WORKS);
    let compiled = Module::from_verified(&engine, Arc::clone(module)).expect(WORKS);
    let mut linker = Linker::new(&engine);
    linker
        .func_wrap("env", "mix", |mut caller: Caller<'_, Host>, a: i32, b: i64| {
            caller.data_mut().mix(a, b).ok_or_else(|| Error::host("mix failed"))
        })
        .expect(WORKS);
    linker
        .func_wrap("env", "note", |mut caller: Caller<'_, Host>, a: f64| {
            caller.data_mut().note(a.to_bits());
        })
        .expect(WORKS);
    let mut store = Store::new(&engine, Host::default());
    store.set_fuel(case.fuel).expect(WORKS);
    let instance = linker.instantiate(&mut store, &compiled).expect(WORKS);
    let main = instance.get_func(&store, "main").expect(WORKS);
    let ty = main.ty(&store);
    let params: Vec<Val> =
        ty.params.iter().zip(&case.args).map(|(&ty, &cell)| values::val(ty, cell)).collect();
    let mut results: Vec<Val> = ty.results.iter().map(|&ty| Val::default_for(ty)).collect();
    let end = match main.call(&mut store, &params, &mut results) {
        Ok(()) => End::Returned(results.iter().map(values::cell).collect()),
        Err(error) => end_of(&error),
    };
    let memory = instance.get_memory(&store, "memory").expect(WORKS);
    let table = instance.get_table(&store, "table").expect(WORKS);
    let globals = (0..ValType::ALL.len())
        .map(|i| {
            let global = instance.get_global(&store, &format!("g{i}")).expect(WORKS);
            values::cell(&global.get(&store))
        })
        .collect();
    let table = (0..table.size(&store))
        .map(|i| values::cell(&table.get(&store, i).expect(WORKS)) != 0)
        .collect();
    Outcome {
        end,
        fuel: store.get_fuel().expect(WORKS),
        log: store.data().log.clone(),
        memory: memory.data(&store).to_vec(),
        globals,
        table,
    }
}

fn end_of(error: &Error) -> End {
    match error {
        Error::Trap(trap) => End::Trapped { code: trap.code, func: trap.func, offset: trap.offset },
        Error::Host(_) => End::HostFailed,
        other => panic!("the program ended with {other}"),
    }
}

// --- The evaluator ----------------------------------------------------------------------------------

fn run_evaluator(module: &VerifiedModule, form: Form, case: &Case) -> Outcome {
    let mut host = Host::default();
    let mut host_failed = false;
    let imports = eval::Imports {
        host: Box::new(|call| match (call.func, call.args) {
            (0, &[a, b]) => match host.mix(a as i32, b as i64) {
                Some(result) => Ok(vec![result as u64]),
                None => {
                    host_failed = true;
                    Err(TrapCode::Unreachable)
                }
            },
            (1, &[a]) => {
                host.note(a);
                Ok(Vec::new())
            }
            (func, args) => panic!("import {func} is called with {} arguments", args.len()),
        }),
        globals: Vec::new(),
    };
    let options = eval::Options {
        fuel: Some(case.fuel),
        stack_cells: Some(STACK_CELLS_MAX),
        canonical_nans: true,
        ..eval::Options::default()
    };
    let accounts = BuildOptions { fuel: true, stack_cells: true };
    let functions = stages::functions(module, form, accounts).unwrap_or_else(|e| panic!("{e}"));
    let mut machine = eval::Machine::new(module, functions, imports, options);
    machine.instantiate().expect("segments fit");
    let result = machine.call(MAIN, &case.args);
    let types = &module.func_type(MAIN).results;
    let null_or_not = |(&cell, ty): (&u64, ValType)| match ty.is_ref() {
        true => u64::from(cell != 0),
        false => cell,
    };
    let global_types = module.globals().iter().map(|global| global.ty);
    let fuel = machine.fuel().expect("the machine has fuel");
    let memory = machine.memory().to_vec();
    let globals = machine.globals().iter().zip(global_types).map(null_or_not).collect();
    let table = machine.tables()[0].elems.iter().map(|&cell| cell != 0).collect();
    drop(machine);
    let end = match result {
        Ok(cells) => {
            End::Returned(cells.iter().zip(types.iter().copied()).map(null_or_not).collect())
        }
        Err(_) if host_failed => End::HostFailed,
        Err(trap) => End::Trapped { code: trap.code, func: trap.func, offset: trap.offset },
    };
    Outcome { end, fuel, log: host.log, memory, globals, table }
}
