//! The variables of surrounding functions that each function needs.
//!
//! A function needs what it uses itself and what the functions that it calls need, except for its own variables.
//! Functions call each other in circles, so this is a least fixed point: a change of a function's set makes its callers
//! due again.

use std::collections::{BTreeSet, VecDeque};

use crate::program::{Func, FuncId, Var, VarId};

/// The most variables of their surroundings that all functions may need, and that all calls may pass, since each takes
/// room in the code.
pub const NEEDS_MAX: usize = 1 << 20;

/// Adds to [`Func::needs`], which holds what each function uses itself, what the functions that it calls need.
///
/// # Errors
/// Returns a function with which the sum exceeds [`NEEDS_MAX`].
pub(crate) fn propagate(
    functions: &mut [Func],
    variables: &[Var],
    calls: &[BTreeSet<FuncId>],
) -> Result<(), FuncId> {
    let mut callers = vec![Vec::new(); functions.len()];
    for (caller, callees) in calls.iter().enumerate() {
        for callee in callees {
            callers[callee.0].push(FuncId(caller));
        }
    }
    let mut n_needs: usize = functions.iter().map(|function| function.needs.len()).sum();
    let mut due: VecDeque<FuncId> = (0..functions.len()).map(FuncId).collect();
    let mut is_due = vec![true; functions.len()];
    while let Some(id) = due.pop_front() {
        is_due[id.0] = false;
        let needs: Vec<VarId> = functions[id.0].needs.iter().copied().collect();
        for &caller in &callers[id.0] {
            let known = &mut functions[caller.0].needs;
            let n_known = known.len();
            known.extend(needs.iter().filter(|var| variables[var.0].owner != caller));
            n_needs += known.len() - n_known;
            if n_needs > NEEDS_MAX {
                return Err(caller);
            }
            if known.len() > n_known && !std::mem::replace(&mut is_due[caller.0], true) {
                due.push_back(caller);
            }
        }
    }
    Ok(())
}
