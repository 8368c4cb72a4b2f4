//! Exports of what a module defines.

use slotvm_bytecode::VerifiedModule;
use slotvm_bytecode::module::{EntityKind, Export, ImportKind, Module};

/// The prefix of the names of the new exports.
const PREFIX: &str = "exposed ";

/// The export name of an entity.
pub(super) fn name(kind: EntityKind, index: usize) -> String {
    let kind = match kind {
        EntityKind::Func => "func",
        EntityKind::Table => "table",
        EntityKind::Memory => "memory",
        EntityKind::Global => "global",
    };
    format!("{PREFIX}{kind} {index}")
}

/// Exports every entity of a module under its [`name`], but tables only if asked to: those that nobody else reaches may
/// be constant. Existing exports with such names are removed.
pub(super) fn expose(module: &mut Module, with_tables: bool) {
    module.exports.retain(|export| !export.name.starts_with(PREFIX));
    let imported = |wanted: fn(&ImportKind) -> bool| {
        module.imports.iter().filter(|import| wanted(&import.kind)).count()
    };
    let counts = [
        (
            EntityKind::Func,
            imported(|kind| matches!(kind, ImportKind::Func(..))),
            module.funcs.len(),
        ),
        (
            EntityKind::Table,
            imported(|kind| matches!(kind, ImportKind::Table(_))),
            module.tables.len(),
        ),
        (
            EntityKind::Memory,
            imported(|kind| matches!(kind, ImportKind::Memory(_))),
            module.memories.len(),
        ),
        (
            EntityKind::Global,
            imported(|kind| matches!(kind, ImportKind::Global(_))),
            module.globals.len(),
        ),
    ];
    for (kind, n_imported, n_defined) in counts {
        if kind == EntityKind::Table && !with_tables {
            continue;
        }
        for i in 0..n_imported + n_defined {
            module.exports.push(Export { name: name(kind, i), kind, index: i as u32 });
        }
    }
}

/// The tables that are exported under their names.
pub(super) fn tables(module: &VerifiedModule) -> impl Iterator<Item = usize> {
    let exports = &module.module().exports;
    (0..module.tables().len()).filter(move |&i| {
        exports.iter().any(|export| {
            (export.kind, export.index) == (EntityKind::Table, i as u32)
                && export.name == name(EntityKind::Table, i)
        })
    })
}
