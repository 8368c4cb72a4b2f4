//! Switches of planted faults, and a pass that a test chooses.

use std::cell::Cell;
use std::sync::{PoisonError, RwLock};

use crate::ir::edit::Editor;

thread_local! {
    static ON: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Switches a fault on in all that this thread does, and the one before off.
pub fn switch_on(fault: Option<usize>) {
    ON.set(fault);
}

/// Whether a fault is on.
pub fn is_on(fault: usize) -> bool {
    ON.get() == Some(fault)
}

/// A pass.
pub type Pass = fn(&mut Editor<'_>);

static PASS: RwLock<Pass> = RwLock::new(|_| {});

/// Chooses the pass of the row `planted`, for the whole process.
pub fn choose_pass(pass: Pass) {
    *PASS.write().unwrap_or_else(PoisonError::into_inner) = pass;
}

/// Runs the chosen pass.
pub fn pass(editor: &mut Editor<'_>) {
    let pass = *PASS.read().unwrap_or_else(PoisonError::into_inner);
    pass(editor);
}
