//! Every load and store at every edge: of memories of all sizes, with addresses of all shapes, in all
//! kinds of engines.
//!
//! The interpreter defines what is right: the result, or the trap and its place, and what the memory holds
//! afterwards. A store that traps has written nothing.

mod accesses;
mod bulk;
mod points;

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use slotvm::{
    Config, Engine, Error, Instance, Linker, Memory, MemoryPlan, Module, SlotMode, Store, Tier,
    TrapCode, TypedFunc,
};
use slotvm_bytecode::VerifiedModule;

use accesses::{Access, accesses, module};
use points::{Point, points};

/// Pages of the memories: none, one, and all that there can be. Few of them are touched.
const PAGES: [u64; 3] = [0, 1, 65_536];
const PAGE_BYTES: u64 = 65_536;

/// Outcome of a call: its result, or the trap with its place; and a digest of the memory around.
type Outcome = (Result<i64, (TrapCode, u32, u32)>, u64);

/// A memory of one size in one engine.
struct Guest {
    store: Store<()>,
    instance: Instance,
    memory: Memory,
}

impl Guest {
    fn new(module: &Module, pages: u64) -> Guest {
        let mut store = Store::new(module.engine(), ());
        let instance = Linker::new(module.engine()).instantiate(&mut store, module).unwrap();
        let memory = instance.get_memory(&store, "memory").unwrap();
        assert_eq!(memory.grow(&mut store, pages).unwrap(), 0);
        let mut guest = Guest { store, instance, memory };
        for at in guest.edges() {
            let pattern: Vec<u8> = (at..at + 64).map(|at| (at * 37 + 11) as u8).collect();
            guest.memory.write(&mut guest.store, at as usize, &pattern).unwrap();
        }
        guest
    }

    fn bytes(&self) -> u64 {
        self.memory.data_size(&self.store) as u64
    }

    /// Positions of 64 bytes with a pattern.
    fn edges(&self) -> Vec<u64> {
        let bytes = self.bytes();
        let starts = [0, (1 << 31) - 32, bytes.saturating_sub(64)];
        starts.into_iter().filter(|start| start + 64 <= bytes).collect()
    }

    fn func(&self, name: &str) -> TypedFunc<(i32, i32, i64), i64> {
        self.instance.get_typed_func(&self.store, name).unwrap()
    }

    fn call(&mut self, func: &TypedFunc<(i32, i32, i64), i64>, point: &Point) -> Outcome {
        let args = (point.x as i32, point.base as i32, point.value());
        let end = func.call(&mut self.store, args).map_err(|error| match error {
            Error::Trap(trap) => (trap.code, trap.func, trap.offset),
            error => panic!("{error}"),
        });
        (end, self.digest(point.start.saturating_sub(8), point.end + 8))
    }

    /// A digest of a part of the memory, or of its end if the part lies beyond.
    fn digest(&self, start: u64, end: u64) -> u64 {
        let bytes = self.bytes();
        let end = end.min(bytes);
        let start = start.min(end.saturating_sub(16));
        let mut hasher = DefaultHasher::new();
        self.memory.data(&self.store)[start as usize..end as usize].hash(&mut hasher);
        hasher.finish()
    }

    /// A digest of all that the calls can have written.
    fn digest_of_all(&self) -> Vec<u64> {
        let around = |at: u64| self.digest(at.saturating_sub(PAGE_BYTES), at + PAGE_BYTES);
        [0, 1 << 31, 1 << 32].map(around).to_vec()
    }
}

/// The points of each memory, by function.
fn all_points(accesses: &[Access]) -> Vec<Vec<Vec<Point>>> {
    let of_memory = |bytes| accesses.iter().map(|access| points(access, bytes)).collect::<Vec<_>>();
    PAGES.into_iter().map(|pages| of_memory(pages * PAGE_BYTES)).collect()
}

/// All outcomes in one engine, in the order of the points, and what the memories hold in the end.
fn run(
    config: &Config,
    verified: &Arc<VerifiedModule>,
    accesses: &[Access],
    points: &[Vec<Vec<Point>>],
) -> (Vec<Outcome>, Vec<Vec<u64>>) {
    let engine = Engine::new(config).unwrap();
    let module = Module::from_verified(&engine, verified.clone()).unwrap();
    let (mut outcomes, mut left) = (Vec::new(), Vec::new());
    for (pages, points) in PAGES.into_iter().zip(points) {
        let mut guest = Guest::new(&module, pages);
        for (access, points) in accesses.iter().zip(points) {
            let func = guest.func(&access.name());
            outcomes.extend(points.iter().map(|point| guest.call(&func, point)));
        }
        left.push(guest.digest_of_all());
    }
    (outcomes, left)
}

