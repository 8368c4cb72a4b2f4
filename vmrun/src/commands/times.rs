//! `vmrun --time`: the time of each stage of a run.

use std::time::Duration;

use serde::Serialize;
use slotvm::Module;

use crate::bench::clock::process_cpu_time;
use crate::error::note;

/// The time of each stage, in order. Times of compilation stages are summed over all threads.
pub(super) struct Times(pub(super) Vec<(&'static str, Duration)>);

/// All figures of a run. Times are in nanoseconds.
#[derive(Serialize)]
pub(super) struct TimeReport {
    stages: Vec<StageTime>,
    /// The functions compiled while the program ran, if they are compiled when they are first called.
    compiled: Option<Compiled>,
    total_ns: u128,
    /// The CPU time of the process.
    cpu_ns: u128,
    /// The fuel, if it is limited.
    pub(super) fuel: Option<Fuel>,
}

#[derive(Serialize)]
struct StageTime {
    name: &'static str,
    ns: u128,
}

/// The part of the run for compilation.
#[derive(Serialize)]
struct Compiled {
    functions: usize,
    ns: u128,
}

#[derive(Serialize)]
pub(super) struct Fuel {
    pub(super) used: u64,
    pub(super) left: u64,
}

impl Times {
    /// The report of a run that took this long until now. `lazy` is a module whose functions are compiled when they are
    /// first called.
    pub(super) fn report(&self, total: Duration, lazy: Option<&Module>) -> TimeReport {
        let compiled = lazy.map(Module::functions).map(|functions| Compiled {
            functions: functions.len(),
            ns: functions.iter().map(|function| function.compile_time.as_nanos()).sum(),
        });
        // Stages that made nothing before the run are left out.
        let stages = self.0.iter().filter(|(_, time)| lazy.is_none() || !time.is_zero());
        let stages = stages.map(|&(name, time)| StageTime { name, ns: time.as_nanos() });
        TimeReport {
            stages: stages.collect(),
            compiled,
            total_ns: total.as_nanos(),
            cpu_ns: process_cpu_time().as_nanos(),
            fuel: None,
        }
    }
}

impl TimeReport {
    /// Prints the report to standard error, as lines or as one line of JSON.
    pub(super) fn print(&self, is_json: bool) {
        if is_json {
            note(serde_json::to_string(self).expect("the report is plain data"));
            return;
        }
        let line = |name: &str, ns: u128, rest: &str| {
            note(format_args!("{name:>12} {:>12.3} ms{rest}", ns as f64 / 1e6));
        };
        for stage in &self.stages {
            line(stage.name, stage.ns, "");
        }
        if let Some(Compiled { functions, ns }) = self.compiled {
            line("compiled", ns, &format!(" of that, {functions} functions"));
        }
        line("total", self.total_ns, "");
        line("CPU", self.cpu_ns, "");
        if let Some(Fuel { used, left }) = self.fuel {
            note(format_args!("{:>12} {used:>12} used, {left} left", "fuel"));
        }
    }
}
