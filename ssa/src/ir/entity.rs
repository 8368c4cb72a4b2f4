//! Dense ids of the IR's entities: `u32` newtypes that print as they are written in the text IR.

use std::fmt;

macro_rules! entity {
    ($(#[$doc:meta])* $name:ident $prefix:literal) => {
        $(#[$doc])*
        #[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        pub struct $name(pub u32);

        impl $name {
            /// The entity with this number.
            ///
            /// # Panics
            /// If the number does not fit 32 bits.
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

entity! {
    /// A basic block.
    Block "b"
}
entity! {
    /// A control-flow edge. The out-edges of a block are numbered one after the other, in the order of
    /// its terminator's targets; a target that occurs twice has two edges.
    Edge "e"
}
entity! {
    /// An SSA value.
    Value "v"
}
entity! {
    /// A slot: storage that reads and writes name directly and that promotion turns into values.
    Slot "s"
}
entity! {
    /// An instruction.
    Inst "i"
}
entity! {
    /// A location id: an entry of [`crate::ir::Function::locs`].
    Loc "l"
}
