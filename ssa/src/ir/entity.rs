//! Dense ids of the IR's entities: `u32` newtypes that print as they are written in the text IR.

use std::fmt;

pub use crate::graphs::ids::Slot;
use crate::graphs::ids::entity;

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
    /// An instruction.
    Inst "i"
}
entity! {
    /// A location id: an entry of [`crate::ir::Function::locs`].
    Loc "l"
}
