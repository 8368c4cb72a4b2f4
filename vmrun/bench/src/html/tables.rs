//! The tables of the page.

use slotvm::SlotMode;

use super::escape;
use crate::{ModeReport, ProgramReport, Report, other_modes, stage_names, table};

/// A table of a column of names and columns of figures. The cells are HTML.
fn html_table(
    caption: &str,
    headers: &[String],
    rows: impl Iterator<Item = Vec<String>>,
) -> String {
    let mut html = format!(
        "<div class=\"table\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\">\n<table>\n\
         <caption>{caption}</caption>\n<thead><tr>"
    );
    headers.iter().for_each(|header| html += &format!("<th scope=\"col\">{header}</th>"));
    html += "</tr></thead>\n<tbody>\n";
    for row in rows {
        let [name, figures @ ..] = &row[..] else { continue };
        html += &format!("<tr><th scope=\"row\">{name}</th>");
        figures.iter().for_each(|figure| html += &format!("<td>{figure}</td>"));
        html += "</tr>\n";
    }
    html + "</tbody>\n</table>\n</div>\n"
}

pub(super) fn times(report: &Report) -> String {
    let mut headers = vec!["program".to_owned(), "size".to_owned(), "ssa ms".to_owned()];
    headers.extend(other_modes().map(|mode| mode.name().to_owned()));
    headers.push("paid after".to_owned());
    let row = |program: &ProgramReport| {
        let mut row = vec![
            escape(&program.name),
            program.size.map_or(String::new(), |size| size.to_string()),
            format!("{:.2}", program.mode(SlotMode::Ssa).run_ns as f64 / 1e6),
        ];
        row.extend(other_modes().map(|mode| {
            let ratio = table::ratio(program.ratio(mode));
            match program.faster_than_ssa.contains(&mode.name()) {
                true => format!("<strong class=\"loss\">{ratio}</strong>"),
                false => ratio,
            }
        }));
        row.push(table::paid_after(program));
        row
    };
    let mut mean = vec!["geometric mean".to_owned(), String::new(), String::new()];
    mean.extend(report.mean_ratios.iter().map(|mean| table::ratio(mean.ratio)));
    mean.push(String::new());
    let caption = "Run time: ratios to ssa, ± half of the interval in percent";
    html_table(caption, &headers, report.programs.iter().map(row).chain([mean]))
}

pub(super) fn losses(report: &Report) -> String {
    let losing: Vec<_> = report.programs.iter().filter(|p| !p.losses.is_empty()).collect();
    if losing.is_empty() {
        return "<p>There are none.</p>\n".to_owned();
    }
    let mut html = "<ul>\n".to_owned();
    for program in losing {
        for loss in &program.losses {
            let mode = program.modes.iter().find(|mode| mode.mode == loss.mode);
            let times = mode.map_or(1.0, |mode| 1.0 / mode.ratio.value);
            html += &format!(
                "<li><strong>{}</strong>: <code>ssa</code> takes {times:.2}x the time of <code>{}</code>: {}.</li>\n",
                escape(&program.name),
                loss.mode,
                escape(&loss.reason)
            );
        }
    }
    html + "</ul>\n"
}

/// Rows of whole numbers, and their sums.
fn summed(
    report: &Report,
    caption: &str,
    headers: &[String],
    numbers: impl Fn(&ProgramReport) -> Vec<u64>,
) -> String {
    let mut sums = vec![0; headers.len() - 1];
    let mut rows = Vec::new();
    for program in &report.programs {
        let numbers = numbers(program);
        sums.iter_mut().zip(&numbers).for_each(|(sum, number)| *sum += number);
        rows.push((escape(&program.name), numbers));
    }
    rows.push(("sum".to_owned(), sums));
    let row = |(name, numbers): (String, Vec<u64>)| {
        [name].into_iter().chain(numbers.into_iter().map(grouped)).collect()
    };
    html_table(caption, headers, rows.into_iter().map(row))
}

/// A number with its thousands set apart, by spaces that do not break.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped += "\u{202f}";
        }
        grouped.push(digit);
    }
    grouped
}

pub(super) fn accesses(report: &Report) -> String {
    let mut headers = vec!["program".to_owned()];
    for what in ["reads", "writes"] {
        headers.extend(table::IN_MEMORY.map(|mode| format!("{what}, {mode}")));
    }
    summed(report, "Executed accesses of slots", &headers, ProgramReport::slot_accesses)
}

pub(super) fn sizes(report: &Report) -> String {
    const SIZED: [SlotMode; 3] = [SlotMode::Memory, SlotMode::MemoryOpt, SlotMode::Ssa];
    let mut headers = vec!["program".to_owned()];
    for what in ["code", "frames", "spills"] {
        headers.extend(SIZED.map(|mode| format!("{what}, {mode}")));
    }
    headers.push("phis".to_owned());
    summed(report, "Bytes of native code and frames", &headers, |program| {
        let of = |of: fn(&ModeReport) -> u64| SIZED.map(|mode| of(program.mode(mode)));
        let (code, frames) = (of(|m| m.code_bytes), of(|m| m.frame_bytes));
        let spills = of(|m| m.spill_bytes);
        [&code[..], &frames, &spills, &[program.mode(SlotMode::Ssa).phis]].concat()
    })
}

pub(super) fn stages(report: &Report) -> String {
    let mut headers = vec!["program".to_owned(), "ops".to_owned()];
    headers.extend(stage_names().into_iter().map(str::to_owned));
    headers.extend(SlotMode::ALL.map(|mode| format!("all, {mode}")));
    summed(report, "Microseconds of compilation", &headers, |program| {
        let ssa = program.mode(SlotMode::Ssa).stages_ns.iter().copied();
        let all = SlotMode::ALL.map(|mode| program.mode(mode).compile_ns());
        [program.ops].into_iter().chain(ssa.chain(all).map(|ns| ns / 1000)).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(123_456), "123\u{202f}456");
        assert_eq!(grouped(1_234_567), "1\u{202f}234\u{202f}567");
    }
}
