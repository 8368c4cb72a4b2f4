//! Extra lifetime that an optimiser gives to values that are computed again in another block, or are the same
//! in each round of a loop.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use slotvm_bytecode::{Effect, Imm};

use crate::graphs::ids::Loop;
use crate::graphs::loops::LoopForest;
use crate::graphs::steps::step;
use crate::ir::Function;
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::irop::Opcode;

/// Values without effects from which the code of an instruction computes more, as addresses and bounds.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct HiddenValue {
    /// Distinguishes parts with the same operands.
    pub key: u64,
    /// The operands of the instruction that it is computed from.
    pub operands: [Option<Value>; 2],
    /// The number of values.
    pub n_values: u64,
}

/// Estimates in how many more blocks values are live if an optimiser computes each only once. These are results
/// of operations without effects, constants apart, that an earlier block has too, or that are invariant in a loop
/// around them. The blocks are summed over the operations. `loops` are the loops of the function, which is in SSA
/// form.
///
/// `parts` returns the parts of an instruction that are not in the function, and `weight` the number of blocks
/// that the code of a block has.
pub fn recurring_spans(
    func: &Function,
    loops: &LoopForest,
    parts: impl Fn(Inst, &mut dyn FnMut(HiddenValue)),
    weight: impl Fn(Block) -> u64,
) -> u64 {
    let mut values = Recurring::new(func, LoopSpans::new(func, loops, weight));
    for block in func.blocks() {
        values.depth = loops.depth_of_block(block.0);
        for &param in func.params(block) {
            values.depths[param.index()] = values.depth;
        }
        for &inst in func.insts(block) {
            parts(inst, &mut |part| {
                let key =
                    Key::HiddenValue(part.key, part.operands.map(|value| values.leader(value)));
                let changes = values.changes(part.operands.into_iter().flatten());
                values.compute(block, key, changes, part.n_values, NO_VALUE);
            });
            values.define(block, inst);
        }
    }
    values.total
}

/// Identifies a computation by its operation and the leaders of its operands.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
enum Key {
    Inst(Opcode, Imm, [Option<u32>; 3]),
    HiddenValue(u64, [Option<u32>; 2]),
}

/// Stands for the values of parts, which are no operands.
const NO_VALUE: Value = Value(u32::MAX);

/// A computation that was met.
struct Met {
    /// The first value that is computed so.
    leader: Value,
    /// The last block that does.
    block: Block,
    /// The outermost loop around that in which it does not change.
    within: Option<Loop>,
}

struct Recurring<'a> {
    func: &'a Function,
    spans: LoopSpans<'a>,
    /// The loops around the block that is looked at.
    depth: u32,
    /// The first value that is computed as a value is, and the depth of the loops in which a value changes.
    leaders: Vec<u32>,
    depths: Vec<u32>,
    /// The hash of the standard library takes 2% of the compile time of a large module.
    met: HashMap<Key, Met, RandomState>,
    total: u64,
}

impl<'a> Recurring<'a> {
    fn new(func: &'a Function, spans: LoopSpans<'a>) -> Recurring<'a> {
        Recurring {
            func,
            spans,
            depth: 0,
            leaders: (0..func.n_values() as u32).collect(),
            depths: vec![0; func.n_values()],
            met: HashMap::default(),
            total: 0,
        }
    }

    fn leader(&self, value: Option<Value>) -> Option<u32> {
        value.map(|value| self.leaders[value.index()])
    }

    /// The depth of the loops in which what is computed from operands changes.
    fn changes(&self, operands: impl Iterator<Item = Value>) -> u32 {
        operands.map(|value| self.depths[value.index()]).max().unwrap_or(0)
    }

    fn define(&mut self, block: Block, inst: Inst) {
        let func = self.func;
        if func.opcode(inst).effect() != Effect::Pure || func.results(inst).len() != 1 {
            func.results(inst).for_each(|result| self.depths[result.index()] = self.depth);
            return;
        }
        let (result, operands) = (func.result(inst), func.operands(inst));
        let operand = |i: usize| self.leader(operands.get(i).copied());
        let key = Key::Inst(func.opcode(inst), func.imm(inst), std::array::from_fn(operand));
        let changes = self.changes(operands.iter().copied());
        self.depths[result.index()] = changes;
        // Constants are made again where they are needed.
        let n_values = u64::from(!operands.is_empty());
        self.leaders[result.index()] = self.compute(block, key, changes, n_values, result).0;
    }

    /// Counts how much longer values live that change in this number of loops only, and returns the first one that
    /// was computed so.
    fn compute(
        &mut self,
        block: Block,
        key: Key,
        changes: u32,
        n_values: u64,
        value: Value,
    ) -> Value {
        step();
        let within = self.spans.loop_within(block, changes);
        let of_loop = within.map_or(0, |within: Loop| self.spans.sizes[within.index()]);
        let met = self.met.entry(key).or_insert_with(|| {
            self.total += n_values * of_loop;
            Met { leader: value, block, within }
        });
        if within.is_none() || within != met.within {
            self.total += n_values * (self.spans.distance(met.block, block) + of_loop);
        }
        (met.block, met.within) = (block, within);
        met.leader
    }
}

