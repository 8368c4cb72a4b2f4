//! The blocks in whose place native code leaves for the interpreter, the calls after which it does, and for how long.
//!
//! Code of a part of a module leaves for the interpreter where that has never run a block, if it had the opportunity often
//! enough to tell. If code is left too often, a newer version is made, without exits for blocks that have run by then, and
//! at last one without any.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use slotvm_bytecode::{Inst, Op, VerifiedModule};
use slotvm_runtime::native::{CodeVersion, EXIT_CELLS_MAX, Part, TieredCode};
use slotvm_ssa::construction::build::{
    FuncExits, LIKELY_CALLEES_MAX, LikelyCall, paying_exits, possible_calls, possible_exits,
};
use slotvm_ssa::passes::inline::{ExitPlan, may_be_inlined};

use crate::compile::budget::NEWER_VERSIONS_MAX;
use crate::config::Config;
use crate::config::executions::Executions;
use crate::native::scheduling::history::{History, Profiled};
use crate::native::scheduling::payback;

// What other values do: docs/decisions.md, "Constants of the tiers".
/// Calls of a function, or rounds of a loop, after which a block in it that has not run is taken for one that never runs.
const RAN_MIN: u32 = 100;

/// The functions that a function calls, directly or by others, whose blocks are looked at, at most.
const BODIES_MAX: usize = 256;

/// The exits of a version of code.
#[derive(Debug)]
pub(super) struct VersionExits {
    pub(super) plan: ExitPlan,
    pub(super) version: Arc<CodeVersion>,
}

/// The exits of a version of the code of a part, before which there were so many: of a function that is entered at its start
/// or in some of its loops, and has `n_all` instructions.
pub(super) fn of_version(
    module: &VerifiedModule,
    code: &TieredCode,
    (part, number): (Part, u32),
    loops: &[u32],
    n_all: u32,
    config: &Config,
) -> Option<VersionExits> {
    let plan = plan(module, code, (part.func(), number), loops, config)?;
    let n_exits = payback::n_exits(config, part, (code.n_insts(part).unwrap_or(n_all), n_all));
    let version = Arc::new(CodeVersion::new(part, number, n_exits));
    Some(VersionExits { plan, version })
}

/// The exits that the first version of a function's code has, entered at its start, if the module has run as a profile
/// says.
pub(crate) fn of_profile(
    module: &VerifiedModule,
    executions: &Executions,
    func: u32,
    config: &Config,
) -> Option<ExitPlan> {
    plan(module, &Profiled { module, executions }, (func, 0), &[], config)
}

/// The exits of a version of a function's code, before which there were so many, entered at its start or in some of its
/// loops.
fn plan(
    module: &VerifiedModule,
    history: &impl History,
    (func, number): (u32, u32),
    loops: &[u32],
    config: &Config,
) -> Option<ExitPlan> {
    // The last version has none.
    if number >= NEWER_VERSIONS_MAX {
        return None;
    }
    let exits = |func, loops| FuncExits {
        blocks: blocks(module, history, func, number, loops, config),
        calls: calls(module, history, func, number, config),
    };
    let of_func = exits(func, loops);
    let bodies = bodies(module, func, &of_func, exits);
    let cells_max = EXIT_CELLS_MAX as u32;
    let is_empty = of_func.is_empty() && bodies.is_empty();
    (!is_empty).then_some(ExitPlan { of_func, bodies, cells_max })
}

/// The exits of the functions that a function calls, directly or by others, as far as they may be inlined.
fn bodies<'l>(
    module: &VerifiedModule,
    func: u32,
    of_func: &FuncExits,
    exits: impl Fn(u32, &'l [u32]) -> FuncExits,
) -> HashMap<u32, FuncExits> {
    let (mut found, mut seen) = (HashMap::new(), HashSet::from([func]));
    let mut work = callees(module, func, of_func);
    while let Some(callee) = work.pop() {
        let is_new = seen.len() <= BODIES_MAX && seen.insert(callee);
        if is_new && may_be_inlined(module, callee) {
            let exits = exits(callee, &[]);
            work.extend(callees(module, callee, &exits));
            found.insert(callee, exits);
        }
    }
    found.retain(|_, exits| !exits.is_empty());
    found
}

