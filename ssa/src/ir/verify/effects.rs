//! The order of effects, which passes must keep.
//!
//! Checks that a function after a pass has no execution whose [ordered effects](Opcode::is_ordered) the function
//! before it did not have: each path through the blocks after the pass is followed beside one before it, effect by
//! effect. A pass may drop paths (a branch that always goes one way), split edges, merge and copy blocks, and choose
//! between copies by a branch of its own, whose location is none that was there. An operation that may trap and does
//! nothing else can go, since passes remove it where it is known not to, and a copy may come before it; neither can pass
//! another effect. Any other effect that is missing, new or elsewhere is a violation.
//!
//! Relies on passes that keep the ids of instructions with effects, or copy these. A copy is known by its operation,
//! immediate and location. Says nothing of the values that effects use: the evaluator compares those.
//!
//! Linear in the function where blocks are what they were. Where they are not, a search for the next effect looks at
//! no more than `EFFECT_BLOCKS_MAX` blocks, and a block is compared with no more than `EFFECT_PLACES_MAX` places; beyond
//! these limits a path counts as unchanged.

use slotvm_bytecode::{Effect, Imm};

use super::{Property, Violation};
use crate::ir::Function;
use crate::ir::entity::{Block, Inst, Loc};
use crate::ir::irop::Opcode;

/// The maximum number of blocks in which the next effect is looked for.
const EFFECT_BLOCKS_MAX: usize = 256;
/// The maximum number of places before a pass that a block after it is compared with.
const EFFECT_PLACES_MAX: usize = 4;

/// The ordered effects of a function, kept for comparison with the function after a pass.
#[derive(Debug)]
pub struct Effects {
    /// The ordered instructions and the terminator of each block, one block after the other.
    insts: Vec<EffectData>,
    /// The number of instructions ever made. Those from it on are of the pass.
    n_insts: usize,
    /// The end of each block's instructions.
    ends: Vec<u32>,
    succs: Vec<Block>,
    /// The end of each block's successors.
    succ_ends: Vec<u32>,
}

/// An ordered instruction, or a terminator.
#[derive(Copy, Clone, Debug)]
struct EffectData {
    inst: Inst,
    /// The operation, its immediate and its location, by which a copy is known.
    identity: (Opcode, Imm, Loc),
    /// Whether a pass may remove it.
    may_go: bool,
}

/// A place among the effects: a block, and how many of its effects are past.
type Place = (Block, u32);

impl Effects {
    /// Collects the effects of a function.
    pub fn of(f: &Function) -> Effects {
        let mut effects = Effects {
            insts: Vec::new(),
            n_insts: f.n_insts(),
            ends: Vec::new(),
            succs: Vec::new(),
            succ_ends: Vec::new(),
        };
        for block in f.blocks() {
            let of_block = f.insts(block).iter().filter(|&&inst| {
                let op = f.opcode(inst);
                op.is_ordered() || op.is_terminator()
            });
            effects.insts.extend(of_block.map(|&inst| {
                let may_go = may_go(f.opcode(inst));
                EffectData { inst, identity: identity(f, inst), may_go }
            }));
            effects.ends.push(effects.insts.len() as u32);
            effects.succs.extend(f.succ_edges(block).map(|edge| f.edge_dst(edge)));
            effects.succ_ends.push(effects.succs.len() as u32);
        }
        effects
    }

    /// Checks that a pass has kept the order of effects.
    ///
    /// # Errors
    /// Returns the first effect that is not where it was.
    pub fn check(&self, f: &Function) -> Result<(), Violation> {
        let mut places: Vec<Vec<Place>> = vec![Vec::new(); f.n_blocks()];
        places[Function::ENTRY.index()].push((Function::ENTRY, 0));
        let mut work = vec![(Function::ENTRY, (Function::ENTRY, 0))];
        while let Some((block, place)) = work.pop() {
            let Some(ends) = self.follow(f, block, place)? else { continue };
            for (edge, end) in f.succ_edges(block).zip(ends) {
                let succ = f.edge_dst(edge);
                let known = &mut places[succ.index()];
                let end = self.ahead(end);
                if !known.contains(&end) && known.len() < EFFECT_PLACES_MAX {
                    known.push(end);
                    work.push((succ, end));
                }
            }
        }
        Ok(())
    }

