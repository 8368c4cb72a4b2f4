//! Inlining: calls of small functions of the module become the bodies of these functions.
//!
//! Relies on slot form as [`mod@crate::construction::build`] makes it, and guarantees slot form, so that one promotion
//! sees the slots of all functions that came together, and every slot mode gains the same. It inlines:
//! * Direct calls that `plan` chooses, from the counts of the function and of those that it may call.
//! * Tail calls of the function itself, which become a loop.
//! * The test of a recursive function for its `leaf`, in front of calls that are left, if most of them end there.
//!
//! Observable behaviour does not change. A body is made with the same charges as its function's own code: fuel,
//! polls, and cells of the deterministic call stack stand where they stood, or after a test that does not depend on
//! them. Each location names the function that it comes from, and the call that this function was inlined at, so that
//! traps have their places and backtraces their frames. A body may leave for the interpreter, if it replaces no tail call and
//! its function is not recursive; then the frames of those into which it was inlined are left, too, as they wait for its call. An inlined function that leaves by a tail call no longer has a
//! frame then, so that call gets the place of the call that was inlined. Only the native stack that a call takes
//! changes, of which nothing is promised.
//!
//! The work and the growth of a function have limits that depend on its own size and on the number of functions in
//! the module ([`Limits`]). So a module grows by about a quarter, and by a number of instructions for each function
//! that gets smaller with their number.

mod forms;
mod leaf;
mod limits;
mod plan;
mod splice;
mod tables;

use std::collections::HashMap;

use slotvm_bytecode::VerifiedModule;

pub use self::forms::{KeptForms, is_small_enough, may_be_inlined};
pub use self::limits::Limits;
use self::plan::Plan;
use crate::construction::build::{BuildOptions, BuildScratch, FuncExits};
use crate::ir::Function;

/// Statistics of inlining in a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InlineReport {
    /// Calls that became bodies.
    pub n_calls: usize,
    /// Whether tail calls of the function itself became a loop.
    pub has_loop: bool,
    /// The functions whose bodies these are, each once, in ascending order.
    pub functions: Vec<u32>,
    /// Instructions that were added, as far as they count in [`Limits`].
    pub n_added: u32,
}

/// The exits of the bodies of functions that are inlined.
#[derive(Copy, Clone, Debug)]
pub struct BodyExits<'a> {
    /// The exits of each function that has any.
    pub of_funcs: &'a HashMap<u32, FuncExits>,
    /// The maximum number of cells of the frames that an exit leaves.
    pub cells_max: u32,
}

/// The exits of a form that is to be made: its own, and those of functions whose bodies it may get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExitPlan {
    /// Those of the function itself.
    pub of_func: FuncExits,
    /// Those of functions that may be inlined, as far as they have any.
    pub bodies: HashMap<u32, FuncExits>,
    /// The maximum number of cells of the frames that an exit leaves.
    pub cells_max: u32,
}

impl ExitPlan {
    /// The exits of bodies, if there are any. Then [`BuildOptions::waits`] has to be set.
    pub fn of_bodies(&self) -> Option<BodyExits<'_>> {
        let (of_funcs, cells_max) = (&self.bodies, self.cells_max);
        (!of_funcs.is_empty()).then_some(BodyExits { of_funcs, cells_max })
    }
}

/// Inlines calls in the slot form of a function of the module, which was made with the given options. Bodies may have exits;
/// they have those that leave for frames of which it was noted what waits in them ([`Function::waiting`]).
pub fn inline(
    f: &mut Function,
    module: &VerifiedModule,
    options: &BuildOptions,
    exits: Option<BodyExits<'_>>,
    scratch: &mut BuildScratch,
    kept: &mut KeptForms,
) -> InlineReport {
    let root = std::mem::take(f);
    let plan = Plan::new(root, module, options, exits, scratch, kept);
    let report = plan.report();
    let spliced = match report == InlineReport::default() {
        true => None,
        false => Some(splice::splice(&plan, scratch.empty())),
    };
    let mut functions = plan.into_functions();
    *f = spliced.or_else(|| functions.next()).expect("the plan has the function");
    functions.for_each(|function| scratch.reuse(function));
    f.waiting.clear();
    report
}

#[cfg(test)]
mod tests;
