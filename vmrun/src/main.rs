//! The command line of slotvm.
fn main() {}