    /// Follows a block from a place before the pass. Returns the place that each of its out-edges leads to, unless that
    /// is not known.
    fn follow(
        &self,
        f: &Function,
        block: Block,
        start: Place,
    ) -> Result<Option<Vec<Place>>, Violation> {
        let mut place = start;
        for &inst in f.insts(block) {
            let op = f.opcode(inst);
            if !op.is_ordered() && !op.is_terminator() {
                continue;
            }
            let n_succs = f.succ_edges(block).len();
            if !op.is_ordered() && n_succs == 1 {
                // Goes on where it was, or where a branch went that has other edges no more.
                return Ok(Some(vec![place]));
            }
            match self.find(f, inst, place) {
                // What only may trap can be done twice; so it may also stand where it was.
                Search::Found(_) if self.is_new(inst) && may_go(op) && op.is_ordered() => {}
                Search::Found(found) => place = found,
                Search::TooFar => return Ok(None),
                // The pass decides between ways to do the same.
                Search::Missing if self.is_new(inst) && !op.is_ordered() => {
                    return Ok(Some(vec![place; n_succs]));
                }
                Search::Missing => {
                    let name = op.mnemonic();
                    let detail = format!("{inst} ({name}) in {block} is not where it was");
                    return Err(Violation { property: Property::EffectsInOrder, detail });
                }
            }
            if op.is_terminator() {
                let succs = self.succs(place.0);
                return Ok(
                    (succs.len() == n_succs).then(|| succs.iter().map(|&succ| (succ, 0)).collect())
                );
            }
        }
        Ok(None)
    }

    /// Looks for an instruction from a place on, past branches and past what may go. Returns the place after it.
    fn find(&self, f: &Function, inst: Inst, start: Place) -> Search {
        let is_it = |effect: &EffectData| match self.is_new(inst) {
            true => effect.identity == identity(f, inst),
            false => effect.inst == inst,
        };
        let (mut seen, mut next) = (vec![start], 0);
        while let Some(&(block, n_past)) = seen.get(next) {
            next += 1;
            let ahead = &self.effects(block)[n_past as usize..];
            let at = ahead.iter().position(|effect| is_it(effect) || !effect.may_go);
            if let Some(at) = at {
                if is_it(&ahead[at]) {
                    return Search::Found((block, n_past + at as u32 + 1));
                }
                continue;
            }
            for &succ in self.succs(block) {
                if !seen.contains(&(succ, 0)) {
                    seen.push((succ, 0));
                }
            }
            if seen.len() > EFFECT_BLOCKS_MAX {
                return Search::TooFar;
            }
        }
        Search::Missing
    }

    /// Whether the pass has made an instruction.
    fn is_new(&self, inst: Inst) -> bool {
        inst.index() >= self.n_insts
    }

    /// The same place, past blocks in which nothing happens but the branch at their end.
    fn ahead(&self, mut place: Place) -> Place {
        for _ in 0..EFFECT_BLOCKS_MAX {
            let (block, n_past) = place;
            match (&self.effects(block)[n_past as usize..], self.succs(block)) {
                (&[EffectData { may_go: true, .. }] | &[], &[succ]) => place = (succ, 0),
                _ => break,
            }
        }
        place
    }

    fn effects(&self, block: Block) -> &[EffectData] {
        row(&self.insts, &self.ends, block)
    }

    fn succs(&self, block: Block) -> &[Block] {
        row(&self.succs, &self.succ_ends, block)
    }
}

/// The result of a search for an effect.
enum Search {
    Found(Place),
    Missing,
    TooFar,
}

fn row<'a, T>(items: &'a [T], ends: &[u32], block: Block) -> &'a [T] {
    let start = block.index().checked_sub(1).map_or(0, |before| ends[before]);
    &items[start as usize..ends[block.index()] as usize]
}

fn identity(f: &Function, inst: Inst) -> (Opcode, Imm, Loc) {
    (f.opcode(inst), f.imm(inst), f.loc(inst))
}

/// Whether a pass may remove an operation: a branch, or one that may trap and does nothing else, once it is known that
/// it does not.
fn may_go(op: Opcode) -> bool {
    !op.is_ordered() || matches!(op.effect(), Effect::Trap | Effect::Read)
}

#[cfg(test)]
mod tests;
