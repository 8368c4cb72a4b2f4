//! Exits of native code: places at which it leaves its frame, and the interpreter goes on.
//!
//! Native code writes the values of its frames to [`Shared::exit_cells`](crate::context::Shared::exit_cells) and the exit to
//! [`Shared::exit`](crate::context::Shared::exit). Code that goes on in a loop then returns, and the interpreter finds its
//! frame as it was. Code of a function makes a call of the interpreter in its own place, so its frame is gone when the
//! interpreter makes its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::part::Part;

/// One of the versions of native code of a function, or of loops, that are made one after the other, as exits are taken.
#[derive(Debug)]
pub struct CodeVersion {
    part: Part,
    number: u32,
    /// The exits that are left until [`Tiers::left_often`](crate::native::Tiers::left_often) is told.
    left: AtomicU32,
    /// Whether somebody makes the next one.
    is_claimed: AtomicBool,
}

impl CodeVersion {
    /// A version of the native code of a part; of several loops, that of the one for whose sake it is made. Once so many exits
    /// were taken, [`Tiers::left_often`](crate::native::Tiers::left_often) is told.
    pub fn new(part: Part, number: u32, n_exits: u32) -> CodeVersion {
        let (left, is_claimed) = (AtomicU32::new(n_exits.max(1)), AtomicBool::new(false));
        CodeVersion { part, number, left, is_claimed }
    }

    /// The part.
    pub fn part(&self) -> Part {
        self.part
    }

    /// The number of versions before this one.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Claims to make the next version. Returns whether nobody has done so before.
    pub fn claim(&self) -> bool {
        !self.is_claimed.swap(true, Ordering::Relaxed)
    }

    /// Gives up the claim.
    pub fn release(&self) {
        self.is_claimed.store(false, Ordering::Relaxed);
    }

    /// Counts an exit. Returns whether none is left. Threads that leave the code at once may count less than all.
    fn take(&self) -> bool {
        let left = self.left.load(Ordering::Relaxed).saturating_sub(1);
        self.left.store(left, Ordering::Relaxed);
        left == 0
    }

    /// Lets so many exits be left.
    pub(crate) fn leave(&self, n_exits: u32) {
        self.left.store(n_exits.max(1), Ordering::Relaxed);
    }
}

/// An exit.
#[derive(Debug)]
pub struct Exit {
    version: Arc<CodeVersion>,
    at: ExitFrame,
    /// The frames that wait, the innermost first.
    waiting: Box<[WaitingFrame]>,
    n_taken: AtomicU64,
}

/// The frame in which the interpreter goes on. Native code knows the values of some cells; nobody reads others before they are
/// written.
#[derive(Debug)]
pub struct ExitFrame {
    /// The function, in the index space of the module.
    pub func: u32,
    /// Where it goes on.
    pub place: ExitPlace,
    /// The cells of the frame that get the cells in [`Shared::exit_cells`](crate::context::Shared::exit_cells), in their order.
    pub cells: Box<[u32]>,
}

/// A place of the bytecode where the interpreter goes on after an exit.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ExitPlace {
    /// The start of a basic block, before its charges: its number in
    /// [`Body::blocks`](slotvm_bytecode::verified::Body::blocks).
    Block(u32),
    /// After an indirect call that is no tail call, at this code offset. Its results are in cells of the frame, and native code
    /// has written what it called to [`Shared::exit_callee`](crate::context::Shared::exit_callee).
    Call(u32),
}

/// A frame that waits for one whose function was inlined there. It goes on after the call.
#[derive(Debug)]
pub struct WaitingFrame {
    /// The function, in the index space of the module.
    pub func: u32,
    /// The code offset of the call, which is no tail call.
    pub call: u32,
    /// As in [`ExitFrame`]: the cells that follow those of the frames that this one waits for.
    pub cells: Box<[u32]>,
}

impl Exit {
    /// An exit of a version of code.
    ///
    /// # Panics
    /// Panics if there are more cells than [`EXIT_CELLS_MAX`].
    pub fn new(version: &Arc<CodeVersion>, at: ExitFrame, waiting: Box<[WaitingFrame]>) -> Exit {
        let n_cells = at.cells.len() + waiting.iter().map(|frame| frame.cells.len()).sum::<usize>();
        assert!(n_cells <= EXIT_CELLS_MAX, "there is room for the cells of an exit");
        Exit { version: version.clone(), at, waiting, n_taken: AtomicU64::new(0) }
    }

    /// The frame in which the interpreter goes on.
    pub fn at(&self) -> &ExitFrame {
        &self.at
    }

    /// The frames that wait for it, the innermost first.
    pub fn waiting(&self) -> &[WaitingFrame] {
        &self.waiting
    }

    /// The function whose native code is left, into which the others were inlined, or the one that it has tail called.
    pub fn outermost(&self) -> u32 {
        self.waiting.last().map_or(self.at.func, |frame| frame.func)
    }

    /// The number of times that native code was left there.
    pub fn n_taken(&self) -> u64 {
        self.n_taken.load(Ordering::Relaxed)
    }

    /// The version of the code that is left there.
    pub(crate) fn version(&self) -> &CodeVersion {
        &self.version
    }

    /// Counts that it was taken. Returns whether no exit of the code is left.
    pub(crate) fn take(&self) -> bool {
        self.n_taken.fetch_add(1, Ordering::Relaxed);
        self.version.take()
    }
}

/// Writes cells of a frame.
pub(crate) fn write(cells: &[u32], values: &[u64], frame: &mut [u64]) {
    for (&cell, &value) in cells.iter().zip(values) {
        frame[cell as usize] = value;
    }
}

/// The maximum number of cells that native code leaves for the interpreter at an exit.
pub const EXIT_CELLS_MAX: usize = 256;
