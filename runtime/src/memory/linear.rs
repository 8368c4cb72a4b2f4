//! Linear memories.
//!
//! A memory is a reservation of address space, of which the part that the guest may access is
//! committed (readable and writable) and the rest, the guard after it included, faults. It grows by
//! committing more and never moves. Native code omits a bounds check only where the last byte that an
//! access can reach, by the width of its operands, lies inside reservation and guard:
//! [`access_end_max`] bounds what an access can reach, [`MemoryPlan::covers`] whether that suffices.
//!
//! Address space can be scarce (`ulimit -v`, emulators). [`Memory::new`] then settles for less, down to what the
//! memory starts with, and leaves some to others; [`Memory::plan`] is what it got. Whoever compiled code for the
//! larger plan must not run it on such a memory: [`crate::Store::instantiate_native`].

use std::fs::File;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};

use slotvm_bytecode::module::{MemoryType, PAGE_BYTES};
use slotvm_bytecode::{Imm, Op, TrapCode, VerifiedModule};

use crate::context::MemoryDef;
use crate::error::Error;
use crate::limits::SPARE_ADDRESS_SPACE_BYTES;
use crate::pinned::Pinned;

/// The address space of a memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct MemoryPlan {
    /// Bytes that the memory can grow to without moving.
    pub reservation_bytes: u64,
    /// Bytes after them that always fault.
    pub guard_bytes: u64,
}

const GIB: u64 = 1 << 30;
const GUARD_BYTES: u64 = 32 << 20;

impl MemoryPlan {
    /// Covers plain accesses with static offsets up to 32 MiB.
    pub const PLAIN: MemoryPlan =
        MemoryPlan { reservation_bytes: 4 * GIB, guard_bytes: GUARD_BYTES };

    /// Covers indexed accesses with static offsets up to 32 MiB, too.
    pub const INDEXED: MemoryPlan =
        MemoryPlan { reservation_bytes: 36 * GIB, guard_bytes: GUARD_BYTES };

    /// Covers nothing: native code checks each access.
    pub const CHECKED: MemoryPlan = MemoryPlan { reservation_bytes: 0, guard_bytes: 0 };

    /// The plan that covers the usual accesses of a module.
    pub fn for_module(module: &VerifiedModule) -> MemoryPlan {
        if module.uses_indexed_accesses() { MemoryPlan::INDEXED } else { MemoryPlan::PLAIN }
    }

    /// Bytes from the memory's start that are either accessible or fault.
    pub const fn span_bytes(self) -> u64 {
        self.reservation_bytes.saturating_add(self.guard_bytes)
    }

    /// Whether an access that touches no byte at or beyond `end` needs no check.
    pub const fn covers(self, end: u64) -> bool {
        end <= self.span_bytes()
    }
}

/// The end of the last byte that a load or store can touch, whatever its operands are.
///
/// # Panics
/// Panics if the opcode is no load or store.
pub fn access_end_max(op: Op, imm: Imm) -> u64 {
    let bytes = op.access_bytes().expect("a load or store");
    let is_indexed = op.access().is_some_and(|access| access.indexed);
    let operand_max = u64::from(u32::MAX);
    let index_max = if is_indexed { operand_max << imm.scale_log2() } else { 0 };
    operand_max + index_max + u64::from(imm.offset()) + u64::from(bytes)
}

/// A linear memory.
#[derive(Debug)]
pub struct Memory {
    mapping: Mapping,
    def: Pinned<MemoryDef>,
    ty: MemoryType,
    /// Pages that it never exceeds.
    pages_max: u32,
    plan: MemoryPlan,
}

impl Memory {
    /// Makes a memory of zeros. `pages_max` limits its growth beside its type.
    ///
    /// # Errors
    /// Fails if it would start with more than `pages_max` pages, or the system gives no memory.
    pub fn new(ty: MemoryType, plan: MemoryPlan, pages_max: u32) -> Result<Memory, Error> {
        crate::error::check_limit("memory_pages_max", pages_max.into(), ty.min.into())?;
        let pages_max = pages_max.min(ty.max.unwrap_or(u32::MAX));
        let (mapping, plan) = reserve(ty, plan, pages_max)?;
        let def = Pinned::new(MemoryDef { base: mapping.base.as_ptr(), bytes: 0 });
        let mut memory = Memory { mapping, def, ty, pages_max, plan };
        match memory.grow(ty.min) {
            Some(_) => Ok(memory),
            None => {
                let bytes = u64::from(ty.min) * PAGE_BYTES;
                Err(Error::OutOfMemory { what: "a linear memory", bytes })
            }
        }
    }

    /// Returns the memory as native code sees it. Valid while the memory lives.
    pub fn def(&self) -> *mut MemoryDef {
        self.def.as_ptr()
    }

