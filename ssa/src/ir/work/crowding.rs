//! Values live at the same time inside of blocks, and those that an optimiser makes live longer.
//!
//! A register allocator that splits live ranges takes time for each value without a register and each
//! instruction that it lives through: the square of the block where many values wait to be used.
//!
//! An optimiser that keeps operations without effects apart from their order, as one on an e-graph does,
//! computes them where their results are first needed. What they are computed from has to live until then:
//! a thousand loads, of which a later block uses the sum, all live in the blocks between.

use std::ops::Range;

use slotvm_bytecode::Effect;

use crate::graphs::search::{NONE, Search};
use crate::graphs::steps::step;
use crate::ir::Function;
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::graph::control_flow;

/// The number of values of a block that find registers and do not count.
const REGISTERS: i64 = 14;

/// The counts of [`crowding()`](crowding).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Crowding {
    /// Values of a block that live at an instruction of it, beyond those that find registers, summed over the
    /// places that instructions count for.
    pub local: u64,
    /// Values of a block that are made where others have taken the registers.
    pub spilled: u64,
    /// Values of a block that live at a check in it, beyond those that find registers, summed over the checks.
    pub at_checks: u64,
    /// Blocks over which values live longer since what is computed from them is computed later. Summed
    /// over the values.
    pub deferred: u64,
}

/// The most that [`Crowding::local`] and [`Crowding::spilled`] can be, by the sizes of blocks. `n_places` is how
/// many places an instruction counts for.
pub fn crowding_max(func: &Function, n_places: impl Fn(Inst) -> u64) -> Crowding {
    let of_block = |block| {
        let insts = func.insts(block);
        let beyond = (insts.len() as u64).saturating_sub(REGISTERS as u64);
        (insts.iter().map(|&inst| n_places(inst)).sum::<u64>() * beyond, beyond)
    };
    let sum = |(local, spilled), block| {
        let (of_block, beyond) = of_block(block);
        (local + of_block, spilled + beyond)
    };
    let (local, spilled) = func.blocks().fold((0, 0), sum);
    Crowding { local, spilled, ..Crowding::default() }
}

/// Counts how values crowd, in time linear in the function. If it `defers`, operations without effects are
/// computed where they are first needed, or else where they are. `n_checks` is how many checks an
/// instruction has that split its block, and `n_places` how many places it counts for.
pub fn crowding(
    func: &Function,
    defers: bool,
    n_checks: impl Fn(Inst) -> u64,
    n_places: impl Fn(Inst) -> u64,
) -> Crowding {
    let mut uses = Uses::new(func, defers);
    let mut crowding = Crowding::default();
    let (mut search, mut numbers) = (Search::default(), Vec::new());
    search.run(&control_flow(func), &mut numbers);
    let mut end = func.n_insts() as u32;
    // In postorder the uses of a value come before what dominates them.
    for (&found, after) in search.postorder.iter().zip(1..) {
        let block = Block(search.vertices[found as usize]);
        let start = end - func.insts(block).len() as u32;
        uses.of_block(block, func.n_blocks() as u32 - after, start..end);
        uses.find_live(block, start..end);
        // What comes into the block is no value that is made in it.
        let (mut n_live, mut n_entering) = (0, uses.n_entering);
        for (change, &inst) in uses.changes.iter().zip(func.insts(block)) {
            n_live += change;
            let n_crowded = (n_live - REGISTERS).max(0) as u64;
            crowding.local += n_crowded * n_places(inst);
            let n_made = change - std::mem::take(&mut n_entering);
            crowding.spilled += n_crowded.min(n_made.max(0) as u64);
            crowding.at_checks += n_checks(inst).saturating_mul(n_crowded);
        }
        end = start;
    }
    crowding.deferred = uses.deferred;
    crowding
}

/// The last blocks in which a value is needed.
#[derive(Copy, Clone)]
struct Span {
    /// Last block with an instruction that uses it.
    direct: u32,
    /// The same block if each deferred use counts where it is computed.
    deferred: u32,
}

