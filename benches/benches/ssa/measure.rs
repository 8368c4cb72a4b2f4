//! Runs all contenders on the same functions, in turns.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use slotvm_benches::contenders::llvm;
use slotvm_benches::contenders::ours::PROMOTION;
use slotvm_benches::contenders::{Contender, Input, Outcome};
use slotvm_benches::families::{Plan, generate, initialised};
use slotvm_benches::slot_graph::SlotGraph;
use slotvm_filetests::opt::Opt;

/// Small functions are constructed again and again until they have so many accesses together, since
/// reading the clock takes a microsecond.
const BATCH_ACCESSES: usize = 1_000;
/// Number of blocks from which the memory that promotion needs is measured.
const PEAK_BLOCKS_MIN: usize = 100_000;
/// LLVM gets no more blocks: with its text to read and to print it takes minutes for 100,000, and gigabytes
/// for 1,000,000.
const LLVM_BLOCKS_MAX: usize = 20_000;

/// Thoroughness of the measurements.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Care {
    /// Rounds, at most.
    pub(crate) rounds: u32,
    /// After so long no more rounds of a contender start.
    pub(crate) patience: Duration,
}

/// Measurements of one row: a cell, or the functions of a file.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// Requested blocks, slots and density, if it is a cell.
    #[serde(flatten)]
    pub(crate) cell: Option<Cell>,
    pub(crate) n_functions: usize,
    pub(crate) n_blocks: usize,
    pub(crate) n_edges: usize,
    pub(crate) n_accesses: usize,
    /// The most memory that the process had while it promoted, in MiB, of the first large cell; later on
    /// the process keeps memory that others needed. It also holds the graph and a copy of the slot form.
    pub(crate) peak_mib: Option<f64>,
    pub(crate) figures: Vec<Figure>,
    /// The phis that LLVM places if each slot is written before it is read and each value written is a
    /// new one, if there are fewer otherwise: it folds phis of undefined and of equal values.
    pub(crate) n_phis_of_llvm_unfolded: Option<usize>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Cell {
    pub(crate) family: &'static str,
    pub(crate) n_blocks_planned: u32,
    pub(crate) n_slots: u32,
    pub(crate) density: f64,
    #[serde(skip)]
    pub(crate) is_irreducible: bool,
}

/// Cost of a contender for all functions of a row, and its results.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) contender: String,
    pub(crate) seconds: f64,
    pub(crate) n_phis: usize,
    /// The geometric mean over all functions of nanoseconds for each access.
    pub(crate) mean_ns: Option<f64>,
}

impl Row {
    pub(crate) fn figure(&self, contender: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.contender == contender)
    }

    /// Nanoseconds for each access.
    pub(crate) fn ns(&self, contender: &str) -> Option<f64> {
        self.figure(contender).map(|figure| figure.seconds * 1e9 / self.n_accesses as f64)
    }

    /// Returns the size that the cost should be proportional to.
    pub(crate) fn size(&self, contender: &str) -> Option<usize> {
        self.figure(contender).map(|figure| self.n_blocks + self.n_accesses + figure.n_phis)
    }

    /// Makes a row with all facts about the functions that need no measurement.
    fn new(name: String, inputs: &[Input]) -> Row {
        let sum = |of: fn(&Input) -> usize| inputs.iter().map(of).sum();
        Row {
            name,
            cell: None,
            n_functions: inputs.len(),
            n_blocks: sum(|input| input.graph.n_blocks()),
            n_edges: sum(|input| input.graph.cfg.n_edges()),
            n_accesses: sum(Input::n_accesses),
            peak_mib: None,
            figures: Vec::new(),
            n_phis_of_llvm_unfolded: None,
        }
    }
}

/// All contenders.
pub(crate) struct Field {
    pub(crate) contenders: Vec<Box<dyn Contender>>,
    pub(crate) opt: Option<Opt>,
    pub(crate) care: Care,
    pub(crate) is_peak_measured: bool,
}

impl Field {
    /// Measures a cell.
    pub(crate) fn cell(&mut self, plan: Plan) -> Result<Row, String> {
        let graph = generate(plan);
        let name = graph.name.clone();
        let mut row = self.row(name, vec![graph])?;
        row.cell = Some(Cell {
            family: plan.family.name(),
            n_blocks_planned: plan.n_blocks,
            n_slots: plan.n_slots,
            density: plan.density,
            is_irreducible: plan.family.is_irreducible(),
        });
        Ok(row)
    }