/// The functions that code of a function with these exits calls directly.
fn callees(module: &VerifiedModule, func: u32, exits: &FuncExits) -> Vec<u32> {
    let body = module.body(func).expect("the module defines the function");
    let insts = body.blocks.iter().flat_map(|block| module.insts(func, block));
    let direct = insts.filter(|(_, inst)| matches!(inst.op, Op::Call | Op::ReturnCall));
    let direct = direct.map(|(_, inst)| inst.imm.low());
    direct.chain(exits.calls.iter().flat_map(|call| call.callees.iter().copied())).collect()
}

/// The indirect calls of a function that a version of code compares with few functions.
fn calls(
    module: &VerifiedModule,
    history: &impl History,
    func: u32,
    version: u32,
    config: &Config,
) -> Vec<LikelyCall> {
    let calls = match config.tier_exits {
        Some((seed, _)) => calls_at_random(module, func, seed ^ u64::from(version)),
        None => {
            let calls = history.callees(func, n_times_min(config)).into_iter();
            // What a function calls may depend on what calls it, of which little is known after few calls.
            let is_often_called = history.n_calls(func) >= n_times_min(config);
            let likely = |(offset, callees): (u32, Vec<u32>)| {
                // Code was left, perhaps for a second function here: a third one would make it the last version.
                let is_last = version > 0 && callees.len() == LIKELY_CALLEES_MAX;
                let leaves = is_often_called && !is_last;
                LikelyCall { offset, callees, leaves }
            };
            calls.map(likely).collect()
        }
    };
    let mut calls = possible_calls(module, func, calls);
    if config.tier_exits.is_none() {
        let is_inlined = |&callee: &u32| may_be_inlined(module, callee);
        calls.retain(|call| call.callees.iter().any(is_inlined));
    }
    calls
}

/// Indirect calls of a function and functions that are drawn at random, whether these are called or not.
fn calls_at_random(module: &VerifiedModule, func: u32, seed: u64) -> Vec<LikelyCall> {
    let body = module.body(func).expect("the module defines the function");
    let mut hasher = DefaultHasher::new();
    (seed, func, "calls").hash(&mut hasher);
    let insts = body.blocks.iter().flat_map(|block| module.insts(func, block));
    let of_call = |(offset, inst): (u32, Inst)| {
        let ty = &module.module().types[inst.imm.low() as usize];
        let funcs = module.funcs_with_references().iter().copied();
        let mut callees: Vec<u32> =
            funcs.filter(|&func| module.func_type(func) == ty).take(BODIES_MAX).collect();
        offset.hash(&mut hasher);
        let drawn = hasher.finish();
        let n = (drawn % 4).min(LIKELY_CALLEES_MAX as u64) as usize;
        let first = (drawn >> 8) as usize % callees.len().max(1);
        callees.rotate_left(first);
        callees.truncate(n);
        LikelyCall { offset, callees, leaves: drawn >> 56 & 3 != 0 }
    };
    insts.filter(|(_, inst)| inst.op == Op::CallIndirect).map(of_call).collect()
}

/// The number of times that something was done after which it counts what was never done.
fn n_times_min(config: &Config) -> u32 {
    if config.tier_seed.is_some() { 1 } else { RAN_MIN }
}

/// The blocks of a function in whose place a version of code is left that is entered in some of its loops, or at its start.
fn blocks(
    module: &VerifiedModule,
    history: &impl History,
    func: u32,
    version: u32,
    loops: &[u32],
    config: &Config,
) -> Vec<u32> {
    let cells_max = EXIT_CELLS_MAX as u32;
    if let Some((seed, _)) = config.tier_exits {
        let blocks = at_random(module, func, loops, seed ^ u64::from(version));
        return possible_exits(module, func, blocks, cells_max);
    }
    let blocks = never_ran(module, history, func, loops, n_times_min(config));
    let blocks = without_entries(module, func, loops, blocks);
    let blocks = possible_exits(module, func, blocks, cells_max);
    let mut blocks = match config.tier_seed {
        None => paying_exits(module, func, blocks),
        Some(_) => blocks,
    };
    if let Some(outside) = outside(module, func, loops) {
        blocks.extend(possible_exits(module, func, outside, cells_max));
        blocks.sort_unstable();
        blocks.dedup();
    }
    blocks
}

