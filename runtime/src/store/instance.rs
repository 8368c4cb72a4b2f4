//! Instances: a module with its imports, its own memory, tables and globals, ready to run.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

use slotvm_bytecode::VerifiedModule;

use crate::context::{TableDef, VmCtx};
use crate::entities::{
    Extern, FuncHandle, GlobalHandle, MemoryHandle, TableHandle, cells_of, value_of,
};
use crate::pinned::Pinned;
use crate::steps::module_code::ModuleCode;
use crate::store::funcs::InstanceFuncs;

/// A module that is ready to run.
pub(crate) struct Instance {
    pub(crate) module: Arc<VerifiedModule>,
    pub(crate) code: Arc<ModuleCode>,
    pub(crate) ctx: Context,
    /// The target of `ctx`; see there.
    pub(crate) table_defs: Pinned<[*mut TableDef]>,
    pub(crate) type_ids: Pinned<[u32]>,
    pub(crate) funcs: InstanceFuncs,
    /// Exports of extensions, besides those of its module.
    pub(crate) added_exports: BTreeMap<String, Extern>,

    pub(crate) memory: Option<MemoryHandle>,
    pub(crate) tables: Vec<TableHandle>,
    pub(crate) global_handles: Vec<GlobalHandle>,
    pub(crate) n_imported_globals: u32,
    /// The element segments; those dropped are empty.
    pub(crate) elems: Vec<Box<[u64]>>,
    /// Which data segments are dropped.
    pub(crate) datas_dropped: Vec<bool>,
}

impl Instance {
    pub(crate) fn module(&self) -> &Arc<VerifiedModule> {
        &self.module
    }

    pub(crate) fn code(&self) -> &Arc<ModuleCode> {
        &self.code
    }

    pub(crate) fn ctx(&self) -> *mut VmCtx {
        self.ctx.as_ptr()
    }

    /// The store's number of a type of the module.
    pub(crate) fn type_id(&self, ty: u32) -> u32 {
        self.type_ids()[ty as usize]
    }

    pub(super) fn type_ids(&self) -> &[u32] {
        // SAFETY: the slice is written before the instance exists and never again.
        unsafe { &*self.type_ids.as_ptr() }
    }

    /// The handle of a function of the module's index space that is imported, or that the code refers to.
    pub(crate) fn func_handle(&self, func: u32) -> FuncHandle {
        self.funcs.get(func).expect("what the code needs handles of has them")
    }

    /// The address of the lowest byte of the frame stack in use.
    pub(crate) fn frame_sp(&self) -> u32 {
        // SAFETY: we own the context; native code does not run while the instance is borrowed.
        unsafe { (*self.ctx.as_ptr()).frame_sp }
    }

    pub(crate) fn set_frame_sp(&mut self, frame_sp: u32) {
        // SAFETY: we own the context; native code does not run while the instance is borrowed.
        unsafe { (*self.ctx.as_ptr()).frame_sp = frame_sp };
    }

    /// The frame pointer while no function of the instance is active.
    pub(crate) fn frame_sp_initial(&self) -> u32 {
        self.module.module().frame_stack.map_or(0, |stack| stack.base + stack.bytes)
    }
}

/// The context of an instance, and the cells of its globals behind it.
pub(crate) struct Context {
    /// The context is in the first ones, the cells are the others.
    words: Pinned<[u64]>,
    n_cells: u32,
}

impl Context {
    /// Cells of zero.
    pub(crate) fn new(ctx: VmCtx, n_cells: u32) -> Context {
        const { assert!(align_of::<VmCtx>() == align_of::<u64>()) };
        let words = vec![0; CONTEXT_WORDS + n_cells as usize].into_boxed_slice();
        let words = Pinned::from_box(words);
        // SAFETY: that many words belong to the allocation, and they are aligned as the context is, by the assertion above. Its size
        // is thus a multiple of theirs.
        unsafe { words.first().cast::<VmCtx>().write(ctx) };
        Context { words, n_cells }
    }

    pub(crate) fn as_ptr(&self) -> *mut VmCtx {
        self.words.first().cast()
    }

    /// The address of the first cell.
    pub(crate) fn cells(&self) -> *mut u64 {
        // SAFETY: the allocation has as many words, and the cells behind them.
        unsafe { self.words.first().add(CONTEXT_WORDS) }
    }

    pub(crate) fn n_cells(&self) -> u32 {
        self.n_cells
    }

    /// Sets the cells. There are as many values.
    pub(crate) fn set_cells(&mut self, values: &[u64]) {
        assert_eq!(values.len(), self.n_cells as usize, "each cell has a value");
        // SAFETY: there are as many cells, which native code does not use before the instance exists.
        unsafe { self.cells().copy_from_nonoverlapping(values.as_ptr(), values.len()) };
    }
}

/// The words that the context takes.
const CONTEXT_WORDS: usize = size_of::<VmCtx>() / size_of::<u64>();

/// The globals of an instance, to be read and written while the rest of the store is, too.
pub(crate) struct Globals<'a> {
    pub(super) cells: *mut u64,
    pub(super) len: u32,
    pub(super) n_imported: u32,
    /// The store stays borrowed exclusively.
    pub(super) store: PhantomData<&'a mut u64>,
}

impl Globals<'_> {
    /// Returns the place of a value, by the number of its global's first cell.
    fn cell(&self, cell: u32) -> *mut u64 {
        assert!(cell < self.len, "verified code names globals that exist");
        // SAFETY: the index is in bounds. The cell of an imported global holds the address of a cell of
        // the same store.
        unsafe {
            let place = self.cells.add(cell as usize);
            if cell < self.n_imported { *place as *mut u64 } else { place }
        }
    }

    #[inline]
    pub(crate) fn get(&self, cell: u32) -> u64 {
        // SAFETY: `cell` gives the address of a cell that lives as long as the store, which is borrowed
        // exclusively.
        unsafe { *self.cell(cell) }
    }

    /// Reads both cells of a global of type `v128`.
    pub(crate) fn get_wide(&self, cell: u32) -> u128 {
        // SAFETY: `cell` gives the address of a cell that lives as long as the store, which is borrowed
        // exclusively. The code is verified, so the global is a vector, which has two cells.
        unsafe { value_of(*self.cell(cell).cast()) }
    }

    pub(crate) fn set_wide(&mut self, cell: u32, value: u128) {
        // SAFETY: `cell` gives the address of a cell that lives as long as the store, which is borrowed
        // exclusively. The code is verified, so the global is a vector, which has two cells.
        unsafe { *self.cell(cell).cast() = cells_of(value) }
    }
}

/// The parts that the interpreter accesses without the store.
pub(crate) struct GuestParts<'a> {
    /// The contents of memory 0, empty if there is none.
    pub(crate) memory: &'a mut [u8],
    pub(crate) globals: Globals<'a>,
}

impl Instance {
    /// Lets the context point to what native code needs.
    pub(crate) fn fill_ctx(&mut self) {
        let frame_sp = self.frame_sp_initial();
        // SAFETY: we own the context, and native code has not run yet.
        let ctx = unsafe { &mut *self.ctx.as_ptr() };
        ctx.tables = self.table_defs.first();
        ctx.type_ids = self.type_ids.first();
        ctx.func_handles = self.funcs.first_handle();
        ctx.imports = self.funcs.first_import();
        ctx.leaves = self.funcs.first_leaf();
        ctx.frame_sp = frame_sp;
    }
}
