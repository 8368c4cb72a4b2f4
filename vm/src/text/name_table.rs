//! The names of one index space as the disassembler can use them.

use std::collections::HashMap;

use super::literal::{write_name, write_quoted_name};
use super::words;

/// A name longer than this is printed once, in a `name` line, and not at every use.
const SHORT_NAME_MAX: usize = 256;

/// Names by number.
///
/// The assembler wants every name at the definition of its entity, and once. A module promises neither,
/// so names that cannot stand there are kept apart; they are printed as `name` lines, and their
/// entities go by number.
pub(super) struct NameTable<'m> {
    /// Names that stand at their entities, in ascending order.
    names: Vec<(u32, &'m str)>,
    /// The others, in ascending order.
    pub(super) extra: Vec<(u32, &'m str)>,
}

impl<'m> NameTable<'m> {
    /// Sorts out which names can stand at their entities; `is_defined` says which entities have a
    /// definition that can show a name.
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

    /// The name that stands at an entity.
    pub(super) fn get(&self, index: u32) -> Option<&'m str> {
        // Mostly all entities have names.
        if let Some(&(i, name)) = self.names.get(index as usize)
            && i == index
        {
            return Some(name);
        }
        let i = self.names.binary_search_by_key(&index, |&(i, _)| i).ok()?;
        Some(self.names[i].1)
    }

    /// The named entities from `start` to before `end`, in ascending order.
    pub(super) fn range(&self, start: u64, end: u64) -> &[(u32, &'m str)] {
        let from = self.names.partition_point(|&(i, _)| u64::from(i) < start);
        let to = self.names.partition_point(|&(i, _)| u64::from(i) < end);
        &self.names[from..to.max(from)]
    }

    /// Appends how the text refers to an entity.
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
