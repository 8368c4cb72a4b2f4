//! Graphs of blocks as SVG.
//!
//! `layout` has the places, after Sugiyama, Tagawa and Toda, "Methods for Visual Understanding of Hierarchical System
//! Structures" (1981); `svg` draws. The crate `layout-rs` 0.1.3 does the same, but it took more than a minute for a graph
//! of 200 blocks with back edges.

mod layout;
mod svg;

#[cfg(feature = "pages")]
pub(crate) use self::layout::{Layout, Point, layout};
pub use self::svg::svg;
