//! Placing of code: with [`memory`](super::memory) the only module that uses cranelift-jit.
//!
//! Takes the machine code of functions that call each other ([`MachineCode`]), places it into one
//! block of executable memory, resolves its relocations, and registers where it lies with the tables
//! that lead from a program counter back to the bytecode. All functions of a unit lie within the reach
//! of direct calls, since the block is reserved in one piece.
//!
//! The memory is freed when its [`CodeUnit`] is dropped. Anything that may still execute or call the code
//! must keep the unit alive.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use cranelift_codegen::binemit::Reloc;
use cranelift_codegen::ir::{self, ExternalName, Function};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::{CompiledCode, FinalizedMachReloc, FinalizedRelocTarget};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{
    FuncId, Module as _, ModuleReloc, ModuleRelocTarget, default_libcall_names,
};
use slotvm_bytecode::VerifiedModule;

use crate::code::debugger::DebugImage;
use crate::code::memory::{Anchor, CodeMemory, Provider, page_bytes};
use crate::code::pctable::{
    CallSite, PageTables, PcTable, Place, PlaceId, Tables, TrapReason, TrapSite,
};
use crate::code::registry::{self, Registration};
use crate::code::unwind::Unwinding;

/// The namespace of the names by which code calls functions of its unit.
pub(crate) const FUNC_NAMESPACE: u32 = 0;

/// The machine code of one function, not yet placed.
#[derive(Default)]
pub(crate) struct MachineCode {
    /// The instructions.
    pub(crate) bytes: Vec<u8>,
    /// The alignment of the code's address in bytes, a power of two.
    pub(crate) alignment: u64,
    /// The instruction that is to be aligned.
    pub(crate) anchor: Anchor,
    /// Uses of the addresses of other functions; names of [`FUNC_NAMESPACE`] are functions of
    /// the unit.
    pub(crate) relocs: Vec<FinalizedReloc>,
    /// Offsets count from the start of the function.
    pub(crate) traps: Vec<TrapSite>,
    /// Offsets count from the start of the function.
    pub(crate) calls: Vec<CallSite>,
    /// The places that the place ids of `traps` and `calls` refer to.
    pub(crate) places: Vec<Place>,
}

/// A relocation whose target does not need the function that it comes from.
pub(crate) struct FinalizedReloc(ModuleReloc);

impl FinalizedReloc {
    pub(crate) fn new(reloc: &FinalizedMachReloc, func: &Function) -> FinalizedReloc {
        let name = match &reloc.target {
            FinalizedRelocTarget::ExternalName(ExternalName::User(name)) => {
                let name = &func.params.user_named_funcs()[*name];
                assert_eq!(name.namespace, FUNC_NAMESPACE, "native code names functions only");
                ModuleRelocTarget::user(name.namespace, name.index)
            }
            FinalizedRelocTarget::ExternalName(ExternalName::LibCall(libcall)) => {
                ModuleRelocTarget::LibCall(*libcall)
            }
            target => unreachable!("the lowering makes no relocation to {target:?}"),
        };
        let (offset, kind, addend) = (reloc.offset, reloc.kind, reloc.addend);
        FinalizedReloc(ModuleReloc { offset, kind, name, addend })
    }

    /// The code offset of what depends on the address, the kind of relocation, and the addend.
    pub(crate) fn field(&self) -> (u32, String, i64) {
        let ModuleReloc { offset, kind, addend, .. } = &self.0;
        (*offset, kind.to_string(), *addend)
    }

    /// The function that is meant, by its number.
    ///
    /// # Errors
    /// Fails with the name of a function of the runtime, which has no number.
    pub(crate) fn func(&self) -> Result<u32, String> {
        match &self.0.name {
            ModuleRelocTarget::User { namespace: FUNC_NAMESPACE, index } => Ok(*index),
            ModuleRelocTarget::LibCall(libcall) => Err(libcall.to_string()),
            other => Err(other.to_string()),
        }
    }

    /// All of it as text.
    #[cfg(all(test, feature = "parallel-compilation"))]
    pub(crate) fn describe(&self) -> String {
        let ModuleReloc { offset, kind, name, addend } = &self.0;
        format!("{offset} {kind:?} {name:?} {addend}")
    }

