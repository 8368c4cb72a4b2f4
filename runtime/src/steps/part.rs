//! What native code can be made of by itself.

/// A part of a module that native code can be made of by itself.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// A function.
    Func(u32),
    /// The rest of a function from the start of a basic block on, by the block's number in
    /// [`Body::blocks`](slotvm_bytecode::verified::Body::blocks). The function has been entered before: it has taken what
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
