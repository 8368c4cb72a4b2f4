//! The report as tables on the terminal.

use comfy_table::Table;
use slotvm::SlotMode;
use slotvm_bytecode::printable::Printable;

use super::statistics::Estimate;
use super::{ModeReport, ProgramReport, Report, other_modes, stage_names};
use vmrun_base::table::table;

/// The modes whose sizes are shown.
const SIZED: [SlotMode; 3] = [SlotMode::Memory, SlotMode::MemoryOpt, SlotMode::Ssa];

/// A part of the report.
pub struct Section {
    /// Its title.
    pub title: &'static str,
    /// An explanation of the figures.
    pub text: &'static str,
    /// A table, or a list of sentences.
    pub body: String,
}

/// The whole report as text.
pub fn render(report: &Report) -> String {
    let meanings =
        report.modes.iter().map(|mode| format!("  {:<17} {}\n", mode.name, mode.meaning));
    let mut text = summary(report) + &meanings.collect::<String>();
    for section in sections(report) {
        text += &format!("\n{}. {}\n{}\n", section.title, section.text, section.body);
    }
    if let Some(diff) = &report.diff {
        text += &format!("\n{}", diff.render());
    }
    text
}

/// Machine and settings, in one line, and another one if programs are missing.
pub(super) fn summary(report: &Report) -> String {
    let Report { cranelift, target, rounds, passes, programs, .. } = report;
    let n = programs.len();
    let mut summary = format!(
        "Cranelift {cranelift}, {target}; programs: {n}; paired rounds: {rounds}; passes: {passes}\n"
    );
    if report.partial {
        summary += "Interrupted: programs or rounds are missing.\n";
    }
    summary
}

/// The parts of the report, without those that say nothing.
pub(super) fn sections(report: &Report) -> Vec<Section> {
    let section = |title, text, body| Section { title, text, body };
    let mut sections = vec![
        section("Run time", TIMES, times(report).to_string()),
        section("Losses", LOSSES, losses(report)),
        section("Slot accesses", ACCESSES, accesses(report).to_string()),
        section("Native code", SIZES, sizes(report).to_string()),
        section("Compile time", STAGES, stages(report).to_string()),
        section("Lower effort", LESS_WORK, with_less_work(report)),
    ];
    sections.retain(|section| !section.body.is_empty());
    sections
}

const TIMES: &str = "CPU time of `main` in milliseconds in mode ssa, and the time in each other mode divided by it.\n\
     2.00x: twice the time of ssa. ±1: the 95% interval, in percent. !: ssa is more than 3% slower than this mode.\n\
     Paid after: runs after which ssa has taken less time than memory, compilation included.";
const LOSSES: &str = "Modes that are faster than ssa, and the reason that the figures show.";
const ACCESSES: &str = "Loads from slots in native frames and stores to them, which one run executes. In mode \
     memory-forwarded\nthe optimiser may have removed some of them.";
const SIZES: &str = "All functions of a program: the bytes of code, the bytes of frames, the bytes of these that hold \
     spilled\nand saved registers, and the phis in mode ssa.";
const STAGES: &str =
    "Microseconds: bytecode instructions, the stages in mode ssa, all stages in other modes.";
const LESS_WORK: &str = "Functions that were compiled at a lower effort level, to stay within the budget of compile time.";

