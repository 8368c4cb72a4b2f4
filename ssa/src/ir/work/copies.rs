//! Repeated computation of values by an optimiser that computes them where they are needed.
//!
//! An optimiser that keeps operations without effects apart from their order, as one on an e-graph does, computes
//! them in the blocks that need them. If none of those dominates the others, they are computed in several, and so is
//! what they are computed from: of a long chain of operations, whose links are each needed after a branch, the whole
//! start is in the code for each of the branches. What a branch needs counts apart from its block: if its condition
//! turns out to be constant, the branch is removed.

use slotvm_bytecode::Effect;

use crate::graphs::dominators::DomTree;
use crate::graphs::search::Search;
use crate::graphs::steps::step;
use crate::ir::Function;
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::graph::control_flow;

/// The number of places needing a value that are told apart; beyond it only an upper bound is kept.
const PLACES: usize = 5;

/// Marks the number of a block that stands for its branch, which may be removed.
const EDGE: u32 = 1 << 31;

/// Calls `of_inst` with each operation without effects that is computed in more than one block, and an upper
/// bound of the extra times. Constants, which are no work, are left out. It takes time linear in the
/// function.
pub fn copies(func: &Function, of_inst: impl FnMut(Inst, u64)) {
    let cfg = control_flow(func);
    let (mut search, mut numbers) = (Search::default(), Vec::new());
    search.run(&cfg, &mut numbers);
    let postorder: Vec<Block> =
        search.postorder.iter().map(|&found| Block(search.vertices[found as usize])).collect();
    let needs = Needs {
        func,
        doms: DomTree::semi_nca(&cfg),
        same: same_values(func, &postorder),
        of: vec![Need::default(); func.n_values()],
    };
    needs.find(&postorder, of_inst);
}

/// The value that a value is known to be the same as: a block parameter that gets the same one from everywhere is
/// that. What comes around a loop is taken for the same at first.
fn same_values(func: &Function, postorder: &[Block]) -> Vec<Value> {
    let mut same: Vec<Option<Value>> = (0..func.n_values()).map(|i| Some(Value::new(i))).collect();
    let params = || {
        let blocks = postorder.iter().rev().filter(|&&block| block != Function::ENTRY);
        blocks.flat_map(|&block| {
            func.params(block).iter().enumerate().map(move |param| (block, param))
        })
    };
    for (_, (_, &param)) in params() {
        same[param.index()] = None;
    }
    for _ in 0..2 {
        for (block, (i, &param)) in params() {
            let edges = func.pred_edges(block).iter();
            let args = edges.filter_map(|&edge| same[func.edge_args(edge)[i].index()]);
            let mut args = args.filter(|&arg| arg != param);
            let first = args.next();
            let is_same = args.all(|arg| Some(arg) == first);
            same[param.index()] = if is_same { first.or(Some(param)) } else { Some(param) };
        }
    }
    let known = |(i, same): (usize, Option<Value>)| same.unwrap_or(Value::new(i));
    same.into_iter().enumerate().map(known).collect()
}

/// The places that need a value first, blocks and their branches, none of which dominates another one.
#[derive(Copy, Clone, Default)]
struct Need {
    /// Their number; or, if it is above [`PLACES`], as many at most.
    n: u32,
    /// Those that are told apart; of more, the first is the one that was noted last.
    places: [u32; PLACES],
}

struct Needs<'a> {
    func: &'a Function,
    doms: DomTree,
    same: Vec<Value>,
    of: Vec<Need>,
}

