//! The report as a page: one file, without scripts and without anything to be fetched, in light and dark.
//!
//! Each drawing is followed by a table of the same figures. Names of programs and functions are the only text that is not
//! ours, and `escape` takes them.

mod bars;
mod tables;

use slotvm_bytecode::printable::Printable;

use super::statistics::CONFIDENCE;
use super::{Report, table};

/// The whole page.
pub fn render(report: &Report) -> String {
    let mut sections = vec![
        section(
            "times",
            "Run time",
            "The time in each mode divided by that in mode <code>ssa</code>: bars beyond the line at 1 are slower than \
             <code>ssa</code>. The thin lines are intervals. Paid after: the number of runs after which <code>ssa</code> \
             has taken less time than <code>memory</code>, compilation included.",
            &(bars::ratios(report) + &tables::times(report)),
        ),
        section(
            "losses",
            "Where promotion loses",
            "Rows in which <code>ssa</code> is more than 3% slower than another mode, and the reason that the figures \
             show.",
            &tables::losses(report),
        ),
        section(
            "accesses",
            "Slot accesses",
            "Loads from slots in native frames and stores to them, which one run executes. In mode \
             <code>memory-forwarded</code> the optimiser may have removed some of them.",
            &tables::accesses(report),
        ),
        section(
            "sizes",
            "Native code",
            "Bytes of all functions of a program. Spills are what frames hold besides slots: spilled and saved \
             registers. Phis are those in mode <code>ssa</code>.",
            &tables::sizes(report),
        ),
        section(
            "compile",
            "Compile time by stage",
            "Microseconds, least of all rounds. The bars are sums over all programs, the table has mode \
             <code>ssa</code>.",
            &(bars::stages(report) + &tables::stages(report)),
        ),
    ];
    if let Some(diff) = &report.diff {
        let text = format!("<pre>{}</pre>", escape_lines(&diff.render()));
        sections.insert(0, section("changes", "Changes", "", &text));
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>Memory against registers</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n\
         <h1>Memory against registers</h1>\n{head}{sections}</main>\n</body>\n</html>\n",
        style = include_str!("html/style.css"),
        head = head(report),
        sections = sections.concat(),
    )
}

fn section(id: &str, title: &str, text: &str, body: &str) -> String {
    let text = if text.is_empty() { String::new() } else { format!("<p>{text}</p>\n") };
    format!("<section id=\"{id}\">\n<h2>{title}</h2>\n{text}{body}</section>\n")
}

/// Result, machine, settings and modes.
fn head(report: &Report) -> String {
    let mut head = String::new();
    if report.partial {
        head += "<p class=\"warning\">Interrupted: programs or rounds are missing.</p>\n";
    }
    if let Some(memory) = report.mean_ratios.first() {
        head += &format!(
            "<p class=\"result\">Slots in memory take <strong>{:.2} times</strong> as long as SSA values (geometric \
             mean of {} programs).</p>\n",
            memory.ratio.value,
            report.programs.len()
        );
    }
    head += &format!(
        "<p>{}. Intervals: {:.0}%, Student's t of the logarithms of paired rounds.</p>\n<dl>\n",
        escape(table::summary(report).lines().next().unwrap_or_default()),
        CONFIDENCE * 100.0
    );
    for mode in &report.modes {
        head += &format!("<dt><code>{}</code></dt><dd>{}</dd>\n", mode.name, escape(mode.meaning));
    }
    head + "</dl>\n"
}

/// Text of a program as HTML text, or as the value of an attribute: without tags, and without control characters.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for char in Printable(text).to_string().chars() {
        match char {
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '&' => escaped += "&amp;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            char => escaped.push(char),
        }
    }
    escaped
}

fn escape_lines(text: &str) -> String {
    text.lines().map(|line| escape(line) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn text_is_no_markup() {
        assert_eq!(
            escape("<b a='1' c=\"2\">&\u{1b}[1m"),
            "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;\\u{1b}[1m"
        );
    }
}
