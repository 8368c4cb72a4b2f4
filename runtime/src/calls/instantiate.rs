//! Making instances, which follows WebAssembly 2.0: imports are matched, globals and element segments evaluated,
//! active element segments copied, then active data segments, in the order of the module; then the
//! start function runs. What was written before a trap stays written, and the functions of an instance
//! whose making failed stay callable through tables of others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicPtr;

use slotvm_bytecode::VerifiedModule;
use slotvm_bytecode::module::{ConstExpr, SegmentMode};

use crate::const_expr::{evaluate, evaluate_elems, evaluate_with};
use crate::context::{OnCall, VmCtx};
use crate::entities::{
    Extern, GlobalData, GlobalHandle, InstanceId, MemoryHandle, TableHandle, cells_of,
};
use crate::error::{Error, check_limit};
use crate::interp;
use crate::memory::image::MemoryImage;
use crate::memory::linear::{Memory, MemoryPlan};
use crate::pinned::Pinned;
use crate::steps::code::CodeOptions;
use crate::steps::module_code::{InterpreterCode, Tiers};
use crate::store::Store;
use crate::store::funcs::InstanceFuncs;
use crate::store::instance::{Context, Instance};
use crate::store::link::Imports;

/// Native code of a module.
#[derive(Copy, Clone)]
pub struct Natives<'a> {
    /// [`VmCtx::entries`] of its instances.
    pub entries: *const AtomicPtr<u8>,
    /// [`VmCtx::on_call`] of its instances.
    pub on_call: OnCall,
    /// Bytes from the start of memory 0 that the code relies on being accessible or faulting; 0 if it
    /// checks each access. See [`MemoryPlan::span_bytes`].
    pub memory_span_bytes: u64,
    /// The image of the module, if it has one.
    pub image: Option<&'a MemoryImage>,
    /// The decisions about native code, if functions are interpreted at first.
    pub tiers: Option<&'a Arc<dyn Tiers>>,
}

