//! The times of the stages that a module goes through.

use std::time::{Duration, Instant};

use tracing::Span;

/// What making a module took, by stage. Stages that compile count the time of all functions.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// Binary or text to a module.
    pub load: Duration,
    /// The verifier.
    pub verify: Duration,
    /// Bytecode to the slot form of the IR.
    pub slots: Duration,
    /// Slot form to SSA form.
    pub ssa: Duration,
    /// IR to CLIF.
    pub clif: Duration,
    /// CLIF to machine code.
    pub cranelift: Duration,
    /// Machine code to executable memory.
    pub place: Duration,
}

impl Timings {
    /// All stages, in their order, by name.
    pub fn stages(&self) -> [(&'static str, Duration); 7] {
        [
            ("load", self.load),
            ("verify", self.verify),
            ("slots", self.slots),
            ("ssa", self.ssa),
            ("clif", self.clif),
            ("cranelift", self.cranelift),
            ("place", self.place),
        ]
    }

    /// The sum of all stages.
    pub fn total(&self) -> Duration {
        self.stages().iter().map(|&(_, time)| time).sum()
    }
}

/// Runs a stage in its span and adds its time.
pub(crate) fn timed<R>(span: Span, time: &mut Duration, stage: impl FnOnce() -> R) -> R {
    let _entered = span.entered();
    let start = Instant::now();
    let result = stage();
    *time += start.elapsed();
    result
}
