//! Runs a case with exits in the place of random blocks and after random calls, whether these run or not.

use std::collections::BTreeSet;
use std::sync::Arc;

use slotvm_bytecode::{Op, VerifiedModule};
use slotvm_runtime::native::EXIT_CELLS_MAX;
use slotvm_ssa::construction::build::{
    BuildOptions, BuildScratch, FuncExits, LIKELY_CALLEES_MAX, LikelyCall, build_loop,
    possible_calls, possible_exits,
};
use slotvm_ssa::ir::Function;
use slotvm_ssa::ir::frame::FrameState;
use slotvm_ssa::ir::verify::{Form, verify};
use slotvm_ssa::passes::inline::BodyExits;
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

/// The exits of a function: in the place of a share of its blocks that is drawn for each function, and after calls that are
/// compared with functions that are drawn, whether they are called or not.
fn exits(module: &VerifiedModule, func: u32, seed: u64) -> FuncExits {
    let n_blocks = module.body(func).expect("the module defines the function").blocks.len();
    let sites = indirect_calls(module, func);
    let bytes = random_bytes(seed << 32 | u64::from(func), 1 + n_blocks + 3 * sites.len());
    let mut choices = Choices::new(&bytes);
    let share = [1, 2, 4, 9][choices.below(4)];
    let blocks = (1..n_blocks as u32).filter(|_| choices.below(share) == 0).collect();
    let blocks = possible_exits(module, func, blocks, EXIT_CELLS_MAX as u32);
    let of_call = |(offset, ty): (u32, u32)| {
        let ty = &module.module().types[ty as usize];
        let funcs = module.funcs_with_references().iter().copied();
        let mut callees: Vec<u32> = funcs.filter(|&func| module.func_type(func) == ty).collect();
        let first = choices.below(callees.len().max(1));
        callees.rotate_left(first);
        callees.truncate(choices.below(1 + LIKELY_CALLEES_MAX));
        LikelyCall { offset, callees, leaves: choices.below(2) == 0 }
    };
    let calls = sites.into_iter().map(of_call).collect();
    FuncExits { blocks, calls: possible_calls(module, func, calls) }
}

/// The offsets and types of the indirect calls of a function.
fn indirect_calls(module: &VerifiedModule, func: u32) -> Vec<(u32, u32)> {
    let body = module.body(func).expect("the module defines the function");
    let insts = body.blocks.iter().flat_map(|block| module.insts(func, block));
    let calls = insts.filter(|(_, inst)| inst.op == Op::CallIndirect);
    calls.map(|(offset, inst)| (offset, inst.imm.low())).collect()
}

fn functions(
    module: &VerifiedModule,
    plan: Plan,
    seed: u64,
    (passes, is_promoted): (PassSet, bool),
) -> Vec<Function> {
    let mut scratch = PassScratch::default();
    let funcs = module.n_imported_funcs()..module.n_funcs();
    let of_funcs = funcs.clone().map(|func| (func, exits(module, func, seed))).collect();
    let body_exits = BodyExits { of_funcs: &of_funcs, cells_max: EXIT_CELLS_MAX as u32 };
    let one = |func| {
        let exits = &of_funcs[&func];
        let context = PassContext::new(module, func, &mut scratch);
        let build = BuildOptions { waits: true, ..plan.accounts() };
        let body_exits = Some(body_exits);
        let mut context = PassContext { exits, body_exits, build, ..context };
        let mut times = Times::default();
        let driver = Driver::new(User::Jit, passes, true, &mut times).promoted(is_promoted);
        let mut function = Function::default();
        function.func = func;
        let ran = driver.run(&mut function, Start::Bytecode, &mut context, |_, _| {});
        ran.unwrap_or_else(|error| panic!("function {func} with exits {exits:?}: {error}"));
        function
    };
    funcs.map(one).collect()
}

/// The forms in which the exits of some functions go on: at their blocks, and in those of the calls after which they do.
fn landings(module: &VerifiedModule, plan: Plan, functions: &[Function]) -> Vec<Function> {
    let exits = functions.iter().flat_map(|f| &f.exits);
    let block_of = |state: &FrameState| match state.call {
        None => state.blocks[0],
        Some(call) => {
            let blocks = &module.body(state.func).expect("the module defines it").blocks;
            blocks.partition_point(|block| block.start <= call) as u32 - 1
        }
    };
    let states = exits.flat_map(FrameState::frames);
    let places: BTreeSet<(u32, u32)> = states.map(|state| (state.func, block_of(state))).collect();
    let mut scratch = BuildScratch::default();
    let one = |(func, block)| {
        let noted = |(offset, _)| LikelyCall { offset, callees: Vec::new(), leaves: true };
        let calls = indirect_calls(module, func).into_iter().map(noted).collect();
        let exits = FuncExits { blocks: Vec::new(), calls };
        let build = BuildOptions { waits: true, ..plan.accounts() };
        let form = build_loop(module, func, &[block], &exits, &build, &mut scratch);
        let form = form.expect("the frame of an exit is small");
        verify(&form, Form::Slots, module).unwrap_or_else(|violation| panic!("{violation}"));
        form
    };
    places.into_iter().map(one).collect()
}
