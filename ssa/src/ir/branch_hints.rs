//! Hints which way conditional branches mostly go: the immediate of a `br_if`.
//!
//! So a hint stays with its branch wherever the branch is moved or copied, and vanishes with it. No pass exchanges the edges
//! of a branch; one that did would have to invert the hint.

use slotvm_bytecode::{BranchHint, Imm, Op};

use crate::ir::Function;
use crate::ir::entity::{Block, Edge, Inst};
use crate::ir::irop::Opcode;

/// The immediate of a branch with a hint, or without one.
pub(crate) fn imm_of(hint: Option<BranchHint>) -> Imm {
    match hint {
        None => Imm::NONE,
        Some(BranchHint::Unlikely) => Imm::index(1),
        Some(BranchHint::Likely) => Imm::index(2),
    }
}

/// Whether an immediate is one that a branch can have.
pub(crate) fn is_imm(imm: Imm) -> bool {
    imm.0 <= 2
}

impl Function {
    /// The hint of a conditional branch, if it has one.
    ///
    /// Edge 0 of the block is the one that a likely branch mostly takes, and edge 1 that of an unlikely one.
    pub fn branch_hint(&self, inst: Inst) -> Option<BranchHint> {
        if self.opcode(inst) != Opcode::Op(Op::BrIf) {
            return None;
        }
        match self.imm(inst).low() {
            0 => None,
            1 => Some(BranchHint::Unlikely),
            _ => Some(BranchHint::Likely),
        }
    }

    /// The edge of a block that its branch says is rarely taken.
    pub fn unlikely_edge(&self, block: Block) -> Option<Edge> {
        let hint = self.branch_hint(self.terminator(block))?;
        self.succ_edges(block).nth(match hint {
            BranchHint::Unlikely => 0,
            BranchHint::Likely => 1,
        })
    }
}
