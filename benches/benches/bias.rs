//! Whether `vmrun bench` measures the same as criterion: a report.
//!
//! Each program runs in each slot mode, measured by both, on the same clock: the CPU time of the thread. Rows are the times of `vmrun bench` divided by criterion's
//! medians. The benchmark fails if the median of all of these is not within [`BIAS`].
//!
//! A filter selects programs by name, `--quick` measures one round. Without `--bench`, it only sees that both run.

mod runs;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use criterion::Criterion;
use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use slotvm::{PassSet, SlotMode};
use slotvm_benches::{Args, program_files};
use vmrun::bench::clock::thread_cpu_time;
use vmrun::bench::interrupt::Stop;
use vmrun::bench::measure::{Options, measure};
use vmrun::bench::program::{self, Program};
use vmrun::table::table;

const ROUNDS: u32 = 5;
/// The median ratio is in this range.
const BIAS: std::ops::RangeInclusive<f64> = 0.98..=1.02;

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::from_env();
    let folder = tempfile::tempdir()?;
    let rounds = if args.is_test || args.is_quick { 1 } else { ROUNDS };
    let mut headers = vec!["program".to_owned()];
    headers.extend(SlotMode::ALL.map(|mode| mode.name().to_owned()));
    let mut table = table(1, headers);
    let mut all = Vec::new();
    for path in program_files() {
        if !args.selects(&program::name(&path)) {
            continue;
        }
        let ratios = ratios(&path, rounds, &args, folder.path())?;
        let cells = ratios.iter().map(|ratio| format!("{ratio:.3}"));
        table.add_row([program::name(&path)].into_iter().chain(cells));
        all.extend(ratios);
    }
    if all.is_empty() {
        return Ok(());
    }
    all.sort_unstable_by(f64::total_cmp);
    let median = all[all.len() / 2];
    println!("{table}\nmedian of {} ratios: {median:.3}", all.len());
    match args.is_test || BIAS.contains(&median) {
        true => Ok(()),
        false => Err(format!("the median ratio is {median:.3}; expected {BIAS:?}").into()),
    }
}

/// The time of `vmrun bench` over criterion's, in each mode.
fn ratios(
    path: &PathBuf,
    rounds: u32,
    args: &Args,
    folder: &Path,
) -> Result<Vec<f64>, Box<dyn Error>> {
    let size = args.is_test.then_some(1);
    let options = Options { rounds, size, passes: PassSet::all() };
    let report = measure(std::slice::from_ref(path), &options, &Stop::default())?;
    let program = Program::load(path, size)?;
    let mut criterion = Criterion::default().with_measurement(CpuTime).output_directory(folder);
    criterion = criterion.without_plots();
    let mut group = criterion.benchmark_group(&program.name);
    runs::settle(&mut group);
    SlotMode::ALL
        .into_iter()
        .map(|mode| {
            runs::measure(&mut group, &program, mode);
            let estimates = folder.join(&program.name).join(mode.name()).join("new/estimates.json");
            let estimates: serde_json::Value =
                serde_json::from_str(&fs::read_to_string(&estimates)?)?;
            let median = &estimates["median"]["point_estimate"];
            let criterion_ns = median.as_f64().ok_or("criterion has no median")?;
            Ok(report.programs[0].mode(mode).run_ns as f64 / criterion_ns)
        })
        .collect()
}

/// The clock of `vmrun bench`.
struct CpuTime;

impl Measurement for CpuTime {
    type Intermediate = Duration;
    type Value = Duration;

    fn start(&self) -> Duration {
        thread_cpu_time()
    }

    fn end(&self, start: Duration) -> Duration {
        thread_cpu_time() - start
    }

    fn add(&self, a: &Duration, b: &Duration) -> Duration {
        *a + *b
    }

    fn zero(&self) -> Duration {
        Duration::ZERO
    }

    fn to_f64(&self, time: &Duration) -> f64 {
        time.as_nanos() as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}
