//! Checks of the names. They do not affect the program, but must be well-formed for the text form.

use std::collections::HashSet;

use super::error::{Place, Rule, VerifyError};
use super::{IndexSpaces, check_limit};
use crate::limits;
use crate::module::Module;

pub(super) fn check(module: &Module, spaces: &IndexSpaces) -> Result<(), VerifyError> {
    let names = &module.names;
    if let Some(name) = &names.module {
        check_name(name)?;
    }
    let n_funcs = spaces.funcs.len() as u64;
    check_list("functions", &names.funcs, n_funcs)?;
    check_list("tables", &names.tables, spaces.tables.len() as u64)?;
    check_list("memories", &names.memories, spaces.memories.len() as u64)?;
    check_list("globals", &names.globals, spaces.globals.len() as u64)?;
    check_list("element segments", &names.elems, module.elems.len() as u64)?;
    check_list("data segments", &names.datas, module.datas.len() as u64)?;
    // Imported functions have parameters, but no locals or labels to name.
    let defined = |func: u32| module.funcs.get(func.checked_sub(spaces.n_imported_funcs)? as usize);
    check_order("functions with named locals", names.locals.iter().map(|&(f, _)| f), n_funcs)?;
    for (f, locals) in &names.locals {
        let n_params = module.types[spaces.funcs[*f as usize] as usize].params.len() as u64;
        let n_locals = defined(*f).map_or(0, |func| n_params + func.n_declared_locals());
        check_list(&format!("locals of function {f}"), locals, n_locals)?;
        check_not_empty("locals", *f, locals)?;
    }
    check_order("functions with named labels", names.labels.iter().map(|&(f, _)| f), n_funcs)?;
    for (f, labels) in &names.labels {
        let n_labels = defined(*f).map_or(0, |func| func.labels.len() as u64);
        check_list(&format!("labels of function {f}"), labels, n_labels)?;
        check_not_empty("labels", *f, labels)?;
    }
    // Any number will do, and several traps may mean the same.
    check_order("trap messages", names.traps.iter().map(|&(number, _)| number), ANY_NUMBER)?;
    names.traps.iter().try_for_each(|(_, message)| check_name(message))?;
    check_list("source files", &names.files, ANY_NUMBER)
}

/// The number of 32-bit numbers.
const ANY_NUMBER: u64 = 1 << 32;

fn fail<T>(detail: String) -> Result<T, VerifyError> {
    Err(Place::Names.error(Rule::Names, detail))
}

fn check_name(name: &str) -> Result<(), VerifyError> {
    check_limit(Place::Names, name.len(), limits::NAME_BYTES_MAX, "NAME_BYTES_MAX")?;
    if name.is_empty() { fail("empty name".into()) } else { Ok(()) }
}

fn check_not_empty(what: &str, func: u32, list: &[(u32, String)]) -> Result<(), VerifyError> {
    if list.is_empty() { fail(format!("empty list of {what} of function {func}")) } else { Ok(()) }
}

fn check_order(
    what: &str,
    indices: impl Iterator<Item = u32>,
    len: u64,
) -> Result<(), VerifyError> {
    let mut previous = None;
    for index in indices {
        if u64::from(index) >= len {
            return fail(format!("{what}: index {index} out of range; expected less than {len}"));
        }
        if previous.is_some_and(|previous| previous >= index) {
            return fail(format!("{what}: index {index} is out of order"));
        }
        previous = Some(index);
    }
    Ok(())
}

fn check_list(what: &str, list: &[(u32, String)], len: u64) -> Result<(), VerifyError> {
    check_order(what, list.iter().map(|&(i, _)| i), len)?;
    let mut seen = HashSet::with_capacity(list.len());
    for (_, name) in list {
        check_name(name)?;
        if !seen.insert(name.as_str()) {
            return fail(format!("{what}: duplicate name {name:?}"));
        }
    }
    Ok(())
}