    /// The address space that it has.
    pub fn plan(&self) -> MemoryPlan {
        self.plan
    }

    /// Its type; the minimum is its present size.
    pub fn ty(&self) -> MemoryType {
        MemoryType { min: self.pages(), max: self.ty.max }
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        // SAFETY: the definition lives as long as `self`; nothing else accesses it meanwhile, since
        // native code that does runs under a `&mut` of the store.
        unsafe { (*self.def.as_ptr()).bytes }
    }

    /// Its size in pages.
    pub fn pages(&self) -> u32 {
        (self.bytes() / PAGE_BYTES) as u32
    }

    /// Adds pages of zeros. Returns the old size in pages, or `None` if there is no room.
    pub fn grow(&mut self, pages: u32) -> Option<u32> {
        let old = self.pages();
        let new = old.checked_add(pages).filter(|&new| new <= self.pages_max)?;
        let (start, end) = (u64::from(old) * PAGE_BYTES, u64::from(new) * PAGE_BYTES);
        if end > self.plan.reservation_bytes || !self.mapping.commit(start, end) {
            return None;
        }
        // SAFETY: the definition lives as long as `self`; nothing else accesses it meanwhile, since native
        // code that does runs under a `&mut` of the store.
        unsafe { (*self.def.as_ptr()).bytes = end };
        Some(old)
    }

    /// Replaces the bytes from `start` on by those of a file, copy-on-write. Both are whole pages of the
    /// system. Returns whether that worked; otherwise nothing has changed.
    pub(crate) fn map(&mut self, file: &File, start: u64, bytes: u64) -> bool {
        assert!(start <= self.bytes() && bytes <= self.bytes() - start, "it lies in the memory");
        self.mapping.map(file, start, bytes)
    }

    /// The contents.
    pub fn data(&self) -> &[u8] {
        // SAFETY: the first `bytes` bytes of the mapping are committed, hence readable, and were
        // initialised by the system. Guest code cannot write them while the reference lives, since it
        // runs under a `&mut` of the store that owns the memory.
        unsafe { std::slice::from_raw_parts(self.mapping.base.as_ptr(), self.bytes() as usize) }
    }

    /// The contents, to be written.
    pub fn data_mut(&mut self) -> &mut [u8] {
        // SAFETY: the first `bytes` bytes of the mapping are committed, hence readable and writable, and
        // initialised by the system. The memory, and the store that owns it, are borrowed exclusively, so
        // neither the host nor guest code has another way to them.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.base.as_ptr(), self.bytes() as usize) }
    }

    /// The bytes from an address on.
    ///
    /// # Errors
    /// Fails if they do not all lie inside the memory.
    pub fn slice(&self, address: u64, len: u64) -> Result<&[u8], TrapCode> {
        let range = range(address, len)?;
        self.data().get(range).ok_or(TrapCode::MemoryOutOfBounds)
    }

    /// The bytes from an address on, to be written.
    ///
    /// # Errors
    /// Fails if they do not all lie inside the memory.
    pub fn slice_mut(&mut self, address: u64, len: u64) -> Result<&mut [u8], TrapCode> {
        let range = range(address, len)?;
        self.data_mut().get_mut(range).ok_or(TrapCode::MemoryOutOfBounds)
    }

    /// Copies from the memory.
    ///
    /// # Errors
    /// Fails if the bytes do not all lie inside the memory; nothing is then copied.
    pub fn read(&self, address: u64, into: &mut [u8]) -> Result<(), TrapCode> {
        into.copy_from_slice(self.slice(address, into.len() as u64)?);
        Ok(())
    }

    /// Copies into the memory.
    ///
    /// # Errors
    /// Fails if the bytes do not all lie inside the memory; nothing is then copied.
    pub fn write(&mut self, address: u64, from: &[u8]) -> Result<(), TrapCode> {
        self.slice_mut(address, from.len() as u64)?.copy_from_slice(from);
        Ok(())
    }

    /// `memory.fill`.
    ///
    /// # Errors
    /// Fails if the bytes do not all lie inside the memory; nothing is then written.
    pub fn fill(&mut self, dst: u32, byte: u8, len: u32) -> Result<(), TrapCode> {
        self.slice_mut(dst.into(), len.into())?.fill(byte);
        Ok(())
    }

    /// `memory.copy`, inside one memory.
    ///
    /// # Errors
    /// Fails if the bytes do not all lie inside the memory; nothing is then written.
    pub fn copy_within(&mut self, dst: u32, src: u32, len: u32) -> Result<(), TrapCode> {
        self.slice(dst.into(), len.into())?;
        self.slice(src.into(), len.into())?;
        self.data_mut().copy_within(src as usize..src as usize + len as usize, dst as usize);
        Ok(())
    }
}

