//! The report as tables on the terminal.

use comfy_table::Table;
use slotvm::SlotMode;
use slotvm_bytecode::printable::Printable;

use super::{ModeReport, ProgramReport, Report, other_modes, stage_names};
use crate::table::table;

/// The modes whose sizes are shown.
const SIZED: [SlotMode; 3] = [SlotMode::Memory, SlotMode::MemoryOpt, SlotMode::Ssa];

/// The whole report as text.
pub fn render(report: &Report) -> String {
    let Report { cranelift, target, rounds, passes, modes, programs, .. } = report;
    let meanings: String =
        modes.iter().map(|mode| format!("  {:<17} {}\n", mode.name, mode.meaning)).collect();
    let (n, times, sizes, stages) = (programs.len(), times(report), sizes(report), stages(report));
    let with_less_work = with_less_work(report);
    format!(
        "Cranelift {cranelift}, {target}; programs: {n}; least times of rounds: {rounds}; \
         passes: {passes}\n\
         {meanings}\n\
         Run time of `main`: CPU time in milliseconds in mode ssa, and the time in each other mode \
         divided by it.\n\
         2.00x: twice the time of ssa. !: ssa is more than 3% slower than this mode.\n\
         {times}\n\n\
         Native code of all functions of a program: its bytes, the bytes of its frames (slots in \
         memory, spilled\nand saved registers), and its phis in mode ssa.\n\
         {sizes}\n\n\
         Compile time in microseconds: bytecode instructions, the stages in mode ssa, all stages in \
         other modes.\n\
         {stages}\n\
         {with_less_work}"
    )
}

fn headers(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn times(report: &Report) -> Table {
    let mut headers = headers(&["program", "size", "ssa ms"]);
    headers.extend(other_modes().map(|mode| mode.name().to_owned()));
    let mut table = table(1, headers);
    for program in &report.programs {
        let ms = program.mode(SlotMode::Ssa).run_ns as f64 / 1e6;
        let mut row = vec![
            program.name.clone(),
            program.size.map_or(String::new(), |size| size.to_string()),
            format!("{ms:.2}"),
        ];
        row.extend(other_modes().map(|mode| {
            let mark = if program.faster_than_ssa.contains(&mode.name()) { "! " } else { "" };
            format!("{mark}{:.2}x", program.ratio(mode))
        }));
        table.add_row(row);
    }
    let mut row = vec!["geometric mean".to_owned(), String::new(), String::new()];
    row.extend(report.mean_ratios.iter().map(|mean| format!("{:.2}x", mean.ratio)));
    table.add_row(row);
    table
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
        [name.to_owned()].into_iter().chain(numbers.iter().map(u64::to_string)).collect::<Vec<_>>()
    };
    for program in &report.programs {
        let numbers = numbers(program);
        sums.iter_mut().zip(&numbers).for_each(|(sum, number)| *sum += number);
        table.add_row(row(&program.name, &numbers));
    }
    table.add_row(row("sum", &sums));
    table
}

fn sizes(report: &Report) -> Table {
    let mut headers = headers(&["program"]);
    headers.extend(SIZED.map(|mode| format!("code, {mode}")));
    headers.extend(SIZED.map(|mode| format!("frames, {mode}")));
    headers.push("phis".to_owned());
    summed(report, headers, |program| {
        let figures = |of: fn(&ModeReport) -> u64| SIZED.map(|mode| of(program.mode(mode)));
        let (code, frames) = (figures(|m| m.code_bytes), figures(|m| m.frame_bytes));
        [&code[..], &frames, &[program.mode(SlotMode::Ssa).phis]].concat()
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

/// Lists the functions that were compiled at a lower effort level than the mode asks for.
fn with_less_work(report: &Report) -> String {
    let mut lines = String::new();
    for program in &report.programs {
        for mode in program.modes.iter().filter(|mode| !mode.with_less_work.is_empty()) {
            lines += &format!(
                "{} in mode {}: compiled at a lower effort level than the mode asks for, to stay within \
                 the budget: {}\n",
                program.name,
                mode.mode,
                mode.with_less_work
                    .iter()
                    .map(|name| Printable(name).to_string())
                    .collect::<Vec<_>>()
                    .join(", ")
            );
        }
    }
    lines
}
