//! Result of the verifier: a well-typed module, with the basic blocks, frame layout and storage of locals of
//! each function.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::constant_tables::{ConstantTables, TableEntry};
use crate::inst::{CodeReader, Inst};
use crate::module::{
    EntityKind, Func, GlobalType, ImportCall, ImportKind, Label, MemoryType, Module, ShapeId,
    TableType,
};
use crate::types::{FuncType, ValType};
use lazy::LazyFuncs;

pub(crate) mod lazy;

/// A module that the verifier has accepted. Only [`crate::verify()`], [`crate::verify_in_parallel`] and
/// [`Loaded::verify`](crate::load::Loaded::verify) make one.
#[derive(Clone, Debug)]
pub struct VerifiedModule {
    pub(crate) id: ModuleId,
    pub(crate) module: Module,
    /// The type of each function of the index space.
    pub(crate) func_types: Vec<u32>,
    pub(crate) n_imported_funcs: u32,
    pub(crate) func_sources: FuncSources,
    pub(crate) tables: Vec<TableType>,
    pub(crate) memories: Vec<MemoryType>,
    pub(crate) globals: Vec<GlobalType>,
    /// See [`VerifiedModule::global_cell`]; empty if each global takes one cell.
    pub(crate) global_cells: Vec<u32>,
    /// Depth of each shape, by [`ShapeId`].
    pub(crate) shape_depths: Vec<u32>,
    /// The number of operands of each shape that take two cells; empty if no shape has any.
    pub(crate) shape_n_wide: Vec<u32>,
    pub(crate) bodies: Vec<Body>,
    /// The functions with their bodies, if they are made when they are first asked for.
    pub(crate) lazy: Option<Arc<LazyFuncs>>,
    pub(crate) has_cold_imports: bool,
    pub(crate) uses_indexed: bool,
    pub(crate) uses_vectors: bool,
    /// See [`VerifiedModule::referenced_funcs`].
    pub(crate) referenced_funcs: Vec<u32>,
    /// See [`VerifiedModule::funcs_with_references`].
    pub(crate) funcs_with_references: OnceLock<Box<[u32]>>,
    /// The tables of functions that nothing outside of the module can write, in ascending order.
    pub(crate) private_tables: Vec<u32>,
    /// Those of them that no function writes, once somebody has asked.
    pub(crate) constant_tables: OnceLock<ConstantTables>,
}

/// Tells the verified modules of a process apart; clones of one have the same. It is for what is kept from one function of
/// a module to the next.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct ModuleId(u64);

/// Without the number: what is shown of a module does not depend on those before it.
impl fmt::Debug for ModuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModuleId").finish_non_exhaustive()
    }
}

impl ModuleId {
    /// An id that no other module has.
    pub(crate) fn new() -> ModuleId {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        ModuleId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Exports and imports of the functions of the index space, so that naming a function needs no search.
#[derive(Clone, Debug)]
pub(crate) struct FuncSources {
    /// The exported functions in ascending order, each with the index of its first export.
    exports: Vec<(u32, u32)>,
    /// The index of the import of each imported function.
    imports: Vec<u32>,
}

impl FuncSources {
    pub(crate) fn new(module: &Module) -> FuncSources {
        let exports = (0..).zip(&module.exports);
        let exports = exports.filter(|(_, export)| export.kind == EntityKind::Func);
        let mut exports: Vec<(u32, u32)> = exports.map(|(i, export)| (export.index, i)).collect();
        exports.sort_unstable();
        exports.dedup_by_key(|&mut (func, _)| func);
        let imports = (0..).zip(&module.imports);
        let imports = imports.filter(|(_, import)| matches!(import.kind, ImportKind::Func(..)));
        FuncSources { exports, imports: imports.map(|(i, _)| i).collect() }
    }
}

/// Results of verification for one function defined in the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// All locals, parameters first. Their cells are consecutive, see [`Body::local_cell`].
    pub locals: Vec<Local>,
    /// Locals that take two cells, as runs: first local, end (exclusive), number of locals in the runs
    /// before.
    pub(crate) wide_locals: Vec<(u32, u32, u32)>,
    /// Maximum number of cells of the operand stack. They follow the cells of the locals, the deepest operand
    /// first.
    pub stack_max: u32,
    /// The stack shuffles, `drop`s and `select`s of operands that take two cells, in ascending order of code
    /// offset.
    pub wide: Vec<WideOperands>,
    /// Basic blocks in code order; block 0 is the entry. Control falls into every other block, or the block
    /// starts at a label; no branch need go to that label.
    pub blocks: Vec<Block>,
    /// Successor blocks of all blocks, see [`Body::succs`].
    pub succs: Vec<u32>,
    /// Accesses through the address of a promotable local, in ascending order of code offset: the
    /// loads and stores that read and write the local itself.
    pub direct: Vec<DirectAccess>,
    /// Whether any local or operand is a reference into the embedder's heap.
    pub has_refs: bool,
    /// The size of the function's frame in the frame stack, in bytes, a multiple of 8. The escaping
    /// locals lie in it in ascending order, each in 8 bytes of its own.
    pub frame_bytes: u32,
}

/// A local of a verified function.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Local {
    /// Its type.
    pub ty: ValType,
    /// Its storage.
    pub storage: Storage,
}

