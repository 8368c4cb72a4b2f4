//! The data of a store whose run is compared: the host of the program, and the action at each point.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use slotvm::{
    AsContext, AsContextMut, Caller, Error, ExternType, HostCallObserver, Linker, Module, TrapCode,
    Val,
};
use slotvm_cases::values;
use slotvm_runtime::InstanceId;

use super::points::{Cell, Detail, End, Event, Point, Snapshot, Strides, Trace};
use super::tape::{self, Answer, Failure, Tape};
use vmrun_base::host::Host;

/// Host functions that only read memory: the memory before and after needs no comparison.
const READERS: [&str; 6] = [
    "env print_i32",
    "env print_i64",
    "env print_f64",
    "env print_char",
    "env print_str",
    "env clock_ns",
];

/// The purpose of a run.
#[derive(Debug)]
pub(super) enum Goal {
    /// Makes the trace that other runs are compared with.
    Trace(Trace),
    /// Stops at the first point that differs from a trace.
    Compare(Arc<Trace>),
    /// Stops at a point.
    Reach(usize),
}

/// The data of a store.
pub(super) struct Guest {
    /// The real host, in the run that is recorded.
    host: Option<Host>,
    /// The answers of host functions.
    pub(super) tape: Arc<Tape>,
    /// The purpose of the run.
    pub(super) goal: Goal,
    /// The instance, unless it could not be made.
    pub(super) instance: Option<InstanceId>,
    /// The fuel left at the last point, whether it is compared or not.
    pub(super) fuel_left: u64,
    /// The point at which the run has stopped.
    pub(super) stopped: Option<(usize, Box<Detail>)>,
    /// Whether the fuel left is compared.
    compares_fuel: bool,
    /// Points that have their memory hashed in any case.
    window: Range<usize>,
    n_points: usize,
    strides: Strides,
    /// The number of calls of each host function.
    n_calls: HashMap<String, usize>,
    /// The memory before the call of a host function that is being recorded.
    before: Vec<u8>,
}

impl AsMut<Host> for Guest {
    fn as_mut(&mut self) -> &mut Host {
        self.host.as_mut().expect("only the run that is recorded has real host functions")
    }
}

/// The error that ends a run.
#[derive(Debug, thiserror::Error)]
#[error("the run has reached its goal")]
struct Reached;

impl Guest {
    /// A guest of the real host, whose answers are recorded.
    pub(super) fn recorded(host: Host) -> Guest {
        Guest::new(Some(host), Arc::default(), Goal::Trace(Trace::default()))
    }

    /// A guest that gets the answers of a tape.
    pub(super) fn replayed(tape: Arc<Tape>, goal: Goal) -> Guest {
        Guest::new(None, tape, goal)
    }

    fn new(host: Option<Host>, tape: Arc<Tape>, goal: Goal) -> Guest {
        Guest {
            host,
            tape,
            goal,
            instance: None,
            fuel_left: 0,
            stopped: None,
            compares_fuel: false,
            window: 0..0,
            n_points: 0,
            strides: Strides::default(),
            n_calls: HashMap::new(),
            before: Vec::new(),
        }
    }

    /// Sets whether the fuel left is compared. If not, it only stops programs that run for too long.
    pub(super) fn comparing_fuel(self, compares_fuel: bool) -> Guest {
        Guest { compares_fuel, ..self }
    }

    /// Sets points that have their memory hashed even if it is large.
    pub(super) fn hashing(self, window: Range<usize>) -> Guest {
        Guest { window, ..self }
    }

    /// Removes entries that the tape has recorded only to keep the order.
    pub(super) fn trim_tape(&mut self) {
        Arc::make_mut(&mut self.tape).trim();
    }

    /// The number of earlier calls of a host function; counts this one.
    fn count(&mut self, import: &str) -> usize {
        match self.n_calls.get_mut(import) {
            Some(n) => {
                *n += 1;
                *n - 1
            }
            None => {
                self.n_calls.insert(import.to_owned(), 1);
                0
            }
        }
    }
}

/// Passes a point: adds it to the trace, or compares it.
///
/// # Errors
/// Fails if the run stops here.
pub(super) fn pass(
    mut context: impl AsContextMut<Data = Guest>,
    event: Event,
) -> Result<(), Error> {
    let (point, detail, strides) = look(&context, &event);
    let fuel_left = context.as_context().runtime().fuel().unwrap_or_default();
    let mut context = context.as_context_mut();
    let guest = context.data_mut();
    let index = guest.n_points;
    guest.n_points += 1;
    guest.strides = strides;
    guest.fuel_left = fuel_left;
    if let Goal::Trace(trace) = &mut guest.goal {
        trace.points.push(point);
        trace.overflows |= ends_by(&event, TrapCode::StackOverflow);
        trace.lacks_fuel |= ends_by(&event, TrapCode::OutOfFuel);
    }
    match detail {
        None => Ok(()),
        Some(detail) => {
            guest.stopped = Some((index, detail));
            Err(Error::host(Reached))
        }
    }
}

