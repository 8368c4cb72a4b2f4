//! The rules of the binary form, and the error of a module that breaks one.

use std::fmt;

use crate::printable::Printable;
use crate::section::Section;

macro_rules! rules {
    ($($variant:ident $name:literal $doc:literal;)*) => {
        /// A rule of the binary form.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
        pub enum DecodeRule {
            $(#[doc = concat!("`", $name, "`: ", $doc)] $variant,)*
        }

        impl DecodeRule {
            /// All rules.
            pub const ALL: &'static [DecodeRule] = &[$(DecodeRule::$variant),*];

            /// The name in error messages and in `docs/bytecode.md`.
            pub const fn name(self) -> &'static str {
                match self { $(DecodeRule::$variant => $name,)* }
            }

            /// The requirement, as a sentence.
            pub const fn doc(self) -> &'static str {
                match self { $(DecodeRule::$variant => $doc,)* }
            }
        }
    };
}

rules! {
    Magic "magic" "A module starts with the bytes 00 73 76 6d.";
    Version "version" "The version is known to this implementation.";
    End "end" "No item is truncated.";
    Range "range" "An integer fits its type.";
    Shortest "shortest" "An integer is encoded in its shortest form.";
    Limit "limit" "No count or size exceeds its limit.";
    Count "count" "A list has no more entries than fit in the bytes left.";
    SectionId "section-id" "A section, or part of the names, has a known id.";
    SectionOrder "section-order" "Sections, and parts of the names, are strictly ascending in their id.";
    SectionEmpty "section-empty" "Empty sections, parts of the names, and lists of names, lines and hints are left out.";
    Length "length" "Contents have exactly the length stated before them.";
    TypeCode "type-code" "A type has a known code.";
    Tag "tag" "A flag, kind or mode has a defined value.";
    Utf8 "utf8" "A string is UTF-8.";
    Ascending "ascending" "Code offsets and indices in a sorted list stay below 2^32.";
    LocalRuns "local-runs" "A run of locals is not empty, and neighbouring runs have different types.";
    LineRuns "line-runs" "Neighbouring entries of a line table have different lines, files or columns.";
    LineSection "line-section" "A module has one section of source places or lines: that of places if one of them has a file or a column.";
    LineFunc "line-func" "Source lines belong to a function that the module defines.";
    HintFunc "hint-func" "Branch hints belong to a function that the module defines.";
    CodeCount "code-count" "The code section has one entry for each function of the functions section.";
}

impl fmt::Display for DecodeRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Error for bytes that are not a binary module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    pub(super) offset: usize,
    pub(super) section: Option<Section>,
    pub(super) rule: DecodeRule,
    pub(super) detail: String,
}

impl DecodeError {
    /// The byte offset of the violation.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The section of the violation, if it is in one.
    pub fn section(&self) -> Option<Section> {
        self.section
    }

    /// The violated rule.
    pub fn rule(&self) -> DecodeRule {
        self.rule
    }

    /// Description of the violation.
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {:#x}", self.offset)?;
        if let Some(section) = self.section {
            write!(f, ", {section} section")?;
        }
        write!(f, ": {} (rule {}: {})", Printable(&self.detail), self.rule, self.rule.doc())
    }
}

impl std::error::Error for DecodeError {}
