//! The instructions with which each first round of a loop begins, up to the first one that must not be executed twice.

use slotvm_bytecode::Effect;

use super::{Body, certain_blocks};
use crate::ir::Function;
use crate::ir::entity::{Inst, Value};

/// The maximum number of instructions that may trap and are copied in front of a loop. A loop of one round does them
/// twice.
const FIRST_ROUND_MAX: usize = 4;
/// The maximum number of values of a round, before its certain loads end, that cannot be copied.
const UNCOPIED_MAX: usize = 64;

/// The instructions that may trap with which each first round begins.
pub(super) struct FirstRound {
    insts: Vec<Inst>,
}

impl FirstRound {
    /// Finds them. They need nothing but phis of the header, values of outside, each other, and pure instructions.
    pub(super) fn find(f: &Function, body: &Body) -> FirstRound {
        let mut found = FirstRound { insts: Vec::new() };
        let mut unknown: Vec<Value> = Vec::new();
        let certain = certain_blocks(f, body);
        for (i, (&block, is_certain)) in body.blocks.iter().zip(certain).enumerate() {
            if i > 0 {
                unknown.extend_from_slice(f.params(block));
            }
            if unknown.len() > UNCOPIED_MAX {
                return found;
            }
            for &inst in f.insts(block) {
                let opcode = f.opcode(inst);
                let is_known = f.operands(inst).iter().all(|value| !unknown.contains(value));
                if !opcode.is_ordered() {
                    if !(is_known && opcode.effect() == Effect::Pure) {
                        unknown.extend(f.results(inst));
                    }
                    continue;
                }
                let may_trap = matches!(opcode.effect(), Effect::Read | Effect::Trap);
                let has_room = found.insts.len() < FIRST_ROUND_MAX;
                if !(may_trap && is_certain && is_known && has_room) {
                    return found;
                }
                found.insts.push(inst);
            }
            let leaves = |edge| body.blocks.binary_search(&f.edge_dst(edge)).is_err();
            if f.succ_edges(block).any(leaves) {
                return found;
            }
        }
        found
    }

    /// Whether some of them are loads.
    pub(super) fn has_loads(&self, f: &Function) -> bool {
        self.insts.iter().any(|&inst| f.opcode(inst).is_access())
    }

    /// Whether an instruction is one of them.
    pub(super) fn has(&self, inst: Inst) -> bool {
        self.insts.contains(&inst)
    }

    /// Those up to the last one of these, with the pure instructions that they need, in the order of the round. `None`
    /// if there are none of these.
    pub(super) fn up_to(
        &self,
        f: &Function,
        body: &Body,
        these: impl Iterator<Item = Inst>,
    ) -> Option<Vec<Inst>> {
        let place = |inst: Inst| self.insts.iter().position(|&it| it == inst);
        let last = these.filter_map(place).max()?;
        let copied = &self.insts[..=last];
        let mut needed: Vec<Value> = Vec::new();
        let mut insts = Vec::new();
        for &inst in body.blocks.iter().rev().flat_map(|&block| f.insts(block).iter().rev()) {
            let is_needed = || f.results(inst).any(|result| needed.contains(&result));
            let is_pure = f.opcode(inst).effect() == Effect::Pure;
            if copied.contains(&inst) || is_pure && is_needed() {
                needed.extend_from_slice(f.operands(inst));
                insts.push(inst);
            }
        }
        insts.reverse();
        Some(insts)
    }
}
