//! The interpreter's stacks: the cells of all frames, and how each frame that waits goes on.
//!
//! The arguments of a call are the first locals of the callee in the place where the caller pushed
//! them, and the results replace them there, so nothing is copied.

use super::instr::Instr;
use super::target::CallTarget;
use crate::entities::InstanceId;
use crate::error::Error;
use crate::exit::Exit;

/// A guest frame that waits for one that it called, or the host's call below a guest frame.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub(crate) struct Frame {
    /// The instruction after the call.
    pub(crate) ret: *const Instr,
    /// The function; null for the host.
    pub(crate) func: *const CallTarget,
    /// The cell of the frame where that of the callee starts.
    pub(crate) args: u32,
    /// The instance.
    pub(crate) instance: u32,
}

/// A call of an interpreted function that is to be made in the place of native code that was left for it.
#[derive(Copy, Clone, Debug)]
pub(crate) struct TailCall {
    pub(crate) instance: InstanceId,
    pub(crate) func: u32,
    /// The cell of the stack where its arguments start.
    pub(crate) args: usize,
}

/// The work that native code has left to the caller that entered it.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Left {
    /// A call of a function that is interpreted.
    Call(TailCall),
    /// The frame of an exit, of a function of an instance.
    Exit(InstanceId, *const Exit),
}

/// The stacks of a store. All calls from the host share them: a call that is made by a host function
/// goes on above the cells of the calls below.
#[derive(Debug, Default)]
pub(crate) struct Stack {
    pub(crate) cells: Vec<u64>,
    pub(crate) frames: Vec<Frame>,
    /// The first cell that is not in use, whenever the interpreter is not running.
    pub(crate) top: usize,
}

/// The parts of the stacks that are in use.
#[derive(Debug)]
pub(crate) struct Mark {
    top: usize,
    n_frames: usize,
}

impl Stack {
    /// Returns the parts that are in use.
    pub(crate) fn mark(&self) -> Mark {
        Mark { top: self.top, n_frames: self.frames.len() }
    }

    /// Gives back what came to be in use since.
    pub(crate) fn reset(&mut self, mark: &Mark) {
        self.top = mark.top;
        self.frames.truncate(mark.n_frames);
    }

    /// Makes sure that the first `len` cells exist and that a frame more can be pushed.
    pub(crate) fn reserve(&mut self, len: usize) -> Result<(), Error> {
        let out_of_memory = |n: usize, bytes: usize| {
            move |_| Error::OutOfMemory { what: "the stack", bytes: (n * bytes) as u64 }
        };
        if len > self.cells.len() {
            let n = len.max(2 * self.cells.len()).max(1024);
            let more = n - self.cells.len();
            self.cells.try_reserve(more).map_err(out_of_memory(n, size_of::<u64>()))?;
            self.cells.resize(n, 0);
        }
        if self.frames.len() == self.frames.capacity() {
            let n = 2 * self.frames.len() + 16;
            let more = n - self.frames.len();
            self.frames.try_reserve(more).map_err(out_of_memory(n, size_of::<Frame>()))?;
        }
        Ok(())
    }
}
