//! The figures as tables.

use vmrun::table::table;

use crate::measure::{Row, Times};

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

/// A table of all programs: what the first engine took, and the times of the others divided by that.
pub(crate) fn render(phase: Phase, engines: &[&str], rows: &[Row]) -> String {
    let about = match phase {
        Phase::Compile => "bytes",
        Phase::Run => "size",
    };
    let mut headers = vec!["program".to_owned(), about.to_owned(), format!("{} ms", engines[0])];
    headers.extend(engines[1..].iter().map(|&name| name.to_owned()));
    let mut table = table(2, headers);
    for row in rows {
        let about = match phase {
            Phase::Compile => row.wasm_bytes.to_string(),
            Phase::Run => how(row),
        };
        let ours = phase.of(&row.times[0]);
        let mut cells = vec![row.name.clone(), about, format!("{:.2}", least(ours) * 1e3)];
        cells.extend(row.times[1..].iter().map(|times| ratio_cell(phase.of(times), ours)));
        table.add_row(cells);
    }
    let mut means = vec!["geometric mean".to_owned(), String::new(), String::new()];
    means.extend((1..engines.len()).map(|engine| {
        let ratio =
            |row: &Row| least(phase.of(&row.times[engine])) / least(phase.of(&row.times[0]));
        format!("{:.2}", geometric_mean(rows.iter().map(ratio)))
    }));
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

fn least(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The ratio of the least times, and the least and the greatest ratio of all rounds.
fn ratio_cell(times: &[f64], ours: &[f64]) -> String {
    let ratios: Vec<f64> = times.iter().zip(ours).map(|(time, ours)| time / ours).collect();
    let greatest = ratios.iter().copied().fold(0.0, f64::max);
    format!("{:.2} ({:.2}-{:.2})", least(times) / least(ours), least(&ratios), greatest)
}

fn geometric_mean(ratios: impl Iterator<Item = f64>) -> f64 {
    let (n, sum) = ratios.fold((0, 0.0), |(n, sum), ratio| (n + 1, sum + ratio.ln()));
    (sum / f64::from(n)).exp()
}
