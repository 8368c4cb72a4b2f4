//! Checks that what a module is given is what it imports.

use slotvm_bytecode::module::{GlobalType, Import, ImportCall, ImportKind, MemoryType, TableType};
use slotvm_bytecode::{FuncType, VerifiedModule};

use crate::entities::{Extern, FuncHandle, GlobalHandle, MemoryHandle, TableHandle};
use crate::error::LinkError;
use crate::store::Store;

/// The imports of an instance, by index space.
#[derive(Default)]
pub(crate) struct Imports {
    pub(crate) funcs: Vec<FuncHandle>,
    pub(crate) tables: Vec<TableHandle>,
    pub(crate) memory: Option<MemoryHandle>,
    pub(crate) globals: Vec<GlobalHandle>,
}

impl Imports {
    /// Sorts the imports given, in the order of the module's, into index spaces if they all fit.
    pub(crate) fn check(
        store: &Store,
        module: &VerifiedModule,
        externs: &[Extern],
    ) -> Result<Imports, LinkError> {
        let expected = &module.module().imports;
        if expected.len() != externs.len() {
            return Err(LinkError::Count { expected: expected.len(), found: externs.len() });
        }
        let mut imports = Imports::default();
        for (import, &found) in expected.iter().zip(externs) {
            if !fits(store, module, &import.kind, found) {
                return Err(mismatch(store, module, import, found));
            }
            match found {
                Extern::Func(func) => imports.funcs.push(func),
                Extern::Table(table) => imports.tables.push(table),
                Extern::Memory(memory) => imports.memory = Some(memory),
                Extern::Global(global) => imports.globals.push(global),
            }
        }
        Ok(imports)
    }
}

fn fits(store: &Store, module: &VerifiedModule, kind: &ImportKind, found: Extern) -> bool {
    match (kind, found) {
        (&ImportKind::Func(ty, call), Extern::Func(func)) => {
            module.module().types[ty as usize] == *store.func_type(func)
                && (call != ImportCall::Leaf || store.is_leaf(func))
        }
        (&ImportKind::Table(ty), Extern::Table(table)) => {
            // Who imports a table may write it.
            let is_constant = store.table(table).is_constant();
            let found = store.table(table).ty();
            let fits = found.elem == ty.elem && found.min >= ty.min && max_fits(ty.max, found.max);
            fits && !is_constant
        }
        (&ImportKind::Memory(ty), Extern::Memory(memory)) => {
            let found = store.memory(memory).ty();
            found.min >= ty.min && max_fits(ty.max, found.max)
        }
        (&ImportKind::Global(ty), Extern::Global(global)) => ty == store.global_type(global),
        _ => false,
    }
}

/// Whether something that never exceeds `found` never exceeds `wanted`.
fn max_fits(wanted: Option<u32>, found: Option<u32>) -> bool {
    match (wanted, found) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(wanted), Some(found)) => found <= wanted,
    }
}

impl LinkError {
    /// Nobody provides an import of the module.
    pub fn missing(module: &VerifiedModule, import: &Import) -> LinkError {
        let expected = import_text(module, import);
        LinkError::Missing { module: import.module.clone(), name: import.name.clone(), expected }
    }
}

fn mismatch(store: &Store, module: &VerifiedModule, import: &Import, found: Extern) -> LinkError {
    let expected = import_text(module, import);
    let found = match found {
        Extern::Func(func) => func_text(store.is_leaf(func), store.func_type(func)),
        Extern::Table(table) if store.table(table).is_constant() => {
            let ty = table_text(store.table(table).ty());
            format!("{ty} whose elements are constant, since its module does not export it")
        }
        Extern::Table(table) => table_text(store.table(table).ty()),
        Extern::Memory(memory) => memory_text(store.memory(memory).ty()),
        Extern::Global(global) => global_text(store.global_type(global)),
    };
    LinkError::Type { module: import.module.clone(), name: import.name.clone(), expected, found }
}

fn import_text(module: &VerifiedModule, import: &Import) -> String {
    match import.kind {
        ImportKind::Func(ty, call) => {
            func_text(call == ImportCall::Leaf, &module.module().types[ty as usize])
        }
        ImportKind::Table(ty) => table_text(ty),
        ImportKind::Memory(ty) => memory_text(ty),
        ImportKind::Global(ty) => global_text(ty),
    }
}

fn func_text(is_leaf: bool, ty: &FuncType) -> String {
    format!("{}function {ty}", if is_leaf { "leaf " } else { "" })
}

fn table_text(ty: TableType) -> String {
    format!("table {} {}", ty.elem, size_text(ty.min, ty.max))
}

fn memory_text(ty: MemoryType) -> String {
    format!("memory {}", size_text(ty.min, ty.max))
}

fn size_text(min: u32, max: Option<u32>) -> String {
    match max {
        Some(max) => format!("{min} {max}"),
        None => format!("{min}"),
    }
}

fn global_text(ty: GlobalType) -> String {
    format!("global {}{}", if ty.mutable { "mut " } else { "" }, ty.ty)
}
