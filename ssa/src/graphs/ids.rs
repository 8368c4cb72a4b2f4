//! Dense ids of what graph algorithms name besides blocks: slots and loops.
//!
//! Blocks are plain `u32` numbers, since [`ControlFlow`](crate::graphs::cfg::ControlFlow) lends lists of them from
//! the tables of any compiler, and since the same lists hold numbers of a dominator tree. What is not a block has a
//! type of its own, so that it cannot be taken for one.

use std::fmt;

/// Defines ids: `u32` newtypes that print with a prefix, as they are written in the text IR.
macro_rules! entity {
    ($(#[$doc:meta])* $name:ident $prefix:literal) => {
        $(#[$doc])*
        #[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        pub struct $name(pub u32);

        impl $name {
            /// The entity with this number.
            ///
            /// # Panics
            /// Panics if the number does not fit 32 bits.
            #[inline]
            pub fn new(index: usize) -> $name {
                $name(u32::try_from(index).expect("entities are numbered by 32 bits"))
            }

            /// The number, to index tables with.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}
#[cfg(feature = "ir")]
pub(crate) use entity;

entity! {
    /// A slot: storage that reads and writes name directly and that promotion turns into values.
    Slot "s"
}
entity! {
    /// A loop of a [`LoopForest`](crate::graphs::loops::LoopForest).
    Loop "loop"
}
