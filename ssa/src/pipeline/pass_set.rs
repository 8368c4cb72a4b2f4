//! The passes that are switched on: a set of the optional rows of the table.
//!
//! As text, a set is a list that is applied from left to right to all passes: `none` clears it and `all` fills it,
//! `-NAME` removes a pass and `NAME` adds one. `none,simplify` is one pass alone, `-simplify` all but one.

use std::fmt;
use std::str::FromStr;

use super::{ROWS_MAX, Row, TABLE};

/// A set of optional passes; by default all of them.
///
/// ```
/// use slotvm_ssa::pipeline::PassSet;
///
/// let all_but_one: PassSet = "-simplify".parse()?;
/// assert!(!all_but_one.contains("simplify"));
/// assert_eq!("none,simplify".parse::<PassSet>()?.names().collect::<Vec<_>>(), ["simplify"]);
/// # Ok::<(), slotvm_ssa::pipeline::ParsePassSetError>(())
/// ```
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct PassSet {
    /// A bit for each place in the table, which is set for rows that always run, and beyond the table.
    bits: u32,
}

/// The places of optional rows.
const OPTIONAL: u32 = {
    assert!(TABLE.len() <= ROWS_MAX && ROWS_MAX <= u32::BITS as usize);
    let (mut bits, mut place) = (0, 0);
    while place < TABLE.len() {
        bits |= (TABLE[place].is_optional as u32) << place;
        place += 1;
    }
    bits
};

/// The rows that can be switched off, with their places in the table.
pub fn optional_rows() -> impl Iterator<Item = (usize, &'static Row)> {
    TABLE.iter().enumerate().filter(|(_, row)| row.is_optional)
}

impl PassSet {
    /// The set of all passes.
    pub const fn all() -> PassSet {
        PassSet { bits: u32::MAX }
    }

    /// The set without any optional pass.
    pub const fn none() -> PassSet {
        PassSet { bits: !OPTIONAL }
    }

    /// Whether the row at a place in the table runs: rows that are not optional always do.
    pub const fn runs(self, place: usize) -> bool {
        self.bits >> place & 1 != 0
    }

    /// Whether the set has the optional pass with a name.
    pub fn contains(self, name: &str) -> bool {
        self.names().any(|own| own == name)
    }

    /// The names of the passes in the set, in the order of the table.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        optional_rows().filter(move |&(place, _)| self.runs(place)).map(|(_, row)| row.name)
    }

    /// The set without the optional passes of a kind.
    pub fn without(self, is_of_kind: impl Fn(&Row) -> bool) -> PassSet {
        let of_kind = optional_rows().filter(|(_, row)| is_of_kind(row));
        PassSet { bits: of_kind.fold(self.bits, |bits, (place, _)| bits & !(1 << place)) }
    }

    /// Switches the optional pass with a name on or off.
    ///
    /// # Errors
    /// Fails if there is no optional pass with the name.
    pub fn switch(&mut self, name: &str, is_on: bool) -> Result<(), ParsePassSetError> {
        let found = optional_rows().find(|(_, row)| row.name == name);
        let (place, _) = found.ok_or_else(|| ParsePassSetError { name: name.to_owned() })?;
        self.bits = self.bits & !(1 << place) | u32::from(is_on) << place;
        Ok(())
    }
}

impl Default for PassSet {
    fn default() -> PassSet {
        PassSet::all()
    }
}

/// Writes a text that reads back as the same set: `all`, `none`, or the passes that are missing.
impl fmt::Display for PassSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == PassSet::all() {
            return f.pad("all");
        }
        if *self == PassSet::none() {
            return f.pad("none");
        }
        let missing = optional_rows().filter(|&(place, _)| !self.runs(place));
        let missing: Vec<String> = missing.map(|(_, row)| format!("-{}", row.name)).collect();
        f.pad(&missing.join(","))
    }
}

/// The error of an unknown pass, or of one that cannot be switched off.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown pass {name:?}; expected all, none, or NAME or -NAME of {}", known())]
pub struct ParsePassSetError {
    name: String,
}

/// The names of all optional passes, for messages.
fn known() -> String {
    optional_rows().map(|(_, row)| row.name).collect::<Vec<_>>().join(", ")
}

impl FromStr for PassSet {
    type Err = ParsePassSetError;

    fn from_str(text: &str) -> Result<PassSet, ParsePassSetError> {
        let mut set = PassSet::all();
        for item in text.split(',').map(str::trim) {
            match item {
                "all" => set = PassSet::all(),
                "none" => set = PassSet::none(),
                _ => match item.strip_prefix('-') {
                    Some(name) => set.switch(name, false)?,
                    None => set.switch(item, true)?,
                },
            }
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> PassSet {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// Another set for each of the optional rows, so that the tests hold for any table.
    fn first() -> &'static str {
        optional_rows().next().expect("the table has an optional pass").1.name
    }

    #[test]
    fn lists_are_applied_from_left_to_right() {
        let name = first();
        assert_eq!(parse("all"), PassSet::default());
        assert_eq!(parse("none"), PassSet::none());
        assert_eq!(parse("none,all"), PassSet::all());
        assert_eq!(parse(&format!("none, {name}")).names().collect::<Vec<_>>(), [name]);
        assert!(!parse(&format!("-{name}")).contains(name));
        assert_eq!(parse(&format!("-{name},{name}")), PassSet::all());
        assert_eq!(parse(&format!("{name},none")), PassSet::none());
        assert_eq!(PassSet::none().names().count(), 0);
        assert_eq!(PassSet::all().names().count(), optional_rows().count());
    }

    #[test]
    fn sets_read_back_as_they_are_written() {
        let mut sets = vec![PassSet::all(), PassSet::none()];
        for (_, row) in optional_rows() {
            sets.push(parse(&format!("-{}", row.name)));
            sets.push(parse(&format!("none,{}", row.name)));
        }
        for set in sets {
            assert_eq!(parse(&set.to_string()), set, "{set}");
        }
    }

    #[test]
    fn only_optional_passes_are_switched_off() {
        for (place, row) in TABLE.iter().enumerate() {
            assert!(PassSet::all().runs(place), "{}", row.name);
            assert_eq!(PassSet::none().runs(place), !row.is_optional, "{}", row.name);
        }
    }

    #[test]
    fn unknown_passes_are_errors_that_list_the_names() {
        for text in ["", "tokens", "-tokens", "none,tokens", "-ssa", "all,,none", "--simplify"] {
            let error = text.parse::<PassSet>().expect_err(text).to_string();
            assert!(error.starts_with("unknown pass \""), "{error}");
            assert!(optional_rows().all(|(_, row)| error.contains(row.name)), "{error}");
        }
        let error = "none,tokens".parse::<PassSet>().unwrap_err().to_string();
        assert!(error.contains("\"tokens\""), "{error}");
    }
}
