//! Passes on SSA form, and the way back to bytecode.
//!
//! A pass changes a function in SSA form and leaves it in SSA form. It is a file here and a row of the
//! [pipeline](crate::pipeline), and edits the function by an [`Editor`](crate::ir::edit::Editor). [`mod@destruct`]
//! turns SSA form into slot form, of which [`mod@write`] makes bytecode.

pub mod bounds;
pub mod destruct;
pub mod devirtualise;
pub mod forward;
pub mod if_convert;
pub mod inline;
pub mod peephole;
pub mod pressure;
pub mod roots;
pub mod rotate;
pub mod simplify;
pub mod simplify_cfg;
pub mod version;
pub mod write;
