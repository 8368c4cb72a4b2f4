//! Instances: a module with its imports, its own memory, tables and globals, ready to run.
//!
//! Making one follows WebAssembly 2.0: imports are matched, globals and element segments evaluated,
//! active element segments copied, then active data segments, in the order of the module; then the
//! start function runs. What was written before a trap stays written, and the functions of an instance
//! whose making failed stay callable through tables of others.

use std::marker::PhantomData;
use std::sync::Arc;

use slotvm_bytecode::module::{ConstExpr, ElemItems, EntityKind, SegmentMode};
use slotvm_bytecode::{CodeReader, ImmKind, Op, TrapCode, VerifiedModule, inst, numeric};

use crate::context::VmCtx;
use crate::entities::{
    Extern, FuncHandle, GlobalData, GlobalHandle, MemoryHandle, TableHandle, cells_of, value_of,
};
use crate::error::{Error, check_limit};
use crate::memory::image::MemoryImage;
use crate::memory::linear::{Memory, MemoryPlan};
use crate::pinned::Pinned;
use crate::steps::prepare::{ExtraSteps, ModuleCode};
use crate::store::Store;
use crate::store::funcs::{EntryPoints, InstanceFuncs};
use crate::store::interrupt::Interrupts;
use crate::store::link::Imports;

/// An instance of a store.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceId(pub(crate) u32);

impl InstanceId {
    /// The instance's number in its store; native code finds it in the context.
    pub fn number(self) -> u32 {
        self.0
    }

    /// The instance with a number.
    pub fn from_number(number: u32) -> InstanceId {
        InstanceId(number)
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Native code of a module.
#[derive(Copy, Clone)]
pub struct Natives<'a> {
    /// Where it starts.
    pub code: &'a EntryPoints,
    /// Bytes from the start of memory 0 that the code relies on being accessible or faulting; 0 if it
    /// checks each access. See [`MemoryPlan::span_bytes`].
    pub memory_span_bytes: u64,
    /// The image of the module, if it has one.
    pub image: Option<&'a MemoryImage>,
}

/// Native code of a module, and what makes code that relies on less address space.
type NativeChoice<'a, 'c> = (Natives<'a>, &'c mut dyn FnMut() -> Result<Natives<'a>, Error>);

/// Memory 0 of an instance that is being made.
enum InstanceMemory {
    Absent,
    Imported(MemoryHandle),
    /// Not in the store yet.
    Defined(Memory),
}

/// A module that is ready to run.
pub(crate) struct Instance {
    module: Arc<VerifiedModule>,
    code: Arc<ModuleCode>,
    ctx: Pinned<VmCtx>,
    /// What `ctx` points to; see there.
    globals: Pinned<[u64]>,
    table_defs: Pinned<[*mut crate::context::TableDef]>,
    type_ids: Pinned<[u32]>,
    funcs: InstanceFuncs,

    pub(crate) memory: Option<MemoryHandle>,
    pub(crate) tables: Vec<TableHandle>,
    global_handles: Vec<GlobalHandle>,
    n_imported_globals: u32,
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

    fn type_ids(&self) -> &[u32] {
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

    /// What the frame pointer is while no function of the instance is active.
    pub(crate) fn frame_sp_initial(&self) -> u32 {
        self.module.module().frame_stack.map_or(0, |stack| stack.base + stack.bytes)
    }
}

/// The globals of an instance, to be read and written while the rest of the store is, too.
pub(crate) struct Globals<'a> {
    cells: *mut u64,
    len: u32,
    n_imported: u32,
    store: PhantomData<&'a mut Store>,
}

impl Globals<'_> {
    /// Where a value is, by the number of its global's first cell.
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

    #[inline]
    pub(crate) fn set(&mut self, cell: u32, value: u64) {
        // SAFETY: `cell` gives the address of a cell that lives as long as the store, which is borrowed
        // exclusively.
        unsafe { *self.cell(cell) = value }
    }

    /// Both cells of a global that is a vector.
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

/// What the interpreter accesses without asking the store each time.
pub(crate) struct GuestParts<'a> {
    /// The contents of memory 0, empty if there is none.
    pub(crate) memory: &'a mut [u8],
    pub(crate) globals: Globals<'a>,
    pub(crate) fuel: &'a mut i64,
    pub(crate) interrupts: Option<&'a Interrupts>,
    /// The frame of the active function.
    pub(crate) frame_sp: u32,
}

impl Store {
    pub(crate) fn instance(&self, instance: InstanceId) -> &Instance {
        &self.instances[instance.index()]
    }

