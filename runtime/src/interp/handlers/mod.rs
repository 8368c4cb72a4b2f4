//! The handlers of all instructions, and the choice of one.

pub(super) mod calls;
pub(super) mod control;
pub(super) mod memory;
pub(super) mod numeric;
pub(super) mod pairs;
pub(super) mod table;
pub(super) mod vector;
