//! Comparison of a report with an earlier one, which `--diff` reads as JSON.
//!
//! The rounds of two reports are not paired: the machine may have been slower in one of them as a whole, which no
//! statistic can tell from slower code. A time has changed if the interval of the new one over the old one excludes 1 and
//! the factor is at least [`CHANGE_MIN`]. The intervals hold for all times together (Bonferroni): in 19 of 20 comparisons
//! of equal programs none excludes 1 by chance.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use std::path::Path;

use serde::{Deserialize, Serialize};
use slotvm_bytecode::printable::Printable;

use super::statistics::{CONFIDENCE, Estimate, LogMean};
use super::{ModeReport, Report, SCHEMA, SCHEMA_VERSION, positive};
use vmrun_base::error::CliError;
use vmrun_base::load;

/// Changes by a smaller factor are not reported.
pub const CHANGE_MIN: f64 = 1.03;

/// The changes since an earlier report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    /// The number of times that were compared.
    pub n_compared: usize,
    /// Settings and machines that differ, so that times mean less.
    pub warnings: Vec<String>,
    /// Times that became longer.
    pub slower: Vec<TimeChange>,
    /// Times that became shorter.
    pub faster: Vec<TimeChange>,
    /// Sizes that differ.
    pub sizes: Vec<SizeChange>,
    /// Programs that only one of the reports has, or that ran with different sizes.
    pub not_compared: Vec<String>,
}

/// A time that has changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimeChange {
    /// The program.
    pub program: String,
    /// The slot mode.
    pub mode: String,
    /// `run` or `compile`.
    pub time: &'static str,
    /// The new time divided by the old one.
    pub ratio: Estimate,
}

/// A size that has changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizeChange {
    /// The program.
    pub program: String,
    /// The slot mode.
    pub mode: String,
    /// The field of [`ModeReport`].
    pub size: &'static str,
    /// The old size.
    pub old: u64,
    /// The new size.
    pub new: u64,
}

/// The part of an earlier report that is compared.
#[derive(Clone, Debug, Deserialize)]
pub struct Old {
    cranelift: String,
    target: String,
    passes: String,
    programs: Vec<OldProgram>,
}

#[derive(Clone, Debug, Deserialize)]
struct OldProgram {
    name: String,
    size: Option<i32>,
    modes: Vec<OldMode>,
}

#[derive(Clone, Debug, Deserialize)]
struct OldMode {
    mode: String,
    rounds_ns: Vec<u64>,
    compile_rounds_ns: Vec<u64>,
    #[serde(flatten)]
    others: BTreeMap<String, serde_json::Value>,
}

impl Old {
    /// Reads an earlier report.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or is not a report with at least two rounds.
    pub fn read(path: &Path) -> Result<Old, CliError> {
        let text = load::read_text(path)?;
        Old::of(&text).map_err(|message| CliError::module(path, Printable(&message)))
    }

    fn of(text: &str) -> Result<Old, String> {
        #[derive(Deserialize)]
        struct Header {
            schema: String,
            version: u32,
        }
        let no_report = |error| format!("expected a report of `vmrun bench --json`: {error}");
        let header: Header = serde_json::from_str(text).map_err(no_report)?;
        if header.schema != SCHEMA {
            return Err(format!("unknown schema {:?}; expected {SCHEMA:?}", header.schema));
        }
        if header.version != SCHEMA_VERSION {
            let version = header.version;
            return Err(format!(
                "unknown version {version} of the schema; expected {SCHEMA_VERSION}"
            ));
        }
        let old: Old = serde_json::from_str(text).map_err(no_report)?;
        for program in &old.programs {
            for mode in &program.modes {
                let n = mode.rounds_ns.len().min(mode.compile_rounds_ns.len());
                if n < 2 {
                    let (name, mode) = (&program.name, &mode.mode);
                    return Err(format!(
                        "{name} in mode {mode} has {n} rounds; expected at least 2"
                    ));
                }
            }
        }
        Ok(old)
    }
}

/// Two times of a program in a mode that are compared.
struct Pair<'a> {
    program: &'a str,
    mode: &'a str,
    time: &'static str,
    old: &'a [u64],
    new: &'a [u64],
}

impl Pair<'_> {
    fn change(&self, confidence: f64) -> TimeChange {
        let mean = |times: &[u64]| LogMean::of(times.iter().map(|&ns| positive(ns)));
        let ratio = mean(self.new).over(mean(self.old)).estimate(confidence);
        let (program, mode) = (self.program.to_owned(), self.mode.to_owned());
        TimeChange { program, mode, time: self.time, ratio }
    }
}

