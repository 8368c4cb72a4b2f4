//! The programs of many seeds, with statistics, and a report of one that fails.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use slotvm_filetests::choices::random_bytes;
use slotvm_filetests::seeds;

use crate::check::{Facts, check};
use crate::engine::End;
use crate::host::mix;
use crate::program::Program;

/// Bytes of which the modules of seeds are made.
const BYTES: Range<u64> = 1_000..10_000;
/// Checks that shrinking the bytes of a program may take.
const SHRINK_CHECKS_MAX: usize = 500;

/// Statistics of programs.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Modules.
    pub n_modules: usize,
    /// Instances made, and calls of their functions.
    pub n_calls: usize,
    /// Those that ended well.
    pub n_returned: usize,
    /// Modules that called the host.
    pub n_with_host_calls: usize,
    /// Modules that wasmi took no part in.
    pub n_without_wasmi: usize,
    /// Known faults of wasmi that were seen.
    pub faults_of_wasmi: Vec<String>,
    ends: BTreeMap<String, usize>,
}

impl Survey {
    /// Counts what a program did.
    pub fn add(&mut self, seed: u64, facts: &Facts) {
        self.n_modules += 1;
        self.n_calls += facts.ends.len();
        self.n_with_host_calls += usize::from(facts.n_host_values > 0);
        self.n_without_wasmi += usize::from(facts.without_wasmi);
        let faults = facts.fault_of_wasmi.iter().map(|fault| format!("seed {seed}: {fault}"));
        self.faults_of_wasmi.extend(faults);
        for end in &facts.ends {
            let end = match end {
                End::Returned(_) => {
                    self.n_returned += 1;
                    "returned".to_owned()
                }
                end => end.to_string(),
            };
            *self.ends.entry(end).or_default() += 1;
        }
    }
}

impl fmt::Display for Survey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:7} modules", self.n_modules)?;
        writeln!(f, "{:7} called the host", self.n_with_host_calls)?;
        writeln!(f, "{:7} instances and calls", self.n_calls)?;
        for (end, n) in &self.ends {
            writeln!(f, "{n:7} {:5.1} %  {end}", 100.0 * *n as f64 / self.n_calls as f64)?;
        }
        writeln!(f, "{:7} modules without wasmi", self.n_without_wasmi)?;
        writeln!(f, "{:7} known faults of wasmi", self.faults_of_wasmi.len())?;
        self.faults_of_wasmi.iter().try_for_each(|fault| writeln!(f, "{fault}"))
    }
}

/// Checks the programs of seeds on all cores.
///
/// # Errors
/// The report of one in which engines differ.
pub fn check_seeds(seeds: Range<u64>) -> Result<Survey, String> {
    let facts = seeds::on_all_cores(seeds, |seed| {
        let bytes = bytes_of_seed(seed);
        let facts = try_check(&bytes).map_err(|_| report(&bytes))?;
        Ok((seed, facts))
    })?;
    let mut survey = Survey::default();
    for (seed, facts) in &facts {
        facts.iter().for_each(|facts| survey.add(*seed, facts));
    }
    Ok(survey)
}

/// Checks the program of bytes; a panic counts as a difference.
fn try_check(bytes: &[u8]) -> Result<Option<Facts>, String> {
    seeds::quietly(|| check(bytes))?.map_err(|difference| difference.to_string())
}

/// The bytes of which the module of a seed is made.
pub fn bytes_of_seed(seed: u64) -> Vec<u8> {
    let n = BYTES.start + mix(seed) % (BYTES.end - BYTES.start);
    random_bytes(seed, n as usize)
}

/// Shrinks bytes whose program fails, and describes what comes out.
fn report(bytes: &[u8]) -> String {
    let bytes = seeds::shrink(bytes, SHRINK_CHECKS_MAX, |bytes| try_check(bytes).is_err());
    let error = try_check(&bytes).expect_err("shrinking keeps it wrong");
    let text = Program::generate(&bytes).map(|program| wasmprinter::print_bytes(&program.wasm));
    match text {
        Some(Ok(text)) => format!("{error}\n{text}"),
        _ => format!("{error}\nof the bytes {bytes:02x?}"),
    }
}
