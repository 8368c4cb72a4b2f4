//! The report as tables.

use comfy_table::Table;
use slotvm_benches::contenders::cranelift::VARIABLES;
use slotvm_benches::contenders::llvm::MEM2REG;
use slotvm_benches::contenders::ours::PROMOTION;
use vmrun::table::table;

use super::goals::{self, GROWTH_MAX, growth};
use super::measure::{Figure, Row};

/// All tables. `contenders` are the names of all of them, in order.
pub(crate) fn render(rows: &[Row], contenders: &[String]) -> String {
    let per_function: Vec<&Row> = rows.iter().filter(|row| row.cell.is_none()).collect();
    let mut text = format!(
        "CPU time of promotion beside others, ns for each read or write; `!` marks what misses a goal\n\
         {}\n\nall contenders, ns for each read or write\n{}\n\nphis\n{}\n\n\
         growth of cost over growth of blocks + accesses + phis, from the size before; `!` marks more \
         than {GROWTH_MAX}\n{}\n",
        summary(rows),
        all(rows, contenders, |row, name| row.ns(name).map(digits)),
        phis(rows, contenders),
        growths(rows, contenders),
    );
    if !per_function.is_empty() {
        let mean = |row: &Row, name: &str| row.figure(name).and_then(|f| f.mean_ns).map(digits);
        let means = all(per_function.iter().copied(), contenders, mean);
        text += &format!("\ngeometric means over functions, ns for each read or write\n{means}\n");
    }
    let missed: Vec<String> = rows
        .iter()
        .flat_map(|row| {
            goals::missed(row).into_iter().map(|goal| format!("{}: {goal}\n", label(row)))
        })
        .collect();
    text += &format!("\ngoals missed: {}\n{}", missed.len(), missed.concat());
    text
}

/// Formats a row as one line, shown while the others are measured.
pub(crate) fn in_short(row: &Row) -> String {
    let [ours, variables, mem2reg] =
        [PROMOTION, VARIABLES, MEM2REG].map(|name| or_dash(row.ns(name).map(digits)));
    format!("{PROMOTION} {ours} ns, {VARIABLES} {variables}, {MEM2REG} {mem2reg}")
}

fn label(row: &Row) -> String {
    match &row.cell {
        Some(cell) => format!(
            "{}, {} blocks, {} slots, density {}",
            cell.family, cell.n_blocks_planned, cell.n_slots, cell.density
        ),
        None => row.name.clone(),
    }
}

fn digits(ns: f64) -> String {
    if ns < 10.0 { format!("{ns:.1}") } else { format!("{ns:.0}") }
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

fn summary(rows: &[Row]) -> Table {
    let headers = [
        "functions",
        "accesses",
        "phis",
        PROMOTION,
        VARIABLES,
        MEM2REG,
        "x cranelift",
        "x LLVM",
        "MiB",
    ];
    let mut table = table(1, headers);
    for row in rows {
        let ns = |name: &str| row.ns(name);
        let times = |name: &str| Some(format!("{:.1}", ns(name)? / ns(PROMOTION)?));
        let mark = if goals::missed(row).is_empty() { "" } else { "! " };
        let n_phis = row.figure(PROMOTION).map(|figure| figure.n_phis.to_string());
        table.add_row([
            label(row),
            row.n_accesses.to_string(),
            or_dash(n_phis),
            format!("{mark}{}", or_dash(ns(PROMOTION).map(digits))),
            or_dash(ns(VARIABLES).map(digits)),
            or_dash(ns(MEM2REG).map(digits)),
            or_dash(times(VARIABLES)),
            or_dash(times(MEM2REG)),
            or_dash(row.peak_mib.map(|mib| format!("{mib:.0}"))),
        ]);
    }
    table
}

fn all<'r>(
    rows: impl IntoIterator<Item = &'r Row>,
    contenders: &[String],
    cell: impl Fn(&Row, &str) -> Option<String>,
) -> Table {
    let mut table = table(1, [String::new()].into_iter().chain(contenders.iter().cloned()));
    for row in rows {
        let cells = contenders.iter().map(|name| or_dash(cell(row, name)));
        table.add_row([label(row)].into_iter().chain(cells));
    }
    table
}

/// Phis of all contenders; after those of LLVM, where it folded some, those without folding.
fn phis(rows: &[Row], contenders: &[String]) -> Table {
    all(rows, contenders, |row, name| {
        let Figure { n_phis, .. } = row.figure(name)?;
        match row.n_phis_of_llvm_unfolded {
            Some(unfolded) if name == MEM2REG => Some(format!("{n_phis} (unfolded {unfolded})")),
            _ => Some(n_phis.to_string()),
        }
    })
}

fn growths(rows: &[Row], contenders: &[String]) -> Table {
    let mut table = table(1, [String::new()].into_iter().chain(contenders.iter().cloned()));
    for pair in rows.windows(2) {
        let series =
            |row: &Row| row.cell.as_ref().map(|c| (c.family, c.n_slots, c.density.to_bits()));
        if series(&pair[0]).is_none() || series(&pair[0]) != series(&pair[1]) {
            continue;
        }
        let cells = contenders.iter().map(|name| {
            or_dash(growth(name, &pair[0], &pair[1]).map(|factor| {
                let mark = if factor > GROWTH_MAX { "! " } else { "" };
                format!("{mark}{factor:.2}")
            }))
        });
        table.add_row([label(&pair[1])].into_iter().chain(cells));
    }
    table
}