/// Compares a report with an earlier one.
pub fn diff(old: &Old, new: &Report) -> Diff {
    let mut diff = Diff {
        n_compared: 0,
        warnings: warnings(old, new),
        slower: Vec::new(),
        faster: Vec::new(),
        sizes: Vec::new(),
        not_compared: Vec::new(),
    };
    let mut pairs = Vec::new();
    // Of programs with one name, the first ones are compared, then the second ones.
    let mut left: Vec<&OldProgram> = old.programs.iter().collect();
    for program in &new.programs {
        let same = |old: &&OldProgram| old.name == program.name && old.size == program.size;
        let Some(before) = left.iter().position(same).map(|i| left.remove(i)) else {
            diff.not_compared.push(program.name.clone());
            continue;
        };
        for mode in &program.modes {
            let Some(before) = before.modes.iter().find(|old| old.mode == mode.mode) else {
                continue;
            };
            let (name, mode_name) = (program.name.as_str(), mode.mode);
            let pair = |time, old, new| Pair { program: name, mode: mode_name, time, old, new };
            pairs.push(pair("run", &before.rounds_ns[..], &mode.rounds_ns[..]));
            pairs.push(pair("compile", &before.compile_rounds_ns, &mode.compile_rounds_ns));
            diff.sizes.extend(size_changes(name, before, mode));
        }
    }
    for gone in left {
        if !diff.not_compared.contains(&gone.name) {
            diff.not_compared.push(gone.name.clone());
        }
    }
    diff.n_compared = pairs.len();
    let confidence = 1.0 - (1.0 - CONFIDENCE) / pairs.len().max(1) as f64;
    for change in pairs.iter().map(|pair| pair.change(confidence)) {
        // One round shows nothing.
        let TimeChange { ratio: Estimate { value, interval: Some(_) }, .. } = change else {
            continue;
        };
        if value >= CHANGE_MIN && change.ratio.is_above_one() {
            diff.slower.push(change);
        } else if value <= 1.0 / CHANGE_MIN && change.ratio.is_below_one() {
            diff.faster.push(change);
        }
    }
    diff
}

fn warnings(old: &Old, new: &Report) -> Vec<String> {
    let settings = [
        ("Cranelift", &old.cranelift, &new.cranelift),
        ("target", &old.target, &new.target),
        ("passes", &old.passes, &new.passes),
    ];
    let differ = settings.into_iter().filter(|(_, old, new)| old != new);
    differ.map(|(name, old, new)| format!("{name} was {old}, is {new}")).collect()
}

fn size_changes<'a>(
    program: &'a str,
    old: &'a OldMode,
    new: &'a ModeReport,
) -> impl Iterator<Item = SizeChange> + 'a {
    let sizes = [
        ("code_bytes", new.code_bytes),
        ("frame_bytes", new.frame_bytes),
        ("spill_bytes", new.spill_bytes),
        ("phis", new.phis),
    ];
    sizes.into_iter().filter_map(move |(size, new_size)| {
        let old_size = old.others.get(size)?.as_u64()?;
        (old_size != new_size).then(|| SizeChange {
            program: program.to_owned(),
            mode: new.mode.to_owned(),
            size,
            old: old_size,
            new: new_size,
        })
    })
}

impl Diff {
    /// The comparison as text, one line for each change.
    pub fn render(&self) -> String {
        let mut text = format!(
            "Compared with the earlier report: {} times, {:.0}% confidence for all together; changes below {:.0}% \
             are left out.\n",
            self.n_compared,
            CONFIDENCE * 100.0,
            (CHANGE_MIN - 1.0) * 100.0
        );
        let mut line =
            |text_of_line: String| writeln!(text, "{text_of_line}").expect("a string takes it");
        self.warnings.iter().for_each(|warning| line(format!("warning: {}", Printable(warning))));
        for (word, changes) in [("slower", &self.slower), ("faster", &self.faster)] {
            changes.iter().for_each(|change| line(format!("{word}: {}", change.render())));
        }
        if self.slower.is_empty() && self.faster.is_empty() {
            line("no time changed beyond noise".to_owned());
        }
        for SizeChange { program, mode, size, old, new } in &self.sizes {
            line(format!("{} {mode}: {size} was {old}, is {new}", Printable(program)));
        }
        let of_one = self.not_compared.iter();
        of_one.for_each(|name| line(format!("not compared: {}", Printable(name))));
        text
    }
}

