//! Blocks that are split at some instructions, in whose place other code is put.
//!
//! For passes that replace calls by several blocks. Takes time linear in the function and in what is added, except for the
//! dominator tree.

use slotvm_bytecode::{Imm, ValType};

use crate::ir::Function;
use crate::ir::blocks::Blocks;
use crate::ir::entity::{Inst, Value};
use crate::ir::irop::Opcode;

/// A function whose blocks are put together anew.
pub(crate) struct Split<'f> {
    /// The function, without its layout.
    pub(crate) f: &'f mut Function,
    /// Its blocks.
    pub(crate) blocks: Blocks,
}

/// Walks over the instructions of a function. `replace` gets each of them with the number of the block that it is to be in,
/// which is open. It returns the open block that goes on after what it has put in the place of the instruction, or `None` if
/// that stays.
pub(crate) fn split_at(
    f: &mut Function,
    mut replace: impl FnMut(&mut Split<'_>, u32, Inst) -> Option<u32>,
) {
    let layout = std::mem::take(&mut f.layout);
    let mut split = Split { blocks: Blocks::like(f), f };
    for block in split.f.blocks() {
        let (start, end) = split.f.blocks[block.index()].insts;
        let mut part = block.0;
        split.blocks.open(part);
        for &inst in &layout[start as usize..end as usize] {
            match replace(&mut split, part, inst) {
                Some(next) => part = next,
                None => split.blocks.push(inst),
            }
        }
        // The last part has the edges of the whole.
        for edge in split.f.succ_edges(block) {
            let args = split.f.edge_args(edge).iter().copied();
            split.blocks.push_edge(split.f.edge_dst(edge).0, args);
        }
        split.blocks.close(part);
    }
    split.blocks.finish(split.f, Function::ENTRY.0);
}

impl Split<'_> {
    /// Adds a block that is made from the same bytecode as an instruction.
    pub(crate) fn add_block(&mut self, at: Inst) -> u32 {
        let block = self.blocks.add();
        let offset = self.f.locs[self.f.loc(at).index()].offset;
        self.blocks.set_origin(block, None, offset);
        block
    }

    /// Appends an instruction to the open block, at the location of another one. Returns its results.
    pub(crate) fn emit(
        &mut self,
        op: Opcode,
        imm: Imm,
        operands: &[Value],
        results: &[ValType],
        at: Inst,
    ) -> Vec<Value> {
        let loc = self.f.loc(at);
        let inst = self.f.make_inst(op, imm, operands, results, loc);
        self.blocks.push(inst);
        self.f.results(inst).collect()
    }

    /// The types of the results of an instruction.
    pub(crate) fn result_types(&self, inst: Inst) -> Vec<ValType> {
        self.f.results(inst).map(|result| self.f.value_type(result)).collect()
    }
}
