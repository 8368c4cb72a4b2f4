//! The blocks in whose place native code leaves for the interpreter.

use std::hash::{DefaultHasher, Hash, Hasher};

use slotvm_bytecode::VerifiedModule;
use slotvm_runtime::native::EXIT_CELLS_MAX;
use slotvm_ssa::construction::build::possible_exits;

/// Blocks of a function that are drawn at random, whether they run or not, for code that is entered at its start or in
/// some of its loops. They are in ascending order.
pub(super) fn at_random(module: &VerifiedModule, func: u32, loops: &[u32], seed: u64) -> Vec<u32> {
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
    let blocks = blocks.filter(|block| !entered.contains(block) && is_drawn(*block));
    possible_exits(module, func, blocks.collect(), EXIT_CELLS_MAX as u32)
}
