//! Memory for machine code, and where functions start in it.
//!
//! A function starts such that its [`Anchor`] is aligned. The padding before it is less than the boundary of the
//! anchor. Functions that take whole pages start at different places of their pages: code at the same place of many pages
//! competes for the same few sets of the instruction cache.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use cranelift_jit::{BranchProtection, JITMemoryKind, JITMemoryProvider};
use cranelift_module::{ModuleError, ModuleResult};

use crate::code::error::CodeError;
use crate::code::machine_code::{Anchor, MachineCode};
use crate::code::mapping::{Mapping, page_bytes};

/// Memory for code.
pub(super) struct CodeMemory(Mutex<Block>);

struct Block {
    mapping: Mapping,
    base: *mut u8,
    bytes: usize,
    used: usize,
    /// The bytes that stay empty before the next function.
    padding: usize,
    /// The functions so far, if each takes whole pages, which are opened only when it does.
    n_by_page: Option<u32>,
}

// SAFETY: the block's pointer is to memory that the block owns; the mapping is `Send` itself.
unsafe impl Send for Block {}

impl CodeMemory {
    /// Memory of this many bytes, of which the first `used` stay empty.
    pub(super) fn reserve(bytes: usize, used: usize) -> Result<CodeMemory, CodeError> {
        let bytes = bytes.next_multiple_of(page_bytes());
        let mut mapping = Mapping::reserve(bytes).map_err(no_memory)?;
        let base = mapping.open(bytes).map_err(no_memory)?;
        let block = Block { mapping, base, bytes, used, padding: 0, n_by_page: None };
        Ok(CodeMemory(Mutex::new(block)))
    }

    /// Memory in which each function takes whole pages.
    pub(super) fn reserve_pages(bytes: usize) -> Result<CodeMemory, CodeError> {
        let bytes = bytes.next_multiple_of(page_bytes());
        let mut mapping = Mapping::reserve(bytes).map_err(no_memory)?;
        // The first page stays empty: its address is that of the mapping.
        let used = page_bytes();
        let base = mapping.open(used).map_err(no_memory)?;
        let block = Block { mapping, base, bytes, used, padding: 0, n_by_page: Some(0) };
        Ok(CodeMemory(Mutex::new(block)))
    }

    /// Chooses where the next function, which is given, starts.
    pub(super) fn align(&self, code: &MachineCode) {
        let mut block = self.lock();
        block.padding = padding(block.base.addr() + block.used, code);
    }

    /// The bytes that are not used yet.
    pub(super) fn room(&self) -> usize {
        let block = self.lock();
        block.bytes - block.used
    }

