//! The instances of a store, what they export, and what their code needs of them.

use std::marker::PhantomData;
use std::sync::Arc;

use slotvm_bytecode::module::EntityKind;
use slotvm_bytecode::{TrapCode, VerifiedModule};

use super::Store;
use super::instance::{Globals, GuestParts, Instance};
use crate::entities::{Extern, FuncHandle, GlobalHandle, InstanceId, MemoryHandle, TableHandle};

impl Store {
    pub(crate) fn instance(&self, instance: InstanceId) -> &Instance {
        &self.instances[instance.index()]
    }

    /// Returns the id of the next instance.
    pub fn next_instance(&self) -> InstanceId {
        InstanceId(self.instances.len() as u32)
    }

    /// The module of an instance.
    pub fn module(&self, instance: InstanceId) -> &Arc<VerifiedModule> {
        self.instance(instance).module()
    }

    /// Takes bytes from the frame stack of an instance; returns the new frame pointer.
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

    /// Returns the parts of an instance that the interpreter accesses.
    pub(crate) fn guest_parts(&mut self, instance: InstanceId) -> GuestParts<'_> {
        let instance = &self.instances[instance.index()];
        let globals = Globals {
            cells: instance.ctx.cells(),
            len: instance.ctx.n_cells(),
            n_imported: instance.n_imported_globals,
            store: PhantomData,
        };
        let memory = match instance.memory {
            Some(memory) => self.objects.memories[memory.0 as usize].data_mut(),
            None => &mut [],
        };
        GuestParts { memory, globals }
    }

    /// Returns the export of an instance with a name.
    pub fn export(&self, instance: InstanceId, name: &str) -> Option<Extern> {
        if let Some(&added) = self.instance(instance).added_exports.get(name) {
            return Some(added);
        }
        let index = self.instance(instance).code.export(name)?;
        Some(self.export_at(instance, index))
    }

    /// The exports of an instance: those of its module, and then those that were added, in the order of their names. Those of
    /// the module that others have replaced are left out.
    pub fn exports(&self, instance: InstanceId) -> Vec<(String, Extern)> {
        let Instance { module, added_exports, .. } = self.instance(instance);
        let of_module = module.module().exports.iter().enumerate();
        let of_module = of_module.filter(|(_, export)| !added_exports.contains_key(&export.name));
        let mut exports: Vec<_> = of_module
            .map(|(i, export)| (export.name.clone(), self.export_at(instance, i)))
            .collect();
        exports.extend(added_exports.iter().map(|(name, &added)| (name.clone(), added)));
        exports
    }

    fn export_at(&self, id: InstanceId, index: usize) -> Extern {
        let instance = self.instance(id);
        let export = &instance.module.module().exports[index];
        let i = export.index as usize;
        match export.kind {
            EntityKind::Func => Extern::Func(self.instance_func(id, export.index)),
            EntityKind::Table => Extern::Table(instance.tables[i]),
            EntityKind::Memory => {
                Extern::Memory(instance.memory.expect("verified modules export what they have"))
            }
            EntityKind::Global => Extern::Global(instance.global_handles[i]),
        }
    }

    /// Lets an instance export what another one does. Names that it has exported mean the new things.
    pub fn extend_exports(&mut self, instance: InstanceId, added: InstanceId) {
        let exports = self.exports(added);
        self.instances[instance.index()].added_exports.extend(exports);
    }

    /// The handle of a function of an instance, in the index space of its module.
    ///
    /// # Panics
    /// Panics if the module has no such function.
    pub fn instance_func(&self, instance: InstanceId, func: u32) -> FuncHandle {
        let Instance { module, funcs, .. } = self.instance(instance);
        funcs.handle(&self.funcs, module, self.instance(instance).type_ids(), func)
    }

    /// Memory 0 of an instance.
    pub fn instance_memory(&self, instance: InstanceId) -> Option<MemoryHandle> {
        self.instance(instance).memory
    }

    /// The tables of an instance, in the index space of its module.
    ///
    /// Code relies on tables that the module neither exports nor writes ([`VerifiedModule::is_constant_table`]). They can
    /// be read; [`Store::table_set`] and [`Store::table_grow`] refuse them, and no instance can import them.
    pub fn instance_tables(&self, instance: InstanceId) -> &[TableHandle] {
        &self.instance(instance).tables
    }

    /// The globals of an instance, in the index space of its module.
    pub fn instance_globals(&self, instance: InstanceId) -> &[GlobalHandle] {
        &self.instance(instance).global_handles
    }
}