fn headers(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// A ratio, with its interval in percent.
pub(super) fn ratio(ratio: Estimate) -> String {
    let interval = ratio.percent().map_or(String::new(), |percent| match percent {
        percent if percent < 0.95 => format!(" ±{percent:.1}"),
        percent => format!(" ±{percent:.0}"),
    });
    format!("{:.2}x{interval}", ratio.value)
}

/// The number of runs after which compilation has paid.
pub(super) fn paid_after(program: &ProgramReport) -> String {
    program.pays_after_runs.map_or("never".to_owned(), |runs| runs.to_string())
}

fn times(report: &Report) -> Table {
    let mut headers = headers(&["program", "size", "ssa ms"]);
    headers.extend(other_modes().map(|mode| mode.name().to_owned()));
    headers.push("paid after".to_owned());
    let mut table = table(1, headers);
    for program in &report.programs {
        let ms = program.mode(SlotMode::Ssa).run_ns as f64 / 1e6;
        let mut row = vec![
            Printable(&program.name).to_string(),
            program.size.map_or(String::new(), |size| size.to_string()),
            format!("{ms:.2}"),
        ];
        row.extend(other_modes().map(|mode| {
            let mark = if program.faster_than_ssa.contains(&mode.name()) { "! " } else { "" };
            format!("{mark}{}", ratio(program.ratio(mode)))
        }));
        row.push(paid_after(program));
        table.add_row(row);
    }
    let mut row = vec!["geometric mean".to_owned(), String::new(), String::new()];
    row.extend(report.mean_ratios.iter().map(|mean| ratio(mean.ratio)));
    table.add_row(row);
    table
}

fn losses(report: &Report) -> String {
    let programs = report.programs.iter();
    let lines = programs.flat_map(|program| {
        program.losses.iter().map(move |loss| {
            let name = Printable(&program.name);
            let times = 1.0 / program.modes.iter().find(|m| m.mode == loss.mode)?.ratio.value;
            Some(format!(
                "* {name}: ssa takes {times:.2}x the time of {}: {}.",
                loss.mode, loss.reason
            ))
        })
    });
    lines.flatten().collect::<Vec<_>>().join("\n")
}

/// A table of numbers with their sums in the last row.
fn summed(
    report: &Report,
    headers: Vec<String>,
    numbers: impl Fn(&ProgramReport) -> Vec<u64>,
) -> Table {
    let mut sums = vec![0; headers.len() - 1];
    let mut table = table(1, headers);
    let row = |name: &str, numbers: &[u64]| {
        let name = Printable(name).to_string();
        [name].into_iter().chain(numbers.iter().map(u64::to_string)).collect::<Vec<_>>()
    };
    for program in &report.programs {
        let numbers = numbers(program);
        sums.iter_mut().zip(&numbers).for_each(|(sum, number)| *sum += number);
        table.add_row(row(&program.name, &numbers));
    }
    table.add_row(row("sum", &sums));
    table
}

/// The modes in which slots can be in memory.
pub(super) const IN_MEMORY: [SlotMode; 4] =
    [SlotMode::Memory, SlotMode::MemoryOpt, SlotMode::MemoryForwarded, SlotMode::Ssa];

fn accesses(report: &Report) -> Table {
    let mut headers = headers(&["program"]);
    for what in ["reads", "writes"] {
        headers.extend(IN_MEMORY.map(|mode| format!("{what}, {mode}")));
    }
    summed(report, headers, ProgramReport::slot_accesses)
}

fn sizes(report: &Report) -> Table {
    let mut headers = headers(&["program"]);
    for what in ["code", "frames", "spills"] {
        headers.extend(SIZED.map(|mode| format!("{what}, {mode}")));
    }
    headers.push("phis".to_owned());
    summed(report, headers, |program| {
        let figures = |of: fn(&ModeReport) -> u64| SIZED.map(|mode| of(program.mode(mode)));
        let (code, frames) = (figures(|m| m.code_bytes), figures(|m| m.frame_bytes));
        let spills = figures(|m| m.spill_bytes);
        [&code[..], &frames, &spills, &[program.mode(SlotMode::Ssa).phis]].concat()
    })
}

fn stages(report: &Report) -> Table {
    const OTHERS: [SlotMode; 2] = [SlotMode::Memory, SlotMode::MemoryOpt];
    let mut headers = headers(&["program", "ops"]);
    headers.extend(stage_names().into_iter().map(str::to_owned));
    headers.extend([SlotMode::Ssa].into_iter().chain(OTHERS).map(|mode| format!("all, {mode}")));
    summed(report, headers, |program| {
        let ssa = program.mode(SlotMode::Ssa);
        let all = [ssa].into_iter().chain(OTHERS.map(|mode| program.mode(mode)));
        let ns = ssa.stages_ns.iter().copied().chain(all.map(ModeReport::compile_ns));
        [program.ops].into_iter().chain(ns.map(|ns| ns / 1000)).collect()
    })
}

/// Lists the functions that were compiled at a lower effort level.
fn with_less_work(report: &Report) -> String {
    let mut lines = Vec::new();
    for program in &report.programs {
        for mode in program.modes.iter().filter(|mode| !mode.with_less_work.is_empty()) {
            let names = mode.with_less_work.iter().map(|name| Printable(name).to_string());
            let names = names.collect::<Vec<_>>().join(", ");
            lines.push(format!("* {} in mode {}: {names}", Printable(&program.name), mode.mode));
        }
    }
    lines.join("\n")
}
