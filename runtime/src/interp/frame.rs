//! The frame of the active function, and accesses to memory 0.

use slotvm_bytecode::{Imm, TrapCode};

/// The frame of the active function.
pub(super) struct Frame<'a> {
    pub(super) cells: &'a mut [u64],
    pub(super) sp: usize,
}

impl Frame<'_> {
    #[inline(always)]
    pub(super) fn push(&mut self, cell: u64) {
        self.cells[self.sp] = cell;
        self.sp += 1;
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) -> u64 {
        self.sp -= 1;
        self.cells[self.sp]
    }

    /// The operand at a depth, 0 for the top.
    #[inline(always)]
    pub(super) fn top(&mut self, depth: usize) -> &mut u64 {
        &mut self.cells[self.sp - 1 - depth]
    }

    /// Pops the address of a plain access.
    #[inline(always)]
    pub(super) fn pop_address(&mut self, imm: Imm) -> u64 {
        u64::from(self.pop() as u32) + u64::from(imm.offset())
    }

    /// Pops the index and the base of an indexed access.
    #[inline(always)]
    pub(super) fn pop_indexed(&mut self, imm: Imm) -> u64 {
        let index = u64::from(self.pop() as u32) << imm.scale_log2();
        u64::from(self.pop() as u32) + index + u64::from(imm.offset())
    }
}

#[inline(always)]
pub(super) fn load<const N: usize>(memory: &[u8], address: u64) -> Result<[u8; N], TrapCode> {
    let bytes = usize::try_from(address).ok().and_then(|start| memory.get(start..));
    bytes.and_then(<[u8]>::first_chunk).copied().ok_or(TrapCode::MemoryOutOfBounds)
}

#[inline(always)]
pub(super) fn store<const N: usize>(
    memory: &mut [u8],
    address: u64,
    value: [u8; N],
) -> Result<(), TrapCode> {
    let bytes = usize::try_from(address).ok().and_then(|start| memory.get_mut(start..));
    let bytes = bytes.and_then(<[u8]>::first_chunk_mut).ok_or(TrapCode::MemoryOutOfBounds)?;
    *bytes = value;
    Ok(())
}