/// The storage of a local.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// The local is in its cell of the frame; it can be promoted to a register.
    Promotable,
    /// The local is in linear memory, since its address escapes.
    Escapes {
        /// The offset in the function's frame of the frame stack, in bytes.
        frame_offset: u32,
        /// The code offset of the instruction that makes it escape.
        at: u32,
        /// The reason.
        reason: EscapeReason,
    },
}

/// The reason why a local's address escapes: its first use other than a plain access of the local's own type
/// at offset 0 in the same basic block.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum EscapeReason {
    /// The address is live at the end of the basic block.
    LeavesBlock,
    /// An instruction other than a load or store consumes it.
    Consumed,
    /// The address is stored to memory as a value, or serves as base or index of an indexed access.
    Stored,
    /// The address is that of a load or store of another type or width.
    OtherType,
    /// The address is that of a load or store with an offset other than 0.
    Offset,
}

impl EscapeReason {
    /// The reason as a phrase.
    pub const fn message(self) -> &'static str {
        match self {
            EscapeReason::LeavesBlock => "its address leaves the basic block",
            EscapeReason::Consumed => "its address is used as a number",
            EscapeReason::Stored => "its address is stored or indexed",
            EscapeReason::OtherType => "it is accessed as another type",
            EscapeReason::Offset => "it is accessed at an offset",
        }
    }
}

/// A basic block of the bytecode, the unit of fuel charging.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The code offset of its first instruction.
    pub start: u32,
    /// The code offset after its last instruction.
    pub end: u32,
    /// The number of its instructions, which is its fuel cost.
    pub cost: u32,
    /// The operand stack at its start.
    pub shape: ShapeId,
    /// The label at its start, if any.
    pub label: Option<u32>,
    /// Whether an interruptible program polls at its start: it is the first block of the function or the
    /// target of a backward branch. So every cycle has such a block.
    pub polls: bool,
    /// Start of its successors in the list of [`Body::succs`].
    pub(crate) succ_start: u32,
}

/// A load or store that accesses a promotable local directly.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct DirectAccess {
    /// The code offset of the load or store.
    pub offset: u32,
    /// The local.
    pub local: u32,
}

/// A stack shuffle, `drop` or `select` with an operand that takes two cells.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct WideOperands {
    /// The code offset of the instruction.
    pub offset: u32,
    /// The operands that take two cells, as a bit set; bit 0 is the topmost operand.
    pub operands: u8,
}

impl Body {
    /// Sets the shapes of blocks, given the function's labels: that of the label at the start, or else that of the label
    /// to which a conditional branch goes before.
    pub(crate) fn set_shapes(&mut self, labels: &[Label]) {
        for i in 0..self.blocks.len() {
            let label = match (self.blocks[i].label, i.checked_sub(1)) {
                (None, Some(before)) => self.blocks[self.succs(before)[0] as usize].label,
                (label, _) => label,
            };
            self.blocks[i].shape =
                label.map_or(ShapeId::EMPTY, |label| labels[label as usize].shape);
        }
    }

