//! What the verifier hands over: a module that is well-typed, and per function the basic blocks, the
//! frame layout and the storage of each local.

use crate::inst::{CodeReader, Inst};
use crate::module::{
    EntityKind, Func, GlobalType, ImportKind, MemoryType, Module, ShapeId, TableType,
};
use crate::types::{FuncType, ValType};

/// A module that the verifier has accepted. [`crate::verify::verify`] is the only way to get one.
#[derive(Clone, Debug)]
pub struct VerifiedModule {
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
    pub(crate) uses_indexed: bool,
    pub(crate) uses_vectors: bool,
    /// See [`VerifiedModule::referenced_funcs`].
    pub(crate) referenced_funcs: Vec<u32>,
}

/// Where the functions of the index space come from and go to, so that naming one needs no search.
#[derive(Clone, Debug)]
pub(crate) struct FuncSources {
    /// The exported functions in ascending order, each with the number of its first export.
    exports: Vec<(u32, u32)>,
    /// The number of the import of each imported function.
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
        let imports = imports.filter(|(_, import)| matches!(import.kind, ImportKind::Func(_)));
        FuncSources { exports, imports: imports.map(|(i, _)| i).collect() }
    }
}

/// What the verifier found out about one function defined in the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// All locals, parameters first. Their cells follow each other, [`Body::local_cell`].
    pub locals: Vec<Local>,
    /// Locals that take two cells, as runs: the first one, the one behind the last, and how many there are in
    /// the runs before.
    pub(crate) wide_locals: Vec<(u32, u32, u32)>,
    /// The most cells that the operand stack takes. Its cells follow those of the locals, the deepest operand
    /// first.
    pub stack_max: u32,
    /// The stack shuffles, `drop`s and `select`s of operands that take two cells, in ascending order of code
    /// offset.
    pub wide: Vec<WideOperands>,
    /// Basic blocks in the order of the code; block 0 is the entry. Every block is reachable along
    /// fallthrough or starts at a label, but a label need not be branched to.
    pub blocks: Vec<Block>,
    /// Successor blocks of all blocks, see [`Body::succs`].
    pub succs: Vec<u32>,
    /// Accesses through the address of a promotable local, in ascending order of code offset: the
    /// loads and stores that read and write the local itself.
    pub direct: Vec<DirectAccess>,
    /// The size of the function's frame in the frame stack, in bytes, a multiple of 8. The escaping
    /// locals lie in it in ascending order, each in 8 bytes of its own.
    pub frame_bytes: u32,
}

/// A local of a verified function.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Local {
    /// Its type.
    pub ty: ValType,
    /// Where it lives.
    pub storage: Storage,
}

/// Where a local lives.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// In its cell of the frame; it can be promoted to a register.
    Promotable,
    /// In linear memory, since its address escapes.
    Escapes {
        /// The offset in the function's frame of the frame stack, in bytes.
        frame_offset: u32,
        /// The code offset of the instruction that makes it escape.
        at: u32,
        /// Why.
        reason: EscapeReason,
    },
}

/// Why a local's address escapes: what the first use of the address that is not a plain access of the
/// local's own type at offset 0 in the same basic block is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum EscapeReason {
    /// The address is live at the end of the basic block.
    LeavesBlock,
    /// An instruction other than a load or store consumes it.
    Consumed,
    /// It is stored to memory as a value, or serves as base or index of an indexed access.
    Stored,
    /// A load or store of another type or width goes through it.
    OtherType,
    /// A load or store at an offset other than 0 goes through it.
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

/// A basic block of the bytecode: the unit for which fuel is charged.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The code offset of its first instruction.
    pub start: u32,
    /// The code offset behind its last instruction.
    pub end: u32,
    /// The number of its instructions, which is what its fuel costs.
    pub cost: u32,
    /// The operand stack at its start.
    pub shape: ShapeId,
    /// The label that starts it, if one does.
    pub label: Option<u32>,
    /// Whether a program that the host can interrupt asks for it here: the function starts with the block,
    /// or a branch leads to it that is not before it in the code. So every cycle has such a block.
    pub polls: bool,
    /// Where its successors start in [`Body::succs`].
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
    /// Which of its operands are such: bit 0 is the topmost one.
    pub operands: u8,
}

impl Body {
    /// The number of cells of the function's frame.
    pub fn n_cells(&self) -> u32 {
        self.n_local_cells() + self.stack_max
    }

    /// The number of cells of the locals.
    pub fn n_local_cells(&self) -> u32 {
        self.local_cell(self.locals.len() as u32)
    }