    /// What the next instance will be.
    pub fn next_instance(&self) -> InstanceId {
        InstanceId(self.instances.len() as u32)
    }

    /// The module of an instance.
    pub fn module(&self, instance: InstanceId) -> &Arc<VerifiedModule> {
        self.instance(instance).module()
    }

    /// Takes bytes from the frame stack of an instance; gives the new frame pointer.
    pub(crate) fn push_frame(&mut self, instance: InstanceId, bytes: u32) -> Result<u32, TrapCode> {
        let instance = &mut self.instances[instance.index()];
        let base = instance.module.module().frame_stack.map_or(0, |stack| stack.base);
        let frame_sp = instance.frame_sp();
        if frame_sp - base < bytes {
            return Err(TrapCode::FrameStackOverflow);
        }
        instance.set_frame_sp(frame_sp - bytes);
        Ok(frame_sp - bytes)
    }

    /// Gives bytes back to the frame stack of an instance.
    pub(crate) fn pop_frame(&mut self, instance: InstanceId, bytes: u32) {
        let instance = &mut self.instances[instance.index()];
        instance.set_frame_sp(instance.frame_sp() + bytes);
    }

    /// What the interpreter accesses of an instance.
    pub(crate) fn guest_parts(&mut self, instance: InstanceId) -> GuestParts<'_> {
        let shared = self.shared_ptr();
        let instance = &self.instances[instance.index()];
        let globals = Globals {
            cells: instance.globals.first(),
            len: instance.globals.len() as u32,
            n_imported: instance.n_imported_globals,
            store: PhantomData,
        };
        let frame_sp = instance.frame_sp();
        let memory = match instance.memory {
            Some(memory) => self.memories[memory.0 as usize].data_mut(),
            None => &mut [],
        };
        // SAFETY: the store owns the structure and is borrowed for as long as the reference lives. The
        // field lies neither in a memory nor in a global.
        let fuel = unsafe { &mut (*shared).fuel };
        GuestParts { memory, globals, fuel, interrupts: self.interrupts.as_ref(), frame_sp }
    }

    /// Makes an instance of a module in a store that interprets, and runs its start function.
    ///
    /// # Errors
    /// If an import does not fit, a limit would be exceeded, a segment does not fit, or the start
    /// function fails; if the store runs native code.
    pub fn instantiate(
        &mut self,
        module: Arc<VerifiedModule>,
        imports: &[Extern],
    ) -> Result<InstanceId, Error> {
        if self.native.is_some() {
            let message = "a store that runs native code makes no instances without it";
            return Err(Error::Usage(message.to_owned()));
        }
        let (instance, _) = self.allocate(module, imports, None)?;
        self.initialize(instance, None)
    }

