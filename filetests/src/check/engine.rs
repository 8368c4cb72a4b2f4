//! A case in an engine of the embedding API: interpreter or native code.

use std::fmt;
use std::sync::Arc;

use slotvm::{
    Backtrace, Caller, Engine, Error, Extern, ExternRef, Global, Instance, Memory, Module, Rooted,
    Store, Table, Trap, Val,
};
use slotvm_bytecode::module::{EntityKind, ImportKind};
use slotvm_bytecode::{FuncType, ValType, VerifiedModule};
use slotvm_runtime::TraceFn;

use super::host::{self, Host, Stop};
use super::{Budget, Call, End, Outcome, Place, expose};
use crate::generate::Case;
use slotvm_cases::values;

const WORKS: &str = "the engine takes what verifies";

/// How the interpreter of a store works.
pub(super) enum Interpretation {
    /// As in every program.
    Usual,
    /// As in programs that the compiler has not optimised.
    ByLoop,
    /// One instruction after the other, which a function sees.
    Traced(TraceFn),
}

/// Makes an instance with the fuel of the first call, and calls the case's function once for each
/// budget.
pub(super) fn run(
    engine: &Engine,
    module: &Arc<VerifiedModule>,
    case: &Case,
    budgets: &[Budget],
) -> Outcome {
    run_by(engine, module, case, budgets, Interpretation::Usual)
}

/// The same with a module that was compiled, written, and read again; its functions are not compiled again. The engine has
/// a key.
pub(super) fn run_kept(
    engine: &Engine,
    module: &Arc<VerifiedModule>,
    case: &Case,
    budgets: &[Budget],
) -> Outcome {
    let compiled = Module::from_verified(engine, Arc::clone(module)).expect(WORKS);
    let bytes = compiled.serialize().expect(WORKS);
    let kept = Module::deserialize_authenticated(engine, bytes).expect(WORKS);
    let outcome = run_module(engine, &kept, case, budgets, Interpretation::Usual);
    assert!(kept.functions().is_empty(), "all functions are kept");
    outcome
}

/// The same, where the engine interprets.
pub(super) fn run_by(
    engine: &Engine,
    module: &Arc<VerifiedModule>,
    case: &Case,
    budgets: &[Budget],
    interpretation: Interpretation,
) -> Outcome {
    let compiled = Module::from_verified(engine, Arc::clone(module)).expect(WORKS);
    run_module(engine, &compiled, case, budgets, interpretation)
}

fn run_module(
    engine: &Engine,
    compiled: &Module,
    case: &Case,
    budgets: &[Budget],
    interpretation: Interpretation,
) -> Outcome {
    let mut store = Store::new(engine, Host::default());
    match interpretation {
        Interpretation::Usual => {}
        Interpretation::ByLoop => store.interpret_by_loop(),
        Interpretation::Traced(trace) => store.set_trace(Some(trace)),
    }
    let is_limited = store.get_fuel().is_ok();
    if is_limited {
        store.set_fuel(case.fuel).expect(WORKS);
        store.data_mut().polls = u64::MAX;
        store.epoch_deadline_callback(host::poll);
    } else {
        // Code may poll, but no poll is due.
        store.set_epoch_deadline(u64::MAX / 2);
    }
    let instance = match instantiate(&mut store, compiled) {
        Ok(instance) => instance,
        Err(error) => {
            let log = store.data().log.clone();
            return Outcome { start: Some(end_of(&error)), calls: Vec::new(), log };
        }
    };
    let mut calls = Vec::with_capacity(budgets.len());
    for &budget in budgets {
        if is_limited {
            store.set_fuel(budget.fuel).expect(WORKS);
            store.data_mut().polls = budget.polls;
        }
        let end = call(&mut store, instance, case);
        calls.push(state(&store, instance, compiled.verified(), end));
    }
    Outcome { start: None, calls, log: store.data().log.clone() }
}

fn call(store: &mut Store<Host>, instance: Instance, case: &Case) -> End {
    let name = expose::name(EntityKind::Func, case.func as usize);
    let func = instance.get_func(&*store, &name).expect(WORKS);
    let ty = func.ty(&*store);
    let params: Vec<Val> =
        ty.params.iter().zip(&case.args).map(|(&ty, &cell)| argument(store, ty, cell)).collect();
    let mut results: Vec<Val> = ty.results.iter().map(|&ty| Val::default_for(ty)).collect();
    match func.call(&mut *store, &params, &mut results) {
        Ok(()) => {
            let known = |value| host::cell(value, &*store, &store.data().heap);
            End::Returned(results.iter().map(known).collect())
        }
        Err(error) => end_of(&error),
    }
}

