//! Words and escaping of module text in messages for people.
//!
//! Names and strings of a module may contain any characters. On a terminal, raw control characters could move
//! the cursor or forge lines, and characters that change the text direction could disguise the text.
//! [`Printable`] and [`Lines`] decide for all messages which characters are shown unescaped.

use std::fmt::{self, Write as _};

/// A name within a line. Unprintable characters, line breaks included, are written as escapes (`\u{1b}`).
#[derive(Copy, Clone, Debug)]
pub struct Printable<'a>(pub &'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(self.0, f, is_printable)
    }
}

/// A message that may have several lines: like [`Printable`], but line breaks and tabs stay.
#[derive(Copy, Clone, Debug)]
pub struct Lines<'a>(pub &'a str);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(self.0, f, |c| matches!(c, '\n' | '\t') || is_printable(c))
    }
}

/// A number and what it counts, in the singular if that is one thing.
pub fn counted(n: u64, one: &str, more: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { more })
}

fn write(text: &str, f: &mut fmt::Formatter<'_>, is_shown: impl Fn(char) -> bool) -> fmt::Result {
    text.chars().try_for_each(|c| match is_shown(c) {
        true => f.write_char(c),
        false => write!(f, "{}", c.escape_unicode()),
    })
}

/// Whether a character is visible and does not control a terminal. Combining marks are shown, since Unicode
/// names need them.
fn is_printable(c: char) -> bool {
    match c {
        ' '..='~' => true,
        _ if c.is_ascii() => false,
        _ => {
            // The standard library treats a mark as printable only after another character.
            let mut text = [b'a'; 5];
            let n = c.encode_utf8(&mut text[1..]).len();
            let text = str::from_utf8(&text[..1 + n]).expect("both characters are whole");
            text.escape_debug().nth(1) == Some(c)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_controls_a_terminal_is_escaped_and_what_prints_is_not() {
        for c in (0..=0x1f).chain(0x7f..=0x9f).filter_map(char::from_u32) {
            let escaped = c.escape_unicode().to_string();
            assert_eq!(Printable(&c.to_string()).to_string(), escaped);
            let in_lines = Lines(&c.to_string()).to_string();
            assert_eq!(in_lines == escaped, !matches!(c, '\n' | '\t'), "{escaped}");
        }
        // Directions of text, invisible characters, separators of lines, tags, the byte order mark.
        let format =
            "\u{202a}\u{202e}\u{2066}\u{2069}\u{200b}\u{200f}\u{2028}\u{61c}\u{e0041}\u{feff}";
        for c in format.chars() {
            let escaped = c.escape_unicode().to_string();
            assert_eq!(Printable(&c.to_string()).to_string(), escaped);
            assert_eq!(Lines(&c.to_string()).to_string(), escaped);
        }
        let shown = r#"a "b" 'c' \ é e\u{301} ß 日本語 🦀 Ωμέγα"#;
        assert_eq!(Printable(shown).to_string(), shown);
        assert_eq!(Printable("e\u{301}").to_string(), "e\u{301}");
        assert_eq!(Printable("\u{1b}[2Jx").to_string(), r"\u{1b}[2Jx");
    }
}