/// Native code of a module, and what makes code that relies on less address space.
type NativeChoice<'a, 'c> = (Natives<'a>, &'c mut dyn FnMut() -> Result<Natives<'a>, Error>);

/// Memory 0 of an instance that is being made.
enum InstanceMemory {
    Absent,
    Imported(MemoryHandle),
    /// A memory that is not in the store yet.
    Defined(Memory),
}

impl Store {
    /// Makes an instance of a module in a store that interprets, and runs its start function.
    ///
    /// # Errors
    /// Fails if an import does not fit, a limit would be exceeded, a segment does not fit, or the start
    /// function fails; if the store runs native code.
    pub fn instantiate(
        &mut self,
        module: Arc<VerifiedModule>,
        imports: &[Extern],
    ) -> Result<InstanceId, Error> {
        self.instantiate_with(module, imports, &InterpreterCode::default())
    }

    /// Makes an instance as [`Store::instantiate`] does, with code of the module that other stores use, too.
    ///
    /// # Errors
    /// As for [`Store::instantiate`].
    pub fn instantiate_with(
        &mut self,
        module: Arc<VerifiedModule>,
        imports: &[Extern],
        code: &InterpreterCode,
    ) -> Result<InstanceId, Error> {
        if self.native.is_some() {
            let message = "a store that runs native code makes no instances without it";
            return Err(Error::Usage(message.to_owned()));
        }
        let (instance, _) = self.allocate(module, imports, None, code)?;
        self.initialize(instance, None)
    }

    /// Makes an instance of a module that has native code, and runs its start function. If memory 0 has less
    /// address space than the code relies on, `checked` is asked once for code that relies on less, before
    /// anything is made.
    ///
    /// # Safety
    /// [`Natives::entries`], of `natives` and of what `checked` returns, leads to native code for the functions of this module
    /// that have handles or are exported, as [`FuncRecord`](crate::native::FuncRecord) and [`Store::new_native`] say, or it is
    /// null if the store interprets. [`Natives::on_call`] is what that code expects. Cells, code and what it expects live as long as
    /// the store. The code relies on no more address space than
    /// [`Natives::memory_span_bytes`].
    ///
    /// # Errors
    /// As for [`Store::instantiate`]; if `checked` fails, or its code relies on too much, too.
    #[doc(hidden)]
    pub unsafe fn instantiate_native<'a>(
        &mut self,
        module: Arc<VerifiedModule>,
        imports: &[Extern],
        natives: Natives<'a>,
        code: &InterpreterCode,
        checked: impl FnOnce() -> Result<Natives<'a>, Error>,
    ) -> Result<InstanceId, Error> {
        let mut checked = Some(checked);
        let mut checked = || checked.take().expect("it is asked once")();
        let natives = Some((natives, &mut checked as _));
        let (instance, image) = self.allocate(module, imports, natives, code)?;
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

    /// Makes the instance as far as the module's own code and segments have no part in it. Returns it with the
    /// image for its memory.
    fn allocate<'a>(
        &mut self,
        module: Arc<VerifiedModule>,
        imports: &[Extern],
        natives: Option<NativeChoice<'a, '_>>,
        shared: &InterpreterCode,
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
        let tier_hooks = self.native.as_ref().and_then(|hooks| hooks.tiers.as_ref());
        let entries = natives.map_or(std::ptr::null(), |natives| natives.entries);
        let ctx = VmCtx {
            shared: self.shared_ptr(),
            interpret: tier_hooks.map(|hooks| hooks.interpret),
            memory: memory_def.unwrap_or(std::ptr::null_mut()),
            memory_base: memory_base.unwrap_or(std::ptr::null_mut()),
            entries,
            on_call: natives.map_or(OnCall::NONE, |natives| natives.on_call),
            frame_base: module.module().frame_stack.map_or(0, |stack| stack.base),
            instance: id.0,
            ..VmCtx::EMPTY
        };
        let n_cells = module.global_cell(module.globals().len() as u32);
        let mut ctx = Context::new(ctx, n_cells);

        let tiers = natives.and_then(|natives| natives.tiers);
        if tiers.is_some() || natives.is_some() && module.has_cold_imports() {
            self.make_exit_cells();
        }
        let mut imported = imports.funcs;
        for func in &mut imported {
            *func = self.bind_host_func(*func, id)?;
        }
        let imported = (&self.funcs, &imported[..]);
        let funcs = InstanceFuncs::new(id, ctx.as_ptr(), entries, &module, imported);
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

        // The cells of imported globals hold addresses, see `VmCtx`.
        let n_imported_globals = imports.globals.len() as u32;
        let addresses =
            imports.globals.iter().map(|g| self.objects.globals[g.0 as usize].cell as u64);
        let mut cells: Vec<u64> = addresses.collect();
        let defined = &values[n_imported_globals as usize..];
        for (global, &value) in module.module().globals.iter().zip(defined) {
            cells.extend_from_slice(&cells_of(value)[..global.ty.ty.cells()]);
        }
        ctx.set_cells(&cells);
        let global_handles = self.export_globals(&module, imports.globals, &ctx)?;

        let options = CodeOptions {
            fuel: self.config.fuel.is_some(),
            polls: self.config.interruption.is_some(),
            stack_cells: self.config.stack_cells.is_some(),
            canonical_nans: self.config.canonical_nans,
            jumps: !self.interp.by_loop && interp::tail_calls_are_jumps(),
            counts: tiers.is_some(),
        };
        let address = tiers.map_or(std::ptr::null(), |tiers| Arc::as_ptr(tiers).cast());
        let code = self.interp.codes.entry((Arc::as_ptr(&module), address));
        let code = code
            .or_insert_with(|| shared.of(&module, options, tiers, &interp::TRANSLATION))
            .clone();
        let mut instance = Instance {
            datas_dropped: vec![false; module.module().datas.len()],
            module,
            code,
            ctx,
            table_defs: Pinned::from_box(table_defs),
            type_ids: Pinned::from_box(type_ids),
            funcs,
            added_exports: BTreeMap::new(),
            memory,
            tables,
            global_handles,
            n_imported_globals,
            elems,
        };
        instance.fill_ctx();
        if instance.module.module().frame_stack.is_some() {
            self.calls.framed.push(id);
        }
        if self.instances.is_empty() {
            // Most stores have one, and a vector begins with room for four.
            self.instances.reserve_exact(1);
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
        let wanted = (self.objects.globals.len() + module.module().globals.len()) as u64;
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

    /// Assigns handles to the globals that the module defines, after those of the imported ones.
    fn export_globals(
        &mut self,
        module: &VerifiedModule,
        mut handles: Vec<GlobalHandle>,
        ctx: &Context,
    ) -> Result<Vec<GlobalHandle>, Error> {
        let n_imported = handles.len();
        for (i, global) in module.module().globals.iter().enumerate() {
            let cell = module.global_cell((n_imported + i) as u32) as usize;
            // SAFETY: there are cells for the imported globals and those defined.
            let cell = unsafe { ctx.cells().add(cell) };
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
        for &table in module.private_tables() {
            let handle = self.table_of(instance, table);
            self.objects.tables[handle.0 as usize].set_owner(module.clone(), table);
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
        let is_mapped = image.zip(memory).is_some_and(|(image, memory)| {
            image.map_into(&mut self.objects.memories[memory.0 as usize])
        });
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
