//! The report as Markdown.

use super::{Report, table};

/// The whole report, with a heading for each table.
pub fn render(report: &Report) -> String {
    let mut report = report.clone();
    for program in &mut report.programs {
        program.name = escape(&program.name);
        for mode in &mut program.modes {
            mode.with_less_work.iter_mut().for_each(|name| *name = escape(name));
        }
    }
    let mut text = "# Memory against registers\n\n".to_owned();
    text += &table::summary(&report);
    for mode in &report.modes {
        text += &format!("* `{}`: {}\n", mode.name, mode.meaning);
    }
    for section in table::sections(&report) {
        text += &format!("\n## {}\n\n{}\n\n{}\n", section.title, section.text, section.body);
    }
    if let Some(diff) = &report.diff {
        text += &format!("\n## Changes\n\n```text\n{}```\n", diff.render().replace('`', "'"));
    }
    text
}

/// A name without characters that Markdown gives a meaning.
fn escape(name: &str) -> String {
    let mut escaped = String::new();
    for char in name.chars() {
        match char {
            '<' => escaped += "&lt;",
            '&' => escaped += "&amp;",
            '\\' | '`' | '*' | '[' | ']' | '|' | '~' | '$' => escaped.extend(['\\', char]),
            char if char.is_control() => escaped.extend(char.escape_default()),
            char => escaped.push(char),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn names_have_no_meaning_in_markdown() {
        assert_eq!(escape("a|b <img> `x`\n"), r"a\|b &lt;img> \`x\`\n");
        assert_eq!(escape("fib_rec.O2"), "fib_rec.O2");
    }
}
