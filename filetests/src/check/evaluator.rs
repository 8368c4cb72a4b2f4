//! Runs a case in the evaluator of the IR.

use std::cell::RefCell;

use slotvm_bytecode::{TrapCode, ValType, VerifiedModule};
use slotvm_ssa::ir::Function;
use slotvm_ssa::ir::eval;

use super::heap::Heap;
use super::host::{Host, Stop};
use super::{
    Budget, Call, End, MEMORY_PAGES_MAX, Outcome, Place, Plan, STACK_CELLS_MAX, TABLE_ELEMS_MAX,
    expose,
};
use crate::generate::Case;

/// Makes a machine with these functions, which the module defines, and with the fuel of the first call.
/// Calls the case's function once for each budget.
pub(super) fn run(
    module: &VerifiedModule,
    functions: Vec<Function>,
    plan: Plan,
    case: &Case,
    budgets: &[Budget],
) -> Outcome {
    run_with_exits(module, functions, Vec::new(), plan, case, budgets)
}

/// The same with functions that have exits, which go on in `landings`.
pub(super) fn run_with_exits(
    module: &VerifiedModule,
    functions: Vec<Function>,
    landings: Vec<Function>,
    plan: Plan,
    case: &Case,
    budgets: &[Budget],
) -> Outcome {
    let host = RefCell::new(Host::default());
    let has_failed = std::cell::Cell::new(false);
    let imports = eval::Imports {
        host: Box::new(|call| {
            let ty = module.func_type(call.func);
            let mut host = host.borrow_mut();
            let args = all_seen(call.args, &ty.params, &host.heap);
            let mut roots = call.roots;
            host.heap.collect(|visit| roots.visit(visit));
            host.call(&args, &ty.results).map_err(|stop| match stop {
                Stop::Trap(code) => code,
                Stop::Fail => {
                    has_failed.set(true);
                    TrapCode::Unreachable
                }
            })
        }),
        globals: Vec::new(),
    };
    let options = eval::Options {
        fuel: plan.limited.then_some(case.fuel),
        stack_cells: plan.limited.then_some(STACK_CELLS_MAX),
        polls: plan.limited.then_some(u64::MAX),
        canonical_nans: true,
        memory_pages_max: MEMORY_PAGES_MAX,
        table_elems_max: TABLE_ELEMS_MAX,
        ..eval::Options::default()
    };
    let mut machine = eval::Machine::new(module, functions, imports, options);
    machine.land_in(landings);
    let end_of = |trap: eval::Trap| {
        let eval::Trap { code, number, func, offset } = trap;
        let place = Place { func, offset, backtrace: None };
        match has_failed.take() {
            true => End::HostFailed(place),
            false => End::Trapped(code, number, place),
        }
    };
    let start = machine.instantiate().err().map(end_of);
    let mut calls = Vec::new();
    for &budget in budgets.iter().filter(|_| start.is_none()) {
        machine.set_fuel(plan.limited.then_some(budget.fuel));
        machine.set_polls(plan.limited.then_some(budget.polls));
        let types = &module.func_type(case.func).results;
        let end = match machine.call(case.func, &case.args) {
            Ok(cells) => End::Returned(all_seen(&cells, types, &host.borrow().heap)),
            Err(trap) => end_of(trap),
        };
        calls.push(state(&machine, module, &host.borrow().heap, end));
    }
    drop(machine);
    Outcome { start, calls, log: host.into_inner().log }
}

/// The observable state after a call.
fn state(machine: &eval::Machine<'_>, module: &VerifiedModule, heap: &Heap, end: End) -> Call {
    let types: Vec<ValType> = module.globals().iter().map(|global| global.ty).collect();
    let tables = expose::tables(module).map(|i| &machine.tables()[i]);
    Call {
        end,
        fuel: machine.fuel(),
        polls: machine.polls(),
        memory: machine.memory().to_vec(),
        globals: all_seen(machine.globals(), &types, heap),
        tables: tables.map(|table| table.elems.iter().map(|&cell| cell != 0).collect()).collect(),
    }
}

/// Cells in the form of outcomes.
fn all_seen(cells: &[u128], types: &[ValType], heap: &Heap) -> Vec<u128> {
    cells.iter().zip(types).map(|(&cell, &ty)| seen(cell, ty, heap)).collect()
}

/// References become null or not null, or what the heap knows of them.
fn seen(cell: u128, ty: ValType, heap: &Heap) -> u128 {
    match ty {
        ValType::Ref => heap.known(cell as u64),
        _ if ty.is_ref() => u128::from(cell != 0),
        _ => cell,
    }
}
