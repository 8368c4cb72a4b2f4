//! Checking the programs in all engines, and taking times.

use std::time::Duration;

use vmrun::bench::clock::thread_cpu_time;

use crate::engine::{Engine, Failure, run};
use crate::program::{Outcome, Program, Run};

/// A program that is done sooner runs several times in a row, each time as a new instance.
const RUN_TIME_MIN: Duration = Duration::from_millis(8);

/// Times of an engine for a program in each round, in seconds.
#[derive(Clone, Default)]
pub(crate) struct Times {
    pub(crate) compile: Vec<f64>,
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
    for engine in engines {
        let at = |failure| format!("{} in {}: {failure}", program.name, engine.name());
        let module = engine.compile(&program.wasm).map_err(at)?;
        let (outcome, _) = run(module.as_ref(), &program.small, 1).map_err(at)?;
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

/// Compiles and runs a program in all engines in turns, for a number of rounds.
pub(crate) fn measure(
    program: &Program,
    engines: &[Box<dyn Engine>],
    n_rounds: usize,
) -> Result<Row, Failure> {
    let at = |engine: usize| {
        move |failure| format!("{} in {}: {failure}", program.name, engines[engine].name())
    };
    // What the first engine shows once is what all have to show, if there is no other word on it.
    let module = engines[0].compile(&program.wasm).map_err(at(0))?;
    let (shown, time) = run(module.as_ref(), &program.large, 1).map_err(at(0))?;
    let n_runs = (RUN_TIME_MIN.as_secs_f64() / time.as_secs_f64()).ceil().max(1.0) as u32;
    let mut times = vec![Times::default(); engines.len()];
    for round in 0..n_rounds {
        for i in 0..engines.len() {
            // Whoever comes later finds a slower clock, or other caches.
            let i = (i + round) % engines.len();
            let before = thread_cpu_time();
            let module = engines[i].compile(&program.wasm).map_err(at(i))?;
            times[i].compile.push((thread_cpu_time() - before).as_secs_f64());
            let (outcome, taken) = run(module.as_ref(), &program.large, n_runs).map_err(at(i))?;
            compare(&outcome, &program.large, Some(&shown)).map_err(at(i))?;
            times[i].run.push(taken.as_secs_f64());
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