/// The places where values are needed. Places are numbers of instructions, and blocks have numbers, in
/// reverse postorder.
struct Uses<'a> {
    func: &'a Function,
    defers: bool,
    /// The first and the last place of each value, or [`NONE`] twice.
    places: Vec<(u32, u32)>,
    spans: Vec<Span>,
    /// Change of the number of live values at each place of a block.
    changes: Vec<i64>,
    /// The parameters of a block that live in it.
    n_entering: i64,
    /// Number of blocks by which live ranges grow.
    deferred: u64,
}

impl<'a> Uses<'a> {
    fn new(func: &'a Function, defers: bool) -> Uses<'a> {
        Uses {
            func,
            defers,
            places: vec![(NONE, NONE); func.n_values()],
            spans: vec![Span { direct: NONE, deferred: NONE }; func.n_values()],
            changes: Vec::new(),
            n_entering: 0,
            deferred: 0,
        }
    }

    fn is_deferred(&self, inst: Inst) -> bool {
        self.defers
            && self.func.opcode(inst).effect() == Effect::Pure
            && self.func.results(inst).len() == 1
    }

    /// Whether an instruction is a constant that does not wait: the optimiser makes constants where they are needed,
    /// and without it those that are used at once need no register for long.
    fn is_made_again(&self, inst: Inst, place: u32) -> bool {
        let func = self.func;
        let is_const = func.operands(inst).is_empty() && func.opcode(inst).effect() == Effect::Pure;
        let waits = |result: Value| {
            let (_, last) = self.places[result.index()];
            last != NONE && last > place + REGISTERS as u32
        };
        is_const && (self.defers || !func.results(inst).any(waits))
    }

    /// Notes the uses in a block, which has a number; those in later blocks are noted already.
    fn of_block(&mut self, block: Block, number: u32, places: Range<u32>) {
        let func = self.func;
        for edge in func.succ_edges(block) {
            for &value in func.edge_args(edge) {
                self.note(value, places.end - 1, number, number);
            }
        }
        for (place, &inst) in places.clone().zip(func.insts(block)).rev() {
            let (mut needed_at, mut needed_in) = (place, number);
            if self.is_deferred(inst) {
                let result = func.result(inst).index();
                let (first, _) = self.places[result];
                if first == NONE {
                    continue;
                }
                (needed_at, needed_in) = (first, self.spans[result].deferred);
            }
            for &value in func.operands(inst) {
                self.note(value, needed_at, number, needed_in);
            }
        }
    }

    fn note(&mut self, value: Value, place: u32, direct: u32, deferred: u32) {
        step();
        let (first, last) = &mut self.places[value.index()];
        *first = place.min(*first);
        *last = if *last == NONE { place } else { place.max(*last) };
        let later = |a: &mut u32, b: u32| *a = if *a == NONE { b } else { b.max(*a) };
        let span = &mut self.spans[value.index()];
        later(&mut span.direct, direct);
        later(&mut span.deferred, deferred);
    }

    /// Finds what lives in a block, and sums up how much longer what is made in it lives.
    fn find_live(&mut self, block: Block, places: Range<u32>) {
        let func = self.func;
        self.changes.clear();
        self.changes.resize(places.len() + 1, 0);
        for &param in func.params(block) {
            self.live(param, places.start, &places);
            self.deferred += self.delay(param);
        }
        self.n_entering = self.changes[0];
        for (place, &inst) in places.clone().zip(func.insts(block)) {
            if self.is_made_again(inst, place) {
                continue;
            }
            for result in func.results(inst) {
                if self.is_deferred(inst) {
                    self.live(result, self.places[result.index()].0, &places);
                } else {
                    self.live(result, place, &places);
                    self.deferred += self.delay(result);
                }
            }
        }
    }

    /// The blocks over which a value lives longer.
    fn delay(&self, value: Value) -> u64 {
        let Span { direct, deferred } = self.spans[value.index()];
        if direct == NONE { 0 } else { u64::from(deferred - direct) }
    }

    /// A value lives from a place to the last one where it is needed.
    fn live(&mut self, value: Value, from: u32, places: &Range<u32>) {
        let (_, last) = self.places[value.index()];
        if last == NONE || from >= places.end {
            return;
        }
        let index = |place: u32| (place.min(places.end) - places.start) as usize;
        self.changes[index(from)] += 1;
        self.changes[index(last)] -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slotvm_bytecode::Op;

    use crate::ir::irop::Opcode;
    use crate::tools::samples::ssa;

    /// Loads on the stack, and then their sum.
    fn pile(n: usize) -> Function {
        let loads = "i32.const 0 i64.load 0\n".repeat(n);
        let adds = "i64.add\n".repeat(n - 1);
        ssa(&format!("memory m 1\nfunc f() -> i64 {{ {loads} {adds} return }}"))
    }

    /// The sum of loads, one added after the other, before `end`.
    fn sum(n: usize, end: &str) -> Function {
        let loads = "i32.const 0 i64.load 0 i64.add\n".repeat(n);
        ssa(&format!(
            "memory m 1\nfunc f(n: i32) -> i64 {{ local 1 i64 i64.const 0 {loads} {end} }}"
        ))
    }

    fn counted(func: &Function, defers: bool) -> Crowding {
        crowding(func, defers, |_| 0, |_| 1)
    }

    #[test]
    fn values_that_live_at_checks_are_counted() {
        let func = pile(100);
        let n_checks = |inst| 2 * u64::from(func.opcode(inst) == Opcode::Op(Op::I64Load));
        // Before a load there are the others before it.
        let at_checks = 2 * (1..86_u64).sum::<u64>();
        let found = crowding(&func, false, n_checks, |_| 1);
        assert!((at_checks..at_checks + 200).contains(&found.at_checks), "{found:?}");
        assert_eq!(counted(&func, false).at_checks, 0);
    }

    #[test]
    fn values_that_wait_are_counted() {
        assert_eq!(counted(&pile(14), false), Crowding::default());
        for n in [100, 200] {
            let Crowding { local, spilled, deferred, .. } = counted(&pile(n), false);
            // Two triangles, without what has registers; constants are instructions, too.
            let square = ((n - 14) * (n - 14)) as u64;
            assert!((square..=2 * square).contains(&local), "{n}: {local}");
            assert!(local <= crowding_max(&pile(n), |_| 1).local);
            // Half of the instructions are constants.
            assert_eq!(spilled, (n - 14) as u64);
            assert_eq!(deferred, 0);
        }
    }

    #[test]
    fn what_is_computed_later_makes_values_wait() {
        let func = sum(200, "return");
        assert_eq!(counted(&func, false), Crowding::default());
        let deferred = counted(&func, true);
        assert!(deferred.local >= 186 * 186, "{deferred:?}");
        assert_eq!(deferred.deferred, 0);
        // In the second block from there.
        let store = "local.get n br_if a i32.const 0 i32.const 1 i32.store 0";
        let later = sum(10, &format!("local.set 1 {store} a: local.get 1 return"));
        assert_eq!(counted(&later, false), Crowding::default());
        assert_eq!(counted(&later, true).deferred, 20);
    }

    #[test]
    fn constants_wait_without_an_optimiser() {
        let consts = "i64.const 7\n".repeat(100);
        let stores = "i32.const 0 i64.const 5 i64.store 0\n".repeat(50);
        let adds = "i64.add\n".repeat(99);
        let func =
            ssa(&format!("memory m 1\nfunc f() -> i64 {{ {consts} {stores} {adds} return }}"));
        let Crowding { local, spilled, .. } = counted(&func, false);
        // All but those in registers wait for the stores.
        assert!(local >= 86 * 150 && local <= crowding_max(&func, |_| 1).local, "{local}");
        assert!((86..=100).contains(&spilled), "{spilled}");
        assert_eq!(counted(&func, true), Crowding::default());
    }

    #[test]
    fn the_bound_is_one() {
        for func in [pile(100), sum(100, "return"), sum(3, "return")] {
            for defers in [false, true] {
                let (found, max) = (counted(&func, defers), crowding_max(&func, |_| 1));
                assert!(found.local <= max.local && found.spilled <= max.spilled);
            }
        }
        assert_eq!(crowding_max(&sum(3, "return"), |_| 1), Crowding::default());
    }
}
