//! `--color`: colours of errors and help.
//!
//! The option holds for errors in the command line itself, so it is looked for before clap parses the rest.

use std::ffi::OsString;

use anstream::ColorChoice;
use clap::ValueEnum;

pub(super) const OPTION: &str = "--color";

/// When output has colours.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Color {
    /// Makes this the choice for all output of the process.
    pub(super) fn apply(self) {
        let choice = match self {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        };
        choice.write_global();
    }

    pub(super) fn of_clap(self) -> clap::ColorChoice {
        match self {
            Color::Auto => clap::ColorChoice::Auto,
            Color::Always => clap::ColorChoice::Always,
            Color::Never => clap::ColorChoice::Never,
        }
    }
}

/// Takes `--color WHEN` and `--color=WHEN` out of the words before `--`. What is no such option stays, for clap to refuse.
pub(super) fn take(words: &mut Vec<OsString>) -> Color {
    let parse = |word: &str| Color::from_str(word, false).ok();
    let mut color = Color::default();
    let mut i = 1;
    while let Some(word) = words.get(i).and_then(|word| word.to_str()).filter(|&word| word != "--")
    {
        let attached = word.strip_prefix(OPTION).and_then(|rest| rest.strip_prefix('='));
        let next = || words.get(i + 1).and_then(|word| word.to_str());
        let (found, n_words) = match attached {
            Some(when) => (parse(when), 1),
            None if word == OPTION => (next().and_then(parse), 2),
            None => (None, 0),
        };
        match found {
            Some(found) => {
                color = found;
                words.drain(i..i + n_words);
            }
            None => i += 1,
        }
    }
    color
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_is_taken_wherever_it_is_before_two_dashes() {
        for (line, rest, color) in [
            ("vmrun --color never p.bc", "vmrun p.bc", Color::Never),
            ("vmrun dump p.bc --color=always", "vmrun dump p.bc", Color::Always),
            ("vmrun --color red p.bc", "vmrun --color red p.bc", Color::Auto),
            ("vmrun p.bc -- --color never", "vmrun p.bc -- --color never", Color::Auto),
            ("vmrun p.bc --color", "vmrun p.bc --color", Color::Auto),
        ] {
            let mut words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(take(&mut words), color, "{line}");
            let rest: Vec<OsString> = rest.split(' ').map(OsString::from).collect();
            assert_eq!(words, rest, "{line}");
        }
    }
}
