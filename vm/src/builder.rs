//! Builders for front ends that generate a [`Module`].
//!
//! A [`ModuleBuilder`] collects types, imports, functions and other entities, and returns their ids.
//! Functions are declared first and defined later, with a [`FunctionBuilder`], so that they can call each
//! other. A function builder tracks the types of the operand stack as instructions are emitted. It computes
//! the shapes of labels from them, and lays out labels and branches at the end.
//!
//! The builders record the first mistake and ignore everything after it. `finish` returns it, so a front end
//! checks for errors only once. Code that the builders accept is well-typed. [`crate::verify()`] checks the
//! rules that concern the module as a whole.
//!
//! ```
//! use slotvm_bytecode::builder::ModuleBuilder;
//! use slotvm_bytecode::{Op, ValType::I64};
//!
//! let mut module = ModuleBuilder::new();
//! let fib = module.declare_func("fib", &[I64], &[I64]);
//! let mut f = module.define(fib);
//! let n = f.param(0);
//! f.name_local(n, "n");
//! let base = f.label();
//! f.local_get(n).i64_const(2).op(Op::I64LtS).br_if(base);
//! f.local_get(n).i64_const(1).op(Op::I64Sub).call(fib);
//! f.local_get(n).i64_const(2).op(Op::I64Sub).call(fib);
//! f.op(Op::I64Add).ret();
//! f.bind(base).local_get(n).ret();
//! f.finish()?;
//! module.export_func("fib", fib);
//! let module = module.finish()?;
//! assert_eq!(module.funcs[0].labels.len(), 1);
//! # Ok::<(), slotvm_bytecode::builder::BuildError>(())
//! ```

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::limits;
use crate::module::{
    ConstExpr, Data, Elem, ElemItems, EntityKind, Export, FrameStack, Func, Global, GlobalType,
    Import, ImportCall, ImportKind, MemoryType, Module, SegmentMode, TableType,
};
use crate::stacks::{Stacks, number_shapes};
use crate::types::{FuncType, ValType};

#[cfg(feature = "wasm")]
mod batch;
mod draft;
mod error;
mod func;
mod redefine;

pub use error::{BuildError, BuildRule};
pub use func::{FunctionBuilder, LabelId};

#[cfg(feature = "wasm")]
pub(crate) use {batch::FuncBatch, draft::Draft};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])*
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);)*
    };
}

ids! {
    /// A function type of the module.
    TypeId;
    /// A function of the index space.
    FuncId;
    /// A table of the index space.
    TableId;
    /// A memory of the index space.
    MemoryId;
    /// A global of the index space.
    GlobalId;
    /// An element segment.
    ElemId;
    /// A data segment.
    DataId;
    /// A local of the function being built, parameters first.
    LocalId;
}

/// Builds a module.
#[derive(Debug, Default)]
pub struct ModuleBuilder {
    /// The module so far. Its types and shapes are in the fields below. The code of its functions is
    /// complete, except that the shapes of labels are numbers of [`Stacks`].
    module: Module,
    types: Vec<Arc<FuncType>>,
    type_ids: HashMap<Arc<FuncType>, TypeId>,
    /// The operand stacks of labels.
    stacks: Stacks,
    /// The operand stacks of the last function, kept to reuse their allocation.
    spare_stacks: Stacks,
    /// The type of each function of the index space.
    func_types: Vec<TypeId>,
    /// The index of the first function defined here.
    first_func: u32,
    /// Whether each function defined in the module has its code.
    defined: Vec<bool>,
    tables: Vec<TableType>,
    globals: Vec<GlobalType>,
    n_memories: u32,
    names: [NameSpace; 6],
    /// The numbers of source files, once one was asked for.
    source_files: HashMap<String, u32>,
    error: Option<BuildError>,
}

/// Names in use in one index space, with the number of requests for each.
#[derive(Debug, Default)]
pub(crate) struct NameSpace {
    used: HashSet<String>,
    wanted: HashMap<String, u32>,
}

impl NameSpace {
    /// Inserts `name`, or `name.N` if it is taken, into `list`, which is sorted by index.
    pub(crate) fn add(&mut self, list: &mut Vec<(u32, String)>, index: u32, name: &str) {
        if name.is_empty() || name.len() > limits::NAME_BYTES_MAX - 16 {
            return;
        }
        let mut unique = name.to_owned();
        while !self.used.insert(unique.clone()) {
            let n = self.wanted.entry(name.to_owned()).or_insert(1);
            *n += 1;
            unique = format!("{name}.{n}");
        }
        match list.binary_search_by_key(&index, |&(i, _)| i) {
            Ok(i) => list[i].1 = unique,
            Err(i) => list.insert(i, (index, unique)),
        }
    }
}