    /// The first cell of the frame that a local has; of the number of locals, where the operand stack starts.
    #[inline]
    pub fn local_cell(&self, local: u32) -> u32 {
        let before = self.wide_locals.partition_point(|&(start, ..)| start < local);
        match self.wide_locals[..before].last() {
            Some(&(start, end, n)) => local + n + (local.min(end) - start),
            None => local,
        }
    }

    /// The operands that take two cells of the stack shuffle, `drop` or `select` at a code offset, as
    /// [`WideOperands::operands`].
    #[inline]
    pub fn wide_operands(&self, offset: u32) -> u8 {
        let i = self.wide.binary_search_by_key(&offset, |wide| wide.offset);
        i.map_or(0, |i| self.wide[i].operands)
    }

    /// The successors of a block, in the order of the instruction that ends it: for `br_if` the
    /// label, then the next block; for `br_table` the indexed labels, then the default, duplicates
    /// kept; for a block that runs into a label, the next block; none where the function is left.
    pub fn succs(&self, block: usize) -> &[u32] {
        let start = self.blocks[block].succ_start as usize;
        let end = self.blocks.get(block + 1).map_or(self.succs.len(), |b| b.succ_start as usize);
        &self.succs[start..end]
    }

    /// The block that starts at a label.
    ///
    /// # Panics
    /// If the function has no such label.
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
    /// The module as it was.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// The number of functions of the index space.
    pub fn n_funcs(&self) -> u32 {
        self.func_types.len() as u32
    }

    /// The number of imported functions: the index of the first function defined here.
    pub fn n_imported_funcs(&self) -> u32 {
        self.n_imported_funcs
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
        self.module.funcs.get(func.checked_sub(self.n_imported_funcs)? as usize)
    }

    /// What the verifier found out about a function, or `None` if it is imported.
    pub fn body(&self, func: u32) -> Option<&Body> {
        self.bodies.get(func.checked_sub(self.n_imported_funcs)? as usize)
    }

    /// All tables of the index space.
    pub fn tables(&self) -> &[TableType] {
        &self.tables
    }

    /// All memories of the index space.
    pub fn memories(&self) -> &[MemoryType] {
        &self.memories
    }

    /// All globals of the index space.
    pub fn globals(&self) -> &[GlobalType] {
        &self.globals
    }

    /// The first cell of a global, where instances keep those that they define one after the other. An
    /// imported global has one cell there, for the place of its value. Of the number of globals, the number of
    /// all cells.
    #[inline]
    pub fn global_cell(&self, global: u32) -> u32 {
        self.global_cells.get(global as usize).copied().unwrap_or(global)
    }

    /// The number of operands of a shape.
    pub fn shape_depth(&self, shape: ShapeId) -> u32 {
        self.shape_depths[shape.0 as usize]
    }

    /// The number of cells that the operands of a shape take.
    pub fn shape_cells(&self, shape: ShapeId) -> u32 {
        let n_wide = self.shape_n_wide.get(shape.0 as usize).copied().unwrap_or(0);
        self.shape_depth(shape) + n_wide
    }

    /// The topmost operand of a shape and the shape below, or `None` if it is empty.
    pub fn shape_top(&self, shape: ShapeId) -> Option<(ShapeId, ValType)> {
        let entry = self.module.shapes[shape.0.checked_sub(1)? as usize];
        Some((entry.parent, entry.ty))
    }

    /// The instructions of a block of a function, with their code offsets.
    ///
    /// # Panics
    /// If the function is imported.
    pub fn insts(&self, func: u32, block: &Block) -> impl Iterator<Item = (u32, Inst)> + '_ {
        let code = &self.func(func).expect("the function is defined here").code;
        let (start, end) = (block.start, block.end);
        let mut reader = CodeReader::new(&code[..end as usize], start);
        std::iter::from_fn(move || {
            let offset = reader.offset();
            (offset < end).then(|| (offset, reader.read().expect("verified code decodes")))
        })
    }

    /// A name for a function that people recognise: its own, that of an export, that of the import,
    /// or else its number.
    pub fn func_name(&self, func: u32) -> String {
        let Module { names, exports, imports, .. } = &self.module;
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

    /// The functions that `ref.func` in code refers to, ascending: an instance gives them their references
    /// before code runs.
    pub fn referenced_funcs(&self) -> &[u32] {
        &self.referenced_funcs
    }

    /// Whether any function has instructions on vectors, which not every machine can execute.
    pub fn uses_vectors(&self) -> bool {
        self.uses_vectors
    }

    /// Whether any function has indexed memory accesses, whose addresses reach past 4 GiB.
    pub fn uses_indexed_accesses(&self) -> bool {
        self.uses_indexed
    }
}
