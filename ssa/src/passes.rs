//! Passes: what changes a function in SSA form and leaves it in SSA form, one file each.
//!
//! Each is a row of the [pipeline](crate::pipeline) and edits the function by an [`Editor`](crate::edit::Editor).

pub mod simplify;