impl Needs<'_> {
    /// Finds the copies. In postorder the uses of a value come before the blocks that dominate them.
    fn find(mut self, postorder: &[Block], mut of_inst: impl FnMut(Inst, u64)) {
        let func = self.func;
        for &block in postorder {
            let is_conditional = func.succ_edges(block).len() > 1;
            let end = if is_conditional { block.0 | EDGE } else { block.0 };
            self.add_edges(block, end);
            for &inst in func.insts(block).iter().rev() {
                let operands = func.operands(inst);
                if func.opcode(inst).effect() != Effect::Pure || func.results(inst).len() != 1 {
                    let place = if inst == func.terminator(block) { end } else { block.0 };
                    operands.iter().for_each(|&value| self.add(value, place));
                    continue;
                }
                let need = self.of[func.result(inst).index()];
                let n_blocks = need.n.min(func.n_blocks() as u32);
                if n_blocks > 1 && !operands.is_empty() {
                    of_inst(inst, u64::from(n_blocks) - 1);
                }
                for (i, &value) in operands.iter().enumerate() {
                    if !operands[..i].contains(&value) {
                        self.join(value, need);
                    }
                }
            }
        }
    }

    /// Notes what a block hands over at its end, but not what is known without.
    fn add_edges(&mut self, block: Block, end: u32) {
        let func = self.func;
        for edge in func.succ_edges(block) {
            let params = func.params(func.edge_dst(edge)).iter();
            for (&value, &param) in func.edge_args(edge).iter().zip(params) {
                if self.same[param.index()] == param {
                    self.add(value, end);
                }
            }
        }
    }

    /// Whether a value computed in one place is available in another.
    fn reaches(&self, from: u32, to: u32) -> bool {
        from == to || from & EDGE == 0 && self.doms.dominates(from, to & !EDGE)
    }

    fn add(&mut self, value: Value, place: u32) {
        let value = self.same[value.index()];
        self.of[value.index()] = self.with(self.of[value.index()], place);
    }

    fn join(&mut self, value: Value, other: Need) {
        let value = self.same[value.index()];
        let need = self.of[value.index()];
        self.of[value.index()] = match other.places.get(..other.n as usize) {
            Some(places) => places.iter().fold(need, |need, &place| self.with(need, place)),
            None => Need { n: need.n.saturating_add(other.n), places: other.places },
        };
    }

    /// The places with one more.
    fn with(&self, mut need: Need, place: u32) -> Need {
        step();
        let n = (need.n as usize).min(PLACES);
        if need.n as usize > PLACES {
            if !self.reaches(need.places[0], place) {
                (need.n, need.places[0]) = (need.n.saturating_add(1), place);
            }
            return need;
        }
        let known = &need.places[..n];
        if known.iter().any(|&known| self.reaches(known, place)) {
            return need;
        }
        let (mut kept, mut n_kept) = ([0; PLACES], 0);
        for &known in known.iter().filter(|&&known| !self.reaches(place, known)) {
            kept[n_kept] = known;
            n_kept += 1;
        }
        if n_kept == PLACES {
            kept[0] = place;
            return Need { n: PLACES as u32 + 1, places: kept };
        }
        kept[n_kept] = place;
        Need { n: n_kept as u32 + 1, places: kept }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs::steps::within;
    use crate::tools::samples::ssa;

    /// The copies in a function: the operations, and of all the sum.
    fn copied(source: &str) -> (usize, u64) {
        let func = ssa(source);
        let (mut n_insts, mut n_copies) = (0, 0);
        copies(&func, |_, n| {
            n_insts += 1;
            n_copies += n;
        });
        (n_insts, n_copies)
    }

    /// Links of a chain, after each of which a branch needs what is computed so far, or an early return.
    fn chain(n: usize) -> String {
        let link = "local.get x i32.const 3 i32.mul local.tee x i32.const 5 i32.xor local.set x";
        let links: String = (0..n).map(|i| format!("{link} local.get n br_if out{i}\n")).collect();
        let outs: String = (0..n).map(|i| format!("out{i}: local.get x return\n")).collect();
        format!("func f(n: i32, x: i32) -> i32 {{ {links} local.get x return {outs} }}")
    }

    #[test]
    fn what_branches_need_is_copied_for_each() {
        // The last two links are needed in two blocks, those before in one more each.
        for n in [3, 5, 10, 40] {
            let n_copies = (1..=n as u64).sum::<u64>() * 2;
            assert_eq!(copied(&chain(n)), (2 * n, n_copies), "{n}");
        }
    }

    #[test]
    fn counting_takes_linear_time() {
        for n in [1_000, 2_000] {
            let func = ssa(&chain(n));
            let mut n_copies = 0;
            within(func.n_insts() * 2 * PLACES, n, || copies(&func, |_, n| n_copies += n));
            assert!(n_copies >= (n * n) as u64, "{n_copies}");
        }
    }

    #[test]
    fn what_is_needed_at_once_is_not_copied() {
        // A store after each link needs it there.
        let link =
            "local.get x i32.const 3 i32.mul local.set x i32.const 0 local.get x i32.store 0";
        let links: String =
            (0..10).map(|i| format!("{link} local.get n br_if out{i} out{i}: ")).collect();
        let source =
            format!("memory m 1 func f(n: i32, x: i32) -> i32 {{ {links} local.get x return }}");
        assert_eq!(copied(&source), (0, 0));
        // Two branches.
        let source = "func f(n: i32, x: i32) -> i32 { local.get x i32.const 3 i32.mul local.set x
            local.get n br_if a local.get x return a: local.get x i32.const 1 i32.or return }";
        assert_eq!(copied(source), (1, 1));
    }

    #[test]
    fn parameters_that_get_the_same_from_everywhere_need_nothing() {
        // Operands that wait on the stack go through each block, and are parameters of those that meet.
        let (n, link) = (20, "local.get x i32.const 3 i32.mul local.tee x");
        let pushes: String = (0..n).map(|i| format!("{link} local.get n br_if out{i}\n")).collect();
        let stack = |i| vec!["i32"; i + 1].join(", ");
        let pops: String =
            (0..n).rev().map(|i| format!("out{i}({}): global.set g\n", stack(i))).collect();
        let source = format!(
            "global g: mut i32 = i32.const 0 func f(n: i32, x: i32) {{ {pushes} {pops} return }}"
        );
        // The last link is needed in the block of the first pop only.
        assert_eq!(copied(&source), (n - 1, (1..n as u64).sum()));
    }
}
