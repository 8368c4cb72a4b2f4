//! What native code can be made of by itself.

/// A part of a module that native code can be made of by itself.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// A function.
    Func(u32),
    /// The rest of a function from the block on where one of its loops begins, by the loop's number in
    /// [`Body::loops`](slotvm_bytecode::verified::Body::loops). The function has been entered before: it has taken what
    /// it takes from the call stack and from the frame stack.
    Loop(u32, u32),
}

impl Part {
    /// The function, in the index space of the module.
    pub fn func(self) -> u32 {
        match self {
            Part::Func(func) | Part::Loop(func, _) => func,
        }
    }
}
