//! Tables that never change once a module has been instantiated.
//!
//! Such a table is defined by the module, not exported, and written by no instruction, so nobody else can reach it. Its
//! elements follow from the element segments. Code of the instance could run with the table half filled only if a
//! segment fails after another one has filled an imported table. So all segments up to the last one of a constant table
//! have constant offsets and lie within the declared minimum of their tables.

use std::collections::HashMap;

use crate::inst::{CodeReader, Inst};
use crate::module::{ConstExpr, Elem, ElemItems, EntityKind, Module, SegmentMode, TableType};
use crate::op::Op;
use crate::types::{FuncType, ValType};

/// A function in a table.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TableEntry {
    /// The index of the first type of the module that equals the function's.
    ty: u32,
    /// Its index in the table.
    pub index: u32,
    /// The function, in the module's index space.
    pub func: u32,
}

/// The constant tables of a module.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConstantTables {
    /// The functions of each table by type and index, or none if the table may change.
    tables: Vec<Option<Vec<TableEntry>>>,
    /// The first type that equals each type; empty if no table is constant.
    first_types: Vec<u32>,
}

impl ConstantTables {
    /// Finds the constant tables of a module with these index spaces. `private` are those that nothing outside can write,
    /// `written` those that instructions write.
    pub(crate) fn find(
        module: &Module,
        tables: &[TableType],
        func_types: &[u32],
        private: &[u32],
        written: &[u32],
    ) -> ConstantTables {
        let mut found: Vec<Option<Vec<(u32, u32)>>> = vec![None; tables.len()];
        for &table in private.iter().filter(|table| !written.contains(table)) {
            found[table as usize] = Some(Vec::new());
        }
        fill(module, tables, &mut found);
        if found.iter().all(Option::is_none) {
            return ConstantTables::default();
        }
        let first_types = first_types(&module.types);
        let entry = |(index, func): (u32, u32)| {
            let ty = first_types[func_types[func as usize] as usize];
            TableEntry { ty, index, func }
        };
        let sorted = |entries: Vec<(u32, u32)>| {
            let mut entries: Vec<TableEntry> = entries.into_iter().map(entry).collect();
            entries.sort_unstable();
            entries
        };
        let tables = found.into_iter().map(|entries| entries.map(sorted)).collect();
        ConstantTables { tables, first_types }
    }

    /// See [`crate::VerifiedModule::is_constant_table`].
    pub(crate) fn is_constant(&self, table: u32) -> bool {
        self.tables.get(table as usize).is_some_and(Option::is_some)
    }

    /// See [`crate::VerifiedModule::constant_entries`].
    pub(crate) fn entries(&self, table: u32, ty: u32) -> Option<&[TableEntry]> {
        let entries = self.tables.get(table as usize)?.as_deref()?;
        let ty = self.first_types[ty as usize];
        let start = entries.partition_point(|entry| entry.ty < ty);
        let end = entries.partition_point(|entry| entry.ty <= ty);
        Some(&entries[start..end])
    }
}

/// The tables that nothing outside of a module with these index spaces can write, in ascending order.
pub(crate) fn private(module: &Module, tables: &[TableType]) -> Vec<u32> {
    let mut is_private = vec![true; tables.len()];
    is_private[..tables.len() - module.tables.len()].fill(false);
    for export in module.exports.iter().filter(|export| export.kind == EntityKind::Table) {
        is_private[export.index as usize] = false;
    }
    let is_private = |&table: &u32| {
        is_private[table as usize] && tables[table as usize].elem == ValType::FuncRef
    };
    (0..tables.len() as u32).filter(is_private).collect()
}

/// Applies the element segments, in their order. Later ones replace the elements of earlier ones.
fn fill(module: &Module, tables: &[TableType], found: &mut [Option<Vec<(u32, u32)>>]) {
    let mut may_have_failed = false;
    let mut n_segments = vec![0u32; tables.len()];
    for elem in &module.elems {
        let SegmentMode::Active { target, offset } = &elem.mode else { continue };
        let end_max = tables[*target as usize].min;
        let start = constant(offset).filter(|&start| fits(start, elem.items.len(), end_max));
        may_have_failed |= start.is_none();
        let entries = &mut found[*target as usize];
        let items = start.filter(|_| !may_have_failed).and_then(|start| functions(elem, start));
        match (entries.as_mut(), items) {
            (Some(entries), Some(items)) => entries.extend(items),
            _ => *entries = None,
        }
        n_segments[*target as usize] += 1;
    }
    for (entries, n_segments) in found.iter_mut().zip(n_segments) {
        if let Some(entries) = entries.as_mut().filter(|_| n_segments > 1) {
            keep_last(entries);
        }
    }
    for entries in found.iter_mut().flatten() {
        entries.retain(|&(_, func)| func != NULL);
    }
}

/// The function number of a null element.
const NULL: u32 = u32::MAX;

/// The elements of a segment with their indices, unless one depends on a global.
fn functions(elem: &Elem, start: u32) -> Option<Vec<(u32, u32)>> {
    let funcs: Vec<u32> = match &elem.items {
        ElemItems::Funcs(funcs) => funcs.clone(),
        ElemItems::Exprs(exprs) => exprs.iter().map(reference).collect::<Option<_>>()?,
    };
    Some((start..).zip(funcs).collect())
}

fn keep_last(entries: &mut Vec<(u32, u32)>) {
    entries.reverse();
    entries.sort_by_key(|&(index, _)| index);
    entries.dedup_by_key(|&mut (index, _)| index);
}

fn fits(start: u32, len: usize, end_max: u32) -> bool {
    u64::from(start) + len as u64 <= u64::from(end_max)
}

/// The value of an expression that is a single `i32.const`.
fn constant(expr: &ConstExpr) -> Option<u32> {
    only_inst(expr).filter(|inst| inst.op == Op::I32Const).map(|inst| inst.imm.low())
}

/// The function of an expression that is a single `ref.func`, or [`NULL`] for a `ref.null`.
fn reference(expr: &ConstExpr) -> Option<u32> {
    let inst = only_inst(expr)?;
    match inst.op {
        Op::RefFunc => Some(inst.imm.low()),
        Op::RefNull => Some(NULL),
        _ => None,
    }
}

fn only_inst(expr: &ConstExpr) -> Option<Inst> {
    let mut reader = CodeReader::new(&expr.code, 0);
    let inst = reader.read().ok()?;
    reader.is_at_end().then_some(inst)
}

fn first_types(types: &[FuncType]) -> Vec<u32> {
    let mut first = HashMap::new();
    (0..).zip(types).map(|(i, ty)| *first.entry(ty).or_insert(i)).collect()
}

#[cfg(test)]
mod tests;
