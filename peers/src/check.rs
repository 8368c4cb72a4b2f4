//! Comparison of one program in all engines.

use std::fmt;
use std::sync::LazyLock;

use slotvm::TrapCode;

use crate::engine::{self, Compiled, End, Engine, Instance, WASMI, wasmi_faults};
use crate::program::Program;

/// All engines; the first is the reference.
static ENGINES: LazyLock<Vec<Box<dyn Engine>>> = LazyLock::new(engine::all);

/// An engine that disagrees with the reference, or refuses the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The engine.
    pub engine: String,
    /// The place, and the difference.
    pub message: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.engine, self.message)
    }
}

/// Facts about a program's runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Ends of instantiations and calls, in their order.
    pub ends: Vec<End>,
    /// Values given to functions of the host.
    pub n_host_values: usize,
    /// Difference that is a known fault of wasmi alone. It takes no further part.
    pub fault_of_wasmi: Option<Difference>,
    /// Whether wasmi took no part from the start.
    pub without_wasmi: bool,
}

/// Runs the module that is made of any bytes in all engines. There are no facts where there is no module.
///
/// # Errors
/// An engine that disagrees with the interpreter.
///
/// # Panics
/// Panics if we do not take the module.
pub fn check(bytes: &[u8]) -> Result<Option<Facts>, Difference> {
    Program::generate(bytes).map(|program| check_program(&program)).transpose()
}

/// Runs a program in all engines.
///
/// wasmi has known faults (`wasmi_faults`). Where it alone disagrees and has reason to, the others agree
/// still; it is not asked where it may crash.
///
/// How deep calls can be is the engine's affair: a program that overflows the stack of one of them has
/// been compared when it does.
///
/// # Errors
/// An engine that disagrees with the interpreter.
pub fn check_program(program: &Program) -> Result<Facts, Difference> {
    let mut run = Run::new(program)?;
    if !run.start()? {
        return Ok(run.facts);
    }
    for (i, call) in program.calls.iter().enumerate() {
        let ends = run.instances.iter_mut().map(|instance| instance.call(call)).collect();
        match run.compare(ends, || format!("call {i}, {call:x?}"))? {
            OVERFLOW => break,
            // The fuel may be used up.
            End::Trapped(TrapCode::Unreachable) if !run.start()? => break,
            _ => {}
        }
    }
    run.count_host_values();
    Ok(run.facts)
}

const OVERFLOW: End = End::Trapped(TrapCode::StackOverflow);

/// A program that runs in the first engines, all of them unless wasmi has gone its own way.
struct Run<'p> {
    program: &'p Program,
    modules: Vec<Box<dyn Compiled>>,
    instances: Vec<Box<dyn Instance>>,
    facts: Facts,
}

impl<'p> Run<'p> {
    fn new(program: &'p Program) -> Result<Run<'p>, Difference> {
        let mut modules = Vec::new();
        let without_wasmi = wasmi_faults::may_crash(&program.module);
        for engine in &ENGINES[..ENGINES.len() - usize::from(without_wasmi)] {
            let module = engine.compile(&program.wasm);
            modules.push(module.map_err(|reason| difference(&**engine, reason))?);
        }
        let facts = Facts { without_wasmi, ..Facts::default() };
        Ok(Run { program, modules, instances: Vec::new(), facts })
    }

    /// Makes an instance in each engine instead of those that there are. Says whether they can run.
    fn start(&mut self) -> Result<bool, Difference> {
        self.count_host_values();
        let starts = self.modules.iter().map(|module| module.instantiate(self.program));
        let (instances, ends): (Vec<_>, Vec<_>) = starts.unzip();
        self.instances = instances;
        let ends = ends.into_iter().map(|end| end.err().unwrap_or(End::Returned(Vec::new())));
        let end = self.compare(ends.collect(), || "making an instance".to_owned())?;
        Ok(matches!(end, End::Returned(_)))
    }

    fn count_host_values(&mut self) {
        self.facts.n_host_values += self.instances.first().map_or(0, |first| first.log().len());
    }

    /// Returns the end of a call, which must be the same in all engines. If one overflowed its stack, that is the
    /// end.
    fn compare(&mut self, ends: Vec<End>, place: impl Fn() -> String) -> Result<End, Difference> {
        if ends.contains(&OVERFLOW) {
            self.facts.ends.push(OVERFLOW);
            return Ok(OVERFLOW);
        }
        let same = compare_ends(&ends).and_then(|()| compare_states(&mut self.instances));
        if let Err(mut difference) = same {
            difference.message = format!("{}: {}", place(), difference.message);
            // It is the last one, so the others agree.
            let is_known = difference.engine == WASMI
                && wasmi_faults::may_select_by_wrong_condition(&self.program.module);
            if !is_known {
                return Err(difference);
            }
            self.facts.fault_of_wasmi = Some(difference);
            self.modules.pop();
            self.instances.pop();
        }
        self.facts.ends.push(ends[0].clone());
        Ok(ends[0].clone())
    }
}

fn compare_ends(ends: &[End]) -> Result<(), Difference> {
    for (engine, end) in ENGINES.iter().zip(ends) {
        if *end != ends[0] || matches!(end, End::Refused(_)) {
            return Err(difference(&**engine, format!("{end} instead of {}", ends[0])));
        }
    }
    Ok(())
}

fn compare_states(instances: &mut [Box<dyn Instance>]) -> Result<(), Difference> {
    let (reference, others) = instances.split_first_mut().expect("there are engines");
    let (globals, tables) = (reference.globals(), reference.tables());
    for (engine, instance) in ENGINES[1..].iter().zip(others) {
        let differs = |what: &str, found: &dyn fmt::Debug, expected: &dyn fmt::Debug| {
            Err(difference(&**engine, format!("{what} {found:x?} instead of {expected:x?}")))
        };
        if instance.globals() != globals {
            return differs("globals", &instance.globals(), &globals);
        }
        if instance.tables() != tables {
            return differs("tables", &instance.tables(), &tables);
        }
        if instance.log() != reference.log() {
            return differs("calls of host functions", &instance.log(), &reference.log());
        }
        let (found, expected) = (instance.memory(), reference.memory());
        if found.len() != expected.len() {
            return differs("bytes of memory", &found.len(), &expected.len());
        }
        if found != expected {
            let at = found.iter().zip(expected).position(|(a, b)| a != b).expect("they differ");
            return differs(&format!("byte at {at:#x}"), &found[at], &expected[at]);
        }
    }
    Ok(())
}

fn difference(engine: &dyn Engine, message: String) -> Difference {
    Difference { engine: engine.name().to_owned(), message }
}
