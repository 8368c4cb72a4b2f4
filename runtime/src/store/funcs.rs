//! The functions of a store that have a handle.
//!
//! A module has many functions, and hardly any of them is ever called through a handle: calls inside a
//! module need none. So an instance makes a handle for a function of its module at the first request for
//! it: an import, a table, `ref.func`, or the host, which may do so while it only reads the store. For
//! that, lists may grow behind a shared reference here; no reference into them is given out.

use std::cell::RefCell;
use std::sync::atomic::{AtomicPtr, Ordering};

use slotvm_bytecode::VerifiedModule;
use slotvm_bytecode::module::ImportCall;

use crate::context::{FuncRecord, LeafFn, Shared, VmCtx};
use crate::entities::FuncHandle;
use crate::entities::InstanceId;
use crate::pinned::Pinned;
use crate::store::host::HostCallee;

/// The code that runs when a function is called.
#[derive(Copy, Clone)]
pub(crate) enum FuncKind {
    Guest {
        instance: InstanceId,
        func: u32,
    },
    /// The callee lives as long as the store, and nothing of it is written but its entry, which is atomic.
    Host(*const HostCallee),
}

/// The functions of a store that have a handle, by handle.
#[derive(Default)]
pub(crate) struct Funcs {
    /// The records that native code sees.
    records: RefCell<Vec<FuncRecord>>,
    /// Kinds of the functions, in step with the records.
    kinds: RefCell<Vec<FuncKind>>,
    /// The number of all functions, with a handle or without.
    pub(super) n_counted: u32,
    /// The host functions among them.
    pub(super) host_callees: Vec<Pinned<HostCallee>>,
}

impl Funcs {
    pub(crate) fn len(&self) -> usize {
        self.kinds.borrow().len()
    }

    /// Whether a handle is that of a function.
    pub(crate) fn contains(&self, func: FuncHandle) -> bool {
        func.index() < self.len() && func == FuncHandle::from_index(func.index())
    }

    /// Adds a function, to be found by native code through `shared`.
    ///
    /// # Safety
    /// `shared` is that of the store that these are the functions of.
    pub(crate) unsafe fn push(
        &self,
        shared: *mut Shared,
        record: FuncRecord,
        kind: FuncKind,
    ) -> FuncHandle {
        let mut records = self.records.borrow_mut();
        let handle = FuncHandle::from_index(records.len());
        records.push(record);
        self.kinds.borrow_mut().push(kind);
        // SAFETY: the store owns the structure; native code reads the pointer anew at each use.
        unsafe { (*shared).funcs = records.as_ptr() };
        handle
    }

    #[inline]
    pub(crate) fn record(&self, func: FuncHandle) -> FuncRecord {
        // SAFETY: the list is only borrowed mutably in `push`, which calls nothing that comes here. Each call
        // from the host comes here, and would notice that a borrow is counted.
        let records = unsafe { &*self.records.as_ptr() };
        records[func.index()]
    }

    /// The native code of a function, or null in a store that interprets everything.
    ///
    /// # Safety
    /// The record is of these functions' store, which lives.
    #[inline]
    pub(crate) unsafe fn code(record: &FuncRecord) -> *const u8 {
        // SAFETY: the cell is that of a host function, which the store keeps, or lives as long as the code of the module, as
        // whoever makes an instance promises.
        match unsafe { record.entry.as_ref() } {
            Some(entry) => entry.load(Ordering::Acquire),
            None => std::ptr::null(),
        }
    }

    pub(crate) fn kind(&self, func: FuncHandle) -> FuncKind {
        self.kinds.borrow()[func.index()]
    }

    /// The C function of a host function that is a leaf.
    pub(crate) fn leaf(&self, func: FuncHandle) -> Option<LeafFn> {
        match self.kind(func) {
            FuncKind::Guest { .. } => None,
            // SAFETY: the store keeps its host functions, and nothing of one but its entry is ever written.
            FuncKind::Host(callee) => unsafe { (*callee).f.leaf },
        }
    }

    /// The kind, for callers with exclusive access to the store.
    #[inline]
    pub(crate) fn kind_mut(&mut self, func: FuncHandle) -> FuncKind {
        self.kinds.get_mut()[func.index()]
    }
}