/// `address..address + len`, if that can be the range of any memory.
fn range(address: u64, len: u64) -> Result<std::ops::Range<usize>, TrapCode> {
    let end = address.checked_add(len).ok_or(TrapCode::MemoryOutOfBounds)?;
    match (usize::try_from(address), usize::try_from(end)) {
        (Ok(start), Ok(end)) => Ok(start..end),
        _ => Err(TrapCode::MemoryOutOfBounds),
    }
}

/// Reserves address space by the plan or, if the system refuses, half the reservation without a guard,
/// and so on, down to what the memory starts with.
fn reserve(
    ty: MemoryType,
    plan: MemoryPlan,
    pages_max: u32,
) -> Result<(Mapping, MemoryPlan), Error> {
    let min_bytes = u64::from(ty.min) * PAGE_BYTES;
    let max_bytes = u64::from(pages_max.min(65_536)) * PAGE_BYTES;
    let wanted = MemoryPlan {
        reservation_bytes: whole_pages(plan.reservation_bytes.max(max_bytes)),
        guard_bytes: whole_pages(plan.guard_bytes),
    };
    let mut plan = wanted;
    loop {
        if let Some(mapping) = Mapping::new(plan.span_bytes())
            && leaves_address_space()
        {
            return Ok((mapping, plan));
        }
        if plan.reservation_bytes <= min_bytes {
            return Err(Error::OutOfMemory { what: "a linear memory", bytes: min_bytes });
        }
        let half = whole_pages(plan.reservation_bytes / 2);
        plan = MemoryPlan { reservation_bytes: half.max(min_bytes), guard_bytes: 0 };
    }
}

/// The next multiple of the page size, or the largest one there is.
fn whole_pages(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(PAGE_BYTES).unwrap_or(u64::MAX / PAGE_BYTES * PAGE_BYTES)
}

/// Whether there is address space left, after something has got what it wanted.
pub(crate) fn leaves_address_space() -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is there to be written.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) } == 0;
    let is_limited = !known || limit.rlim_cur != libc::RLIM_INFINITY;
    !is_limited || Mapping::new(SPARE_ADDRESS_SPACE_BYTES).is_some()
}

/// Reserved address space.
#[derive(Debug)]
struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

impl Mapping {
    /// Reserves at least `bytes` bytes that fault on access.
    fn new(bytes: u64) -> Option<Mapping> {
        // An empty mapping is not possible; one page stands in for it.
        let bytes = usize::try_from(bytes.max(PAGE_BYTES)).ok()?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new private mapping at an address that the system chooses affects no memory that
        // exists.
        let base = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return None;
        }
        Some(Mapping { base: NonNull::new(base.cast())?, bytes })
    }

    /// Makes the bytes from `start` to `end` readable and writable. They are whole pages.
    fn commit(&mut self, start: u64, end: u64) -> bool {
        assert!(start <= end && end <= self.bytes as u64, "the range lies in the mapping");
        if start == end {
            return true;
        }
        // SAFETY: the range lies in the mapping, which we own.
        unsafe {
            let start_ptr = self.base.as_ptr().add(start as usize).cast();
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            libc::mprotect(start_ptr, (end - start) as usize, protection) == 0
        }
    }
}