    /// Makes an instance of a module that has native code, and runs its start function. If memory 0 has less
    /// address space than the code relies on, `checked` is asked once for code that relies on less, before
    /// anything is made.
    ///
    /// # Safety
    /// [`Natives::code`], of `natives` and of what `checked` returns, gives native code for the functions of
    /// this module, or null if the store interprets, to be entered as [`Store::new_native`] says. The code relies
    /// on no more address space than [`Natives::memory_span_bytes`], and lives as long as the store.
    ///
    /// # Errors
    /// As for [`Store::instantiate`]; if `checked` fails, or its code relies on too much, too.
    pub unsafe fn instantiate_native<'a>(
        &mut self,
        module: Arc<VerifiedModule>,
        imports: &[Extern],
        natives: Natives<'a>,
        checked: impl FnOnce() -> Result<Natives<'a>, Error>,
    ) -> Result<InstanceId, Error> {
        let mut checked = Some(checked);
        let mut checked = || checked.take().expect("it is asked once")();
        let (instance, image) = self.allocate(module, imports, Some((natives, &mut checked)))?;
        self.initialize(instance, image)
    }

    /// Does what the module's own segments and code have to do.
    fn initialize(
        &mut self,
        instance: InstanceId,
        image: Option<&MemoryImage>,
    ) -> Result<InstanceId, Error> {
        self.copy_elems(instance)?;
        self.copy_datas(instance, image)?;
        if let Some(start) = self.module(instance).module().start {
            let start = self.instance_func(instance, start);
            self.call(start, &mut [])?;
        }
        Ok(instance)
    }

    /// What an instance exports under a name.
    pub fn export(&self, instance: InstanceId, name: &str) -> Option<Extern> {
        let id = instance;
        let instance = self.instance(id);
        let index = instance.code.export(name)?;
        let export = &instance.module.module().exports[index];
        let i = export.index as usize;
        Some(match export.kind {
            EntityKind::Func => Extern::Func(self.instance_func(id, export.index)),
            EntityKind::Table => Extern::Table(instance.tables[i]),
            EntityKind::Memory => Extern::Memory(instance.memory?),
            EntityKind::Global => Extern::Global(instance.global_handles[i]),
        })
    }

    /// The handle of a function of an instance, in the index space of its module.
    ///
    /// # Panics
    /// If the module has no such function.
    pub fn instance_func(&self, instance: InstanceId, func: u32) -> FuncHandle {
        let Instance { module, funcs, .. } = self.instance(instance);
        funcs.handle(&self.funcs, module, self.instance(instance).type_ids(), func)
    }

    /// Memory 0 of an instance.
    pub fn instance_memory(&self, instance: InstanceId) -> Option<MemoryHandle> {
        self.instance(instance).memory
    }

    /// The tables of an instance, in the index space of its module.
    pub fn instance_tables(&self, instance: InstanceId) -> &[TableHandle] {
        &self.instance(instance).tables
    }

    /// The globals of an instance, in the index space of its module.
    pub fn instance_globals(&self, instance: InstanceId) -> &[GlobalHandle] {
        &self.instance(instance).global_handles
    }

    /// Makes the instance as far as the module's own code and segments have no part in it. Gives it with the
    /// image for its memory.
    fn allocate<'a>(
        &mut self,
        module: Arc<VerifiedModule>,
        imports: &[Extern],
        natives: Option<NativeChoice<'a, '_>>,
    ) -> Result<(InstanceId, Option<&'a MemoryImage>), Error> {
        let id = self.next_instance();
        self.check_instances()?;
        for import in imports {
            if let Extern::Func(func) = *import {
                self.check_func(func)?;
            }
        }
        let imports = Imports::check(self, &module, imports)?;
        self.check_room_for(&module)?;

        let (memory, natives) = self.choose_code(&module, imports.memory, natives)?;
        let memory = match memory {
            InstanceMemory::Absent => None,
            InstanceMemory::Imported(memory) => Some(memory),
            InstanceMemory::Defined(memory) => Some(self.add_memory(memory)?),
        };
        let tables = self.allocate_tables(&module, imports.tables)?;
        let type_ids: Box<[u32]> =
            module.module().types.iter().map(|ty| self.intern_type(ty)).collect();
        let table_defs: Box<[_]> = tables.iter().map(|&table| self.table_def(table)).collect();
        let memory_def = memory.map(|memory| self.memory_def(memory));
        // SAFETY: the store, which owns the memory, is borrowed, and no native code runs.
        let memory_base = memory_def.map(|def| unsafe { (*def).base });
        let ctx = Pinned::new(VmCtx {
            shared: self.shared_ptr(),
            memory: memory_def.unwrap_or(std::ptr::null_mut()),
            memory_base: memory_base.unwrap_or(std::ptr::null_mut()),
            frame_base: module.module().frame_stack.map_or(0, |stack| stack.base),
            instance: id.0,
            ..VmCtx::EMPTY
        });

        let code = natives.map(|natives| natives.code.clone());
        let mut imported = imports.funcs;
        for func in &mut imported {
            *func = self.bind_host_func(*func, id)?;
        }
        let imported = (&self.funcs, &imported[..]);
        let funcs = InstanceFuncs::new(id, ctx.as_ptr(), code, module.n_funcs(), imported);
        self.count_funcs(module.n_funcs() - module.n_imported_funcs())?;
        let func_handle = |func| funcs.handle(&self.funcs, &module, &type_ids, func).cell();
        for &func in module.referenced_funcs() {
            func_handle(func);
        }

        let mut values: Vec<u128> = imports.globals.iter().map(|&g| self.global(g)).collect();
        for global in &module.module().globals {
            let value = evaluate(&global.init, &values, func_handle);
            values.push(value);
        }
        let elems = evaluate_elems(&module, &values, func_handle);

        // The cells of imported globals hold addresses, see `VmCtx::globals`.
        let n_imported_globals = imports.globals.len() as u32;
        let addresses = imports.globals.iter().map(|g| self.globals[g.0 as usize].cell as u64);
        let mut cells: Vec<u64> = addresses.collect();
        let defined = &values[n_imported_globals as usize..];
        for (global, &value) in module.module().globals.iter().zip(defined) {
            cells.extend_from_slice(&cells_of(value)[..global.ty.ty.cells()]);
        }
        let globals = Pinned::from_box(cells.into_boxed_slice());
        let global_handles = self.export_globals(&module, imports.globals, &globals)?;

        let extra = ExtraSteps {
            fuel: self.config.fuel.is_some(),
            polls: self.config.interruption.is_some(),
        };
        let code = self.codes.entry(Arc::as_ptr(&module));
        let code = code.or_insert_with(|| Arc::new(ModuleCode::new(module.clone(), extra))).clone();
        let mut instance = Instance {
            datas_dropped: vec![false; module.module().datas.len()],
            module,
            code,
            ctx,
            globals,
            table_defs: Pinned::from_box(table_defs),
            type_ids: Pinned::from_box(type_ids),
            funcs,
            memory,
            tables,
            global_handles,
            n_imported_globals,
            elems,
        };
        instance.fill_ctx();
        if instance.module.module().frame_stack.is_some() {
            self.framed.push(id);
        }
        self.instances.push(instance);
        Ok((id, natives.and_then(|natives| natives.image)))
    }

    /// Checks what would otherwise fail when the records already point to the new instance.
    fn check_room_for(&mut self, module: &VerifiedModule) -> Result<(), Error> {
        self.check_room(&module.module().memories, &module.module().tables)?;
        let limits = &self.config.limits;
        let wanted = self.n_funcs() as u64 + u64::from(module.n_funcs());
        check_limit("funcs_max", limits.funcs_max.into(), wanted)?;
        let wanted = (self.globals.len() + module.module().globals.len()) as u64;
        check_limit("globals_max", limits.globals_max.into(), wanted)
    }

    /// Gets memory 0, which is not the store's yet if the module defines it, and native code that can do with
    /// its address space.
    fn choose_code<'a>(
        &self,
        module: &VerifiedModule,
        imported: Option<MemoryHandle>,
        natives: Option<NativeChoice<'a, '_>>,
    ) -> Result<(InstanceMemory, Option<Natives<'a>>), Error> {
        let memory = self.instance_memory_for(module, imported)?;
        let Some((natives, checked)) = natives else { return Ok((memory, None)) };
        if natives.memory_span_bytes <= self.span_bytes(&memory) {
            return Ok((memory, Some(natives)));
        }
        // Address space is scarce, and making code takes some.
        drop(memory);
        let natives = checked()?;
        let memory = self.instance_memory_for(module, imported)?;
        let (needed, found) = (natives.memory_span_bytes, self.span_bytes(&memory));
        if needed > found {
            return Err(Error::AddressSpace { needed, found });
        }
        Ok((memory, Some(natives)))
    }

    fn instance_memory_for(
        &self,
        module: &VerifiedModule,
        imported: Option<MemoryHandle>,
    ) -> Result<InstanceMemory, Error> {
        if let Some(memory) = imported {
            return Ok(InstanceMemory::Imported(memory));
        }
        let Some(&ty) = module.module().memories.first() else {
            return Ok(InstanceMemory::Absent);
        };
        let plan = self.config.memory.unwrap_or_else(|| MemoryPlan::for_module(module));
        let memory = Memory::new(ty, plan, self.config.limits.memory_pages_max)?;
        Ok(InstanceMemory::Defined(memory))
    }

    /// The address space of memory 0; any, if there is no memory to access.
    fn span_bytes(&self, memory: &InstanceMemory) -> u64 {
        match memory {
            InstanceMemory::Absent => u64::MAX,
            InstanceMemory::Imported(memory) => self.memory(*memory).plan().span_bytes(),
            InstanceMemory::Defined(memory) => memory.plan().span_bytes(),
        }
    }

    fn allocate_tables(
        &mut self,
        module: &VerifiedModule,
        mut tables: Vec<TableHandle>,
    ) -> Result<Vec<TableHandle>, Error> {
        for &ty in &module.module().tables {
            tables.push(self.add_table(ty, 0)?);
        }
        Ok(tables)
    }

    /// Gives the globals that the module defines handles, behind those of the imported ones.
    fn export_globals(
        &mut self,
        module: &VerifiedModule,
        mut handles: Vec<GlobalHandle>,
        cells: &Pinned<[u64]>,
    ) -> Result<Vec<GlobalHandle>, Error> {
        let n_imported = handles.len();
        for (i, global) in module.module().globals.iter().enumerate() {
            let cell = module.global_cell((n_imported + i) as u32) as usize;
            // SAFETY: there are cells for the imported globals and those defined.
            let cell = unsafe { cells.first().add(cell) };
            handles.push(self.push_global(GlobalData { cell, ty: global.ty })?);
        }
        Ok(handles)
    }

    fn copy_elems(&mut self, instance: InstanceId) -> Result<(), Error> {
        let module = self.module(instance).clone();
        for (i, elem) in (0..).zip(&module.module().elems) {
            match &elem.mode {
                SegmentMode::Passive => continue,
                SegmentMode::Declared => {}
                SegmentMode::Active { target, offset } => {
                    let dst = self.evaluate_offset(instance, offset);
                    let len = elem.items.len() as u32;
                    self.table_init(instance, i, *target, [dst, 0, len])
                        .map_err(|code| Error::Segment { code, kind: "element", index: i })?;
                }
            }
            self.elem_drop(instance, i);
        }
        Ok(())
    }

    fn copy_datas(
        &mut self,
        instance: InstanceId,
        image: Option<&MemoryImage>,
    ) -> Result<(), Error> {
        let module = self.module(instance).clone();
        let memory = self.instance(instance).memory;
        let is_mapped = image
            .zip(memory)
            .is_some_and(|(image, memory)| image.map_into(&mut self.memories[memory.0 as usize]));
        for (i, data) in (0..).zip(&module.module().datas) {
            let SegmentMode::Active { offset, .. } = &data.mode else { continue };
            if !is_mapped {
                let dst = self.evaluate_offset(instance, offset);
                self.memory_init(instance, i, [dst, 0, data.bytes.len() as u32])
                    .map_err(|code| Error::Segment { code, kind: "data", index: i })?;
            }
            self.data_drop(instance, i);
        }
        Ok(())
    }

    fn evaluate_offset(&mut self, instance: InstanceId, offset: &ConstExpr) -> u32 {
        let module = self.module(instance).clone();
        let globals = self.guest_parts(instance).globals;
        // Only vectors are wider than a cell, and no offset is made of one.
        let global = |global| globals.get(module.global_cell(global)).into();
        evaluate_with(offset, global, |_| 0) as u32
    }
}

