//! Places in the source that a program was made from.

use std::fmt;

/// A place in the source of a program.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SourcePlace {
    /// The file, by its number in [`Names::files`](crate::module::Names::files); 0 if it is not known.
    pub file: u32,
    /// The line, from 1; 0 means "no place", and then the others are 0, too.
    pub line: u32,
    /// The column, from 1; 0 if it is not known.
    pub column: u32,
}

impl SourcePlace {
    /// No place.
    pub const NONE: SourcePlace = SourcePlace { file: 0, line: 0, column: 0 };

    /// A line of which neither file nor column is known.
    pub const fn line(line: u32) -> SourcePlace {
        SourcePlace { file: 0, line, column: 0 }
    }

    /// Whether it is a line and nothing else, or no place.
    pub(crate) const fn is_plain(self) -> bool {
        self.file == 0 && self.column == 0
    }
}

impl fmt::Display for SourcePlace {
    /// Writes `12:5`, or `12` without a column.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.column {
            0 => write!(f, "{}", self.line),
            column => write!(f, "{}:{column}", self.line),
        }
    }
}
