//! File tests. A [`case`] is a text that starts from bytecode or from the IR, with the expected output of
//! stages and the expected results of calls.
//!
//! [`runner`] finds and runs cases, [`stages`] shows a module at a stage, [`values`] reads and writes values.

pub mod case;
pub mod runner;
pub mod stages;
pub mod values;