/// The index spaces that have names, as indices of [`ModuleBuilder::names`].
#[derive(Copy, Clone)]
enum Space {
    Funcs,
    Tables,
    Memories,
    Globals,
    Elems,
    Datas,
}

impl ModuleBuilder {
    /// Creates an empty module.
    pub fn new() -> ModuleBuilder {
        ModuleBuilder::default()
    }

    /// Gives the module a name.
    pub fn name(&mut self, name: &str) {
        self.module.names.module = Some(name.to_owned());
    }

    /// Gives the trap with a number a message, which errors show, in place of the one that it may have. An empty message, or
    /// one of more than [`NAME_BYTES_MAX`](limits::NAME_BYTES_MAX) bytes, is left out.
    pub fn trap_message(&mut self, number: u32, message: &str) {
        if message.is_empty() || message.len() > limits::NAME_BYTES_MAX {
            return;
        }
        let list = &mut self.module.names.traps;
        match list.binary_search_by_key(&number, |&(number, _)| number) {
            Ok(at) => list[at].1 = message.to_owned(),
            Err(at) => list.insert(at, (number, message.to_owned())),
        }
    }

    /// Returns the number of a source file for [`SourcePlace::file`](crate::module::SourcePlace::file). Equal names have the
    /// same number. An empty name, or one of more than [`NAME_BYTES_MAX`](limits::NAME_BYTES_MAX) bytes, has number 0: no file.
    pub fn source_file(&mut self, name: &str) -> u32 {
        if name.is_empty() || name.len() > limits::NAME_BYTES_MAX {
            return 0;
        }
        let list = &mut self.module.names.files;
        if self.source_files.is_empty() {
            self.source_files.extend(list.iter().map(|(number, name)| (name.clone(), *number)));
        }
        let next = list.last().map_or(1, |&(number, _)| number.saturating_add(1));
        *self.source_files.entry(name.to_owned()).or_insert_with(|| {
            list.push((next, name.to_owned()));
            next
        })
    }

    /// Returns the function type with these parameters and results. Equal types have the same id.
    pub fn func_type(&mut self, params: &[ValType], results: &[ValType]) -> TypeId {
        let ty = FuncType::new(params, results);
        if let Some(&id) = self.type_ids.get(&ty) {
            return id;
        }
        let id = TypeId(self.types.len() as u32);
        let ty = Arc::new(ty);
        self.types.push(Arc::clone(&ty));
        self.type_ids.insert(ty, id);
        id
    }

    /// Imports a function. Imports must come before the definitions of their kind. A name that is already
    /// taken in the index space gets a number appended; names do not affect the program.
    pub fn import_func(
        &mut self,
        module: &str,
        name: &str,
        params: &[ValType],
        results: &[ValType],
    ) -> FuncId {
        let ty = self.func_type(params, results);
        self.import_func_of(module, name, ty, ImportCall::Ordinary)
    }

    /// Imports a function as [`ModuleBuilder::import_func`] does, and says how native code calls it.
    pub fn import_func_called(
        &mut self,
        module: &str,
        name: &str,
        params: &[ValType],
        results: &[ValType],
        call: ImportCall,
    ) -> FuncId {
        let ty = self.func_type(params, results);
        self.import_func_of(module, name, ty, call)
    }

    /// Imports a function of an existing type.
    pub(crate) fn import_func_of(
        &mut self,
        module: &str,
        name: &str,
        ty: TypeId,
        call: ImportCall,
    ) -> FuncId {
        if !self.module.funcs.is_empty() {
            self.fail(BuildRule::ImportAfterDefinition("function"));
        }
        self.import(module, name, ImportKind::Func(ty.0, call));
        let id = FuncId(self.func_types.len() as u32);
        self.func_types.push(ty);
        self.first_func += 1;
        self.add_name(Space::Funcs, id.0, name);
        id
    }

    /// Imports a table.
    pub fn import_table(
        &mut self,
        module: &str,
        name: &str,
        elem: ValType,
        min: u32,
        max: Option<u32>,
    ) -> TableId {
        if !self.module.tables.is_empty() {
            self.fail(BuildRule::ImportAfterDefinition("table"));
        }
        let ty = TableType { elem, min, max };
        self.import(module, name, ImportKind::Table(ty));
        self.add_table(name, ty)
    }

    /// Imports a memory; sizes are in pages.
    pub fn import_memory(
        &mut self,
        module: &str,
        name: &str,
        min: u32,
        max: Option<u32>,
    ) -> MemoryId {
        if !self.module.memories.is_empty() {
            self.fail(BuildRule::ImportAfterDefinition("memory"));
        }
        self.import(module, name, ImportKind::Memory(MemoryType { min, max }));
        self.add_memory(name)
    }