    /// Number of cells of the function's frame.
    pub fn n_cells(&self) -> u32 {
        self.n_local_cells() + self.stack_max
    }

    /// Number of cells of the locals.
    pub fn n_local_cells(&self) -> u32 {
        self.local_cell(self.locals.len() as u32)
    }

    /// The loops that backward branches make, in order: the block that such branches lead to, and the end of the last
    /// block that branches there. Every cycle of the control flow has a block of those that begin one.
    pub fn loops(&self) -> Vec<Range<u32>> {
        let mut ends = vec![0; self.blocks.len()];
        for block in 0..self.blocks.len() {
            for &target in self.succs(block).iter().filter(|&&target| target as usize <= block) {
                ends[target as usize] = block as u32 + 1;
            }
        }
        let loops = (0..).zip(ends).filter(|&(_, end)| end > 0);
        loops.map(|(start, end)| start..end).collect()
    }

    /// The first cell of a local in the frame. For the number of locals, the first cell of the operand stack.
    #[inline]
    pub fn local_cell(&self, local: u32) -> u32 {
        let before = self.wide_locals.partition_point(|&(start, ..)| start < local);
        match self.wide_locals[..before].last() {
            Some(&(start, end, n)) => local + n + (local.min(end) - start),
            None => local,
        }
    }

    /// The operands that take two cells, of the stack shuffle, `drop` or `select` at a code offset, as in
    /// [`WideOperands::operands`].
    #[inline]
    pub fn wide_operands(&self, offset: u32) -> u8 {
        let i = self.wide.binary_search_by_key(&offset, |wide| wide.offset);
        i.map_or(0, |i| self.wide[i].operands)
    }

    /// The successors of a block, in the order of its last instruction. For `br_if`: the label, then the next
    /// block. For `br_table`: the indexed labels, then the default, with duplicates. For a block that falls
    /// into a label: the next block. None if the block leaves the function.
    pub fn succs(&self, block: usize) -> &[u32] {
        let start = self.blocks[block].succ_start as usize;
        let end = self.blocks.get(block + 1).map_or(self.succs.len(), |b| b.succ_start as usize);
        &self.succs[start..end]
    }

    /// The block that starts at a label.
    ///
    /// # Panics
    /// Panics if the function has no such label.
    pub fn block_at(&self, offset: u32) -> usize {
        self.blocks.binary_search_by_key(&offset, |b| b.start).expect("a block starts there")
    }

    /// The local that the load or store at a code offset accesses directly, if any.
    pub fn direct_access(&self, offset: u32) -> Option<u32> {
        let i = self.direct.binary_search_by_key(&offset, |d| d.offset).ok()?;
        Some(self.direct[i].local)
    }
}

impl VerifiedModule {
    /// The unchanged module. If [`VerifiedModule::is_lazy`], its functions have only their types, it has no shapes, and
    /// no names but its own and those of imports; see [`VerifiedModule::completed`].
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// The id of the module.
    pub fn id(&self) -> ModuleId {
        self.id
    }

    /// Whether functions are made when they are first asked for ([`LoadOptions::is_lazy`]).
    ///
    /// [`LoadOptions::is_lazy`]: crate::load::LoadOptions::is_lazy
    pub fn is_lazy(&self) -> bool {
        self.lazy.is_some()
    }

    /// Returns the module with all functions in [`VerifiedModule::module`]. Those that are not made yet are made.
    pub fn completed(self: &Arc<VerifiedModule>) -> &Arc<VerifiedModule> {
        self.lazy.as_ref().map_or(self, |lazy| lazy.completed(&self.module))
    }

    /// Does the same with a module that has no other users. Functions are moved, not copied.
    pub fn into_completed(self) -> Arc<VerifiedModule> {
        match self.lazy {
            None => Arc::new(self),
            Some(lazy) => match Arc::try_unwrap(lazy) {
                Ok(lazy) => lazy.into_completed(self.module),
                Err(lazy) => lazy.completed(&self.module).clone(),
            },
        }
    }