/// The sizes of loops, in blocks of the code.
struct LoopSpans<'a> {
    loops: &'a LoopForest,
    /// The size of each loop, that of the loops inside it included.
    sizes: Vec<u64>,
    /// The outermost loop around each.
    outermost: Vec<Loop>,
    /// The blocks of the code before each block, and all.
    before: Vec<u64>,
}

impl<'a> LoopSpans<'a> {
    fn new(func: &Function, loops: &'a LoopForest, weight: impl Fn(Block) -> u64) -> LoopSpans<'a> {
        let mut sizes = vec![0; loops.n_loops()];
        let mut before = Vec::with_capacity(func.n_blocks() + 1);
        let mut n_blocks = 0;
        for block in func.blocks() {
            before.push(n_blocks);
            n_blocks += weight(block);
            if let Some(innermost) = loops.innermost(block.0) {
                sizes[innermost.index()] += weight(block);
            }
        }
        // Loops are numbered in preorder.
        for inner in loops.loops().rev() {
            if let Some(around) = loops.parent(inner) {
                sizes[around.index()] += sizes[inner.index()];
            }
        }
        let mut outermost = Vec::with_capacity(sizes.len());
        for inner in loops.loops() {
            let of_parent = loops.parent(inner).map(|parent| outermost[parent.index()]);
            outermost.push(of_parent.unwrap_or(inner));
        }
        LoopSpans { loops, sizes, outermost, before }
    }

    /// The blocks of the code from one block to a later one.
    fn distance(&self, from: Block, to: Block) -> u64 {
        self.before[to.index()] - self.before[from.index()]
    }

    /// The outermost loop around a block that is deeper than `changes`, or one around that if the nest is deep.
    fn loop_within(&self, block: Block, changes: u32) -> Option<Loop> {
        /// Loops around a block that are looked at.
        const NEST_DEPTH_MAX: usize = 16;
        let innermost = self.loops.innermost(block.0)?;
        if changes == 0 {
            return Some(self.outermost[innermost.index()]);
        }
        let around = |&inner: &Loop| self.loops.parent(inner);
        let loops = std::iter::successors(Some(innermost), around);
        let mut within = loops.take_while(|&inner| self.loops.depth(inner) > changes);
        let found = within.by_ref().take(NEST_DEPTH_MAX).last();
        if within.next().is_some() { Some(self.outermost[innermost.index()]) } else { found }
    }
}

#[cfg(test)]
mod tests {
    use slotvm_bytecode::Op;

    use super::*;
    use crate::ir::graph::control_flow;
    use crate::tools::samples::ssa;

    fn recurring(source: &str) -> u64 {
        let func = ssa(source);
        recurring_spans(&func, &LoopForest::new(&control_flow(&func)), |_, _| {}, |_| 1)
    }

    #[test]
    fn what_recurs_is_counted() {
        // In one block each value is computed once anyway.
        let once = "local.get n i32.const 3 i32.mul local.get n i32.const 3 i32.mul i32.add";
        assert_eq!(recurring(&format!("func f(n: i32) -> i32 {{ {once} return }}")), 0);
        // The next block has a product and what is made of it.
        let twice = "local.get n i32.const 3 i32.mul i32.const 5 i32.xor";
        let source = format!("func f(n: i32) -> i32 {{ {twice} br_if a a: {twice} return }}");
        assert_eq!(recurring(&source), 2);
        // The third time it has lived to the second one already.
        let source = format!(
            "func f(n: i32) -> i32 {{ {twice} br_if a a: {twice} br_if b b: {twice} return }}"
        );
        assert_eq!(recurring(&source), 4);
        // The sum does not change in the loop, which has one block.
        let source = "func f(n: i32, m: i32) { a: local.get m i32.const 1 i32.add
            local.get n i32.const 1 i32.sub local.tee n i32.or br_if a return }";
        assert_eq!(recurring(source), 1);
    }

    #[test]
    fn loops_count_once() {
        // A loop of two blocks, in both of which is the sum.
        let sum =
            "local.get m local.get m i32.add local.get n i32.const 1 i32.sub local.tee n i32.or";
        let source =
            format!("func f(n: i32, m: i32) {{ a: {sum} br_if b b: {sum} br_if a return }}");
        assert_eq!(recurring(&source), 2);
    }

    #[test]
    fn parts_and_blocks_of_the_code_are_counted() {
        let load = "local.get m i32.load 0 drop local.get n i32.const 1 i32.sub local.tee n";
        let source = format!(
            "memory m 1 func f(n: i32, m: i32) {{ a: {load} br_if b b: {load} br_if a return }}"
        );
        assert_eq!(recurring(&source), 0);
        let func = ssa(&source);
        let loops = LoopForest::new(&control_flow(&func));
        let address = |inst: Inst, part: &mut dyn FnMut(HiddenValue)| {
            if func.opcode(inst) == Opcode::Op(Op::I32Load) {
                let operands = [func.operands(inst).first().copied(), None];
                part(HiddenValue { key: 0, operands, n_values: 3 });
            }
        };
        // Three values, two blocks, each of which is ten in the code.
        assert_eq!(recurring_spans(&func, &loops, address, |_| 10), 60);
    }
}