/// Looks at a store at its next point: what a trace keeps of it, and the details if the run stops here.
fn look(
    context: &impl AsContext<Data = Guest>,
    event: &Event,
) -> (Point, Option<Box<Detail>>, Strides) {
    let context = context.as_context();
    let (guest, store) = (context.data(), context.runtime());
    let memory = guest.instance.and_then(|id| store.instance_memory(id));
    let memory = memory.map_or(&[][..], |memory| store.memory(memory).data());
    let fuel = store.fuel().filter(|_| guest.compares_fuel);
    let state = Snapshot { store, instance: guest.instance, memory, fuel };
    let index = guest.n_points;
    let mut strides = guest.strides.clone();
    let hashes = match &guest.goal {
        Goal::Trace(_) => {
            let is_end = matches!(event, Event::End { .. });
            strides.hashes(index, memory.len()) || is_end || guest.window.contains(&index)
        }
        Goal::Compare(trace) => trace.points.get(index).is_some_and(|point| point.memory.is_some()),
        Goal::Reach(_) => false,
    };
    let memory = hashes.then(|| state.memory_digest());
    let point = Point { digest: state.digest(event), memory };
    let stops = match &guest.goal {
        Goal::Trace(_) => false,
        Goal::Compare(trace) => trace.points.get(index) != Some(&point),
        Goal::Reach(wanted) => index == *wanted,
    };
    (point, stops.then(|| Box::new(state.detail(event.clone()))), strides)
}

/// Whether an event is the end of a call by this trap.
pub(super) fn ends_by(event: &Event, trap: TrapCode) -> bool {
    matches!(event, Event::End { end: End::Trapped { code, .. }, .. } if *code == trap.number())
}

/// Records the calls of real host functions.
pub(super) struct Recorder;

impl HostCallObserver<Guest> for Recorder {
    fn before(
        &self,
        mut caller: Caller<'_, Guest>,
        module: &str,
        name: &str,
        params: &[Val],
    ) -> Result<(), Error> {
        let import = format!("{module} {name}");
        if !READERS.contains(&import.as_str())
            && let Some(memory) = caller.memory()
        {
            let mut before = std::mem::take(&mut caller.data_mut().before);
            before.clear();
            before.extend_from_slice(memory.data(&caller));
            caller.data_mut().before = before;
        }
        pass(&mut caller, Event::Call { import, params: Cell::all(params) })
    }

    fn after(
        &self,
        mut caller: Caller<'_, Guest>,
        module: &str,
        name: &str,
        results: Result<&[Val], &Error>,
    ) {
        let import = format!("{module} {name}");
        let writes = match caller.memory() {
            Some(memory) if !READERS.contains(&import.as_str()) => {
                tape::writes(&caller.data().before, memory.data(&caller))
            }
            _ => Vec::new(),
        };
        let (results, failure) = match results {
            Ok(results) => (Cell::all(results), None),
            Err(error) => (Vec::new(), Some(Failure::of(error))),
        };
        let is_zero = results.iter().all(|cell| *cell == Cell(0));
        let results = if is_zero { Vec::new() } else { results };
        let tape = Arc::make_mut(&mut caller.data_mut().tape);
        tape.record(&import, Answer { results, writes, failure });
    }
}

/// Provides all functions that a module imports, which give the answers of the tape.
///
/// # Errors
/// Fails if two imports have one name and different types.
pub(super) fn replay(linker: &mut Linker<Guest>, module: &Module) -> Result<(), Error> {
    linker.allow_shadowing(true);
    for import in module.imports() {
        let ExternType::Func(ty) = import.ty() else { continue };
        let (name, results) =
            (Arc::new(format!("{} {}", import.module(), import.name())), ty.results.clone());
        linker.func_new(
            import.module(),
            import.name(),
            ty.clone(),
            move |mut caller, params, out| {
                let event = Event::Call { import: name.to_string(), params: Cell::all(params) };
                pass(&mut caller, event)?;
                let answer = next_answer(&mut caller, &name);
                if let Some(memory) = caller.memory() {
                    for (address, bytes) in &answer.writes {
                        // A program that is being reduced may have less memory.
                        let _ = memory.write(&mut caller, *address as usize, bytes);
                    }
                }
                for ((out, cell), &ty) in out.iter_mut().zip(&answer.results).zip(&results) {
                    *out = values::val(ty, cell.0);
                }
                answer.failure.map_or(Ok(()), |failure| Err(failure.error()))
            },
        )?;
    }
    Ok(())
}

/// The answer to the next call of a host function.
fn next_answer(caller: &mut Caller<'_, Guest>, import: &str) -> Answer {
    let guest = caller.data_mut();
    let call = guest.count(import);
    guest.tape.answer(import, call).cloned().unwrap_or_default()
}