    /// Number of functions of the index space.
    pub fn n_funcs(&self) -> u32 {
        self.func_types.len() as u32
    }

    /// Number of imported functions, which is the index of the first function defined here.
    pub fn n_imported_funcs(&self) -> u32 {
        self.n_imported_funcs
    }

    /// How native code calls a function. Those that the module defines are called as all are.
    pub fn import_call(&self, func: u32) -> ImportCall {
        let import = self.func_sources.imports.get(func as usize);
        match import.map(|&import| &self.module.imports[import as usize].kind) {
            Some(&ImportKind::Func(_, call)) => call,
            _ => ImportCall::Ordinary,
        }
    }

    /// Whether calls of some import are rare.
    pub fn has_cold_imports(&self) -> bool {
        self.has_cold_imports
    }

    /// The index into [`Module::types`] of a function's type.
    pub fn func_type_index(&self, func: u32) -> u32 {
        self.func_types[func as usize]
    }

    /// The type of a function.
    pub fn func_type(&self, func: u32) -> &FuncType {
        &self.module.types[self.func_type_index(func) as usize]
    }

    /// The definition of a function, or `None` if it is imported.
    pub fn func(&self, func: u32) -> Option<&Func> {
        let place = func.checked_sub(self.n_imported_funcs)? as usize;
        match &self.lazy {
            Some(lazy) => Some(&lazy.get(place)?.0),
            None => self.module.funcs.get(place),
        }
    }

    /// The bytes that were given for a function, if it is a translation of something: its
    /// [`Func::source_bytes`](crate::module::Func::source_bytes), without making it.
    pub fn source_bytes(&self, func: u32) -> Option<u32> {
        let place = func.checked_sub(self.n_imported_funcs)? as usize;
        let bytes = match &self.lazy {
            Some(lazy) => lazy.source_bytes(place),
            None => self.module.funcs.get(place)?.source_bytes,
        };
        (bytes > 0).then_some(bytes)
    }

    /// Results of verification for a function, or `None` if it is imported.
    pub fn body(&self, func: u32) -> Option<&Body> {
        let place = func.checked_sub(self.n_imported_funcs)? as usize;
        match &self.lazy {
            Some(lazy) => Some(&lazy.get(place)?.1),
            None => self.bodies.get(place),
        }
    }

    /// All tables of the index space.
    pub fn tables(&self) -> &[TableType] {
        &self.tables
    }

    /// The functions of a type in a table that nobody can change once the module has been instantiated, in ascending
    /// order of their indices. None if the table may change. Types are the same if they are equal.
    pub fn constant_entries(&self, table: u32, ty: u32) -> Option<&[TableEntry]> {
        self.constant_tables().entries(table, ty)
    }

    /// Whether nobody can change a table once the module has been instantiated, so that
    /// [`VerifiedModule::constant_entries`] knows its functions. The embedder must not write it either.
    pub fn is_constant_table(&self, table: u32) -> bool {
        self.constant_tables().is_constant(table)
    }

    /// The tables of functions that the module defines and does not export, in ascending order: those that may be
    /// [constant](VerifiedModule::is_constant_table).
    pub fn private_tables(&self) -> &[u32] {
        &self.private_tables
    }

    fn constant_tables(&self) -> &ConstantTables {
        self.constant_tables.get_or_init(|| {
            let written = self.lazy.as_ref().expect("all else is known").written_tables();
            let (tables, funcs) = (&self.tables, &self.func_types);
            ConstantTables::find(&self.module, tables, funcs, &self.private_tables, &written)
        })
    }

    /// All memories of the index space.
    pub fn memories(&self) -> &[MemoryType] {
        &self.memories
    }

    /// All globals of the index space.
    pub fn globals(&self) -> &[GlobalType] {
        &self.globals
    }

    /// The first cell of a global in an instance, which keeps its globals in consecutive cells. An imported
    /// global has one cell, for the place of its value. For the number of globals, the number of all cells.
    #[inline]
    pub fn global_cell(&self, global: u32) -> u32 {
        self.global_cells.get(global as usize).copied().unwrap_or(global)
    }

