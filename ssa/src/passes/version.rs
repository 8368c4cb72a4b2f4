//! Loop versioning: checks of accesses that a loop repeats are made once, in front of it.
//!
//! Relies on SSA form, and guarantees it. An innermost loop whose addresses change by the same amount in each round gets
//! a copy and a *guard*. The guard computes the last round that can begin, and whether the accesses of all rounds up to
//! it lie inside the memory as it is. If so, the loop runs with [marks](Function::is_in_bounds) on these
//! accesses, which the lowering does not check. If not, the copy runs, in which nothing has changed: it traps where the
//! loop did, after all that the loop did before. It is what HotSpot calls loop predication and LLVM `LoopVersioning`.
//!
//! A memory never shrinks, so what the guard has found stays true. It may ask for more than the loop would do, since a
//! loop can end early and need not reach all of its accesses. Then the copy runs although it would not trap.
//!
//! Steps:
//! 1. `affine` finds the values that change by the same amount in each round.
//! 2. `rounds` finds the test that ends the loop, and from it how far the loop goes.
//! 3. `guard` writes the guard. All sums are of 64 bits and do not wrap.
//! 4. `copy` makes the copies. Values of a loop that are used after it come from two loops then. They are written to
//!    slots, which are promoted in turn.
//!
//! Runs only where accesses are checked. Loops that call stay: beside a call a check costs little. Takes time linear in
//! the function, except for promotion and for the dominator tree.

mod affine;
mod conditions;
mod copy;
mod guard;
mod rounds;
mod value_map;

use self::affine::Values;
use self::guard::Access;
use self::rounds::Rounds;
use crate::graphs::ids::Loop;
use crate::ir::Function;
use crate::ir::analyses::Analyses;
use crate::ir::entity::{Block, Edge, Inst};
use crate::ir::irop::{IrOp, Opcode};

/// The maximum number of instructions of a loop that is copied.
pub const LOOP_INSTS_MAX: usize = 400;
/// The maximum number of checks that a guard makes. Accesses beyond them keep their own.
pub const GUARDED_MAX: usize = 12;
/// The maximum number of values that are used after the loops of a function that are copied.
pub const LIVE_OUT_MAX: usize = 256;
/// The maximum number of blocks of a function whose loops are copied.
pub const VERSIONED_BLOCKS_MAX: usize = 1 << 18;

/// Statistics of loop versioning.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionReport {
    /// Loops that have a guard and a copy.
    pub n_loops: usize,
    /// Accesses that guards have shown to be in bounds.
    pub n_in_bounds: usize,
}

/// Gives loops of a function in SSA form a version without checks.
pub fn version(f: &mut Function, analyses: &mut Analyses) -> VersionReport {
    // Blocks are numbered so that only what closes a loop leads back.
    let is_back = |edge: Edge| f.edge_dst(edge) <= f.edge_src(edge);
    let has_loops = f.blocks().any(|block| f.succ_edges(block).any(is_back));
    let has_accesses = f.layout.iter().any(|&inst| f.opcode(inst).is_access());
    if !has_loops || !has_accesses || f.n_blocks() > VERSIONED_BLOCKS_MAX {
        return VersionReport::default();
    }
    let plans = find_plans(f, analyses);
    let report = VersionReport {
        n_loops: plans.len(),
        n_in_bounds: plans.iter().map(|plan| plan.in_bounds.len()).sum(),
    };
    if !plans.is_empty() {
        copy::apply(f, &plans);
    }
    report
}

/// A loop to copy.
struct Plan {
    /// Its blocks; the first one is the header.
    blocks: Vec<Block>,
    rounds: Rounds,
    /// The accesses that the guard checks, one for each address.
    accesses: Vec<Access>,
    /// The accesses that it shows to be in bounds.
    in_bounds: Vec<Inst>,
    /// The instructions that compute what the guard needs, as they are in the first round.
    first_round: Vec<Inst>,
}

/// Finds the loops to copy.
fn find_plans(f: &Function, analyses: &mut Analyses) -> Vec<Plan> {
    let (loops, _) = analyses.loops(f);
    let mut blocks_of: Vec<Vec<Block>> = vec![Vec::new(); loops.n_loops()];
    for block in f.blocks() {
        if let Some(innermost) = loops.innermost(block.0) {
            blocks_of[innermost.index()].push(block);
        }
    }
    let mut has_inner = vec![false; loops.n_loops()];
    loops.loops().filter_map(|of| loops.parent(of)).for_each(|it| has_inner[it.index()] = true);
    let is_innermost = |of: &Loop| !has_inner[of.index()] && !loops.is_irreducible(*of);
    let mut candidates: Vec<Vec<Block>> = loops
        .loops()
        .filter(is_innermost)
        .map(|of| std::mem::take(&mut blocks_of[of.index()]))
        .filter(|blocks| is_worth_a_look(f, blocks))
        .collect();
    copy::keep_few_live_out(f, &mut candidates);
    if candidates.is_empty() {
        return Vec::new();
    }
    let mut values = Values::new(f);
    candidates.into_iter().filter_map(|blocks| plan(f, &mut values, blocks)).collect()
}

/// Whether a loop has accesses, is small, and does not call.
fn is_worth_a_look(f: &Function, blocks: &[Block]) -> bool {
    let opcodes = || blocks.iter().flat_map(|&b| f.insts(b)).map(|&inst| f.opcode(inst));
    opcodes().count() <= LOOP_INSTS_MAX
        && opcodes().any(Opcode::is_access)
        && !opcodes().any(|op| op.calls() || op == Opcode::Ir(IrOp::FramePush))
}

/// The plan of a loop, if a guard can replace checks in it.
fn plan(f: &Function, values: &mut Values, blocks: Vec<Block>) -> Option<Plan> {
    let latch = only_latch(f, &blocks)?;
    values.analyse(f, &blocks, latch);
    let rounds = Rounds::find(f, values, &blocks, latch)?;
    let (mut accesses, mut in_bounds) = (Vec::new(), Vec::new());
    for &inst in blocks.iter().flat_map(|&block| f.insts(block)) {
        if let Some(access) = access(f, values, inst)
            && guard::add(&mut accesses, access, &rounds)
        {
            in_bounds.push(inst);
        }
    }
    if accesses.is_empty() {
        return None;
    }
    let needed = accesses.iter().flat_map(Access::values).chain(rounds.values());
    let first_round = values.of_first_round(f, &blocks, needed);
    Some(Plan { blocks, rounds, accesses, in_bounds, first_round })
}

/// The only edge back to the header of a loop, if there is one.
fn only_latch(f: &Function, blocks: &[Block]) -> Option<Edge> {
    let header = blocks[0];
    let mut back = f.pred_edges(header).iter().filter(|&&edge| f.edge_src(edge) >= header);
    let (Some(&latch), None) = (back.next(), back.next()) else { return None };
    Some(latch)
}

/// An access whose operands change by the same amount in each round.
fn access(f: &Function, values: &Values, inst: Inst) -> Option<Access> {
    let Opcode::Op(op) = f.opcode(inst) else { return None };
    let bytes = op.access_bytes()?;
    let imm = f.imm(inst);
    if f.is_in_bounds(inst) {
        return None;
    }
    let operands = f.operands(inst);
    let term = |i: usize| values.affine(operands[i]);
    let is_indexed = op.access().is_some_and(|access| access.indexed);
    let index = if is_indexed { Some((term(1)?, imm.scale_log2())) } else { None };
    let end = u64::from(imm.offset()) + u64::from(bytes);
    Some(Access { base: term(0)?, index, end })
}

#[cfg(test)]
mod tests;
