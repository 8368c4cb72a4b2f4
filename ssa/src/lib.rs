//! Functions as graphs: SSA construction, the IR, its passes and the graph algorithms behind them.
//!
//! New to SSA form? The [tutorial](tools::tutorial) carries one function through all stages.
//!
//! In the order in which data flows:
//!
//! * [`construction`] makes the slot form of a function of verified bytecode, a graph of blocks in which locals are
//!   slots, as are operands that survive their block. It turns slot form into SSA form: slots become values, and phis
//!   (block parameters) stand where different writes meet.
//! * [`ir`] is the data structure of both forms, with ids, operations, an editing interface, text, a
//!   [verifier](mod@ir::verify) and an [evaluator](ir::eval).
//! * [`passes`] improve SSA form and lead back to bytecode.
//! * [`pipeline`] is the table of all stages and passes. [`mod@optimize`] runs it from bytecode to bytecode.
//! * [`tools`] have the tutorial, and LLVM IR for comparison with LLVM's tools.
//!
//! The algorithms of [`graphs`] work on any [`graphs::cfg::ControlFlow`]; the crate's `examples` run them on graphs of
//! others. [`construct`](mod@construction::construct) does for any representation what promotion does for the IR. What
//! knows the IR is behind the feature `ir`, which is on by default.

#![forbid(unsafe_code)]

pub mod construction;
pub mod graphs;
#[cfg(feature = "ir")]
pub mod ir;
#[cfg(feature = "ir")]
pub mod optimize;
#[cfg(feature = "ir")]
pub mod passes;
#[cfg(feature = "ir")]
pub mod pipeline;
pub mod tools;