fn argument(store: &mut Store<Host>, ty: ValType, cell: u128) -> Val {
    match ty {
        ValType::ExternRef if cell != 0 => {
            Val::ExternRef(Some(ExternRef::new(store, cell).expect("one object fits")))
        }
        ValType::Ref if cell != 0 => Rooted::new(store, cell as u64).into(),
        _ => values::val(ty, cell),
    }
}

fn end_of(error: &Error) -> End {
    match error {
        Error::Trap(trap) => {
            let place = place_of(trap.backtrace());
            assert_eq!((trap.func, trap.offset), (place.func, place.offset));
            End::Trapped(trap.code, trap.custom_trap().map(|custom| custom.number), place)
        }
        Error::Host(error) => {
            let place = place_of(error.backtrace());
            let failure: &Failure = error.downcast_ref().expect("the host's own error");
            assert_eq!(place, failure.seen, "what the host function has seen");
            End::HostFailed(place)
        }
        other => End::Refused(other.to_string()),
    }
}

/// The place of the innermost frame, with all of them.
fn place_of(backtrace: &Backtrace) -> Place {
    let frames = backtrace.frames().iter().map(|frame| (frame.func, frame.offset));
    let frames: Vec<_> = frames.collect();
    // Without guest code, the host has called its own function.
    let (func, offset) = frames.first().copied().unwrap_or_default();
    Place { func, offset, backtrace: Some((frames, backtrace.n_frames_omitted())) }
}

/// The observable state after a call.
fn state(store: &Store<Host>, instance: Instance, module: &VerifiedModule, end: End) -> Call {
    let export = |kind, index| {
        instance.get_export(store, &expose::name(kind, index)).expect("it is exported")
    };
    let memory =
        module.memories().first().and_then(|_| export(EntityKind::Memory, 0).into_memory());
    let global = |i| export(EntityKind::Global, i).into_global().expect("a global");
    let table = |i| export(EntityKind::Table, i).into_table().expect("a table");
    let known = |value: &Val| host::cell(value, store, &store.data().heap);
    let elems = |table: Table| {
        let elem = |i| known(&table.get(store, i).expect("inside the table")) != 0;
        (0..table.size(store)).map(elem).collect()
    };
    Call {
        end,
        fuel: store.get_fuel().ok(),
        polls: store.get_fuel().ok().map(|_| store.data().polls),
        memory: memory.map_or(Vec::new(), |memory| memory.data(store).to_vec()),
        globals: (0..module.globals().len()).map(|i| known(&global(i).get(store))).collect(),
        tables: expose::tables(module).map(|i| elems(table(i))).collect(),
    }
}

// --- Imports ---------------------------------------------------------------------------------------

/// Makes an instance, and defines everything that it imports.
fn instantiate(store: &mut Store<Host>, module: &Module) -> Result<Instance, Error> {
    let verified = module.verified().clone();
    let mut imports = Vec::new();
    for import in &verified.module().imports {
        imports.push(match import.kind {
            ImportKind::Func(ty, _) => {
                let ty = verified.module().types[ty as usize].clone();
                Extern::Func(import_func(store, ty)?)
            }
            ImportKind::Table(ty) => {
                Extern::Table(Table::new(&mut *store, ty, Val::default_for(ty.elem))?)
            }
            ImportKind::Memory(ty) => Extern::Memory(Memory::new(&mut *store, ty)?),
            ImportKind::Global(ty) => {
                Extern::Global(Global::new(&mut *store, ty, Val::default_for(ty.ty))?)
            }
        });
    }
    Instance::new(store, module, &imports)
}

/// A host function. One function type uses the typed interface.
fn import_func(store: &mut Store<Host>, ty: FuncType) -> Result<slotvm::Func, Error> {
    use ValType::{I32, I64};
    if ty == FuncType::new([I32, I64], [I64]) {
        return slotvm::Func::wrap(store, |mut caller: Caller<'_, Host>, a: i32, b: i64| {
            let args = [u128::from(a as u32), u128::from(b as u64)];
            host::collect(&mut caller)?;
            let results = caller.data_mut().call(&args, &[I64]);
            let results = results.map_err(|stop| error(stop, &caller))?;
            Ok::<_, Error>(results[0] as i64)
        });
    }
    let call_ty = ty.clone();
    slotvm::Func::new(store, ty, move |mut caller: Caller<'_, Host>, args, results| {
        host::call(&mut caller, &call_ty, args, results, error)
    })
}

/// The failure of a host function.
#[derive(Debug)]
struct Failure {
    /// The place that the function has found itself called from.
    seen: Place,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the host fails")
    }
}

impl std::error::Error for Failure {}

fn error(stop: Stop, caller: &Caller<'_, Host>) -> Error {
    match stop {
        Stop::Fail => Error::host(Failure { seen: place_of(&caller.backtrace()) }),
        Stop::Trap(code) => Trap::new(code, []).into(),
    }
}
