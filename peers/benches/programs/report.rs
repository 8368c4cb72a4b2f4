//! The figures as tables.

use vmrun::table::table;

use crate::measure::{Row, Times};
use slotvm_peers::stats::{Estimate, median};

/// Measured phase of an engine.
#[derive(Copy, Clone)]
pub(crate) enum Phase {
    /// The bytes of a module to runnable code.
    Compile,
    /// Runnable code to the end of the program.
    Run,
}

impl Phase {
    fn of(self, times: &Times) -> &[f64] {
        match self {
            Phase::Compile => &times.compile,
            Phase::Run => &times.run,
        }
    }
}

/// Returns the times of the first engine divided by those of another, for each program the ratio at each placement.
/// Programs that the other engine cannot run have none.
pub(crate) fn ratios(phase: Phase, engine: usize, rows: &[Row]) -> Vec<Vec<f64>> {
    let row_ratios = |row: &Row| {
        let (ours, theirs) = (phase.of(&row.times[0]), phase.of(&row.times[engine]));
        match theirs.len() {
            0 => Vec::new(),
            // Interpreters run at one placement.
            1 => vec![median(ours) / theirs[0]],
            _ => ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect(),
        }
    };
    rows.iter().map(row_ratios).collect()
}

/// A table of all programs: what the first engine took, and that divided by the times of the others.
pub(crate) fn render(phase: Phase, engines: &[&str], rows: &[Row]) -> String {
    // Native code tells no time of its compiler.
    let shown: Vec<usize> =
        (1..engines.len()).filter(|&i| !phase.of(&rows[0].times[i]).is_empty()).collect();
    let about = match phase {
        Phase::Compile => "bytes",
        Phase::Run => "size",
    };
    let mut headers = vec!["program".to_owned(), about.to_owned(), format!("{} ms", engines[0])];
    headers.extend(shown.iter().map(|&i| engines[i].to_owned()));
    let mut table = table(2, headers);
    let columns: Vec<Vec<Vec<f64>>> = shown.iter().map(|&i| ratios(phase, i, rows)).collect();
    for (r, row) in rows.iter().enumerate() {
        let about = match phase {
            Phase::Compile => row.wasm_bytes.to_string(),
            Phase::Run => how(row),
        };
        let ours = median(phase.of(&row.times[0]));
        let mut cells = vec![row.name.clone(), about, format!("{:.2}", ours * 1e3)];
        cells.extend(columns.iter().map(|column| match column[r].as_slice() {
            [] => "–".to_owned(),
            ratios => cell(Estimate::of(ratios)),
        }));
        table.add_row(cells);
    }
    let mut means = vec!["geometric mean".to_owned(), String::new(), String::new()];
    means.extend(columns.iter().map(|column| cell(Estimate::mean(column))));
    table.add_row(means);
    table.to_string()
}

/// Describes the run of a row.
fn how(row: &Row) -> String {
    match (row.n_runs, row.what.as_str()) {
        (1, what) => what.to_owned(),
        (n, "") => format!("{n} runs"),
        (n, what) => format!("{n} runs, {what}"),
    }
}

/// A ratio with its interval.
pub(crate) fn cell(estimate: Estimate) -> String {
    let Estimate { ratio, interval } = estimate;
    // Interpreters take many times as long.
    let digits = if ratio < 0.1 { 3 } else { 2 };
    match interval {
        Some((low, high)) => format!("{ratio:.digits$} ({low:.digits$}-{high:.digits$})"),
        None => format!("{ratio:.digits$}"),
    }
}