impl Instance {
    /// Lets the context point to what native code needs.
    fn fill_ctx(&mut self) {
        let frame_sp = self.frame_sp_initial();
        // SAFETY: we own the context, and native code has not run yet.
        let ctx = unsafe { &mut *self.ctx.as_ptr() };
        ctx.globals = self.globals.first();
        ctx.tables = self.table_defs.first();
        ctx.type_ids = self.type_ids.first();
        ctx.func_handles = self.funcs.first_handle();
        ctx.imports = self.funcs.first_import();
        ctx.frame_sp = frame_sp;
    }
}

fn evaluate_elems(
    module: &VerifiedModule,
    globals: &[u128],
    func_handle: impl Fn(u32) -> u64 + Copy,
) -> Vec<Box<[u64]>> {
    let elems = module.module().elems.iter();
    elems
        .map(|elem| match &elem.items {
            ElemItems::Funcs(funcs) => funcs.iter().map(|&func| func_handle(func)).collect(),
            ElemItems::Exprs(exprs) => {
                exprs.iter().map(|expr| evaluate(expr, globals, func_handle) as u64).collect()
            }
        })
        .collect()
}

/// The value of a constant expression; that of a vector takes all bits, others those of a cell.
pub(crate) fn evaluate(
    expr: &ConstExpr,
    globals: &[u128],
    func_handle: impl Fn(u32) -> u64,
) -> u128 {
    evaluate_with(expr, |global| globals[global as usize], func_handle)
}

fn evaluate_with(
    expr: &ConstExpr,
    global: impl Fn(u32) -> u128,
    func_handle: impl Fn(u32) -> u64,
) -> u128 {
    let mut stack = Vec::new();
    let mut reader = CodeReader::new(&expr.code, 0);
    while !reader.is_at_end() {
        let inst = reader.read().expect("verified expressions decode");
        let value = match (inst.op, inst.op.imm_kind()) {
            (Op::GlobalGet, _) => global(inst.imm.low()),
            (Op::RefFunc, _) => func_handle(inst.imm.low()).into(),
            (Op::RefNull, _) => 0,
            (_, ImmKind::I32 | ImmKind::I64 | ImmKind::F32 | ImmKind::F64) => inst.imm.0.into(),
            (Op::V128Const, _) => inst::vector(&expr.code, inst.imm),
            (op, _) => {
                let (b, a) = (stack.pop(), stack.pop());
                let (a, b): (u128, u128) = (a.expect("two operands"), b.expect("two operands"));
                let result = numeric::eval(op, a as u64, b as u64);
                result.expect("constant arithmetic does not trap").into()
            }
        };
        stack.push(value);
    }
    stack.pop().expect("verified expressions leave a value")
}