/// Native code in modes with and without the optimiser: with guard pages, with checks of accesses, and
/// without signals.
fn native_configs() -> Vec<(String, Config)> {
    let mut configs = Vec::new();
    for slots in [SlotMode::Ssa, SlotMode::Memory] {
        let mut guarded = Config::new();
        guarded.tier(Tier::BEST).slots(slots);
        let mut checked = guarded.clone();
        checked.memory(Some(MemoryPlan::CHECKED));
        let mut without_signals = guarded.clone();
        without_signals.signals_based_traps(false);
        configs.push((format!("{slots}, guard pages"), guarded));
        configs.push((format!("{slots}, checked"), checked));
        configs.push((format!("{slots}, without signals"), without_signals));
    }
    configs
}

#[test]
#[cfg_attr(not(feature = "jit"), ignore = "needs native code")]
fn accesses_do_what_the_interpreter_does() {
    let accesses = accesses();
    let verified = Arc::new(module(&accesses));
    let points = all_points(&accesses);
    let mut interpreter = Config::new();
    interpreter.tier(Tier::Interpreter);
    let (expected, left) = run(&interpreter, &verified, &accesses, &points);
    std::thread::scope(|scope| {
        for (name, config) in native_configs() {
            let (accesses, points, verified) = (&accesses, &points, &verified);
            let (expected, left) = (&expected, &left);
            scope.spawn(move || {
                let (found, found_left) = run(&config, verified, accesses, points);
                assert_eq!(found.len(), expected.len());
                let calls = points.iter().flat_map(|of_memory| accesses.iter().zip(of_memory));
                let calls =
                    calls.flat_map(|(access, points)| points.iter().map(move |p| (access, p)));
                for ((call, found), expected) in calls.zip(&found).zip(expected) {
                    assert_eq!(found, expected, "{name}: {call:?}");
                }
                assert_eq!(&found_left, left, "{name}: memory at the end");
            });
        }
    });
}

/// The interpreter traps exactly where an access does not fit, so what is compared with it is right; and
/// there are as many cases of each kind as there should be.
#[test]
fn the_cases_lie_on_both_sides_of_every_edge() {
    let accesses = accesses();
    // Loads and stores, plain, and indexed with four scales, and those of vectors; shapes; offsets.
    assert_eq!(accesses.len(), (23 * (1 + 4) + 22) * 5 * 4);
    let verified = Arc::new(module(&accesses));
    let points = all_points(&accesses);
    let mut interpreter = Config::new();
    interpreter.tier(Tier::Interpreter);
    let (outcomes, _) = run(&interpreter, &verified, &accesses, &points);
    let mut outcomes = outcomes.iter();
    for (pages, points) in PAGES.into_iter().zip(&points) {
        let bytes = pages * PAGE_BYTES;
        let (mut n_inside, mut n_last, mut n_straddling, mut n_outside) = (0, 0, 0, 0);
        for (access, points) in accesses.iter().zip(points) {
            for point in points {
                let (end, _) = outcomes.next().unwrap();
                let fits = point.end <= bytes;
                assert_eq!(end.is_ok(), fits, "{access:?} {point:?} {end:?}");
                match end {
                    Ok(_) => n_inside += 1,
                    Err((code, ..)) => assert_eq!(*code, TrapCode::MemoryOutOfBounds),
                }
                n_last += usize::from(point.end == bytes);
                n_straddling += usize::from(point.start < bytes && point.end > bytes);
                n_outside += usize::from(point.start >= bytes);
            }
        }
        println!(
            "{pages} pages: {n_inside} inside, {n_last} of them up to the last byte, {n_straddling} straddling, {n_outside} outside"
        );
        if pages == 0 {
            assert_eq!((n_inside, n_last, n_straddling), (0, 0, 0));
        } else {
            assert!(n_inside > 5_000 && n_last > 2_000 && n_straddling > 2_000);
        }
        assert!(n_outside > 10_000);
    }
}
