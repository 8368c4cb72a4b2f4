//! Host functions, which behave the same in all engines.
//!
//! Functions of any type can be imported. Their behaviour depends only on their arguments.

use slotvm::{
    AsContext, AsContextMut, Caller, Error, Rooted, StoreContextMut, UpdateDeadline, Val,
};
use slotvm_bytecode::{FuncType, TrapCode, ValType};

use slotvm_cases::values;

use super::heap::Heap;

/// Host functions fail if their first argument is this number.
const FAILS_AT: u128 = 13;
/// Host functions trap if their first argument is this number.
const TRAPS_AT: u128 = 12;
/// Everything moves at one of so many polls.
const POLLS_PER_MOVE: u64 = 5;
/// The trap of host functions.
const TRAP: TrapCode = TrapCode::IntegerOverflow;

/// The way in which a host function stops a program.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Fails with an error.
    Fail,
    /// Fails with a trap.
    Trap(TrapCode),
}

/// The state of host functions.
#[derive(Debug, Default)]
pub(super) struct Host {
    /// The arguments of all calls.
    pub(super) log: Vec<u128>,
    /// The number of polls that let the program continue.
    pub(super) polls: u64,
    pub(super) heap: Heap,
}

impl Host {
    /// Whether a program continues after a poll. Every poll asks.
    fn poll(&mut self) -> UpdateDeadline {
        match self.polls.checked_sub(1) {
            Some(polls) => {
                self.polls = polls;
                UpdateDeadline::Continue(0)
            }
            None => UpdateDeadline::Interrupt,
        }
    }

    /// Calls an imported function with arguments as cells, references being null or not, or what the heap knows of them.
    /// Results of the type are those of new objects.
    pub(super) fn call(&mut self, args: &[u128], results: &[ValType]) -> Result<Vec<u128>, Stop> {
        self.log.push(args.len() as u128);
        self.log.extend(args);
        match args.first() {
            Some(&FAILS_AT) => return Err(Stop::Fail),
            Some(&TRAPS_AT) => return Err(Stop::Trap(TRAP)),
            _ => {}
        }
        let mut hash = 7;
        for &arg in args {
            for half in [arg as u64, (arg >> 64) as u64] {
                hash = (hash ^ half).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
            }
        }
        let results = (0..).zip(results);
        let result = |(i, &ty)| match (ty, u64::rotate_left(hash, i)) {
            (ValType::Ref, number) => self.heap.alloc(number).into(),
            (ty, bits) => result(ty, bits),
        };
        Ok(results.map(result).collect())
    }
}

fn result(ty: ValType, bits: u64) -> u128 {
    match ty {
        ValType::I32 => (bits as u32).into(),
        ValType::I64 => bits.into(),
        ValType::F32 => (bits as i8 as f32 / 4.0).to_bits().into(),
        ValType::F64 => (bits as i16 as f64 / 16.0).to_bits().into(),
        ValType::V128 => u128::from(bits) | u128::from(bits.swap_bytes()) << 64,
        ValType::FuncRef | ValType::ExternRef | ValType::Ref => 0,
    }
}

/// Calls an imported function with values of an engine.
pub(super) fn call(
    caller: &mut Caller<'_, Host>,
    ty: &FuncType,
    args: &[Val],
    results: &mut [Val],
    error: impl Fn(Stop, &Caller<'_, Host>) -> Error,
) -> Result<(), Error> {
    collect(caller)?;
    let args: Vec<u128> = args.iter().map(|arg| cell(arg, &*caller, &caller.data().heap)).collect();
    let cells = caller.data_mut().call(&args, &ty.results);
    let cells = cells.map_err(|stop| error(stop, caller))?;
    for ((result, cell), &ty) in results.iter_mut().zip(cells).zip(&ty.results) {
        *result = match ty {
            ValType::Ref => Rooted::new(&mut *caller, cell as u64).into(),
            _ => values::val(ty, cell),
        };
    }
    // Handles are roots as well.
    collect(caller)
}

/// Moves all objects.
pub(super) fn collect(context: &mut impl AsContextMut<Data = Host>) -> Result<(), Error> {
    let mut context = context.as_context_mut();
    let mut heap = std::mem::take(&mut context.data_mut().heap);
    let mut visited = Ok(());
    heap.collect(|visit| visited = context.visit_roots(visit));
    context.data_mut().heap = heap;
    visited
}

/// Decides at a poll, and moves all objects at some of them: to visit many frames at each poll would take long.
pub(super) fn poll(mut context: StoreContextMut<'_, Host>) -> Result<UpdateDeadline, Error> {
    let host = context.data_mut();
    let decision = host.poll();
    if host.polls.is_multiple_of(POLLS_PER_MOVE) && !host.heap.is_empty() {
        collect(&mut context)?;
    }
    Ok(decision)
}

/// The cell of a value, as in [`Host::call`].
pub(super) fn cell(value: &Val, store: impl AsContext, heap: &Heap) -> u128 {
    match value {
        Val::Ref(Some(reference)) => heap.known(reference.bits(store)),
        other => values::cell(other),
    }
}