/// The blocks outside of the loop that code is entered in, if that is a single one and lies in another.
///
/// With them, the loop around would have two entries, which is no loop to an optimiser, and a program may stay in it for long.
fn outside(module: &VerifiedModule, func: u32, loops: &[u32]) -> Option<Vec<u32>> {
    let &[number] = loops else { return None };
    let body = module.body(func).expect("the module defines the function");
    let all = body.loops();
    let (around, of_loop) = (&all[..number as usize], &all[number as usize]);
    let is_around = |blocks: &Range<u32>| blocks.end > of_loop.start;
    let outside = || (1..of_loop.start).chain(of_loop.end..body.blocks.len() as u32).collect();
    around.iter().any(is_around).then(outside)
}

/// The blocks of a function that count as blocks that never run, for code that is entered in some of its loops, or at its
/// start, in ascending order.
///
/// Where it is entered in one loop, all blocks after that loop are among them. The program gets there once for many rounds, and
/// may then run quite another part of the function, of which nothing is known yet, or which has code of its own.
fn never_ran(
    module: &VerifiedModule,
    history: &impl History,
    func: u32,
    loops: &[u32],
    n_times_min: u32,
) -> Vec<u32> {
    let mut never_ran = history.never_ran(func, n_times_min);
    if let &[number] = loops {
        let body = module.body(func).expect("the module defines the function");
        let end = body.loops()[number as usize].end;
        never_ran.retain(|&block| block < end);
        never_ran.extend(end..body.blocks.len() as u32);
    }
    never_ran
}

/// The blocks among some of a function that code can be left for which is entered in some loops: not those where it is entered,
/// and not those of a loop in which it is entered, and which has not begun yet.
fn without_entries(
    module: &VerifiedModule,
    func: u32,
    loops: &[u32],
    mut never_ran: Vec<u32>,
) -> Vec<u32> {
    let all = module.body(func).expect("the module defines the function").loops();
    let to_come = loops.iter().map(|&number| &all[number as usize]);
    let to_come = to_come.filter(|blocks| never_ran.binary_search(&blocks.start).is_ok());
    let mut to_come: Vec<_> = to_come.cloned().collect();
    to_come.sort_unstable_by_key(|blocks| blocks.start);
    let (mut to_come, mut end) = (to_come.into_iter().peekable(), 0);
    never_ran.retain(|&block| {
        while let Some(blocks) = to_come.next_if(|blocks| blocks.start <= block) {
            end = end.max(blocks.end);
        }
        block > 0 && block >= end
    });
    never_ran
}

/// Blocks of a function that are drawn at random, whether they run or not, for code that is entered at its start or in
/// some of its loops. They are in ascending order.
fn at_random(module: &VerifiedModule, func: u32, loops: &[u32], seed: u64) -> Vec<u32> {
    let body = module.body(func).expect("the module defines the function");
    let all = body.loops();
    let entered: Vec<u32> = loops.iter().map(|&number| all[number as usize].start).collect();
    let mut hasher = DefaultHasher::new();
    (seed, func, &entered).hash(&mut hasher);
    // All blocks of some functions, and none of others.
    let share = [1, 2, 3, 8, u64::MAX][hasher.finish() as usize % 5];
    let mut is_drawn = |block: u32| {
        block.hash(&mut hasher);
        hasher.finish().is_multiple_of(share)
    };
    let blocks = 1..body.blocks.len() as u32;
    blocks.filter(|block| !entered.contains(block) && is_drawn(*block)).collect()
}
