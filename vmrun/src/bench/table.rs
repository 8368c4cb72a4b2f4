//! The report as a table on the terminal.

use std::fmt::Write;

use comfy_table::{CellAlignment, Table, presets};
use slotvm::SlotMode;

use super::{Report, other_modes};

/// The whole report as text.
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    let Report { cranelift, target, rounds, .. } = report;
    writeln!(out, "Cranelift {cranelift}, {target}, least of {rounds} rounds").expect(INFALLIBLE);
    for mode in &report.modes {
        writeln!(out, "  {:<17} {}", mode.name, mode.meaning).expect(INFALLIBLE);
    }
    writeln!(out, "\nRun time in ms, and how many times the time of ssa:\n{}", times(report))
        .expect(INFALLIBLE);
    writeln!(
        out,
        "\nCode, frames and compilation, memory -> memory-opt -> ssa:\n{}",
        sizes(report)
    )
    .expect(INFALLIBLE);
    out
}

const INFALLIBLE: &str = "writing to a string succeeds";

fn table(headers: Vec<String>) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN).set_header(headers);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn ms(ns: u64) -> String {
    format!("{:.2}", ns as f64 / 1e6)
}

fn times(report: &Report) -> Table {
    let mut headers = vec!["program".to_owned(), "size".to_owned(), "ssa ms".to_owned()];
    headers.extend(other_modes().map(|mode| mode.name().to_owned()));
    let mut table = table(headers);
    for program in &report.programs {
        let mut row = vec![program.name.clone(), program.size.to_string()];
        row.push(ms(program.mode(SlotMode::Ssa).run_ns));
        row.extend(other_modes().map(|mode| format!("{:.2}x", program.ratio(mode))));
        table.add_row(row);
    }
    let mut row = vec!["geometric mean".to_owned(), String::new(), String::new()];
    row.extend(report.mean_ratios.iter().map(|mean| format!("{:.2}x", mean.ratio)));
    table.add_row(row);
    table
}

fn sizes(report: &Report) -> Table {
    const SHOWN: [SlotMode; 3] = [SlotMode::Memory, SlotMode::MemoryOpt, SlotMode::Ssa];
    let headers =
        ["program", "code bytes", "frame bytes", "phis", "IR µs", "CLIF µs", "Cranelift µs"];
    let mut table = table(headers.map(str::to_owned).to_vec());
    for program in &report.programs {
        let figures = |of: fn(&super::ModeReport) -> u64| {
            SHOWN.map(|mode| of(program.mode(mode)).to_string()).join(" → ")
        };
        table.add_row([
            program.name.clone(),
            figures(|m| m.code_bytes),
            figures(|m| m.frame_bytes),
            program.mode(SlotMode::Ssa).phis.to_string(),
            figures(|m| m.ssa_ns / 1000),
            figures(|m| m.clif_ns / 1000),
            figures(|m| m.cranelift_ns / 1000),
        ]);
    }
    table
}
