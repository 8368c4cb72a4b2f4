//! Reads what `vmrun profile --json` has written, for `vmrun explain`. A profile of another program is refused if that shows:
//! in names of functions, starts of blocks, and places and types of indirect calls.

use std::collections::HashSet;
use std::path::Path;

use slotvm::compiler::{Executions, FunctionExecutions};
use slotvm_bytecode::printable::Printable;
use slotvm_bytecode::{FuncType, Op, VerifiedModule};

use super::{CallProfile, FunctionProfile, Profile, SCHEMA, SCHEMA_VERSION};
use crate::error::CliError;
use crate::load;

/// The executions in a profile of a module.
///
/// # Errors
/// Fails if the file is no profile, or that of another program.
pub fn executions(path: &Path, module: &VerifiedModule) -> Result<Executions, CliError> {
    let refused = |reason: String| {
        CliError::Failed(format!(
            "{}: expected what `vmrun profile --json` writes: {reason}",
            path.display()
        ))
    };
    let text = load::read_text(path)?;
    let profile: Profile =
        serde_json::from_str(&text).map_err(|error| refused(error.to_string()))?;
    if (&*profile.schema, profile.version) != (SCHEMA, SCHEMA_VERSION) {
        return Err(refused(format!("found {} {}", profile.schema, profile.version)));
    }
    let is_named_so = |function: &FunctionProfile| {
        function.func < module.n_funcs() && function.name == module.func_name(function.func)
    };
    if let Some(other) = profile.functions.iter().find(|function| !is_named_so(function)) {
        let name = Printable(&other.name).to_string();
        return Err(refused(format!("function {} is no `{name}` in this program", other.func)));
    }
    let mut executions = Executions::default();
    for function in &profile.functions {
        let func = function.func;
        if module.func(func).is_none() {
            return Err(refused(format!("function {func} is imported, and executes nothing")));
        }
        let of_func = of_func(module, function).map_err(|reason| {
            let program = "is a profile of another program";
            CliError::Failed(format!("{} {program}: {reason}", path.display()))
        })?;
        if executions.functions.insert(func, of_func).is_some() {
            return Err(refused(format!("function {func} has two entries")));
        }
    }
    Ok(executions)
}

/// The executions of a function that the module defines.
///
/// # Errors
/// Fails with the reason why they cannot be those of the function.
fn of_func(
    module: &VerifiedModule,
    function: &FunctionProfile,
) -> Result<FunctionExecutions, String> {
    let func = function.func;
    let body = module.body(func).expect("the module defines the function");
    let is_start = |offset| body.blocks.binary_search_by_key(&offset, |block| block.start).is_ok();
    if let Some(block) = function.blocks.iter().find(|block| !is_start(block.offset)) {
        return Err(format!("no block of function {func} starts at @{:04x}", block.offset));
    }
    let mut executions = FunctionExecutions {
        blocks: function.blocks.iter().map(|block| (block.offset, block.count)).collect(),
        ..FunctionExecutions::default()
    };
    if function.calls.is_empty() {
        return Ok(executions);
    }
    let insts = body.blocks.iter().flat_map(|block| module.insts(func, block));
    let sites: Vec<(u32, &FuncType)> = insts
        .filter(|(_, inst)| inst.op == Op::CallIndirect)
        .map(|(offset, inst)| (offset, &module.module().types[inst.imm.low() as usize]))
        .collect();
    for call in &function.calls {
        let offset = call.offset;
        let site = sites.binary_search_by_key(&offset, |&(offset, _)| offset);
        let Ok(site) = site else {
            return Err(format!("function {func} has no indirect call at @{offset:04x}"));
        };
        check_callees(module, call, sites[site].1)
            .map_err(|reason| format!("the call at @{offset:04x} of function {func} {reason}"))?;
        // The others are not known, so code cannot be compared with all of them.
        if call.n_others() == 0 {
            let callees = call.callees.iter().map(|callee| callee.func).collect();
            executions.callees.insert(offset, callees);
        }
    }
    Ok(executions)
}

/// Fails with the reason why a call cannot have called these functions.
fn check_callees(module: &VerifiedModule, call: &CallProfile, ty: &FuncType) -> Result<(), String> {
    let mut seen = HashSet::new();
    for callee in &call.callees {
        let func = callee.func;
        if module.func(func).is_none() {
            return Err(format!("calls function {func}, which the program does not define"));
        }
        if module.func_type(func) != ty {
            return Err(format!("calls function {func}, which has another type"));
        }
        if !seen.insert(func) {
            return Err(format!("lists function {func} twice"));
        }
    }
    Ok(())
}
