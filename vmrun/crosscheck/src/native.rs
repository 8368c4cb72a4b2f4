//! Native runs, each in a process of its own: wrong code may crash, hang or overwrite anything there.
//!
//! The process is this program again, which finds its job in a folder and leaves a verdict there. It ends by itself, or by
//! a limit of its CPU time, which other work on the machine does not change.

use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use slotvm::{PassSet, TrapCode};
use tempfile::TempDir;

use super::guest::{Goal, Guest, ends_by};
use super::points::{Detail, Trace};
use super::run::{Call, Calls, HostFuncs, Plan, STACK_BYTES, run};
use super::subject::Subject;
use super::tape::Tape;
use vmrun_base::error::CliError;
use vmrun_base::load::load;

/// The least CPU time that a native run may take.
const TIME_MIN: Duration = Duration::from_secs(10);
/// The same for one of many candidates, where endless loops are expected. One that takes longer is only lost.
const TIME_CANDIDATE_MIN: Duration = Duration::from_millis(500);
/// The time for each byte of code, which is compiled and verified after each pass.
const TIME_PER_BYTE: Duration = Duration::from_micros(100);
/// The time to run, in times of the interpreter.
const TIME_RATIO: u32 = 20;
/// The time on the clock, in times of the CPU time: a process that waits does not end by itself.
const CLOCK_RATIO: u32 = 60;
/// Bytes of an error message that are shown.
const MESSAGE_BYTES_MAX: usize = 2_000;

/// The names of files of a job.
mod file {
    pub(super) const JOB: &str = "job.json";
    pub(super) const TRACE: &str = "trace.json";
    pub(super) const TAPE: &str = "tape.json";
    pub(super) const VERDICT: &str = "verdict.json";
    pub(super) const MEMORY: &str = "memory.bin";
    pub(super) const ERRORS: &str = "errors.txt";
    pub(super) const PROGRAM: &str = "program.bc";
}

/// The outcome of a native run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Verdict {
    /// All points are equal.
    Equal,
    /// A point differs from that of the interpreter.
    Differs {
        /// Its number.
        point: usize,
        /// The value in native code.
        detail: Box<Detail>,
    },
    /// Native code cannot be made.
    Refused(String),
    /// The process ended by a signal or a panic.
    Crashed(String),
    /// It did not end in this many seconds of CPU time.
    Hung(u64),
}

impl Verdict {
    /// Whether native code ended by a trap.
    pub(super) fn traps_by(&self, trap: TrapCode) -> bool {
        let Verdict::Differs { detail, .. } = self else { return false };
        ends_by(&detail.event, trap)
    }

    /// Whether two verdicts are failures of one kind, so that a smaller program shows the same fault.
    pub(super) fn is_like(&self, other: &Verdict) -> bool {
        match (self, other) {
            (Verdict::Equal, _) | (_, Verdict::Equal) => false,
            (Verdict::Refused(_), other) => matches!(other, Verdict::Refused(_)),
            (_, Verdict::Refused(_)) => false,
            // Hanging takes too long to become the usual outcome.
            (Verdict::Hung(_), _) => true,
            (_, other) => !matches!(other, Verdict::Hung(_)),
        }
    }
}

/// A plan, in a form that is written to a file.
#[derive(Serialize, Deserialize)]
struct Job {
    program: PathBuf,
    slots: String,
    passes: String,
    by_function: Vec<String>,
    fuel: Option<u64>,
    fuel_max: Option<u64>,
    stack_cells: Option<u64>,
    calls: Vec<Call>,
    /// The CPU time that the process may use.
    cpu_seconds: u64,
}

/// The time that a run may take.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// Enough for large programs on busy machines.
    Long,
    /// Enough for small programs.
    Short,
}

/// A folder for jobs, which is removed on drop.
pub(super) struct Workshop {
    folder: TempDir,
}

impl Workshop {
    /// Makes a folder.
    ///
    /// # Errors
    /// Fails if the system does not let it be made.
    pub(super) fn new() -> Result<Workshop, CliError> {
        Ok(Workshop { folder: TempDir::new()? })
    }

    /// The path for a program that native code is made from.
    pub(super) fn program(&self) -> PathBuf {
        self.folder.path().join(file::PROGRAM)
    }

    /// Makes a program the subject of the next runs.
    ///
    /// # Errors
    /// Fails if files cannot be written.
    pub(super) fn prepare(&self, subject: &Subject) -> Result<(), CliError> {
        write(self.folder.path(), file::TRACE, &*subject.trace)?;
        write(self.folder.path(), file::TAPE, &*subject.tape)
    }

    /// Runs native code of the prepared subject, and compares it.
    ///
    /// # Errors
    /// Fails if no process can be started.
    pub(super) fn run(
        &self,
        subject: &Subject,
        plan: &Plan,
        patience: Patience,
    ) -> Result<Verdict, CliError> {
        let folder = self.folder.path();
        let text = |set: &PassSet| set.to_string();
        let job = Job {
            program: std::path::absolute(&subject.program)?,
            slots: plan.slots.to_string(),
            passes: text(&plan.passes),
            by_function: plan.by_function.iter().map(text).collect(),
            fuel: plan.fuel,
            fuel_max: plan.fuel_max,
            stack_cells: plan.stack_cells,
            calls: subject.calls.to_vec(),
            cpu_seconds: cpu_seconds(subject, patience),
        };
        write(folder, file::JOB, &job)?;
        let _ = fs::remove_file(folder.join(file::VERDICT));
        let seconds = job.cpu_seconds;
        match wait(folder, CLOCK_RATIO * Duration::from_secs(seconds))? {
            None => Ok(Verdict::Hung(seconds)),
            Some(status) if status.signal() == Some(Signal::XCPU.as_raw()) => {
                Ok(Verdict::Hung(seconds))
            }
            Some(status) if status.success() => verdict(folder),
            Some(status) => {
                let errors = fs::read(folder.join(file::ERRORS)).unwrap_or_default();
                let shown = &errors[..errors.len().min(MESSAGE_BYTES_MAX)];
                let message = String::from_utf8_lossy(shown).trim().to_owned();
                Ok(Verdict::Crashed(format!("{status}\n{message}").trim().to_owned()))
            }
        }
    }
}