    /// Imports a global.
    pub fn import_global(
        &mut self,
        module: &str,
        name: &str,
        ty: ValType,
        mutable: bool,
    ) -> GlobalId {
        if !self.module.globals.is_empty() {
            self.fail(BuildRule::ImportAfterDefinition("global"));
        }
        let ty = GlobalType { ty, mutable };
        self.import(module, name, ImportKind::Global(ty));
        self.add_global(name, ty)
    }

    /// Declares a function of this module; [`ModuleBuilder::define`] gives it code. An empty name means no
    /// name, here and for the other entities.
    pub fn declare_func(&mut self, name: &str, params: &[ValType], results: &[ValType]) -> FuncId {
        let ty = self.func_type(params, results);
        self.declare_func_of(name, ty)
    }

    /// Declares a function of an existing type.
    pub(crate) fn declare_func_of(&mut self, name: &str, ty: TypeId) -> FuncId {
        let id = FuncId(self.func_types.len() as u32);
        self.module.funcs.push(Func { ty: ty.0, ..Func::default() });
        self.func_types.push(ty);
        self.defined.push(false);
        self.add_name(Space::Funcs, id.0, name);
        id
    }

    /// Starts the code of a declared function. It takes effect with [`FunctionBuilder::finish`].
    pub fn define(&mut self, func: FuncId) -> FunctionBuilder<'_> {
        FunctionBuilder::new(self, func, false)
    }

    /// Defines a table.
    pub fn table(&mut self, name: &str, elem: ValType, min: u32, max: Option<u32>) -> TableId {
        let ty = TableType { elem, min, max };
        self.module.tables.push(ty);
        self.add_table(name, ty)
    }

    /// Defines a memory; sizes are in pages of 64 KiB.
    pub fn memory(&mut self, name: &str, min: u32, max: Option<u32>) -> MemoryId {
        self.module.memories.push(MemoryType { min, max });
        self.add_memory(name)
    }

    /// Defines a global.
    pub fn global(&mut self, name: &str, ty: ValType, mutable: bool, init: ConstExpr) -> GlobalId {
        let ty = GlobalType { ty, mutable };
        self.module.globals.push(Global { ty, init });
        self.add_global(name, ty)
    }

    /// Reserves `bytes` bytes of memory 0 at `base` for the locals whose address escapes.
    pub fn frame_stack(&mut self, base: u32, bytes: u32) {
        self.module.frame_stack = Some(FrameStack { base, bytes });
    }

    /// Adds bytes that instantiation copies into memory 0 at `offset`.
    pub fn data(&mut self, name: &str, offset: ConstExpr, bytes: impl Into<Vec<u8>>) -> DataId {
        self.add_data(name, SegmentMode::Active { target: 0, offset }, bytes.into())
    }

    /// Adds bytes for `memory.init`.
    pub fn passive_data(&mut self, name: &str, bytes: impl Into<Vec<u8>>) -> DataId {
        self.add_data(name, SegmentMode::Passive, bytes.into())
    }

    /// Adds functions that instantiation copies into a table at `offset`.
    pub fn elem(
        &mut self,
        name: &str,
        table: TableId,
        offset: ConstExpr,
        funcs: &[FuncId],
    ) -> ElemId {
        let mode = SegmentMode::Active { target: table.0, offset };
        self.segment(name, mode, ValType::FuncRef, func_items(funcs))
    }

    /// Adds functions for `table.init`.
    pub fn passive_elem(&mut self, name: &str, funcs: &[FuncId]) -> ElemId {
        self.segment(name, SegmentMode::Passive, ValType::FuncRef, func_items(funcs))
    }

    /// Declares functions for `ref.func`.
    pub fn declared_elem(&mut self, name: &str, funcs: &[FuncId]) -> ElemId {
        self.segment(name, SegmentMode::Declared, ValType::FuncRef, func_items(funcs))
    }

    /// Adds an element segment of any mode and type.
    pub fn segment(
        &mut self,
        name: &str,
        mode: SegmentMode,
        ty: ValType,
        items: ElemItems,
    ) -> ElemId {
        let id = ElemId(self.module.elems.len() as u32);
        self.module.elems.push(Elem { mode, ty, items });
        self.add_name(Space::Elems, id.0, name);
        id
    }

    /// Exports a function.
    pub fn export_func(&mut self, name: &str, func: FuncId) {
        self.export(name, EntityKind::Func, func.0);
    }

    /// Exports a table.
    pub fn export_table(&mut self, name: &str, table: TableId) {
        self.export(name, EntityKind::Table, table.0);
    }

    /// Exports a memory.
    pub fn export_memory(&mut self, name: &str, memory: MemoryId) {
        self.export(name, EntityKind::Memory, memory.0);
    }

    /// Exports a global.
    pub fn export_global(&mut self, name: &str, global: GlobalId) {
        self.export(name, EntityKind::Global, global.0);
    }

    /// Sets the function that runs at instantiation. The last call takes effect.
    pub fn start(&mut self, func: FuncId) {
        self.module.start = Some(func.0);
    }

    /// Returns the first mistake so far, if any.
    pub fn error(&self) -> Option<&BuildError> {
        self.error.as_ref()
    }

    /// Returns the finished module.
    ///
    /// # Errors
    /// Returns the first mistake in the module or one of its functions.
    pub fn finish(mut self) -> Result<Module, BuildError> {
        if let Some(i) = self.defined.iter().position(|defined| !defined) {
            let func = self.first_func + i as u32;
            let name = self.module.names.func(func).map(str::to_owned);
            self.fail_with(BuildError::in_func(FuncId(func), name, BuildRule::Undefined));
        }
        if let Some(error) = self.error {
            return Err(error);
        }
        // Functions may have been defined in any order.
        settle_names(&mut self.module.names.locals);
        settle_names(&mut self.module.names.labels);
        // Drop the other reference to each type, so that none is copied.
        drop(self.type_ids);
        self.module.types = self.types.into_iter().map(Arc::unwrap_or_clone).collect();
        self.module.shapes = number_shapes(&self.stacks, &mut self.module.funcs);
        Ok(self.module)
    }

    fn import(&mut self, module: &str, name: &str, kind: ImportKind) {
        let (module, name) = (module.to_owned(), name.to_owned());
        self.module.imports.push(Import { module, name, kind });
    }

    fn add_table(&mut self, name: &str, ty: TableType) -> TableId {
        let id = TableId(self.tables.len() as u32);
        self.tables.push(ty);
        self.add_name(Space::Tables, id.0, name);
        id
    }

    fn add_memory(&mut self, name: &str) -> MemoryId {
        let id = MemoryId(self.n_memories);
        self.n_memories += 1;
        self.add_name(Space::Memories, id.0, name);
        id
    }

    fn add_global(&mut self, name: &str, ty: GlobalType) -> GlobalId {
        let id = GlobalId(self.globals.len() as u32);
        self.globals.push(ty);
        self.add_name(Space::Globals, id.0, name);
        id
    }

    fn add_data(&mut self, name: &str, mode: SegmentMode, bytes: Vec<u8>) -> DataId {
        let id = DataId(self.module.datas.len() as u32);
        self.module.datas.push(Data { mode, bytes });
        self.add_name(Space::Datas, id.0, name);
        id
    }

    /// Replaces a data segment, or appends it.
    #[cfg(feature = "wasm")]
    pub(crate) fn set_data(&mut self, index: u32, data: Data) {
        match self.module.datas.get_mut(index as usize) {
            Some(place) => *place = data,
            None => self.module.datas.push(data),
        }
    }

    fn export(&mut self, name: &str, kind: EntityKind, index: u32) {
        self.module.exports.push(Export { name: name.to_owned(), kind, index });
    }

    fn add_name(&mut self, space: Space, index: u32, name: &str) {
        let names = &mut self.module.names;
        let list = match space {
            Space::Funcs => &mut names.funcs,
            Space::Tables => &mut names.tables,
            Space::Memories => &mut names.memories,
            Space::Globals => &mut names.globals,
            Space::Elems => &mut names.elems,
            Space::Datas => &mut names.datas,
        };
        self.names[space as usize].add(list, index, name);
    }

    fn fail(&mut self, rule: BuildRule) {
        self.fail_with(BuildError::in_module(rule));
    }

    fn fail_with(&mut self, error: BuildError) {
        self.error.get_or_insert(error);
    }
}

fn func_items(funcs: &[FuncId]) -> ElemItems {
    ElemItems::Funcs(funcs.iter().map(|func| func.0).collect())
}

/// Sorts the names inside functions by function. Of several lists of a function, keeps the last.
fn settle_names(names: &mut Vec<(u32, Vec<(u32, String)>)>) {
    names.reverse();
    names.sort_by_key(|&(func, _)| func);
    names.dedup_by_key(|&mut (func, _)| func);
    names.retain(|(_, of_func)| !of_func.is_empty());
}

#[cfg(test)]
mod tests;
