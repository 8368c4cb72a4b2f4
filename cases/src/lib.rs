//! File tests: a [`case`] is a text that starts from bytecode or from the IR, and says what becomes of it at each
//! stage and what calls of it return.
//!
//! [`runner`] finds and runs cases, [`stages`] shows a module at a stage, [`values`] reads and writes values.

pub mod case;
pub mod runner;
pub mod stages;
pub mod values;