    /// The relocation for a unit whose first function has this number.
    fn in_unit(&self, first_func: u32) -> ModuleReloc {
        let mut reloc = self.0.clone();
        if let ModuleRelocTarget::User { index, .. } = &mut reloc.name {
            *index -= first_func;
        }
        reloc
    }
}

impl MachineCode {
    /// Converts the code that Cranelift compiled for a function. `reason` returns what a trap code means, or
    /// that the instruction never traps. `place` returns the place in the bytecode of the instruction at a code
    /// offset, which has the trap code given if it can trap.
    pub(crate) fn new(
        compiled: &CompiledCode,
        func: &Function,
        mut reason: impl FnMut(ir::TrapCode) -> Option<TrapReason>,
        mut place: impl FnMut(u32, Option<ir::TrapCode>) -> PlaceId,
        places: Vec<Place>,
    ) -> MachineCode {
        let buffer = &compiled.buffer;
        let mut traps: Vec<TrapSite> = buffer
            .traps()
            .iter()
            .filter_map(|trap| {
                let reason = reason(trap.code)?;
                let place = place(trap.offset, Some(trap.code));
                Some(TrapSite { offset: trap.offset, reason, place })
            })
            .collect();
        // Out-of-line traps come after the ones found so far.
        traps.sort_by_key(|site| site.offset);
        let mut calls: Vec<CallSite> = buffer
            .call_sites()
            .map(|call| CallSite { offset: call.ret_addr, place: place(call.ret_addr - 1, None) })
            .collect();
        calls.sort_by_key(|site| site.offset);
        MachineCode {
            bytes: compiled.code_buffer().to_vec(),
            alignment: u64::from(buffer.alignment),
            anchor: Anchor::default(),
            relocs: buffer.relocs().iter().map(|reloc| FinalizedReloc::new(reloc, func)).collect(),
            traps,
            calls,
            places,
        }
    }
}

impl MachineCode {
    /// The code of a function that nothing enters.
    pub(crate) fn none() -> MachineCode {
        MachineCode { alignment: 1, ..MachineCode::default() }
    }

    /// Resolves calls of the function itself, which is the one with this number: their distance does not depend on where
    /// the function is placed.
    pub(crate) fn resolve_own_calls(&mut self, func: u32) {
        let bytes = &mut self.bytes;
        self.relocs.retain(|FinalizedReloc(reloc)| match reloc.name {
            ModuleRelocTarget::User { namespace: FUNC_NAMESPACE, index } if index == func => {
                !resolve_own(bytes, reloc)
            }
            _ => true,
        });
    }

    /// Whether the code is the same wherever it is placed, with any other.
    pub(crate) fn is_kept_as_it_is(&self) -> bool {
        self.relocs.is_empty()
    }

    /// Code that was placed, without relocations, with its table.
    ///
    /// # Safety
    /// The range is of code that stays meanwhile.
    unsafe fn of_placed(table: &PcTable, code: &Range<usize>, how: Placing) -> MachineCode {
        let start = std::ptr::with_exposed_provenance::<u8>(code.start);
        // SAFETY: the memory provider makes pages of code readable. `to_machine_code` of the unit or arena that owns these
        // calls this, which keeps them meanwhile.
        let bytes = unsafe { std::slice::from_raw_parts(start, code.len()) }.to_vec();
        let (traps, calls, places) = table.part(code);
        let Placing { alignment, anchor } = how;
        MachineCode { bytes, alignment, anchor, relocs: Vec::new(), traps, calls, places }
    }

    /// The alignment that the code is to have.
    pub(crate) fn placing(&self) -> Placing {
        Placing { alignment: self.alignment, anchor: self.anchor }
    }

    /// The functions that the code calls or refers to, by their numbers; some repeatedly.
    pub(crate) fn callees(&self) -> impl Iterator<Item = u32> + '_ {
        self.relocs.iter().filter_map(|reloc| reloc.func().ok())
    }
}

/// Resolves a call of the function that it is in. Returns whether it could.
fn resolve_own(code: &mut [u8], reloc: &ModuleReloc) -> bool {
    let at = reloc.offset as usize;
    let field = &mut code[at..at + 4];
    let distance = reloc.addend - i64::from(reloc.offset);
    let resolved = match reloc.kind {
        Reloc::X86CallPCRel4 => i32::try_from(distance).ok().map(|distance| distance as u32),
        // 26 bits of the instruction, which counts instructions.
        Reloc::Arm64Call if (-(1 << 27)..1 << 27).contains(&distance) => {
            let inst = u32::from_le_bytes([field[0], field[1], field[2], field[3]]);
            Some(inst | (distance >> 2) as u32 & 0x03ff_ffff)
        }
        _ => None,
    };
    if let Some(resolved) = resolved {
        field.copy_from_slice(&resolved.to_le_bytes());
    }
    resolved.is_some()
}