    /// Number of operands of a shape.
    pub fn shape_depth(&self, shape: ShapeId) -> u32 {
        match &self.lazy {
            Some(lazy) => lazy.shape_depth(shape),
            None => self.shape_depths[shape.0 as usize],
        }
    }

    /// Number of cells that the operands of a shape take.
    pub fn shape_cells(&self, shape: ShapeId) -> u32 {
        let n_wide = self.shape_n_wide.get(shape.0 as usize).copied().unwrap_or(0);
        self.shape_depth(shape) + n_wide
    }

    /// The topmost operand of a shape and the shape below, or `None` if it is empty.
    pub fn shape_top(&self, shape: ShapeId) -> Option<(ShapeId, ValType)> {
        if let Some(lazy) = &self.lazy {
            return lazy.shape_top(shape);
        }
        let entry = self.module.shapes[shape.0.checked_sub(1)? as usize];
        Some((entry.parent, entry.ty))
    }

    /// The instructions of a block of a function, with their code offsets.
    ///
    /// # Panics
    /// Panics if the function is imported.
    pub fn insts(&self, func: u32, block: &Block) -> impl Iterator<Item = (u32, Inst)> + '_ {
        let code = &self.func(func).expect("the function is defined here").code;
        let (start, end) = (block.start, block.end);
        let mut reader = CodeReader::new(&code[..end as usize], start);
        std::iter::from_fn(move || {
            let offset = reader.offset();
            (offset < end).then(|| (offset, reader.read().expect("verified code decodes")))
        })
    }

    /// A recognisable name for a function: its own name, or else that of an export, that of the import, or
    /// its number.
    pub fn func_name(&self, func: u32) -> String {
        let Module { names, exports, imports, .. } = &self.module;
        let names = self.lazy.as_ref().map_or(names, |lazy| lazy.names(&self.module));
        let FuncSources { exports: exported, imports: imported } = &self.func_sources;
        if let Some(name) = names.func(func) {
            return name.to_owned();
        }
        if let Ok(i) = exported.binary_search_by_key(&func, |&(func, _)| func) {
            return exports[exported[i].1 as usize].name.clone();
        }
        match imported.get(func as usize) {
            Some(&i) => format!("{}.{}", imports[i as usize].module, imports[i as usize].name),
            None => format!("f{func}"),
        }
    }

    /// The functions that `ref.func` in code refers to, in ascending order. An instance creates their
    /// references before code runs.
    pub fn referenced_funcs(&self) -> &[u32] {
        &self.referenced_funcs
    }

    /// The functions to which each instance has references before code runs, in ascending order: those that `ref.func` in code,
    /// element segments and the values of globals refer to. Found when somebody first asks.
    pub fn funcs_with_references(&self) -> &[u32] {
        self.funcs_with_references.get_or_init(|| {
            let mut funcs = self.referenced_funcs.clone();
            self.module.for_each_ref(|func| funcs.push(func));
            funcs.sort_unstable();
            funcs.dedup();
            funcs.into()
        })
    }

    /// Whether each function of the index space can be called other than by a `call` or `return_call` of the module: it is
    /// imported, exported, or the start function, or something refers to it.
    pub fn can_be_entered(&self) -> Vec<bool> {
        let mut can_be_entered = vec![false; self.func_types.len()];
        let mut enter = |func: u32| can_be_entered[func as usize] = true;
        (0..self.n_imported_funcs).for_each(&mut enter);
        self.funcs_with_references().iter().copied().for_each(&mut enter);
        self.module.start.into_iter().for_each(enter);
        can_be_entered
    }

    /// Whether any function has SIMD instructions, which not every machine can execute.
    pub fn uses_vectors(&self) -> bool {
        self.uses_vectors
    }

    /// Whether any function has indexed memory accesses, whose addresses can exceed 4 GiB.
    pub fn uses_indexed_accesses(&self) -> bool {
        self.uses_indexed
    }
}
