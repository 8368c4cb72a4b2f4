//! The blocks in whose place native code leaves for the interpreter, and for how long it does.
//!
//! Code of a part of a module leaves for the interpreter where that has never run a block, if it had the opportunity often
//! enough to tell. If code is left too often, a newer version is made, without exits for blocks that have run by then, and
//! at last one without any.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use slotvm_bytecode::{Op, VerifiedModule};
use slotvm_runtime::native::{CodeVersion, EXIT_CELLS_MAX, Part, TieredCode};
use slotvm_ssa::construction::build::{paying_exits, possible_exits};
use slotvm_ssa::passes::inline::may_be_inlined;

use crate::config::Config;
use crate::native::scheduling::payback;

/// The versions of code that have exits, at most.
const VERSIONS_MAX: u32 = 2;

// What other values do: docs/decisions.md, "Constants of the tiers".
/// Calls of a function, or rounds of a loop, after which a block in it that has not run is taken for one that never runs.
const RAN_MIN: u32 = 100;

/// The functions that a function calls, directly or by others, whose blocks are looked at, at most.
const BODIES_MAX: usize = 256;

/// The exits of a version of code.
#[derive(Debug)]
pub(super) struct VersionExits {
    /// The blocks, in ascending order.
    pub(super) blocks: Vec<u32>,
    /// Those of functions that may be inlined, as far as they have any.
    pub(super) bodies: HashMap<u32, Vec<u32>>,
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
    if number >= VERSIONS_MAX {
        return None;
    }
    let of_func = |func, loops| blocks(module, code, func, number, loops, config);
    let (blocks, bodies) = (of_func(part.func(), loops), bodies(module, part.func(), of_func));
    if blocks.is_empty() && bodies.is_empty() {
        return None;
    }
    let n_exits = payback::n_exits(config, part, (code.n_insts(part).unwrap_or(n_all), n_all));
    let version = Arc::new(CodeVersion::new(part, number, n_exits));
    Some(VersionExits { blocks, bodies, version })
}

/// The exits of the functions that a function calls, directly or by others, as far as they may be inlined.
fn bodies<'l>(
    module: &VerifiedModule,
    func: u32,
    exits: impl Fn(u32, &'l [u32]) -> Vec<u32>,
) -> HashMap<u32, Vec<u32>> {
    let (mut found, mut seen) = (HashMap::new(), HashSet::from([func]));
    let mut work = vec![func];
    while let Some(caller) = work.pop() {
        let body = module.body(caller).expect("the module defines the function");
        let insts = body.blocks.iter().flat_map(|block| module.insts(caller, block));
        for (_, inst) in insts.filter(|(_, inst)| inst.op == Op::Call) {
            let callee = inst.imm.low();
            let is_new = seen.len() <= BODIES_MAX && seen.insert(callee);
            if is_new && may_be_inlined(module, callee) {
                work.push(callee);
                found.insert(callee, exits(callee, &[]));
            }
        }
    }
    found.retain(|_, blocks| !blocks.is_empty());
    found
}

/// The blocks of a function in whose place a version of code is left that is entered in some of its loops, or at its start.
fn blocks(
    module: &VerifiedModule,
    code: &TieredCode,
    func: u32,
    version: u32,
    loops: &[u32],
    config: &Config,
) -> Vec<u32> {
    let blocks = match config.tier_exits {
        Some((seed, _)) => at_random(module, func, loops, seed ^ u64::from(version)),
        None => {
            let n_times_min = if config.tier_seed.is_some() { 1 } else { RAN_MIN };
            without_entries(module, func, loops, code.never_ran(func, n_times_min))
        }
    };
    let blocks = possible_exits(module, func, blocks, EXIT_CELLS_MAX as u32);
    match (config.tier_exits, config.tier_seed) {
        (None, None) => paying_exits(module, func, blocks),
        _ => blocks,
    }
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
