//! Names of one index space for the disassembler.

use std::collections::HashMap;

use super::literal::{write_name, write_quoted_name};
use super::words;

/// A name longer than this is printed once, in a `name` line, instead of at every use.
const SHORT_NAME_MAX: usize = 256;

/// Names by number.
///
/// The assembler expects every name once, at the definition of its entity. A module guarantees neither, so
/// names that cannot be printed there are kept separately. They are printed as `name` lines, and their
/// entities are referred to by number.
pub(super) struct NameTable<'m> {
    /// Names printed at their entities, in ascending order of number.
    names: Vec<(u32, &'m str)>,
    /// The other names, in ascending order of number.
    pub(super) extra: Vec<(u32, &'m str)>,
}

impl<'m> NameTable<'m> {
    /// Separates the names that can be printed at their entities from the others. `is_defined` returns
    /// whether an entity has a definition that can show a name.
    pub(super) fn new(all: &'m [(u32, String)], is_defined: impl Fn(u32) -> bool) -> NameTable<'m> {
        let mut uses: HashMap<&str, u32> = HashMap::with_capacity(all.len());
        for (_, name) in all {
            *uses.entry(name).or_default() += 1;
        }
        let (names, extra) =
            all.iter().map(|(index, name)| (*index, name.as_str())).partition(|&(index, name)| {
                is_defined(index) && uses[name] == 1 && name.len() <= SHORT_NAME_MAX
            });
        NameTable { names, extra }
    }

    /// Returns the name printed at an entity, if any.
    pub(super) fn get(&self, index: u32) -> Option<&'m str> {
        // Usually all entities have names.
        if let Some(&(i, name)) = self.names.get(index as usize)
            && i == index
        {
            return Some(name);
        }
        let i = self.names.binary_search_by_key(&index, |&(i, _)| i).ok()?;
        Some(self.names[i].1)
    }

    /// Returns the named entities from `start` up to `end` (exclusive), in ascending order.
    pub(super) fn range(&self, start: u64, end: u64) -> &[(u32, &'m str)] {
        let from = self.names.partition_point(|&(i, _)| u64::from(i) < start);
        let to = self.names.partition_point(|&(i, _)| u64::from(i) < end);
        &self.names[from..to.max(from)]
    }

    /// Appends a reference to an entity.
    pub(super) fn write(&self, out: &mut String, index: u32) {
        match self.get(index) {
            Some(name) if words::is_reserved(name) => write_quoted_name(out, name),
            Some(name) => write_name(out, name),
            None => write_number(out, index),
        }
    }
}

/// Appends a number.
pub(super) fn write_number(out: &mut String, number: u32) {
    use std::fmt::Write as _;
    // Writing to a string does not fail.
    let _ = write!(out, "{number}");
}
