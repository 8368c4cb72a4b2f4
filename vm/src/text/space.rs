//! Index spaces during parsing: numbers and names of entities.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::cursor::{Cursor, Parse, Ref};
use super::error::suggest;
use super::lexer::Token;
use crate::limits;
use crate::module::EntityKind;

/// An index space of the module.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum SpaceKind {
    Func,
    Table,
    Memory,
    Global,
    Elem,
    Data,
}

impl SpaceKind {
    pub(super) const ALL: [SpaceKind; 6] = [
        SpaceKind::Func,
        SpaceKind::Table,
        SpaceKind::Memory,
        SpaceKind::Global,
        SpaceKind::Elem,
        SpaceKind::Data,
    ];

    pub(super) const fn what(self) -> &'static str {
        match self {
            SpaceKind::Func => "function",
            SpaceKind::Table => "table",
            SpaceKind::Memory => "memory",
            SpaceKind::Global => "global",
            SpaceKind::Elem => "element segment",
            SpaceKind::Data => "data segment",
        }
    }

    pub(super) const fn plural(self) -> &'static str {
        match self {
            SpaceKind::Func => "functions",
            SpaceKind::Table => "tables",
            SpaceKind::Memory => "memories",
            SpaceKind::Global => "globals",
            SpaceKind::Elem => "element segments",
            SpaceKind::Data => "data segments",
        }
    }

    /// The word that defines an entity of the space.
    pub(super) const fn word(self) -> &'static str {
        match self {
            SpaceKind::Func => "func",
            SpaceKind::Table => "table",
            SpaceKind::Memory => "memory",
            SpaceKind::Global => "global",
            SpaceKind::Elem => "elem",
            SpaceKind::Data => "data",
        }
    }

    pub(super) const fn max(self) -> usize {
        match self {
            SpaceKind::Func => limits::FUNCS_MAX,
            SpaceKind::Table => limits::TABLES_MAX,
            SpaceKind::Memory => limits::MEMORIES_MAX,
            SpaceKind::Global => limits::GLOBALS_MAX,
            SpaceKind::Elem | SpaceKind::Data => limits::SEGMENTS_MAX,
        }
    }

    /// The index space of exports and imports of this kind.
    pub(super) const fn of(kind: EntityKind) -> SpaceKind {
        match kind {
            EntityKind::Func => SpaceKind::Func,
            EntityKind::Table => SpaceKind::Table,
            EntityKind::Memory => SpaceKind::Memory,
            EntityKind::Global => SpaceKind::Global,
        }
    }
}

/// The entities defined so far in an index space, or as locals or labels of a function.
#[derive(Default)]
pub(super) struct Space<'s> {
    pub(super) count: u32,
    ids: HashMap<Cow<'s, str>, u32>,
    /// The names by number, in the form of [`crate::module::Names`].
    pub(super) names: Vec<(u32, String)>,
    /// Number of those that are not imported.
    pub(super) n_defined: usize,
}

impl<'s> Space<'s> {
    /// Assigns the next number to an entity called `name` in the text.
    pub(super) fn define(&mut self, cursor: &Cursor<'s>, name: Ref, what: &str) -> Parse<u32> {
        let id = self.count;
        match name {
            Ref::Name(token) => self.name_next(cursor, token, what)?,
            Ref::Number(number) if number == id => {}
            Ref::Number(number) => {
                let message = format!("expected {what} {id}, found {number}");
                return Err(cursor.problem(cursor.last(), message));
            }
        }
        self.count += 1;
        Ok(id)
    }

    /// Names the next entity.
    pub(super) fn name_next(&mut self, cursor: &Cursor<'s>, token: Token, what: &str) -> Parse<()> {
        let name = cursor.name(token)?;
        match self.ids.entry(name) {
            Entry::Vacant(entry) => {
                self.names.push((self.count, entry.key().to_string()));
                entry.insert(self.count);
                Ok(())
            }
            Entry::Occupied(entry) => {
                let message = format!("the {what} `{}` is defined twice", entry.key());
                Err(cursor.problem(token, message))
            }
        }
    }

    /// Returns the number of an entity. A reference by number is not checked; the verifier does that.
    pub(super) fn resolve(&self, cursor: &Cursor<'s>, name: Ref, what: &str) -> Parse<u32> {
        let token = match name {
            Ref::Number(number) => return Ok(number),
            Ref::Name(token) => token,
        };
        let name = cursor.name(token)?;
        if let Some(&id) = self.ids.get(&name) {
            return Ok(id);
        }
        let help = suggest(&name, self.names.iter().map(|(_, known)| known.as_str()));
        Err(cursor.problem(token, format!("unknown {what} `{name}`")).with_help(help))
    }
}