/// The alignment of code.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Placing {
    alignment: u64,
    anchor: Anchor,
}

/// Code that lies in executable memory.
pub(crate) struct CodeUnit {
    // Fields are dropped in this order: the code is unregistered before it is freed.
    debug_image: Option<DebugImage>,
    _unwinding: Unwinding,
    _registration: Registration,
    tables: Box<Tables>,
    /// The address of each function, in the order of placing.
    funcs: Vec<usize>,
    /// The size of each, in bytes.
    lens: Vec<usize>,
    bytes: usize,
    /// The alignment of the function, if there is only one, without relocations.
    placing: Option<Placing>,
    memory: Arc<CodeMemory>,
}

impl std::fmt::Debug for CodeUnit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodeUnit")
            .field("bytes", &self.bytes)
            .field("n_funcs", &self.funcs.len())
            .finish_non_exhaustive()
    }
}

impl CodeUnit {
    /// Places functions, the first of which is named by `first_func`, the others by the numbers that
    /// follow.
    ///
    /// # Errors
    /// Fails if no memory for code can be allocated.
    pub(crate) fn place(
        isa: &OwnedTargetIsa,
        first_func: u32,
        codes: &[MachineCode],
        module: Option<Arc<VerifiedModule>>,
    ) -> Result<CodeUnit, CodeError> {
        CodeUnit::place_at(0, isa, first_func, codes, module)
    }

    /// The same, with this many bytes before the first function.
    ///
    /// # Errors
    /// Fails if no memory for code can be allocated.
    pub(crate) fn place_at(
        offset: usize,
        isa: &OwnedTargetIsa,
        first_func: u32,
        codes: &[MachineCode],
        module: Option<Arc<VerifiedModule>>,
    ) -> Result<CodeUnit, CodeError> {
        let bytes = fits(block_bytes(isa, codes)?.saturating_add(offset))?;
        let memory = Arc::new(CodeMemory::reserve(bytes, offset)?);
        let funcs = write(isa, &memory, first_func, codes)?;
        let (base, bytes) = memory.used();
        let tables = Box::new(Tables::Unit(unit_table(base, &funcs, codes, module)));
        let range = base..base + bytes;
        let _unwinding = Unwinding::register(&range);
        let _registration = registry::register(range, &*tables);
        let lens = codes.iter().map(|code| code.bytes.len()).collect();
        Ok(CodeUnit {
            debug_image: None,
            _unwinding,
            _registration,
            tables,
            funcs,
            lens,
            bytes,
            placing: match codes {
                [code] if code.is_kept_as_it_is() => Some(code.placing()),
                _ => None,
            },
            memory,
        })
    }

    /// Registers the code with debuggers until it is freed. The names are those of its functions that have code, in the
    /// order of placing.
    pub(crate) fn show_to_debuggers(&mut self, names: impl Iterator<Item = String>) {
        let (base, bytes) = self.memory.used();
        let image = DebugImage::register(&(base..base + bytes), self.codes().zip(names));
        self.debug_image = Some(image);
    }

    /// The address of a function, by its position in the list that was placed.
    ///
    /// # Panics
    /// Panics if the function has no code.
    pub(crate) fn func(&self, index: usize) -> *const u8 {
        assert!(self.lens[index] > 0, "what nothing enters has no code");
        std::ptr::with_exposed_provenance(self.funcs[index])
    }

    /// The distance of a function from the start of the unit, and its bytes as they run, by its position in the list that
    /// was placed. `None` if it has no code.
    pub(crate) fn placed(&self, index: usize) -> Option<(u64, &[u8])> {
        let (&start, &len) = (self.funcs.get(index)?, self.lens.get(index)?);
        let (base, _) = self.memory.used();
        let bytes = std::ptr::with_exposed_provenance::<u8>(start);
        // SAFETY: the memory provider makes pages of code readable, and nothing writes to them while the unit, which
        // keeps them, is borrowed.
        let bytes = unsafe { std::slice::from_raw_parts(bytes, len) };
        (len > 0).then_some(((start - base) as u64, bytes))
    }

