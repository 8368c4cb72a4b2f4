//! Native code by a part of the passes: each pass alone, and all but each.

use std::sync::Arc;

use slotvm::{Compile, Engine, PassSet, SlotMode};
use slotvm_bytecode::VerifiedModule;
use slotvm_ssa::pipeline::optional_rows;

use super::{Bounds, Budget, Difference, Outcome, Plan, compare, engine};
use crate::generate::Case;

/// The sets of one pass, and those that miss one.
pub fn parts() -> impl Iterator<Item = PassSet> {
    let sets = [(PassSet::none(), true), (PassSet::all(), false)];
    sets.into_iter().flat_map(|(set, is_on)| {
        optional_rows().map(move |(_, row)| {
            let mut part = set;
            part.switch(row.name, is_on).expect("the row is optional");
            part
        })
    })
}

/// Runs a case as native code by the part of the passes that it selects, in two slot modes.
pub(super) fn check(
    case: &Case,
    module: &Arc<VerifiedModule>,
    budgets: &[Budget],
    expected: &Outcome,
) -> Result<(), Difference> {
    let plan = Plan { limited: true, memory: case.memory };
    let part = usize::from(case.cut) % parts().count();
    let passes = parts().nth(part).expect("the number is less than theirs");
    for slots in [SlotMode::Ssa, case.bare] {
        let mut config = plan.native_config(slots, Bounds::Guarded, Compile::Eager);
        config.passes(passes);
        let native = Engine::new(&config).expect("there is native code for this machine");
        let found = engine::run(&native, module, case, budgets);
        compare(|| format!("native code, {slots}, passes {passes}"), expected.clone(), found)?;
    }
    Ok(())
}
