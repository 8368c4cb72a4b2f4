//! Runs a case with exits in the place of random blocks, whether these run or not.

use std::collections::BTreeSet;
use std::sync::Arc;

use slotvm_bytecode::VerifiedModule;
use slotvm_runtime::native::EXIT_CELLS_MAX;
use slotvm_ssa::construction::build::{BuildScratch, build_loop, possible_exits};
use slotvm_ssa::ir::Function;
use slotvm_ssa::ir::verify::{Form, verify};
use slotvm_ssa::pipeline::{Driver, PassContext, PassScratch, PassSet, Start, Times, User};

use super::{Budget, Difference, Outcome, Plan, compare, evaluator};
use crate::choices::{Choices, random_bytes};
use crate::generate::Case;

/// Runs a case in the evaluator, with exits in slot form and after all rows. What exits go on in has none.
pub(super) fn check(
    case: &Case,
    plan: Plan,
    module: &Arc<VerifiedModule>,
    budgets: &[Budget],
    expected: &Outcome,
) -> Result<(), Difference> {
    for (form, passes, is_promoted) in [
        ("slot form", PassSet::none(), false),
        ("SSA form", PassSet::none(), true),
        ("the form after all rows", PassSet::all(), true),
    ] {
        let functions = functions(module, plan, case.cut.into(), (passes, is_promoted));
        let landings = landings(module, plan, &functions);
        let found = evaluator::run_with_exits(module, functions, landings, plan, case, budgets);
        let engine = || format!("the evaluator on {form} with exits");
        compare(engine, expected.clone().without_backtraces(), found)?;
    }
    Ok(())
}

/// The blocks of a function that become exits: a share of them that is drawn for each function.
fn exits(module: &VerifiedModule, func: u32, seed: u64) -> Vec<u32> {
    let n_blocks = module.body(func).expect("the module defines the function").blocks.len();
    let bytes = random_bytes(seed << 32 | u64::from(func), 1 + n_blocks);
    let mut choices = Choices::new(&bytes);
    let share = [1, 2, 4, 9][choices.below(4)];
    let blocks = (1..n_blocks as u32).filter(|_| choices.below(share) == 0).collect();
    possible_exits(module, func, blocks, EXIT_CELLS_MAX as u32)
}

fn functions(
    module: &VerifiedModule,
    plan: Plan,
    seed: u64,
    (passes, is_promoted): (PassSet, bool),
) -> Vec<Function> {
    let mut scratch = PassScratch::default();
    let one = |func| {
        let exits = exits(module, func, seed);
        let context = PassContext::new(module, func, &mut scratch);
        let mut context = PassContext { exits: &exits, build: plan.accounts(), ..context };
        let mut times = Times::default();
        let driver = Driver::new(User::Jit, passes, true, &mut times).promoted(is_promoted);
        let mut function = Function::default();
        function.func = func;
        let ran = driver.run(&mut function, Start::Bytecode, &mut context, |_, _| {});
        ran.unwrap_or_else(|error| panic!("function {func} with exits {exits:?}: {error}"));
        function
    };
    (module.n_imported_funcs()..module.n_funcs()).map(one).collect()
}

/// The forms in which the exits of some functions go on.
fn landings(module: &VerifiedModule, plan: Plan, functions: &[Function]) -> Vec<Function> {
    let exits = functions.iter().flat_map(|f| &f.exits);
    let places: BTreeSet<(u32, u32)> = exits.map(|exit| (exit.func, exit.blocks[0])).collect();
    let mut scratch = BuildScratch::default();
    let one = |(func, block)| {
        let form = build_loop(module, func, &[block], &[], &plan.accounts(), &mut scratch);
        let form = form.expect("the frame of an exit is small");
        verify(&form, Form::Slots, module).unwrap_or_else(|violation| panic!("{violation}"));
        form
    };
    places.into_iter().map(one).collect()
}