impl Mapping {
    /// Maps a file, private, readable and writable, in the place of `bytes` bytes, which lie in the
    /// mapping.
    fn map(&mut self, file: &File, start: u64, bytes: u64) -> bool {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_FIXED | libc::MAP_NORESERVE;
        // SAFETY: the range lies in the mapping, which we own and which is borrowed exclusively, so nothing
        // has a reference to what is replaced.
        unsafe {
            let start: *mut libc::c_void = self.base.as_ptr().add(start as usize).cast();
            let file = file.as_raw_fd();
            if libc::mmap(start, bytes as usize, protection, flags, file, 0) != libc::MAP_FAILED {
                return true;
            }
            // As a rule the system refuses before it takes the old pages away. If it has taken them, the
            // addresses could be reused, and guest code could access them.
            if libc::msync(start, bytes as usize, libc::MS_ASYNC) != 0 {
                eprintln!("slotvm: the system has taken pages of a memory away");
                std::process::abort();
            }
        }
        false
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: we own the mapping, and nothing accesses it any more. A failure would leave it there,
        // which is harmless.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: MemoryPlan = MemoryPlan { reservation_bytes: 1 << 20, guard_bytes: 1 };

    fn memory(min: u32, max: Option<u32>) -> Memory {
        Memory::new(MemoryType { min, max }, PLAN, 16).expect("there is memory")
    }

    #[test]
    fn a_memory_starts_as_zeros_and_keeps_its_place_when_it_grows() {
        let mut memory = memory(1, Some(4));
        let base = memory.data().as_ptr();
        assert!(memory.data().iter().all(|&byte| byte == 0));
        memory.write(65532, &[1, 2, 3, 4]).unwrap();
        assert_eq!(memory.grow(3), Some(1));
        assert_eq!(memory.grow(1), None);
        assert_eq!((memory.pages(), memory.data().as_ptr()), (4, base));
        assert_eq!(memory.slice(65530, 8), Ok(&[0, 0, 1, 2, 3, 4, 0, 0][..]));
        memory.data_mut()[4 * 65536 - 1] = 9;
        assert_eq!(memory.ty(), MemoryType { min: 4, max: Some(4) });
        assert_eq!(memory.plan(), MemoryPlan { reservation_bytes: 1 << 20, guard_bytes: 65536 });
    }

    #[test]
    fn a_memory_may_be_empty() {
        let mut memory = memory(0, None);
        assert_eq!(memory.data(), []);
        assert_eq!(memory.slice(0, 0), Ok(&[][..]));
        assert_eq!(memory.slice(0, 1), Err(TrapCode::MemoryOutOfBounds));
        assert_eq!(memory.grow(17), None);
        assert_eq!(memory.grow(16), Some(0));
        assert_eq!(memory.bytes(), 16 * PAGE_BYTES);
    }

    #[test]
    fn accesses_by_the_host_are_checked() {
        let mut memory = memory(1, None);
        let out = TrapCode::MemoryOutOfBounds;
        let mut four = [7; 4];
        assert_eq!(memory.read(65533, &mut four), Err(out));
        assert_eq!(four, [7; 4]);
        assert_eq!(memory.write(65533, &four), Err(out));
        assert_eq!(memory.slice(65532, 4), Ok(&[0; 4][..]));
        assert_eq!(memory.slice(u64::MAX, 2), Err(out));
        assert_eq!(memory.slice_mut(u64::MAX - 1, 1), Err(out));
        memory.write(65532, &four).unwrap();
        memory.read(65531, &mut four).unwrap();
        assert_eq!(four, [0, 7, 7, 7]);
    }

    #[test]
    fn scarce_address_space_makes_do_with_less() {
        let plan = MemoryPlan { reservation_bytes: 1 << 60, guard_bytes: 1 << 30 };
        let ty = MemoryType { min: 2, max: Some(3) };
        let mut memory = Memory::new(ty, plan, 65_536).unwrap();
        let got = memory.plan();
        assert!(got.reservation_bytes < plan.reservation_bytes && got.guard_bytes == 0, "{got:?}");
        assert!(!got.covers(plan.span_bytes()));
        assert_eq!(memory.grow(1), Some(2));
        memory.write(3 * PAGE_BYTES - 1, &[1]).unwrap();
    }

    #[test]
    fn the_size_is_limited() {
        let error = Memory::new(MemoryType { min: 17, max: None }, PLAN, 16).unwrap_err();
        assert_eq!(error.to_string(), "limit memory_pages_max (16) exceeded: 17 wanted");
    }

    #[test]
    fn plans_cover_what_they_say() {
        let plain = |offset| access_end_max(Op::I64Load, Imm::mem(offset));
        assert_eq!(plain(0), (1 << 32) - 1 + 8);
        assert!(MemoryPlan::PLAIN.covers(plain(GUARD_BYTES as u32 - 7)));
        assert!(!MemoryPlan::PLAIN.covers(plain(GUARD_BYTES as u32 - 6)));
        let indexed =
            |scale, offset| access_end_max(Op::F64StoreIndexed, Imm::indexed(offset, scale));
        assert_eq!(indexed(3, 0), 9 * ((1 << 32) - 1) + 8);
        assert_eq!(indexed(0, 5), 2 * ((1 << 32) - 1) + 5 + 8);
        assert!(!MemoryPlan::PLAIN.covers(indexed(0, 0)));
        assert!(MemoryPlan::INDEXED.covers(indexed(3, GUARD_BYTES as u32)));
        assert!(!MemoryPlan::INDEXED.covers(indexed(3, u32::MAX)));
        assert!(!MemoryPlan::CHECKED.covers(plain(0)));
    }

    #[test]
    fn what_is_not_committed_faults_in_the_kernel() {
        let memory = memory(1, None);
        let mut pipe = [0; 2];
        // SAFETY: `pipe` has room for two descriptors.
        assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
        let readable = |address: usize| {
            let byte = memory.data().as_ptr().wrapping_add(address);
            // SAFETY: it is the kernel that reads the byte, and it reports an error if it cannot.
            unsafe { libc::write(pipe[1], byte.cast(), 1) == 1 }
        };
        assert!(readable(65535));
        assert!(!readable(65536));
        assert!(!readable((1 << 20) - 1));
        assert!(!readable(1 << 20));
        assert!(!readable((1 << 20) + 65535));
        for end in pipe {
            // SAFETY: the descriptor is ours.
            assert_eq!(unsafe { libc::close(end) }, 0);
        }
    }
}
