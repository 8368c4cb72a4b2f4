//! Placing of code: with [`memory`](super::memory) and [`mapping`](super::mapping), the only module that uses cranelift-jit.
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

use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Module as _, default_libcall_names};
use slotvm_bytecode::VerifiedModule;

use crate::code::debug_code::DebugCode;
use crate::code::debugger::DebugImage;
use crate::code::dwarf::Shown;
use crate::code::error::CodeError;
use crate::code::machine_code::{MachineCode, Placing};
use crate::code::mapping::page_bytes;
use crate::code::memory::{CodeMemory, Provider};
use crate::code::pctable::{PageTables, PcTable, Tables};
use crate::code::registry::{self, Registration};
use crate::code::unwind::Unwinding;

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
    /// The debug information of each function that has code; empty once debuggers have it.
    debug: Vec<Option<Box<DebugCode>>>,
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
            debug: described(codes),
            memory,
        })
    }

    /// Registers the code with debuggers until it is freed. The names are those of its functions that have code, in the
    /// order of placing.
    pub(crate) fn show_to_debuggers(&mut self, names: impl Iterator<Item = String>) {
        let (base, bytes) = self.memory.used();
        let Tables::Unit(table) = &*self.tables else { unreachable!("a unit has one table") };
        let debug = std::mem::take(&mut self.debug);
        let funcs = self.codes().zip(names).zip(&debug);
        let funcs: Vec<Shown<'_>> = funcs
            .map(|((code, name), debug)| Shown { code, name, debug: debug.as_deref() })
            .collect();
        let code = base..base + bytes;
        self.debug_image = Some(DebugImage::register(&code, &funcs, table.module.as_deref()));
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

/// The debug information of each function that has code.
fn described(codes: &[MachineCode]) -> Vec<Option<Box<DebugCode>>> {
    let codes = codes.iter().filter(|code| !code.bytes.is_empty());
    codes.map(|code| code.debug.clone()).collect()
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
        table.roots.extend(code.roots.iter().map(|site| site.moved(start)));
        table.calls.extend(code.calls.iter().map(|site| site.moved(start, first_place)));
    }
    debug_assert!(table.traps.is_sorted_by_key(|site| site.offset));
    debug_assert!(table.calls.is_sorted_by_key(|site| site.offset));
    table
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
