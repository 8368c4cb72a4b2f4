//! Types of what modules import and export.

use slotvm_bytecode::module::{EntityKind, GlobalType, ImportKind, MemoryType, TableType};
use slotvm_bytecode::{FuncType, VerifiedModule};

/// The type of something that a module can import and an instance can export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExternType {
    /// A function.
    Func(FuncType),
    /// A table.
    Table(TableType),
    /// A memory.
    Memory(MemoryType),
    /// A global.
    Global(GlobalType),
}

impl ExternType {
    /// The type of the function, if it is one.
    pub fn func(&self) -> Option<&FuncType> {
        if let ExternType::Func(ty) = self { Some(ty) } else { None }
    }

    /// The type of the table, if it is one.
    pub fn table(&self) -> Option<&TableType> {
        if let ExternType::Table(ty) = self { Some(ty) } else { None }
    }

    /// The type of the memory, if it is one.
    pub fn memory(&self) -> Option<&MemoryType> {
        if let ExternType::Memory(ty) = self { Some(ty) } else { None }
    }

    /// The type of the global, if it is one.
    pub fn global(&self) -> Option<&GlobalType> {
        if let ExternType::Global(ty) = self { Some(ty) } else { None }
    }

    /// The type of what a module imports.
    fn of_import(module: &VerifiedModule, kind: &ImportKind) -> ExternType {
        match *kind {
            ImportKind::Func(ty, _) => ExternType::Func(module.module().types[ty as usize].clone()),
            ImportKind::Table(ty) => ExternType::Table(ty),
            ImportKind::Memory(ty) => ExternType::Memory(ty),
            ImportKind::Global(ty) => ExternType::Global(ty),
        }
    }

    /// The type of an entity of an index space.
    fn of_entity(module: &VerifiedModule, kind: EntityKind, index: u32) -> ExternType {
        let i = index as usize;
        match kind {
            EntityKind::Func => ExternType::Func(module.func_type(index).clone()),
            EntityKind::Table => ExternType::Table(module.tables()[i]),
            EntityKind::Memory => ExternType::Memory(module.memories()[i]),
            EntityKind::Global => ExternType::Global(module.globals()[i]),
        }
    }
}

/// An import of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportType<'module> {
    module: &'module str,
    name: &'module str,
    ty: ExternType,
}

impl<'module> ImportType<'module> {
    /// The module that it shall come from.
    pub fn module(&self) -> &'module str {
        self.module
    }

    /// Its name there.
    pub fn name(&self) -> &'module str {
        self.name
    }

    /// The expected type.
    pub fn ty(&self) -> &ExternType {
        &self.ty
    }
}

/// An export of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportType<'module> {
    name: &'module str,
    ty: ExternType,
}

impl<'module> ExportType<'module> {
    /// Its name.
    pub fn name(&self) -> &'module str {
        self.name
    }

    /// The type.
    pub fn ty(&self) -> &ExternType {
        &self.ty
    }
}

/// The imports of a module, in its order.
pub(crate) fn imports(
    module: &VerifiedModule,
) -> impl ExactSizeIterator<Item = ImportType<'_>> + Clone {
    module.module().imports.iter().map(|import| ImportType {
        module: &import.module,
        name: &import.name,
        ty: ExternType::of_import(module, &import.kind),
    })
}

/// The exports of a module, in its order.
pub(crate) fn exports(
    module: &VerifiedModule,
) -> impl ExactSizeIterator<Item = ExportType<'_>> + Clone {
    module.module().exports.iter().map(|export| ExportType {
        name: &export.name,
        ty: ExternType::of_entity(module, export.kind, export.index),
    })
}
