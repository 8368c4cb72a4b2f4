//! Growth of the stages before Cranelift with the size of a function: a report.
//!
//! Large functions of 50,000, 100,000 and 200,000 operations with 200 locals, and of 100,000 operations
//! with 20 to 2,000 locals, go through each stage; the least of several rounds counts. `load`, `verify`,
//! `slots` and `ssa` are CPU time of the stage alone, each with fresh scratch memory; `clif` is elapsed
//! time, as [`slotvm::Timings`] has it, since it cannot be had without compiling the function to the end;
//! it is missing where that would exceed the budget of compile work, so that other code is made.
//! The project wants at most [`STEP_MAX`] from one size to the next, and at most [`SSA_NS_MAX`] for
//! each operation in `slots` and `ssa` together; `!` marks what takes more.
//!
//! `--quick` measures two rounds; a filter selects tables by their titles.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use comfy_table::Table;
use slotvm::compiler::Effort;
use slotvm::{Engine, Module, PassSet, SlotMode};
use slotvm_benches::Args;
use slotvm_bytecode::{VerifiedModule, decode, encode, verify};
use slotvm_filetests::large::{self, Control, Plan};
use slotvm_ssa::construction::build::{BuildOptions, BuildScratch, build};
use slotvm_ssa::construction::promote::{Scratch, promote};
use vmrun::bench::clock::thread_cpu_time;
use vmrun::bench::program::engine;
use vmrun::error::CliError;
use vmrun::table::table;

/// Largest factor of the time of each stage for a function of twice the size.
const STEP_MAX: f64 = 2.3;
/// Most nanoseconds for building SSA form of each bytecode operation.
const SSA_NS_MAX: f64 = 250.0;

const SIZES: [usize; 3] = [50_000, 100_000, 200_000];
const LOCALS: [usize; 5] = [20, 60, 200, 600, 2_000];
const LOCALS_USUAL: usize = 200;
/// Rounds of everything, and of compiling to the end.
const ROUNDS: (u32, u32) = (10, 5);
const ROUNDS_QUICK: (u32, u32) = (2, 1);

fn main() -> Result<(), CliError> {
    let args = Args::from_env();
    let rounds = if args.is_test || args.is_quick { ROUNDS_QUICK } else { ROUNDS };
    // A test only has to see that it works.
    let scale = if args.is_test { 100 } else { 1 };
    for control in Control::ALL {
        let plan = |n_ops, n_locals| Plan { control, n_ops: n_ops / scale, n_locals, seed: 1 };
        let title = format!("growth with operations: {}, {LOCALS_USUAL} locals", control.name());
        if args.selects(&title) {
            let measured = measure(&SIZES.map(|n_ops| plan(n_ops, LOCALS_USUAL)), rounds)?;
            println!(
                "{title}; ns for each operation (clif: elapsed time, longer on a busy machine)\n{}\n",
                by_operations(&measured)
            );
        }
        let title = format!("growth with locals: {}, {} operations", control.name(), SIZES[1]);
        if args.selects(&title) {
            // Cranelift's cost for this many locals is another matter.
            let rounds = (rounds.0, 0);
            let measured = measure(&LOCALS.map(|n_locals| plan(SIZES[1], n_locals)), rounds)?;
            println!("{title}; ns for each operation\n{}\n", by_locals(&measured));
        }
    }
    Ok(())
}

/// The least times of one function.
struct Growth {
    binary: Vec<u8>,
    verified: Arc<VerifiedModule>,
    n_locals: usize,
    n_ops: u64,
    n_phis: usize,
    load: Duration,
    verify: Duration,
    slots: Duration,
    ssa: Duration,
    /// Whether it was compiled to the end.
    is_compiled: bool,
    /// Time of lowering, if the function was compiled from its SSA form.
    clif: Option<Duration>,
}

impl Growth {
    fn new(plan: Plan) -> Growth {
        let module = large::module(plan);
        let binary = encode(&module);
        let verified = Arc::new(verify(module).expect("it is well-typed"));
        let body = verified.body(0).expect("the function is defined");
        Growth {
            binary,
            n_locals: plan.n_locals,
            n_ops: body.blocks.iter().map(|block| u64::from(block.cost)).sum(),
            n_phis: 0,
            load: Duration::MAX,
            verify: Duration::MAX,
            slots: Duration::MAX,
            ssa: Duration::MAX,
            is_compiled: false,
            clif: None,
            verified,
        }
    }