/// The CPU time after which a run counts as endless, in seconds.
fn cpu_seconds(subject: &Subject, patience: Patience) -> u64 {
    let funcs = &subject.module.module().funcs;
    let n_bytes = funcs.iter().map(|func| func.code.len()).sum::<usize>();
    let n_bytes = u32::try_from(n_bytes).unwrap_or(u32::MAX);
    let time_min = match patience {
        Patience::Long => TIME_MIN,
        Patience::Short => TIME_CANDIDATE_MIN,
    };
    let time = time_min + n_bytes * TIME_PER_BYTE + TIME_RATIO * subject.time;
    // The system counts whole seconds.
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

/// Starts a process on the job in a folder, and waits for its end.
fn wait(folder: &Path, time_max: Duration) -> Result<Option<ExitStatus>, CliError> {
    let errors = fs::File::create(folder.join(file::ERRORS))?;
    let mut child = Command::new(std::env::current_exe()?)
        .arg("crosscheck-native")
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(errors)
        .spawn()?;
    let start = Instant::now();
    let mut pause = Duration::from_micros(500);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > time_max {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(pause);
        pause = (2 * pause).min(Duration::from_millis(20));
    }
}

fn verdict(folder: &Path) -> Result<Verdict, CliError> {
    let mut verdict = read(folder, file::VERDICT)?;
    if let Verdict::Differs { detail, .. } = &mut verdict {
        let path = folder.join(file::MEMORY);
        detail.memory = fs::read(&path).map_err(CliError::file(&path))?;
    }
    Ok(verdict)
}

/// Executes the job in a folder, and leaves the verdict there.
///
/// # Errors
/// Fails if there is no such job.
pub(super) fn execute(folder: &Path) -> Result<(), CliError> {
    let job: Job = read(folder, file::JOB)?;
    let limit = Some(job.cpu_seconds);
    setrlimit(Resource::Cpu, Rlimit { current: limit, maximum: limit }).map_err(io::Error::from)?;
    let trace: Trace = read(folder, file::TRACE)?;
    let tape: Tape = read(folder, file::TAPE)?;
    let is_deep = job.stack_cells.is_some();
    let compare = move || compare(&job, trace, tape);
    let verdict = match is_deep {
        false => compare(),
        true => {
            let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn(compare)?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        }
    }?;
    if let Verdict::Differs { detail, .. } = &verdict {
        let path = folder.join(file::MEMORY);
        fs::write(&path, &detail.memory).map_err(CliError::file(&path))?;
    }
    write(folder, file::VERDICT, &verdict)
}

fn compare(job: &Job, trace: Trace, tape: Tape) -> Result<Verdict, CliError> {
    let parse = |text: &String| {
        text.parse::<PassSet>().map_err(|error| CliError::Failed(error.to_string()))
    };
    let plan = Plan {
        slots: job.slots.parse().map_err(|error| CliError::Failed(format!("{error}")))?,
        passes: parse(&job.passes)?,
        by_function: job.by_function.iter().map(parse).collect::<Result<_, CliError>>()?,
        fuel: job.fuel,
        fuel_max: job.fuel_max,
        stack_cells: job.stack_cells,
    };
    let module = Arc::new(load(&job.program)?.module);
    let engine = plan.native()?;
    let guest = Guest::replayed(Arc::new(tape), Goal::Compare(Arc::new(trace)))
        .comparing_fuel(plan.fuel.is_some());
    let calls = Calls::Known(&job.calls);
    Ok(match run(&engine, &module, HostFuncs::Replayed, &calls, plan.native_fuel(), guest) {
        Ok((guest, _)) => match guest.stopped {
            None => Verdict::Equal,
            Some((point, detail)) => Verdict::Differs { point, detail },
        },
        Err(error) => Verdict::Refused(error.to_string()),
    })
}

fn write(folder: &Path, name: &str, value: &impl Serialize) -> Result<(), CliError> {
    let path = folder.join(name);
    let text = serde_json::to_vec(value).expect("it is plain data");
    fs::write(&path, text).map_err(CliError::file(&path))
}

fn read<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<T, CliError> {
    let path = folder.join(name);
    let bytes = fs::read(&path).map_err(CliError::file(&path))?;
    let bad = |error| CliError::Failed(format!("{}: {error}", path.display()));
    serde_json::from_slice(&bytes).map_err(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_compared_by_kind() {
        let refused = Verdict::Refused("stage simplify left an invalid function".to_owned());
        let crashed = Verdict::Crashed("signal: 11".to_owned());
        let hung = Verdict::Hung(20);
        assert!(refused.is_like(&refused) && !refused.is_like(&crashed));
        assert!(crashed.is_like(&crashed) && !crashed.is_like(&refused));
        assert!(hung.is_like(&crashed) && !crashed.is_like(&hung));
        for verdict in [&refused, &crashed, &hung] {
            assert!(!verdict.is_like(&Verdict::Equal) && !Verdict::Equal.is_like(verdict));
        }
    }
}
