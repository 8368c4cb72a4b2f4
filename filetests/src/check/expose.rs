//! Exports of everything that a module defines.

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

/// Exports every entity of a module under its [`name`]. Existing exports with such names are removed.
pub(super) fn expose(module: &mut Module) {
    module.exports.retain(|export| !export.name.starts_with(PREFIX));
    let imported = |wanted: fn(&ImportKind) -> bool| {
        module.imports.iter().filter(|import| wanted(&import.kind)).count()
    };
    let counts = [
        (
            EntityKind::Func,
            imported(|kind| matches!(kind, ImportKind::Func(_))),
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
        for i in 0..n_imported + n_defined {
            module.exports.push(Export { name: name(kind, i), kind, index: i as u32 });
        }
    }
}