    /// The address range of each function that has code, in the order of placing.
    pub(crate) fn codes(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let codes = self.funcs.iter().zip(&self.lens).map(|(&start, len)| start..start + len);
        codes.filter(|code| !code.is_empty())
    }

    /// The only function of the unit, if it can be placed elsewhere as it is.
    pub(crate) fn to_machine_code(&self) -> Option<MachineCode> {
        let Tables::Unit(table) = &*self.tables else { unreachable!("a unit has one table") };
        let ([start], [bytes], Some(how)) = (&*self.funcs, &*self.lens, self.placing) else {
            return None;
        };
        // SAFETY: it is the code of the unit.
        Some(unsafe { MachineCode::of_placed(table, &(*start..start + bytes), how) })
    }

    /// The memory that the code takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Writes functions to memory, resolves their relocations, and makes them executable. Returns
/// their addresses.
fn write(
    isa: &OwnedTargetIsa,
    memory: &Arc<CodeMemory>,
    first_func: u32,
    codes: &[MachineCode],
) -> Result<Vec<usize>, CodeError> {
    let mut builder = JITBuilder::with_isa(isa.clone(), default_libcall_names());
    builder.memory_provider(Box::new(Provider(memory.clone())));
    let mut jit = JITModule::new(builder);
    let signature = jit.make_signature();
    let mut ids: Vec<FuncId> = Vec::with_capacity(codes.len());
    for _ in codes {
        ids.push(jit.declare_anonymous_function(&signature)?);
    }
    debug_assert!(ids.iter().enumerate().all(|(i, id)| id.as_u32() == i as u32));
    for (&id, code) in ids.iter().zip(codes) {
        let relocs: Vec<_> = code.relocs.iter().map(|r| r.in_unit(first_func)).collect();
        memory.align(code);
        jit.define_function_bytes(id, code.alignment, &code.bytes, &relocs)?;
    }
    jit.finalize_definitions()?;
    // The module is no longer needed; the memory stays, since the caller shares it.
    Ok(ids.iter().map(|&id| jit.get_finalized_function(id).addr()).collect())
}

/// An upper bound of the memory that functions take.
fn block_bytes(isa: &OwnedTargetIsa, codes: &[MachineCode]) -> Result<usize, CodeError> {
    /// Size of a jump to a far function, which cranelift-jit provides for every call on aarch64.
    const VENEER_BYTES: usize = 24;
    let alignment_max = u64::from(isa.function_alignment().preferred).max(isa.symbol_alignment());
    let of_func = |code: &MachineCode| {
        let alignment = code.alignment.max(alignment_max) as usize;
        let padding_max = alignment + code.anchor.boundary as usize;
        code.bytes.len() + code.relocs.len() * VENEER_BYTES + padding_max
    };
    let bytes: usize = codes.iter().map(of_func).sum();
    fits(bytes.max(1))
}

/// The size, if offsets in tables, which have 32 bits, and relocations, which have a sign besides, can address it.
fn fits(bytes: usize) -> Result<usize, CodeError> {
    if bytes > i32::MAX as usize { Err(CodeError::TooLarge) } else { Ok(bytes) }
}

/// Joins the tables of functions; `funcs` are their addresses.
fn unit_table(
    base: usize,
    funcs: &[usize],
    codes: &[MachineCode],
    module: Option<Arc<VerifiedModule>>,
) -> PcTable {
    let mut table = PcTable { base, module, ..PcTable::default() };
    for (&func, code) in funcs.iter().zip(codes) {
        let start = (func - base) as u32;
        let first_place = table.places.len() as u32;
        table.places.extend(code.places.iter().map(|place| place.moved(first_place)));
        table.traps.extend(code.traps.iter().map(|site| site.moved(start, first_place)));
        table.calls.extend(code.calls.iter().map(|site| site.moved(start, first_place)));
    }
    debug_assert!(table.traps.is_sorted_by_key(|site| site.offset));
    debug_assert!(table.calls.is_sorted_by_key(|site| site.offset));
    table
}

/// The reason why code could not be placed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CodeError {
    /// The code exceeds what tables and direct calls can address.
    #[error("native code of the module exceeds 2 GiB")]
    TooLarge,
    /// Cranelift rejects a trampoline.
    #[error("cannot compile a trampoline: {0}")]
    Trampoline(String),
    /// A trampoline has more parameters and results than Cranelift can pass.
    #[error("cannot compile a trampoline: its function type is too large for the code generator")]
    WideTrampoline,
    /// Cranelift panics.
    #[error("{0}; this is a bug in slotvm")]
    Panic(String),
    /// Compiling needs more stack than this thread has left, and the system starts no thread.
    #[error("cannot start a thread to compile on: {0}")]
    Thread(String),
    /// The system has no memory for code.
    #[error("cannot allocate memory for native code: {0}")]
    Memory(String),
}

