//! Switches of planted faults, and a pass of each form that a test chooses.
//!
//! A thread switches a fault on for itself, and the variable `SLOTVM_FAULT` for a process.

use std::cell::Cell;
use std::sync::{LazyLock, PoisonError, RwLock};

use crate::ir::Function;
use crate::ir::edit::Editor;
use crate::passes::simplify;
use crate::pipeline::{User, row};

thread_local! {
    static ON: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Switches a fault on in all that this thread does, and the one before off.
pub fn switch_on(fault: Option<usize>) {
    ON.set(fault);
}

/// The fault that is on in the whole process.
static OF_PROCESS: LazyLock<Option<usize>> =
    LazyLock::new(|| std::env::var("SLOTVM_FAULT").ok()?.parse().ok());

/// Whether a fault is on.
pub fn is_on(fault: usize) -> bool {
    ON.get() == Some(fault) || *OF_PROCESS == Some(fault)
}

/// A pass.
pub type Pass = fn(&mut Editor<'_>);

static PASS: RwLock<Pass> = RwLock::new(|editor| {
    // With a fault in `simplify`, the pass is `simplify`, so that native code has it, too.
    let is_native = row("simplify").is_some_and(|row| row.is_used_by(User::Jit));
    if OF_PROCESS.is_some() && !is_native {
        simplify::run(editor);
    }
});

/// Chooses the pass of the row `planted`, for the whole process.
pub fn choose_pass(pass: Pass) {
    *PASS.write().unwrap_or_else(PoisonError::into_inner) = pass;
}

/// Runs the chosen pass.
pub fn pass(editor: &mut Editor<'_>) {
    let pass = *PASS.read().unwrap_or_else(PoisonError::into_inner);
    pass(editor);
}

/// A pass in slot form.
pub type SlotPass = fn(&mut Function);

static SLOT_PASS: RwLock<SlotPass> = RwLock::new(|_| {});

/// Chooses the pass of the row `planted_slots`, for the whole process.
pub fn choose_slot_pass(pass: SlotPass) {
    *SLOT_PASS.write().unwrap_or_else(PoisonError::into_inner) = pass;
}

/// Runs the chosen pass in slot form.
pub fn slot_pass(f: &mut Function) {
    let pass = *SLOT_PASS.read().unwrap_or_else(PoisonError::into_inner);
    pass(f);
}
