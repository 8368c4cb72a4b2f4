//! The slots that a frame of the interpreter holds at the start of a block, and their cells: the one map from slots to cells,
//! whichever way values go.

use slotvm_bytecode::verified::{Body, Storage};
use slotvm_bytecode::{ValType, VerifiedModule};

use crate::ir::SlotOrigin;

/// A slot of a frame.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct FrameSlot {
    /// The local or operand.
    pub origin: SlotOrigin,
    /// Its type.
    pub ty: ValType,
    /// Its cell in the frame; the first of two for a vector.
    pub cell: u32,
}

/// The locals of a function that have slots, in their order. They lie in the same cells at all blocks.
pub fn frame_locals(body: &Body) -> impl Iterator<Item = FrameSlot> + '_ {
    let locals = (0..).zip(&body.locals).filter(|(_, local)| local.storage == Storage::Promotable);
    locals.map(|(i, local)| FrameSlot {
        origin: SlotOrigin::Local(i),
        ty: local.ty,
        cell: body.local_cell(i),
    })
}

/// The operands of a function at the start of a block, the topmost first.
pub fn frame_operands<'m>(
    module: &'m VerifiedModule,
    body: &'m Body,
    block: u32,
) -> impl Iterator<Item = FrameSlot> + 'm {
    let mut shape = body.blocks[block as usize].shape;
    std::iter::from_fn(move || {
        let (below, ty) = module.shape_top(shape)?;
        shape = below;
        Some(FrameSlot {
            origin: SlotOrigin::Stack(module.shape_depth(below)),
            ty,
            cell: body.n_local_cells() + module.shape_cells(below),
        })
    })
}
