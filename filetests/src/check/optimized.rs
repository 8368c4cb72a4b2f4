//! Compares a case before and after the optimisation of bytecode.

use std::sync::Arc;

use slotvm::{Compile, SlotMode};
use slotvm_bytecode::{VerifiedModule, verify};
use slotvm_ssa::optimize::optimize;

use super::{Bounds, Budget, Difference, End, Outcome, Plan, compare, engine, verified};
use crate::generate::Case;

/// Optimises the module of a case, and the result again, and compares their behaviour in the interpreter
/// and as native code. Returns whether the case ends without running out of fuel or stack. Others are not
/// compared, since optimised code uses less of both.
///
/// Traps have other code offsets afterwards, so their lines are compared instead.
///
/// # Errors
/// Returns the first difference.
///
/// # Panics
/// Panics if the case or the optimised module does not verify, or an engine refuses it.
pub fn check_optimized(case: &Case) -> Result<bool, Difference> {
    let original = verified(case).unwrap_or_else(|error| panic!("cases verify: {error}"));
    let limited = Plan { limited: true, memory: case.memory };
    let budgets = [Budget::whole(case)];
    let whole = engine::run(&limited.interpreter(), &original, case, &budgets);
    let once = optimized(&original);
    let twice = optimized(&once);
    if !whole.runs_without_limits() {
        return Ok(false);
    }
    let expected = at_lines(whole.without_fuel(), &original);
    let plan = Plan { limited: false, memory: case.memory };
    for (module, times) in [(&once, "once"), (&twice, "twice")] {
        for (engine, name) in [
            (plan.interpreter(), "the interpreter"),
            (plan.native(SlotMode::Ssa, Bounds::Guarded, Compile::Eager), "native code"),
        ] {
            let found = at_lines(engine::run(&engine, module, case, &budgets), module);
            compare(|| format!("{name}, optimised {times},"), expected.clone(), found)?;
        }
    }
    Ok(true)
}

fn optimized(module: &VerifiedModule) -> Arc<VerifiedModule> {
    let optimized = optimize(module).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(optimized.left, [], "generated functions are small");
    Arc::new(verify(optimized.module).unwrap_or_else(|error| panic!("{error}")))
}

/// The outcome, with source lines instead of code offsets.
fn at_lines(mut outcome: Outcome, module: &VerifiedModule) -> Outcome {
    let line = |func: u32, offset: &mut u32| {
        *offset = module.func(func).and_then(|func| func.line_at(*offset)).unwrap_or(0);
    };
    let ends = outcome.calls.iter_mut().map(|call| &mut call.end);
    for end in outcome.start.iter_mut().chain(ends) {
        if let End::Trapped(.., place) | End::HostFailed(place) = end {
            line(place.func, &mut place.offset);
            let frames = place.backtrace.iter_mut().flat_map(|(frames, _)| frames);
            frames.for_each(|(func, offset)| line(*func, offset));
        }
    }
    outcome
}
