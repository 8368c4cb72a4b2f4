//! Finds slot accesses in the text of CLIF.
//!
//! Promoted code must have none. Areas for the results of calls may remain in the native frame. They are
//! recognised by their use, without trusting the lowering: their address may be passed to calls, and results
//! may be read from them. Every other use of the frame counts as a slot access, including address
//! arithmetic.

use std::collections::HashSet;
use std::sync::Arc;

use slotvm::{PassSet, SlotMode};
use slotvm_bytecode::VerifiedModule;
use slotvm_ssa::construction::build::BuildOptions;
use slotvm_ssa::ir::Function;
use slotvm_ssa::ir::irop::{IrOp, Opcode};
use slotvm_ssa::ir::verify::Form;

use slotvm_cases::stages;

/// The alias region of reads of call results from an area.
const RESULTS: &str = "\"results\"";
/// The alias region of slots.
const SLOTS: &str = "\"frame\"";
/// The alias region of references that wait at calls, which promoted code has in its frame as well.
const ROOTS: &str = "\"roots\"";

/// Checks that the native code of a module has no slot accesses in modes `ssa` and `variables`, and at least
/// as many as the IR in mode `memory`. Returns the number in the IR.
///
/// # Errors
/// Returns what is wrong, with the CLIF of the function.
pub fn check_module(module: &Arc<VerifiedModule>) -> Result<usize, String> {
    let mut promotes_all = PassSet::all();
    promotes_all.switch("pressure", false).expect("the pass is optional");
    for slots in [SlotMode::Ssa, SlotMode::Variables] {
        for clif in stages::clif(module, slots, promotes_all)? {
            let found = slot_accesses(&clif);
            if !found.is_empty() {
                return Err(format!("{slots}: {} are slot accesses in\n{clif}", found.join("\n")));
            }
        }
    }
    let functions = stages::functions(module, Form::Slots, BuildOptions::default())?;
    let mut n_accesses = 0;
    for (function, clif) in
        functions.iter().zip(stages::clif(module, SlotMode::Memory, promotes_all)?)
    {
        let (expected, found) = (n_slot_accesses(function), slot_accesses(&clif).len());
        if found < expected {
            return Err(format!(
                "expected at least {expected} slot accesses, found {found} in\n{clif}"
            ));
        }
        n_accesses += expected;
    }
    Ok(n_accesses)
}

fn n_slot_accesses(f: &Function) -> usize {
    let insts = f.blocks().flat_map(|block| f.insts(block));
    let is_access = |opcode| matches!(opcode, Opcode::Ir(IrOp::SlotGet | IrOp::SlotSet));
    insts.filter(|&&inst| is_access(f.opcode(inst))).count()
}

/// The lines of a function's CLIF that access the native frame, except for the results of calls.
pub fn slot_accesses(clif: &str) -> Vec<&str> {
    let (mut results, mut slots) = (None, None);
    let roots = root_addresses(clif);
    let mut addresses = HashSet::new();
    let mut found = Vec::new();
    for line in clif.lines() {
        let words: Vec<&str> = words(line).collect();
        match words.as_slice() {
            [region, "=", .., RESULTS] => results = Some(*region),
            [region, "=", .., SLOTS] => slots = Some(*region),
            // The only way to an explicit slot's address.
            [.., address, "=", op, _] if op.starts_with("stack_addr") => {
                if !roots.contains(address) {
                    addresses.insert(*address);
                }
            }
            words => {
                let has = |word: Option<&str>| word.is_some_and(|word| words.contains(&word));
                let is_call = words.iter().any(|w| w.starts_with("call") || *w == "return_call");
                let uses_frame = words.iter().any(|word| addresses.contains(word));
                // Skips the line of the header with the stack limit.
                let is_stack_access = words.iter().any(|word| word.starts_with("stack_"))
                    && !has(Some("stack_limit"));
                let reads_results =
                    has(results) && words.iter().any(|word| word.starts_with("load"));
                let may_use_frame = is_call || reads_results;
                if has(slots) || is_stack_access || uses_frame && !may_use_frame {
                    found.push(line);
                }
            }
        }
    }
    found
}

/// The words of all lines that access the region of references. The address of the cells is one of them.
fn root_addresses(clif: &str) -> HashSet<&str> {
    let lines = || clif.lines().map(|line| words(line).collect::<Vec<&str>>());
    let region = lines().find_map(|words| match words.as_slice() {
        [region, "=", .., ROOTS] => Some(*region),
        _ => None,
    });
    let accesses = lines().filter(|words| region.is_some_and(|region| words.contains(&region)));
    accesses.flatten().collect()
}

/// The words of a line without its comment; static offsets are words of their own.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let code = line.split("  ; ").next().unwrap_or(line);
    code.split([' ', ',', '(', ')', '+', ':']).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "    ss0 = explicit_slot 16, align = 8\n    \
                          region0 = 0 \"frame\"\n    region3 = 3 \"results\"\n    \
                          stack_limit = gv2\n@0000    v2 = stack_addr.i64 ss0\n";

    #[track_caller]
    fn check(line: &str, is_access: bool) {
        let clif = format!("{HEADER}{line}\n");
        assert_eq!(slot_accesses(&clif), if is_access { vec![line] } else { vec![] });
    }

    #[test]
    fn areas_of_results_are_not_accesses() {
        check("@0010    v5, v6 = call fn0(v0, v2, v3)", false);
        check("@0010    v5 = call_indirect sig0, v9(v0, v2)", false);
        check("@0010    v7 = load.i64 notrap aligned region3 v2+8", false);
        check("@0010    v7 = load.i64 notrap aligned region1 v20+8", false);
    }

    #[test]
    fn references_that_wait_are_no_slots() {
        let roots = "    ss1 = explicit_slot 8, align = 8\n    region5 = 5 \"roots\"\n\
                     @0000    v20 = stack_addr.i64 ss1\n\
                     @0010    store notrap aligned region5 v3, v20\n";
        check(&format!("{roots}@0010    v7 = load.i64 notrap aligned region5 v20"), false);
    }

    #[test]
    fn everything_else_in_the_frame_is() {
        check("@0010    v7 = load.i64 notrap aligned region0 v2+8", true);
        check("@0010    v7 = load.i64 notrap aligned region0 v30", true);
        check("@0010    store notrap aligned region0 v3, v2  ; v3 = 0", true);
        check("@0010    store notrap aligned region3 v3, v2+8", true);
        check("@0010    v7 = load.i64 notrap aligned v2+8", true);
        check("@0010    v8 = iadd v2, v7", true);
        check("@0010    stack_store v7, ss0+8", true);
        check("@0010    v8 = stack_load.i64 ss0+8", true);
        check("@0010    jump block3(v2)", true);
    }
}