/// The functions of an instance, in the index space of its module.
pub(crate) struct InstanceFuncs {
    instance: InstanceId,
    ctx: *mut VmCtx,
    /// See [`VmCtx::entries`].
    entries: *const AtomicPtr<u8>,
    /// Cells of the handles, null where none was requested. Imported functions and those that the
    /// code refers to have theirs before the code runs.
    handles: Pinned<[u64]>,
    /// The records of the imported functions.
    imports: Pinned<[FuncRecord]>,
    /// The functions of the imports that are leaves, by their index; empty if none is one.
    leaves: Pinned<[LeafFn]>,
}

impl InstanceFuncs {
    /// Functions without handles, except imported ones. `ctx` is the context of the instance, and `entries` is
    /// [`VmCtx::entries`].
    pub(crate) fn new(
        instance: InstanceId,
        ctx: *mut VmCtx,
        entries: *const AtomicPtr<u8>,
        module: &VerifiedModule,
        (funcs, imported): (&Funcs, &[FuncHandle]),
    ) -> InstanceFuncs {
        let mut handles = vec![0; module.n_funcs() as usize].into_boxed_slice();
        for (cell, func) in handles.iter_mut().zip(imported) {
            *cell = func.cell();
        }
        let handles = Pinned::from_box(handles);
        let imports: Box<[_]> = imported.iter().map(|&func| funcs.record(func)).collect();
        let imports = Pinned::from_box(imports);
        let leaves = Pinned::from_box(leaves(module, funcs, imported));
        InstanceFuncs { instance, ctx, entries, handles, imports, leaves }
    }

    /// Returns the value of [`VmCtx::func_handles`].
    pub(crate) fn first_handle(&self) -> *const u64 {
        self.handles.first()
    }

    /// Returns the value of [`VmCtx::imports`].
    pub(crate) fn first_import(&self) -> *const FuncRecord {
        self.imports.first()
    }

    /// Returns the value of [`VmCtx::leaves`].
    pub(crate) fn first_leaf(&self) -> *const LeafFn {
        if self.leaves.len() == 0 { std::ptr::null() } else { self.leaves.first() }
    }

    /// The address of the handle of a function.
    fn at(&self, func: u32) -> *mut u64 {
        assert!((func as usize) < self.handles.len(), "the module has no function {func}");
        // SAFETY: the index is in bounds.
        unsafe { self.handles.first().add(func as usize) }
    }

    /// The handle of a function, if it has one.
    pub(crate) fn get(&self, func: u32) -> Option<FuncHandle> {
        // SAFETY: the address is that of a cell of ours, which native code only reads.
        FuncHandle::from_cell(unsafe { *self.at(func) })
    }

    /// The handle of a function, which is made if there is none. `type_ids` are the store's numbers of
    /// the module's types.
    ///
    /// # Panics
    /// Panics if the module has no such function.
    pub(crate) fn handle(
        &self,
        funcs: &Funcs,
        module: &VerifiedModule,
        type_ids: &[u32],
        func: u32,
    ) -> FuncHandle {
        if let Some(handle) = self.get(func) {
            return handle;
        }
        let type_id = type_ids[module.func_type_index(func) as usize];
        let defined = func - module.n_imported_funcs();
        let entry = match self.entries.is_null() {
            true => self.entries,
            false => self.entries.wrapping_add(defined as usize),
        };
        let record = FuncRecord { entry, ctx: self.ctx, type_id, defined };
        let kind = FuncKind::Guest { instance: self.instance, func };
        // SAFETY: the context lives as long as the instance, and that of an instance leads to what its
        // store shares.
        let handle = unsafe { funcs.push((*self.ctx).shared, record, kind) };
        // SAFETY: the address is that of a cell of ours. Native code reads it only where it refers to the
        // function, and such functions got their handles before it ran.
        unsafe { *self.at(func) = handle.cell() };
        handle
    }
}

/// The functions of the imports that are leaves, by their index; none if none is one.
fn leaves(module: &VerifiedModule, funcs: &Funcs, imported: &[FuncHandle]) -> Box<[LeafFn]> {
    let is_leaf = |func: u32| module.import_call(func) == ImportCall::Leaf;
    if !(0..module.n_imported_funcs()).any(is_leaf) {
        return Box::default();
    }
    let leaf = |(i, &func): (u32, &FuncHandle)| match is_leaf(i) {
        true => funcs.leaf(func).expect("`Imports::check` has found that it is a leaf"),
        false => LeafFn::NONE,
    };
    (0..).zip(imported).map(leaf).collect()
}
