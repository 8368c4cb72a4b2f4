//! Contenders of the bench `ssa`: all constructions of SSA form of ours, and those of others.
//!
//! Each gets the same functions: the same blocks in the same order, the same reads and writes of slots,
//! a constant of its own for each value written, a use for each value read.

pub mod cranelift;
pub mod llvm;
mod order;
pub mod ours;

use std::time::Duration;

use slotvm_ssa::ir::Function;

use crate::slot_graph::SlotGraph;

/// A function, in the forms that contenders take it in.
#[derive(Debug)]
pub struct Input {
    /// The function as a graph, numbered in dominator-tree preorder.
    pub graph: SlotGraph,
    /// The function in slot form.
    pub slot_form: Function,
}

impl Input {
    /// The forms of a graph.
    pub fn new(graph: &SlotGraph) -> Input {
        let graph = graph.numbered();
        let slot_form = ours::slot_form(&graph);
        Input { graph, slot_form }
    }

    /// The number of reads and writes.
    pub fn n_accesses(&self) -> usize {
        self.graph.all_accesses().len()
    }
}

/// Cost and result of a construction.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// CPU time.
    pub time: Duration,
    /// CPU time of what was measured with it that is no construction.
    pub other: Duration,
    /// The phis.
    pub n_phis: usize,
}

/// A construction that runs in this process.
pub trait Contender {
    /// Returns the name.
    fn name(&self) -> &str;

    /// Constructs SSA form a number of times in a row; returns the time of all together. `None` if the
    /// function exceeds a limit of the construction.
    fn run(&mut self, input: &Input, n_times: u32) -> Option<Outcome>;
}

/// Returns a result, and the CPU time that it took.
fn timed<R>(run: impl FnOnce() -> R) -> (Duration, R) {
    let before = vmrun::bench::clock::thread_cpu_time();
    let result = std::hint::black_box(run());
    (vmrun::bench::clock::thread_cpu_time() - before, result)
}
