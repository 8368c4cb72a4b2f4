//! The times of the stages that a module goes through.

use std::time::Duration;

use slotvm_ssa::pipeline::{Times, User};

/// The time that each stage of making a module took. Stages that compile count the time of all functions, and with
/// several threads the sum of theirs.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Timings(pub(crate) Times);

impl Timings {
    /// The stages of the JIT in their order, by the names of the [pipeline](slotvm_ssa::pipeline).
    pub fn stages(&self) -> impl Iterator<Item = (&'static str, Duration)> + '_ {
        let of_jit = self.0.rows().filter(|(row, _)| row.is_used_by(User::Jit));
        of_jit.map(|(row, time)| (row.name, time))
    }

    /// The time of the stage with a name; zero if there is no such stage.
    pub fn of(&self, stage: &str) -> Duration {
        self.0.of(stage)
    }

    /// The sum of all stages.
    pub fn total(&self) -> Duration {
        self.stages().map(|(_, time)| time).sum()
    }
}
