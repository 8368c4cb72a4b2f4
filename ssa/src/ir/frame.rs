//! The state of the interpreter's frames at a place of the bytecode, as data: which value lies where.
//!
//! A state has places, and stands beside a list of as many values: the parameters of a function that is entered from a
//! frame ([`Entry::Frame`](super::Entry::Frame)), or the operands of an exit ([`Function::exits`](super::Function::exits)).
//! So passes see these values where they see all others, and none of them knows of states. The places of a frame are made
//! by [`crate::construction::build::frame`] alone.
//!
//! As text, a state is `f3 at 2: cell 0, cell 4, frame`, or `f3 after 7: cell 0, callee`, with that of the caller after ` < `
//! if the function was inlined, as `f1 after 18: cell 2`.

use std::fmt;

/// The state of a frame of the interpreter, and of those that wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameState {
    /// The function, in the index space of the module.
    pub func: u32,
    /// The basic block of the bytecode at whose start the frame is, by its number in
    /// [`Body::blocks`](slotvm_bytecode::verified::Body::blocks). If there are several, a value says which. A frame that waits
    /// has none.
    pub blocks: Vec<u32>,
    /// The code offset of the call after which the frame goes on, if it waits or an exit is after a call.
    pub call: Option<u32>,
    /// The places of the first values, one for each.
    pub places: Vec<FramePlace>,
    /// The state of the caller, if this is a function that was inlined. Its values follow.
    pub caller: Option<Box<FrameState>>,
}

/// The place of a value in the interpreter.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum FramePlace {
    /// A cell of the frame; the first of two if the value is a vector.
    Cell(u32),
    /// The address of the function's frame in the frame stack, which is the frame pointer.
    FrameSp,
    /// The number of the block, by its place among those of the state.
    Block,
    /// None in the frame: the value is the function that was called, at an exit after an indirect call.
    Callee,
}

impl FrameState {
    /// The places of all values: of this frame, then of those that wait for it.
    pub fn places(&self) -> impl Iterator<Item = FramePlace> + '_ {
        self.frames().flat_map(|state| &state.places).copied()
    }

    /// The states of this frame, and then of those that wait for it.
    pub fn frames(&self) -> impl Iterator<Item = &FrameState> + '_ {
        std::iter::successors(Some(self), |state| state.caller.as_deref())
    }
}

impl fmt::Display for FramePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FramePlace::Cell(cell) => write!(f, "cell {cell}"),
            FramePlace::FrameSp => f.write_str("frame"),
            FramePlace::Block => f.write_str("block"),
            FramePlace::Callee => f.write_str("callee"),
        }
    }
}

impl fmt::Display for FrameState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut next = Some(self);
        while let Some(state) = next {
            match state.call {
                Some(call) => write!(f, "f{} after {call}", state.func)?,
                None => {
                    write!(f, "f{} at ", state.func)?;
                    listed(f, &state.blocks)?;
                }
            }
            f.write_str(if state.places.is_empty() { ":" } else { ": " })?;
            listed(f, &state.places)?;
            next = state.caller.as_deref();
            if next.is_some() {
                f.write_str(" < ")?;
            }
        }
        Ok(())
    }
}

fn listed(f: &mut fmt::Formatter<'_>, items: &[impl fmt::Display]) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        write!(f, "{}{item}", if i > 0 { ", " } else { "" })?;
    }
    Ok(())
}
