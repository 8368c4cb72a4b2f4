//! The blocks in whose place native code leaves for the interpreter.

use slotvm_bytecode::VerifiedModule;
use slotvm_runtime::native::EXIT_CELLS_MAX;
use slotvm_ssa::construction::build::possible_exits;

/// Blocks of a function that are drawn at random, whether they run or not, for code that is entered at its start or in
/// some of its loops. They are in ascending order.
pub(super) fn at_random(module: &VerifiedModule, func: u32, loops: &[u32], seed: u64) -> Vec<u32> {
    let body = module.body(func).expect("the module defines the function");
    let all = body.loops();
    let entered: Vec<u32> = loops.iter().map(|&number| all[number as usize].start).collect();
    let first = entered.first().map_or(0, |&start| u64::from(start) + 1);
    let mut state = mixed(seed ^ mixed(u64::from(func)) ^ first);
    let mut next = || {
        state = mixed(state);
        state >> 32
    };
    // All blocks of some functions, and none of others.
    let share = [1, 2, 3, 8, u64::MAX][next() as usize % 5];
    let blocks = 1..body.blocks.len() as u32;
    let blocks = blocks.filter(|block| !entered.contains(block) && next() % share == 0);
    possible_exits(module, func, blocks.collect(), EXIT_CELLS_MAX as u32)
}

/// The step of splitmix64.
fn mixed(state: u64) -> u64 {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let state = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ state >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ state >> 31
}
