//! A program with all that a comparison needs: its calls, the answers of its host, and its trace in the interpreter.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use slotvm_bytecode::VerifiedModule;

use super::guest::{Goal, Guest};
use super::points::{Detail, Trace};
use super::run::{Call, Calls, HostFuncs, Plan, run};
use super::tape::Tape;
use vmrun_base::error::CliError;
use vmrun_base::host::Host;
use vmrun_cli::CrosscheckArgs;
use vmrun_cli::wasi;

/// The fuel of a program that may run for any time: the maximum of a store.
const FUEL_MAX: u64 = i64::MAX as u64;
/// Fuel that a program that is being reduced may use beyond twice what it used before.
const FUEL_SPARE: u64 = 10_000;

/// A program and its run in the interpreter.
#[derive(Clone)]
pub(super) struct Subject {
    /// The file to load native code from.
    pub(super) program: PathBuf,
    /// The module.
    pub(super) module: Arc<VerifiedModule>,
    /// The calls from the host.
    pub(super) calls: Arc<[Call]>,
    /// The answers of host functions.
    pub(super) tape: Arc<Tape>,
    /// The trace.
    pub(super) trace: Arc<Trace>,
    /// The instructions that it executed.
    pub(super) fuel_used: u64,
    /// The time that it took.
    pub(super) time: Duration,
}

impl Subject {
    /// Runs the program of the command line with its real host functions.
    ///
    /// # Errors
    /// Fails if it cannot be linked or called.
    pub(super) fn record(
        args: &CrosscheckArgs,
        module: Arc<VerifiedModule>,
        plan: &Plan,
    ) -> Result<Subject, CliError> {
        let wasi = wasi::context(&args.program, &args.guest, false)?;
        let input = std::io::BufReader::new(std::io::stdin());
        let host = Host::new(std::io::sink(), input, &args.guest.args).with_wasi(wasi);
        let calls = Calls::Invoked { invoke: args.guest.invoke.as_deref(), args: &args.guest.args };
        let host_funcs = HostFuncs::Real(args.guest.unknown_imports);
        let fuel = plan.fuel.unwrap_or(FUEL_MAX);
        let guest = Guest::recorded(host);
        trace(&args.program, module, plan, host_funcs, &calls, fuel, guest)
    }

    /// Runs the program again, with the answers of the tape. The points of the window have their memory hashed.
    ///
    /// # Errors
    /// Fails if it cannot be called.
    pub(super) fn retraced(&self, plan: &Plan, window: Range<usize>) -> Result<Subject, CliError> {
        let fuel = plan.fuel.unwrap_or(FUEL_MAX);
        self.replayed(&self.program, self.module.clone(), plan, fuel, window)
    }

    /// The points before a point that have no hash of the memory, back to one that has.
    pub(super) fn unhashed_before(&self, point: usize) -> Range<usize> {
        let before = &self.trace.points[..point.min(self.trace.points.len())];
        let n = before.iter().rev().take_while(|point| point.memory.is_none()).count();
        before.len() - n..before.len()
    }

    /// Runs another module in the place of this one. Returns `None` if it runs for much longer, or cannot be called.
    pub(super) fn replaced(
        &self,
        program: &Path,
        module: Arc<VerifiedModule>,
        plan: &Plan,
    ) -> Option<Subject> {
        let fuel = plan.fuel.unwrap_or(self.fuel_max());
        let subject = self.replayed(program, module, plan, fuel, 0..0).ok()?;
        let is_cut = plan.fuel.is_none() && subject.trace.lacks_fuel;
        let overflows = plan.stack_cells.is_none() && subject.trace.overflows;
        (!is_cut && !overflows).then_some(subject)
    }

    /// The fuel that a program in the place of this one may use.
    pub(super) fn fuel_max(&self) -> u64 {
        self.fuel_used.saturating_mul(2).saturating_add(FUEL_SPARE)
    }

    fn replayed(
        &self,
        program: &Path,
        module: Arc<VerifiedModule>,
        plan: &Plan,
        fuel: u64,
        window: Range<usize>,
    ) -> Result<Subject, CliError> {
        let guest = Guest::replayed(self.tape.clone(), Goal::Trace(Trace::default()));
        let guest = guest.hashing(window);
        let calls = Calls::Known(&self.calls);
        let subject = trace(program, module, plan, HostFuncs::Replayed, &calls, fuel, guest)?;
        Ok(Subject { tape: self.tape.clone(), calls: self.calls.clone(), ..subject })
    }

    /// The details of a point in the interpreter, if the program reaches it.
    ///
    /// # Errors
    /// Fails if the program cannot be called.
    pub(super) fn detail(&self, plan: &Plan, point: usize) -> Result<Option<Detail>, CliError> {
        let guest = Guest::replayed(self.tape.clone(), Goal::Reach(point))
            .comparing_fuel(plan.fuel.is_some());
        let fuel = Some(plan.fuel.unwrap_or(FUEL_MAX));
        let calls = Calls::Known(&self.calls);
        let engine = plan.interpreter()?;
        let (guest, _) = run(&engine, &self.module, HostFuncs::Replayed, &calls, fuel, guest)?;
        Ok(guest.stopped.map(|(_, detail)| *detail))
    }
}

/// Runs a module in the interpreter, and keeps its trace.
fn trace(
    program: &Path,
    module: Arc<VerifiedModule>,
    plan: &Plan,
    host_funcs: HostFuncs,
    calls: &Calls<'_>,
    fuel: u64,
    guest: Guest,
) -> Result<Subject, CliError> {
    let start = Instant::now();
    let guest = guest.comparing_fuel(plan.fuel.is_some());
    let (mut guest, calls) =
        run(&plan.interpreter()?, &module, host_funcs, calls, Some(fuel), guest)?;
    guest.trim_tape();
    let fuel_used = fuel.min(FUEL_MAX).saturating_sub(guest.fuel_left);
    let Goal::Trace(trace) = guest.goal else { unreachable!("the run makes a trace") };
    Ok(Subject {
        program: program.to_owned(),
        module,
        calls: calls.into(),
        tape: guest.tape,
        trace: Arc::new(trace),
        fuel_used,
        time: start.elapsed(),
    })
}
