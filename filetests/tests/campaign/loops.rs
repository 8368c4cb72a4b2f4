//! Runs a target on the inputs of many seeds, on all cores.

use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use slotvm_filetests::campaign::{self, Verdict};
use slotvm_filetests::seeds;

use crate::allocator::METER;

/// The environment variable with the first seed.
const SEED_VARIABLE: &str = "SLOTVM_SEED";
/// The environment variable with the file where a separate process records the seeds that it is about to run.
const PROGRESS_VARIABLE: &str = "SLOTVM_PROGRESS";
/// Number of inputs that a thread takes at once.
const BATCH: u64 = 64;
/// Limit of the checks for shrinking an input.
const SHRINK_CHECKS_MAX: usize = 5_000;

/// A check, and the generator of its inputs.
pub(crate) struct Target<'t> {
    /// The name of the test.
    pub(crate) name: &'t str,
    pub(crate) input: &'t (dyn Fn(u64) -> Vec<u8> + Sync),
    pub(crate) check: fn(&[u8]) -> Result<Verdict, String>,
}

/// Numbers of inputs of each kind.
#[derive(Copy, Clone, Debug, Default)]
struct Counts {
    refused: u64,
    loaded: u64,
    accepted: u64,
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.refused += other.refused;
        self.loaded += other.loaded;
        self.accepted += other.accepted;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { refused, loaded, accepted } = *self;
        let n = refused + loaded + accepted;
        let percent = |part: u64| 100.0 * part as f64 / n.max(1) as f64;
        let (in_part, whole) = (percent(loaded), percent(accepted));
        write!(f, "{n} inputs, {in_part:.1} % loaded only, {whole:.1} % accepted")
    }
}

impl Target<'_> {
    /// Runs `usual` inputs, or as many as the environment variable asks for.
    ///
    /// # Panics
    /// Panics if an input breaks a promise.
    pub(crate) fn run(&self, usual: u64) {
        campaign::set_meter(METER);
        let n = seeds::count_or(usual);
        let start = first_seed();
        let begin = Instant::now();
        let batches = 0..n.div_ceil(BATCH);
        let counts = seeds::on_all_cores(batches, |batch| {
            let first = start + batch * BATCH;
            self.batch(first..(first + BATCH).min(start + n))
        });
        let mut all = Counts::default();
        counts.unwrap_or_else(|report| panic!("{report}")).into_iter().for_each(|c| all.add(c));
        println!("{}: {all}, {:.1} s", self.name, begin.elapsed().as_secs_f64());
        // A test whose inputs are all refused would test little.
        assert!(n < usual || all.accepted > 0, "{}: {all}", self.name);
    }

    /// Does the same as [`Target::run`] in a process of its own, so that the seed is known if it dies.
    ///
    /// # Panics
    /// Panics if an input breaks a promise, or the process dies.
    pub(crate) fn run_apart(&self, usual: u64) {
        if PROGRESS.is_some() {
            return self.run(usual);
        }
        let path =
            std::env::temp_dir().join(format!("slotvm-{}-{}", self.name, std::process::id()));
        let mut child = Command::new(std::env::current_exe().expect("the test has a file"));
        child.args([self.name, "--exact", "--nocapture"]).env(PROGRESS_VARIABLE, &path);
        let output = child.output().expect("the test can be run");
        let seeds = std::fs::read(&path).unwrap_or_default();
        let _ = std::fs::remove_file(&path);
        print!("{}", String::from_utf8_lossy(&output.stdout));
        let seeds: Vec<u64> = seeds
            .chunks_exact(8)
            .map(|seed| u64::from_le_bytes(seed.try_into().expect("eight bytes")))
            .collect();
        assert!(
            output.status.success(),
            "{}, {}, while it ran the seeds {seeds:?}:\n{}",
            self.name,
            output.status,
            String::from_utf8_lossy(&output.stderr),
        );
    }

    fn batch(&self, seeds: Range<u64>) -> Result<Counts, String> {
        let mut counts = Counts::default();
        for seed in seeds {
            note(seed);
            match self.try_check(&(self.input)(seed)) {
                Ok(Verdict::Refused) => counts.refused += 1,
                Ok(Verdict::Loaded) => counts.loaded += 1,
                Ok(Verdict::Accepted) => counts.accepted += 1,
                Err(_) => return Err(self.report(seed)),
            }
        }
        Ok(counts)
    }

    /// Checks an input; a panic counts as a failure.
    fn try_check(&self, bytes: &[u8]) -> Result<Verdict, String> {
        seeds::quietly(|| (self.check)(bytes))
            .unwrap_or_else(|panic| Err(format!("panic: {panic}")))
    }

    /// Describes the error of the input of a seed, shrunk, and how to reproduce it.
    fn report(&self, seed: u64) -> String {
        let input = (self.input)(seed);
        let is_wrong = |bytes: &[u8]| self.try_check(bytes).is_err();
        let small = seeds::shrink(&input, SHRINK_CHECKS_MAX, is_wrong);
        let error = self.try_check(&small).err().or_else(|| self.try_check(&input).err());
        let name = self.name;
        format!(
            "{name}: {}\nof {} bytes:\n{}\n{:?}\n\
             again: {SEED_VARIABLE}={seed} {}=1 cargo test -p slotvm-filetests --test campaign {name}",
            error.unwrap_or_else(|| "another result the second time".to_owned()),
            small.len(),
            small.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
            String::from_utf8_lossy(&small),
            seeds::COUNT_VARIABLE,
        )
    }
}

static PROGRESS: LazyLock<Option<File>> = LazyLock::new(|| {
    let path = std::env::var_os(PROGRESS_VARIABLE)?;
    Some(File::create(path).expect("the file of the progress can be made"))
});

/// Records the seed that the thread is about to run, in a separate process.
fn note(seed: u64) {
    static N_THREADS: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static THREAD: Cell<u64> = Cell::new(N_THREADS.fetch_add(1, Ordering::Relaxed));
    }
    if let Some(file) = &*PROGRESS {
        file.write_all_at(&seed.to_le_bytes(), THREAD.get() * 8).expect("the disk has room");
    }
}

pub(crate) fn first_seed() -> u64 {
    match std::env::var(SEED_VARIABLE) {
        Ok(seed) => {
            seed.parse().unwrap_or_else(|_| panic!("{SEED_VARIABLE}={seed}: expected a number"))
        }
        Err(_) => 0,
    }
}