impl From<cranelift_module::ModuleError> for CodeError {
    fn from(error: cranelift_module::ModuleError) -> CodeError {
        CodeError::Memory(error.to_string())
    }
}

/// Memory for code to which functions are added one after the other, while others run: address space, of
/// which each function takes whole pages. Those are made writable for it, and executable when it is
/// complete.
pub(crate) struct CodeArena(Mutex<Vec<Chunk>>);

/// A part of an arena.
struct Chunk {
    // Fields are dropped in this order, as those of a unit.
    _unwinding: Unwinding,
    _registration: Registration,
    tables: Box<Tables>,
    memory: Arc<CodeMemory>,
}

/// The bytes of an arena's first chunk. Each of the others is twice as large as the one before.
const FIRST_CHUNK_BYTES: usize = 1 << 20;
/// The maximum size of a chunk, unless one function needs more.
const CHUNK_BYTES_MAX: usize = 64 << 20;

impl CodeArena {
    pub(crate) fn new() -> CodeArena {
        CodeArena(Mutex::new(Vec::new()))
    }

    /// Places a function whose relocations name no function. Returns the address range of its code, valid as
    /// long as the arena exists.
    ///
    /// # Errors
    /// Fails if no memory for code can be allocated.
    pub(crate) fn place(
        &self,
        isa: &OwnedTargetIsa,
        code: &MachineCode,
        module: &Arc<VerifiedModule>,
    ) -> Result<Range<usize>, CodeError> {
        let codes = std::slice::from_ref(code);
        let bytes = block_bytes(isa, codes)?.next_multiple_of(page_bytes());
        let mut chunks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if chunks.last().is_none_or(|chunk| chunk.memory.room() < bytes) {
            let doubled = FIRST_CHUNK_BYTES << chunks.len().min(16);
            let bytes = doubled.min(CHUNK_BYTES_MAX).max(bytes + page_bytes());
            chunks.push(Chunk::reserve(bytes)?);
        }
        let Chunk { memory, tables, .. } = chunks.last().expect("there is one with room");
        let (base, used) = memory.used();
        let funcs = write(isa, memory, 0, codes)?;
        let start = funcs[0];
        debug_assert!((base + used..base + used + page_bytes()).contains(&start));
        let table = unit_table(start, &funcs, codes, Some(module.clone()));
        let Tables::Pages(pages) = &**tables else { unreachable!("chunks have tables by page") };
        pages.insert(table, memory.used().1 - used);
        Ok(start..start + code.bytes.len())
    }

    /// Code without relocations that was placed here.
    ///
    /// # Panics
    /// Panics if it was not.
    pub(crate) fn to_machine_code(&self, code: &Range<usize>, how: Placing) -> MachineCode {
        let chunks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let table = chunks.iter().find_map(|chunk| match &*chunk.tables {
            Tables::Pages(pages) => pages.at(code.start),
            Tables::Unit(_) => None,
        });
        // SAFETY: what is placed stays as long as the arena.
        unsafe { MachineCode::of_placed(table.expect("it was placed here"), code, how) }
    }
}

impl Chunk {
    fn reserve(bytes: usize) -> Result<Chunk, CodeError> {
        let memory = Arc::new(CodeMemory::reserve_pages(bytes)?);
        let (base, _) = memory.used();
        let range = base..base + bytes;
        let tables = Box::new(Tables::Pages(PageTables::new(base, bytes, page_bytes())));
        let _unwinding = Unwinding::register(&range);
        let _registration = registry::register(range, &*tables);
        Ok(Chunk { _unwinding, _registration, tables, memory })
    }
}

const fn assert_send_sync<T: Send + Sync>() {}
const _: () = assert_send_sync::<CodeUnit>();