    /// Runs the stages up to SSA form.
    fn round(&mut self) {
        let (load, module) = timed(|| decode(black_box(&self.binary)).expect("it is encoded"));
        let (verify, verified) = timed(|| verify(module).expect("it is well-typed"));
        let (mut build_scratch, mut scratch) = (BuildScratch::default(), Scratch::default());
        let options = BuildOptions::default();
        let (slots, mut function) = timed(|| build(&verified, 0, &options, &mut build_scratch));
        let (ssa, report) = timed(|| promote(&mut function, &mut scratch));
        self.n_phis = report.n_phis;
        self.load = self.load.min(load);
        self.verify = self.verify.min(verify);
        self.slots = self.slots.min(slots);
        self.ssa = self.ssa.min(ssa);
    }

    /// Compiles the function to the end, for the time of the lowering.
    fn compile(&mut self, engine: &Engine) -> Result<(), CliError> {
        let module = Module::from_verified(engine, self.verified.clone())?;
        self.is_compiled = true;
        if module.functions().iter().all(|function| function.work.effort == Effort::AsAsked) {
            let time = module.timings().of("clif");
            self.clif = Some(self.clif.map_or(time, |least| least.min(time)));
        }
        Ok(())
    }

    /// The columns of a table, with their times.
    fn columns(&self) -> Vec<(&'static str, Option<Duration>)> {
        let ssa = self.slots + self.ssa;
        let mut columns = vec![
            ("load", Some(self.load)),
            ("verify", Some(self.verify)),
            ("slots", Some(self.slots)),
            ("ssa", Some(self.ssa)),
            (SLOTS_AND_SSA, Some(ssa)),
        ];
        if self.is_compiled {
            columns.push(("clif", self.clif));
            columns.push(("all", self.clif.map(|clif| self.load + self.verify + ssa + clif)));
        }
        columns
    }

    fn ns_per_op(&self, time: Duration) -> f64 {
        time.as_nanos() as f64 / self.n_ops as f64
    }

    /// The cells of a row: times for each operation.
    fn cells(&self) -> impl Iterator<Item = String> {
        self.columns().into_iter().map(|(name, time)| {
            let Some(time) = time else { return MISSING.to_owned() };
            let ns = self.ns_per_op(time);
            let mark = if name == SLOTS_AND_SSA && ns > SSA_NS_MAX { "! " } else { "" };
            format!("{mark}{ns:.1}")
        })
    }
}

const SLOTS_AND_SSA: &str = "slots + ssa";
const MISSING: &str = "-";

/// Measures functions round by round, so that a change of the machine's speed meets all of them.
fn measure(plans: &[Plan], rounds: (u32, u32)) -> Result<Vec<Growth>, CliError> {
    let engine = engine(SlotMode::Ssa, PassSet::all())?;
    let mut growths: Vec<Growth> = plans.iter().map(|&plan| Growth::new(plan)).collect();
    for _ in 0..rounds.0 {
        growths.iter_mut().for_each(Growth::round);
    }
    for _ in 0..rounds.1 {
        for growth in &mut growths {
            growth.compile(&engine)?;
        }
    }
    Ok(growths)
}

fn timed<R>(stage: impl FnOnce() -> R) -> (Duration, R) {
    let before = thread_cpu_time();
    let result = black_box(stage());
    (thread_cpu_time() - before, result)
}

/// The times of each size, and how many times the time of the size before they are.
fn by_operations(measured: &[Growth]) -> Table {
    let mut table = growths("operations", measured);
    let mut last: Option<&Growth> = None;
    for growth in measured {
        if let Some(last) = last {
            let columns = last.columns().into_iter().zip(growth.columns());
            let factors = columns.map(|((_, before), (_, after))| {
                let (Some(before), Some(after)) = (before, after) else {
                    return MISSING.to_owned();
                };
                let factor = after.as_secs_f64() / before.as_secs_f64();
                let mark = if factor > STEP_MAX { "! " } else { "" };
                format!("{mark}{factor:.2}x")
            });
            let row = ["time, factor".to_owned(), String::new()].into_iter().chain(factors);
            table.add_row(row);
        }
        let row = [growth.n_ops.to_string(), growth.n_phis.to_string()];
        table.add_row(row.into_iter().chain(growth.cells()));
        last = Some(growth);
    }
    table
}

fn by_locals(measured: &[Growth]) -> Table {
    let mut table = growths("locals", measured);
    for growth in measured {
        let row = [growth.n_locals.to_string(), growth.n_phis.to_string()];
        table.add_row(row.into_iter().chain(growth.cells()));
    }
    table
}

fn growths(first: &str, measured: &[Growth]) -> Table {
    let columns = measured[0].columns().into_iter();
    table(0, [first, "phis"].into_iter().chain(columns.map(|(name, _)| name)))
}
