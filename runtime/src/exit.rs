//! Exits of native code: places at which it leaves its frame, and the interpreter goes on.
//!
//! Native code writes the values of the frame to [`Shared::exit_cells`](crate::context::Shared::exit_cells) and the exit to
//! [`Shared::exit`](crate::context::Shared::exit). Code that goes on in a loop then returns, and the interpreter finds its
//! frame as it was. Code of a function makes a call of the interpreter in its own place, so its frame is gone when the
//! interpreter makes its own.

use std::sync::atomic::{AtomicU32, Ordering};

/// An exit.
#[derive(Debug)]
pub struct Exit {
    func: u32,
    block: u32,
    /// The cells of the frame that get the cells in [`Shared::exit_cells`](crate::context::Shared::exit_cells), in their order.
    cells: Box<[u32]>,
    n_taken: AtomicU32,
}

impl Exit {
    /// An exit to the start of a basic block of a function, by its number in
    /// [`Body::blocks`](slotvm_bytecode::verified::Body::blocks), before the block's charges. Native code knows the values of
    /// some cells of the frame; nobody reads others before they are written.
    ///
    /// # Panics
    /// Panics if there are more cells than [`EXIT_CELLS_MAX`].
    pub fn new(func: u32, block: u32, cells: Box<[u32]>) -> Exit {
        assert!(cells.len() <= EXIT_CELLS_MAX, "there is room for the cells of an exit");
        Exit { func, block, cells, n_taken: AtomicU32::new(0) }
    }

    /// The function, in the index space of the module.
    pub fn func(&self) -> u32 {
        self.func
    }

    /// The number of the block.
    pub fn block(&self) -> u32 {
        self.block
    }

    /// The number of times that native code was left there, at least.
    pub fn n_taken(&self) -> u32 {
        self.n_taken.load(Ordering::Relaxed)
    }

    /// Counts that it was taken.
    pub(crate) fn take(&self) {
        let n_taken = self.n_taken();
        self.n_taken.store(n_taken.saturating_add(1), Ordering::Relaxed);
    }

    /// Writes the cells of a frame.
    pub(crate) fn write(&self, values: &[u64; EXIT_CELLS_MAX], frame: &mut [u64]) {
        for (&cell, &value) in self.cells.iter().zip(values) {
            frame[cell as usize] = value;
        }
    }
}

/// The maximum number of cells that native code leaves for the interpreter at an exit.
pub const EXIT_CELLS_MAX: usize = 256;
