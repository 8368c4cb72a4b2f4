//! Checking the programs in all engines, and taking times.

use std::time::Duration;

use crate::engine::{Code, Compiled, Engine};
use crate::failure::Failure;
use crate::placement::Placement;
use crate::program::{Outcome, Program, Run};

/// A program that is done sooner runs several times in a row, each time as a new instance.
const RUN_TIME_MIN: Duration = Duration::from_millis(8);

/// Engines that take so many times as long as the first run once at each placement: a second run would tell little.
const SLOW_RATIO: f64 = 2.0;

/// Number of placements, and of rounds at each.
#[derive(Copy, Clone)]
pub(crate) struct Plan {
    pub(crate) n_placements: usize,
    pub(crate) n_rounds: usize,
}

/// Times of an engine for a program, in seconds, by placement. There are none if it cannot run it.
#[derive(Clone, Default)]
pub(crate) struct Times {
    /// Empty for engines that tell no such time.
    pub(crate) compile: Vec<f64>,
    /// The least of the rounds.
    pub(crate) run: Vec<f64>,
}

/// The figures of a program.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) wasm_bytes: usize,
    /// Size of the run.
    pub(crate) what: String,
    /// Number of runs in each round.
    pub(crate) n_runs: u32,
    /// Those of each engine.
    pub(crate) times: Vec<Times>,
}

/// Checks what a program prints in every engine, at the size of its expected output.
pub(crate) fn check(program: &Program, engines: &[Box<dyn Engine>]) -> Result<(), Failure> {
    let placed = place(program, Placement(1))?;
    for engine in engines.iter().filter(|engine| engine.runs(program)) {
        let at = |failure| format!("{} in {}: {failure}", program.name, engine.name());
        let compiled = engine.compile(&placed).map_err(at)?;
        let (outcome, _) = compiled.run(&program.small, 1).map_err(at)?;
        compare(&outcome, &program.small, None).map_err(at)?;
    }
    Ok(())
}

/// Compares what a run has shown with what it must show: what is expected, or else what another engine has
/// shown.
fn compare(outcome: &Outcome, run: &Run, other: Option<&Outcome>) -> Result<(), Failure> {
    if outcome.exit != run.exit {
        return Err(format!("exit code {}, not {}", outcome.exit, run.exit));
    }
    let expected = run.expected.as_ref().or(other.map(|other| &other.printed));
    if expected.is_some_and(|expected| *expected != outcome.printed) {
        return Err(format!("wrong output:\n{}", String::from_utf8_lossy(&outcome.printed)));
    }
    Ok(())
}

fn place(program: &Program, placement: Placement) -> Result<Code, Failure> {
    let wasm = placement.module(&program.wasm).map_err(|e| format!("{}: {e}", program.name))?;
    Ok(Code { wasm, source: program.source.clone(), placement })
}

/// Runs a program in all engines in turns, for a number of rounds, at each of a number of placements. Each
/// placement compiles it anew.
pub(crate) fn measure(
    program: &Program,
    engines: &[Box<dyn Engine>],
    plan: Plan,
) -> Result<Row, Failure> {
    let at = |engine: usize| {
        move |failure| format!("{} in {}: {failure}", program.name, engines[engine].name())
    };
    // What the first engine shows once is what all have to show, if there is no other word on it.
    let first = engines[0].compile(&place(program, Placement(0))?).map_err(at(0))?;
    let (shown, time) = first.run(&program.large, 1).map_err(at(0))?;
    let n_runs = (RUN_TIME_MIN.as_secs_f64() / time.as_secs_f64()).ceil().max(1.0) as u32;
    let mut times = vec![Times::default(); engines.len()];
    for placement in 0..plan.n_placements {
        let code = place(program, Placement(placement))?;
        // Interpreters have no code of the program that could lie elsewhere; among each other they take part for the
        // sake of the interval.
        let is_moved = |engine: usize| engines[0].is_compiler() && !engines[engine].is_compiler();
        let takes_part = |i: &usize| engines[*i].runs(program) && (placement == 0 || !is_moved(*i));
        let mut compiled: Vec<(usize, Box<dyn Compiled>)> = Vec::new();
        for i in turns(engines.len(), placement).filter(takes_part) {
            let module = engines[i].compile(&code).map_err(at(i))?;
            times[i].compile.extend(module.compile_time().map(|time| time.as_secs_f64()));
            compiled.push((i, module));
        }
        let mut least = vec![f64::INFINITY; engines.len()];
        for round in 0..plan.n_rounds {
            for turn in turns(compiled.len(), round) {
                let (i, module) = &compiled[turn];
                if round > 0 && least[*i] > SLOW_RATIO * least[0] {
                    continue;
                }
                let (outcome, taken) = module.run(&program.large, n_runs).map_err(at(*i))?;
                compare(&outcome, &program.large, Some(&shown)).map_err(at(*i))?;
                least[*i] = least[*i].min(taken.as_secs_f64());
            }
        }
        for (i, _) in &compiled {
            times[*i].run.push(least[*i]);
        }
    }
    Ok(Row {
        name: program.name.clone(),
        wasm_bytes: program.wasm.len(),
        what: program.large.what.clone(),
        n_runs,
        times,
    })
}

/// All numbers below `n`, in an order that is another one for each round: whoever comes later finds a slower
/// clock, or other caches.
fn turns(n: usize, round: usize) -> impl Iterator<Item = usize> {
    (0..n).map(move |i| (i + round) % n)
}
