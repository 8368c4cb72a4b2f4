//! The search for the function and the pass that a difference comes from.
//!
//! As with LLVM's `-opt-bisect-limit`, passes apply to the first functions of the module only, and the number of these
//! is searched: without passes the engines agree, with passes in all functions they do not, so some number is the first
//! at which they differ. The last of these functions is the culprit. Then each pass is switched off in it in turn.
//!
//! The search asks for logarithmically many native runs, and one for each pass.

use slotvm::PassSet;
use slotvm_ssa::pipeline::{User, optional_rows};

use super::run::Plan;
use vmrun_base::error::CliError;

/// The origin of a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Culprit {
    /// Passes in a function.
    Passes {
        /// The function.
        func: u32,
        /// Whether the difference shows if only this function goes through passes. If not, the functions before it
        /// have to, too.
        is_alone: bool,
        /// The passes without each of which the engines agree, in the order of the table. If it is empty, several
        /// passes make the difference.
        passes: Vec<&'static str>,
    },
    /// No pass: the engines differ without passes, too.
    Other,
}

/// Finds the origin of a difference that shows with a plan. `differs` runs native code by a plan.
///
/// # Errors
/// Fails if a run cannot be made.
pub(super) fn bisect(
    plan: &Plan,
    funcs: std::ops::Range<u32>,
    mut differs: impl FnMut(&Plan) -> Result<bool, CliError>,
) -> Result<Culprit, CliError> {
    let in_first = |n: u32| Plan {
        passes: PassSet::none(),
        by_function: vec![plan.passes; n as usize],
        ..plan.clone()
    };
    if plan.passes == PassSet::none() || differs(&in_first(0))? {
        return Ok(Culprit::Other);
    }
    // The engines agree with passes in the first `low` functions, and differ with passes in the first `high`.
    let (mut low, mut high) = (funcs.start, funcs.end);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match differs(&in_first(middle))? {
            true => high = middle,
            false => low = middle,
        }
    }
    let func = low;
    let with = |others: PassSet, own: PassSet| {
        let mut by_function = vec![others; func as usize];
        by_function.push(own);
        Plan { passes: PassSet::none(), by_function, ..plan.clone() }
    };
    let is_alone = differs(&with(PassSet::none(), plan.passes))?;
    let others = if is_alone { PassSet::none() } else { plan.passes };
    let mut passes = Vec::new();
    for name in native_passes(plan.passes) {
        if !differs(&with(others, without(plan.passes, name)))? {
            passes.push(name);
        }
    }
    Ok(Culprit::Passes { func, is_alone, passes })
}

/// The passes of a set that native code goes through.
fn native_passes(set: PassSet) -> impl Iterator<Item = &'static str> {
    let rows = optional_rows().filter(move |&(place, _)| set.runs(place));
    rows.filter(|(_, row)| row.is_used_by(User::Jit)).map(|(_, row)| row.name)
}

/// A set without one of its passes.
pub(super) fn without(set: PassSet, pass: &str) -> PassSet {
    let mut set = set;
    set.switch(pass, false).expect("it is a pass of the set");
    set
}

#[cfg(test)]
mod tests {
    use slotvm::SlotMode;

    use super::*;

    fn plan() -> Plan {
        Plan {
            slots: SlotMode::Ssa,
            passes: PassSet::all(),
            by_function: Vec::new(),
            fuel: None,
            fuel_max: None,
            stack_cells: None,
        }
    }

    /// The passes of a function by a plan.
    fn passes_of(plan: &Plan, func: u32) -> PassSet {
        plan.by_function.get(func as usize).copied().unwrap_or(plan.passes)
    }

    #[test]
    fn the_function_is_found_in_few_runs() {
        for culprit in [3, 4, 500, 999, 1_000] {
            let mut n = 0;
            let found = bisect(&plan(), 3..1_001, |plan| {
                n += 1;
                Ok(passes_of(plan, culprit) == PassSet::all())
            });
            let Ok(Culprit::Passes { func, is_alone, .. }) = found else { panic!("{found:?}") };
            assert_eq!((func, is_alone), (culprit, true));
            assert!(n <= 13 + optional_rows().count(), "{n} runs");
        }
    }

    #[test]
    fn two_functions_that_are_needed_are_reported_as_such() {
        let found = bisect(&plan(), 0..10, |plan| {
            Ok([2, 7].iter().all(|&func| passes_of(plan, func) == PassSet::all()))
        });
        let Ok(Culprit::Passes { func: 7, is_alone: false, .. }) = found else {
            panic!("{found:?}")
        };
    }

    #[test]
    fn differences_without_passes_have_another_origin() {
        assert_eq!(bisect(&plan(), 0..10, |_| Ok(true)).expect("runs are made"), Culprit::Other);
    }
}
