//! The parts of a function that its form leaves to the interpreter, as data. Whoever has the function compiled chooses them.

/// The parts of a function that its form leaves to the interpreter; by default there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FuncExits {
    /// The blocks of the bytecode in whose place it is left, in ascending order, as
    /// [`possible_exits`](super::possible_exits) are. Not the first one.
    pub blocks: Vec<u32>,
    /// The indirect calls that are compared with the functions that they are likely to call, in ascending order of their
    /// offsets, as [`possible_calls`](super::possible_calls) are.
    pub calls: Vec<LikelyCall>,
}

impl FuncExits {
    /// No parts.
    pub const NONE: &'static FuncExits = &FuncExits { blocks: Vec::new(), calls: Vec::new() };

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.calls.is_empty()
    }
}

/// An indirect call that has called few functions so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LikelyCall {
    /// The code offset of the call, which is no tail call.
    pub offset: u32,
    /// The functions, in the index space of the module. If there are none, the values that wait at the call are noted, and
    /// no more.
    pub callees: Vec<u32>,
    /// Whether the form is left after a call of another function, or else goes on.
    pub leaves: bool,
}
