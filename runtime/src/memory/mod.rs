//! Linear memories, tables, and what they start as; whom the embedder lets decide how far they grow.

pub(crate) mod image;
pub(crate) mod limiter;
pub(crate) mod linear;
pub(crate) mod table;
