//! Sections and tags of the binary form, shared by [`crate::encode()`] and [`crate::decode()`].

use std::fmt;

use crate::module::{BranchHint, EntityKind, ImportCall};

/// The first bytes of a binary module.
pub const MAGIC: [u8; 4] = *b"\0svm";

/// The version of the binary form, a little-endian 32-bit integer after the magic.
pub const VERSION: u32 = 1;

macro_rules! tags {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $tag:literal $variant:ident $text:literal;)* }) => {
        $(#[$doc])*
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$variant_doc])* $variant = $tag,)*
        }

        impl $name {
            /// All of them, in the order of the binary form.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// Its id in the binary form.
            pub const fn tag(self) -> u8 {
                self as u8
            }

            /// Returns the one with this id.
            pub const fn from_tag(tag: u8) -> Option<$name> {
                match tag { $($tag => Some($name::$variant),)* _ => None }
            }

            /// Its name in error messages.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

tags! {
    /// A section of the binary form.
    Section {
        /// Function types.
        1 Types "types";
        /// Imports.
        2 Imports "imports";
        /// The types of the functions defined in the module.
        3 Funcs "functions";
        /// Tables defined in the module.
        4 Tables "tables";
        /// Memories defined in the module.
        5 Memories "memories";
        /// Globals defined in the module.
        6 Globals "globals";
        /// Exports.
        7 Exports "exports";
        /// The start function.
        8 Start "start";
        /// Element segments.
        9 Elems "elements";
        /// Data segments.
        10 Datas "data";
        /// Operand-stack shapes.
        11 Shapes "shapes";
        /// The frame stack.
        12 FrameStack "frame stack";
        /// Locals, labels and instructions of the functions.
        13 Code "code";
        /// Names for people.
        14 Names "names";
        /// Source lines.
        15 Lines "source lines";
        /// Source places, with files and columns.
        16 Places "source places";
        /// Which way conditional branches mostly go.
        17 Hints "branch hints";
    }
}

tags! {
    /// A part of the names section.
    NameSection {
        /// The module's own name.
        0 Module "module";
        /// Names of functions.
        1 Funcs "functions";
        /// Names of tables.
        2 Tables "tables";
        /// Names of memories.
        3 Memories "memories";
        /// Names of globals.
        4 Globals "globals";
        /// Names of element segments.
        5 Elems "element segments";
        /// Names of data segments.
        6 Datas "data segments";
        /// Names of locals, by function.
        7 Locals "locals";
        /// Names of labels, by function.
        8 Labels "labels";
        /// Messages of traps, by their number.
        9 Traps "trap messages";
        /// Names of source files, by the number that source places have for them.
        10 Files "source files";
    }
}

/// The byte that names an index space in imports and exports.
pub(crate) const fn entity_tag(kind: EntityKind) -> u8 {
    match kind {
        EntityKind::Func => 0,
        EntityKind::Table => 1,
        EntityKind::Memory => 2,
        EntityKind::Global => 3,
    }
}

/// The index space that a byte names.
pub(crate) const fn tagged_entity(tag: u8) -> Option<EntityKind> {
    match tag {
        0 => Some(EntityKind::Func),
        1 => Some(EntityKind::Table),
        2 => Some(EntityKind::Memory),
        3 => Some(EntityKind::Global),
        _ => None,
    }
}

/// The byte that names leaf functions in an import.
pub(crate) const LEAF_FUNC: u8 = 4;

/// The byte that names cold functions in an import.
pub(crate) const COLD_FUNC: u8 = 5;

/// The byte that names functions in an import.
pub(crate) const fn func_import_tag(call: ImportCall) -> u8 {
    match call {
        ImportCall::Ordinary => entity_tag(EntityKind::Func),
        ImportCall::Leaf => LEAF_FUNC,
        ImportCall::Cold => COLD_FUNC,
    }
}

/// The byte that stands for a hint.
pub(crate) const fn hint_tag(hint: BranchHint) -> u8 {
    match hint {
        BranchHint::Unlikely => 0,
        BranchHint::Likely => 1,
    }
}

/// The hint that a byte stands for.
pub(crate) const fn tagged_hint(tag: u8) -> Option<BranchHint> {
    match tag {
        0 => Some(BranchHint::Unlikely),
        1 => Some(BranchHint::Likely),
        _ => None,
    }
}

/// Segment modes.
pub(crate) const PASSIVE: u8 = 0;
pub(crate) const ACTIVE: u8 = 1;
pub(crate) const DECLARED: u8 = 2;

/// Kinds of items of an element segment.
pub(crate) const ITEM_FUNCS: u8 = 0;
pub(crate) const ITEM_EXPRS: u8 = 1;