    /// Measures functions together.
    pub(crate) fn row(&mut self, name: String, graphs: Vec<SlotGraph>) -> Result<Row, String> {
        let inputs: Vec<Input> = graphs.iter().map(Input::new).collect();
        drop(graphs);
        let mut row = Row::new(name, &inputs);
        let mut runs: Vec<Run> = self.contenders.iter().map(|_| Run::new(inputs.len())).collect();
        let mut llvm = Run::new(1);
        let opt = self.opt.as_ref().filter(|_| row.n_blocks <= LLVM_BLOCKS_MAX);
        let module = match opt {
            Some(_) => llvm::module(inputs.iter().map(|input| &input.graph)),
            None => String::new(),
        };
        for _ in 0..self.care.rounds {
            for (contender, run) in self.contenders.iter_mut().zip(&mut runs) {
                if run.spent < self.care.patience {
                    let measures_peak = !self.is_peak_measured
                        && contender.name() == PROMOTION
                        && row.n_blocks >= PEAK_BLOCKS_MIN;
                    let peak = measures_peak.then(Peak::start).flatten();
                    self.is_peak_measured |= measures_peak;
                    run.round(&inputs, |input, n| contender.run(input, n));
                    row.peak_mib = row.peak_mib.or_else(|| peak.and_then(|peak| peak.mib()));
                }
            }
            if let Some(opt) = opt
                && llvm.spent < self.care.patience
            {
                let start = Instant::now();
                let outcome = match llvm.least[0] {
                    Some(least) => Outcome { time: llvm::time(opt, &module)?, ..least },
                    None => Outcome {
                        time: llvm::time(opt, &module)?,
                        other: Duration::ZERO,
                        n_phis: llvm::n_phis(opt, &module)?,
                    },
                };
                llvm.note(0, outcome, start.elapsed());
            }
        }
        let contenders = self.contenders.iter().zip(&runs);
        let figures = contenders.filter_map(|(contender, run)| {
            run.figure(contender.name(), &inputs, |input| Some(input.n_accesses()))
        });
        row.figures.extend(figures);
        row.figures.extend(llvm.figure(llvm::MEM2REG, &inputs, |_| None));
        self.compare_without_folding(&mut row, &inputs)?;
        Ok(row)
    }

    fn compare_without_folding(&self, row: &mut Row, inputs: &[Input]) -> Result<(), String> {
        let n_phis = |name| row.figure(name).map(|figure| figure.n_phis);
        if let Some(opt) = &self.opt
            && let (Some(ours), Some(theirs)) = (n_phis(PROMOTION), n_phis(llvm::MEM2REG))
            && ours != theirs
        {
            let graphs: Vec<SlotGraph> =
                inputs.iter().map(|input| initialised(&input.graph).without_copies()).collect();
            row.n_phis_of_llvm_unfolded = Some(llvm::n_phis(opt, &llvm::module(&graphs))?);
        }
        Ok(())
    }
}

/// Costs of a contender so far.
struct Run {
    /// The least times of each function; `None` if it was not constructed.
    least: Vec<Option<Outcome>>,
    /// Elapsed time.
    spent: Duration,
}

impl Run {
    fn new(n_functions: usize) -> Run {
        Run { least: vec![None; n_functions], spent: Duration::ZERO }
    }

    /// Constructs all functions.
    fn round(&mut self, inputs: &[Input], mut run: impl FnMut(&Input, u32) -> Option<Outcome>) {
        for (i, input) in inputs.iter().enumerate() {
            let n_times = BATCH_ACCESSES.div_ceil(input.n_accesses().max(1)) as u32;
            let start = Instant::now();
            if let Some(Outcome { time, other, n_phis }) = run(input, n_times) {
                let outcome = Outcome { time: time / n_times, other: other / n_times, n_phis };
                self.note(i, outcome, start.elapsed());
            }
        }
    }

    fn note(&mut self, i: usize, outcome: Outcome, spent: Duration) {
        self.spent += spent;
        let least = self.least[i].get_or_insert(outcome);
        least.time = least.time.min(outcome.time);
        least.other = least.other.min(outcome.other);
    }

    /// `None` if the contender did not construct all functions. `n_accesses` are those of a function
    /// with a time of its own.
    fn figure(
        &self,
        contender: &str,
        inputs: &[Input],
        n_accesses: impl Fn(&Input) -> Option<usize>,
    ) -> Option<Figure> {
        let outcomes: Option<Vec<Outcome>> = self.least.iter().copied().collect();
        let outcomes = outcomes?;
        let seconds = |o: &Outcome| o.time.saturating_sub(o.other).as_secs_f64();
        let (mut sum, mut n) = (0.0, 0);
        for (outcome, input) in outcomes.iter().zip(inputs) {
            if let Some(n_accesses @ 1..) = n_accesses(input) {
                // A nanosecond for what the clock cannot tell from nothing.
                sum += (seconds(outcome).max(1e-9) * 1e9 / n_accesses as f64).ln();
                n += 1;
            }
        }
        Some(Figure {
            contender: contender.to_owned(),
            seconds: outcomes.iter().map(seconds).sum(),
            n_phis: outcomes.iter().map(|outcome| outcome.n_phis).sum(),
            mean_ns: (n > 0).then(|| (sum / f64::from(n)).exp()),
        })
    }
}

/// The most memory that the process has from here on, where Linux reports it.
struct Peak;

impl Peak {
    fn start() -> Option<Peak> {
        fs::write("/proc/self/clear_refs", "5").ok().map(|()| Peak)
    }

    fn mib(&self) -> Option<f64> {
        let status = fs::read_to_string(Path::new("/proc/self/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kib / 1024.0)
    }
}