impl TimeChange {
    /// The change in words.
    pub fn render(&self) -> String {
        let Estimate { value, interval } = self.ratio;
        let [low, high] = interval.unwrap_or([value; 2]);
        let (program, mode, time) = (Printable(&self.program), &self.mode, self.time);
        format!("{program} {mode} {time}: {value:.2}x ({low:.2} to {high:.2})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{program_of_rounds, report};

    fn old(report: &Report) -> Old {
        Old::of(&serde_json::to_string(report).expect("it is plain data")).expect("it is a report")
    }

    #[test]
    fn only_changes_beyond_noise_are_told() {
        let before = report(vec![program_of_rounds("p", &[1000, 1010, 990, 1005, 995])]);
        assert!(diff(&old(&before), &before).slower.is_empty());
        // 10% slower with noise of 1%, and 10% slower with noise of 30%.
        let after = |rounds: &[u64]| report(vec![program_of_rounds("p", rounds)]);
        let slower = diff(&old(&before), &after(&[1100, 1110, 1090, 1105, 1095]));
        let told: Vec<_> = slower.slower.iter().map(|change| change.time).collect();
        assert_eq!(told, ["run"; 5], "{slower:?}");
        assert!(slower.render().contains("slower: p ssa run: 1.10x (1.0"), "{}", slower.render());
        let noisy = diff(&old(&before), &after(&[1000, 1400, 800, 1500, 900]));
        assert!(noisy.slower.is_empty() && noisy.faster.is_empty(), "{noisy:?}");
        assert!(noisy.render().contains("no time changed beyond noise"));
        let faster = diff(&old(&before), &after(&[500, 505, 495, 502, 498]));
        assert_eq!((faster.slower.len(), faster.faster.len()), (0, 5));
        // 2% are beyond noise, but too little to report.
        let little = diff(&old(&before), &after(&[1020, 1020, 1020, 1020, 1020]));
        assert!(little.slower.is_empty(), "{little:?}");
    }

    #[test]
    fn sizes_settings_and_missing_programs_are_told() {
        let rounds = [10, 11, 12];
        let before =
            report(vec![program_of_rounds("p", &rounds), program_of_rounds("gone", &rounds)]);
        let mut after =
            report(vec![program_of_rounds("p", &rounds), program_of_rounds("new", &rounds)]);
        after.programs[0].modes[4].phis = 9;
        after.passes = "none".to_owned();
        let text = diff(&old(&before), &after).render();
        for line in [
            "warning: passes was all, is none",
            "p ssa: phis was 3, is 9",
            "not compared: new",
            "not compared: gone",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
    }

    #[test]
    fn programs_of_one_name_are_compared_in_their_order() {
        let [short, long] = [[10, 10, 10], [900, 900, 900]];
        let both = report(vec![program_of_rounds("p", &short), program_of_rounds("p", &long)]);
        let same = diff(&old(&both), &both);
        assert_eq!((same.n_compared, same.slower.len(), same.faster.len()), (20, 0, 0));
        let one = report(vec![program_of_rounds("p", &short)]);
        assert_eq!(diff(&old(&both), &one).not_compared, ["p"]);
        assert_eq!(diff(&old(&one), &both).not_compared, ["p"]);
    }

    #[test]
    fn other_files_are_refused() {
        let one_round = report(vec![program_of_rounds("p", &[1])]);
        for (text, message) in [
            ("{", "expected a report of `vmrun bench --json`: EOF"),
            ("[]", "expected a report of `vmrun bench --json`: invalid length 0"),
            (r#"{"schema": "x", "version": 1}"#, r#"unknown schema "x"; expected "slotvm-bench""#),
            (
                r#"{"schema": "slotvm-bench", "version": 2}"#,
                "unknown version 2 of the schema; expected 1",
            ),
            (
                r#"{"schema": "slotvm-bench", "version": 1}"#,
                "expected a report of `vmrun bench --json`: missing",
            ),
            (
                &serde_json::to_string(&one_round).unwrap(),
                "p in mode memory has 1 rounds; expected at least 2",
            ),
        ] {
            let error = Old::of(text).expect_err(text);
            assert!(error.starts_with(message), "{text}: {error}");
        }
    }
}