    /// The address and the length of what has been allocated.
    pub(super) fn used(&self) -> (usize, usize) {
        let block = self.lock();
        (block.base.addr(), block.used)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Block> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_memory(error: io::Error) -> CodeError {
    CodeError::Memory(error.to_string())
}

/// The bytes from an address to the first one after it at which a function can start with its anchor aligned.
pub(crate) fn padding(address: usize, code: &MachineCode) -> usize {
    let Anchor { offset, boundary } = code.anchor;
    let (alignment, boundary) = (code.alignment as usize, boundary as usize);
    // Where the anchor lies after a multiple of the alignment is not to be chosen.
    let offset = offset as usize / alignment * alignment;
    let anchor = (address + offset).next_multiple_of(boundary.max(alignment));
    anchor - offset - address
}

/// By how much a function starts later than it could in its pages, which have so much room, given how many there were
/// before. A multiple of the alignment and of a line, so that the anchor stays aligned.
fn stagger(n_before: u32, room: usize, alignment: usize) -> usize {
    let step = alignment.max(Anchor::LINE_BYTES as usize);
    let n_places = room / step + 1;
    // The multiples of the golden ratio, without their whole parts, are spread evenly, however many there are.
    let part = u64::from(n_before.wrapping_mul(0x9e37_79b9));
    ((part * n_places as u64) >> 32) as usize * step
}

/// The memory that cranelift-jit allocates from.
pub(super) struct Provider(pub(super) Arc<CodeMemory>);

impl JITMemoryProvider for Provider {
    fn allocate(&mut self, size: usize, align: u64, _kind: JITMemoryKind) -> io::Result<*mut u8> {
        let mut block = self.0.lock();
        let padding = std::mem::take(&mut block.padding);
        if let Some(n) = block.n_by_page.as_mut() {
            let bytes = (padding + size).next_multiple_of(page_bytes());
            let padding = padding + stagger(*n, bytes - padding - size, align as usize);
            *n = n.wrapping_add(1);
            let start = block.mapping.open(bytes)?;
            block.used = start.addr() - block.base.addr() + bytes;
            debug_assert!(((start.addr() + padding) as u64).is_multiple_of(align));
            // SAFETY: the padding lies inside what was just allocated.
            return Ok(unsafe { start.add(padding) });
        }
        let start = block.used + padding;
        debug_assert!(((block.base.addr() + start) as u64).is_multiple_of(align));
        if start + size > block.bytes {
            return Err(io::Error::other("the code is larger than its size estimate"));
        }
        block.used = start + size;
        // SAFETY: the offset lies inside the block, as was just checked.
        Ok(unsafe { block.base.add(start) })
    }

    unsafe fn free_memory(&mut self) {
        // The owner of the block frees it.
    }

    fn finalize(&mut self, branch_protection: BranchProtection) -> ModuleResult<()> {
        let sealed = self.0.lock().mapping.seal(branch_protection);
        sealed.map_err(|err| ModuleError::Allocation { err })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_start_at_different_places_of_their_pages() {
        for (room, alignment) in [(0, 16), (63, 1), (64, 1), (3_600, 16), (3_600, 128)] {
            let step = alignment.max(Anchor::LINE_BYTES as usize);
            let n_places = room / step + 1;
            let mut n_at = vec![0; n_places];
            for n in 0..10 * n_places as u32 {
                let start = stagger(n, room, alignment);
                assert!(start <= room && start.is_multiple_of(step));
                n_at[start / step] += 1;
            }
            assert!(n_at.iter().all(|n| (7..=13).contains(n)), "{n_at:?}");
        }
        assert!(stagger(u32::MAX, 4_000, 1) <= 4_000);
    }

    #[test]
    fn functions_take_no_more_pages_for_their_places() {
        let memory = Arc::new(CodeMemory::reserve_pages(64 * page_bytes()).unwrap());
        let mut provider = Provider(memory.clone());
        let places: std::collections::BTreeSet<usize> = (0..20)
            .map(|_| {
                let (base, used) = memory.used();
                let start = provider.allocate(500, 16, JITMemoryKind::Executable).unwrap().addr();
                assert_eq!(memory.used().1 - used, page_bytes());
                assert!(start.is_multiple_of(16));
                start - base - used
            })
            .collect();
        assert!(places.len() > 15 && places.iter().all(|place| place + 500 <= page_bytes()));
    }

    #[test]
    fn anchors_are_aligned_as_far_as_the_alignment_of_the_code_permits() {
        for (alignment, boundary) in [(1, 64), (4, 32), (16, 64), (32, 16), (64, 64)] {
            for (offset, address) in (0..200).flat_map(|o| (0..200).map(move |a| (o, a))) {
                let anchor = Anchor { offset, boundary };
                let code = MachineCode { alignment, anchor, ..MachineCode::default() };
                let padding = padding(address, &code);
                assert!(padding < alignment.max(boundary.into()) as usize);
                let start = address + padding;
                assert!(start.is_multiple_of(alignment as usize));
                let beyond = (start + offset as usize) % boundary as usize;
                assert!(beyond < alignment as usize, "{anchor:?} at {start} is {beyond} too far");
            }
        }
    }
}
