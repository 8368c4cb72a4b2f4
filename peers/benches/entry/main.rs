//! Cost of entering and leaving guest code beside wasmtime: calls of the host, calls from the host, instances and
//! traps. Both engines run in one process, on the same modules, with their default configurations, in turns.
//!
//! `cargo bench --bench entry` prints the table; with part of a name as an argument only those rows, and
//! with `--test` everything is done once and nothing is measured.

#[macro_use]
mod side;

use std::time::Instant;

use side::Case;

mod ours {
    use std::ffi::c_void;

    use slotvm::{Error, FuncType, LeafFunc, Rooted};

    side!(slotvm);

    unsafe extern "C" fn add(_: *mut c_void, a: i32, b: i64) -> i64 {
        i64::from(a) + b
    }

    fn start_leaf(engine: &Engine) -> (Store<Data>, Instance) {
        let function = add as unsafe extern "C" fn(*mut c_void, i32, i64) -> i64;
        // SAFETY: it adds.
        let leaf = unsafe { LeafFunc::new(function, std::ptr::null_mut(), 256) }.unwrap();
        let mut linker = Linker::new(engine);
        linker.func_wrap_leaf("host", "add", &leaf).unwrap();
        let module = Module::from_text(engine, side::LEAF_CALLERS).expect("the text is right");
        let mut store = Store::new(engine, Data::default());
        let instance = linker.instantiate(&mut store, &module).unwrap();
        (store, instance)
    }

    /// The functions hold a reference each, which is used after the call. With a zero, the host visits none.
    const DEEP: &str = r#"
        import "host" "visit" func visit(i32)
        export "deep" func deep
        global last: mut ref = ref.null ref
        func deep(n: i32, visits: i32, object: ref) {
            local.get n  i32.eqz  br_if end
            local.get n  i32.const 1  i32.sub  local.get visits  local.get object  call deep
            local.get object  global.set last  return
        end:
            local.get visits  call visit  return
        }"#;

    fn start_deep(engine: &Engine, visits: bool) -> Box<dyn FnMut(u32)> {
        let mut linker = Linker::new(engine);
        let visit = |mut caller: Caller<'_, Data>, visits: i32| {
            let mut n = 0;
            if visits != 0 {
                caller.visit_roots(|root| n += u32::from(*root == 8))?;
            }
            caller.data_mut().n_calls = n;
            Ok::<(), Error>(())
        };
        linker.func_wrap("host", "visit", visit).unwrap();
        let module = Module::from_text(engine, DEEP).expect("the text is right");
        let mut store = Store::new(engine, Data::default());
        let instance = linker.instantiate(&mut store, &module).unwrap();
        let deep =
            instance.get_typed_func::<(i32, i32, Option<Rooted>), ()>(&store, "deep").unwrap();
        let object = Rooted::new(&mut store, 8);
        Box::new(move |n| {
            for _ in 0..n {
                let arguments = (side::FRAMES, i32::from(visits), Some(object));
                deep.call(&mut store, arguments).unwrap();
            }
            let n_expected = if visits { side::FRAMES as u32 } else { 0 };
            assert!(store.data().n_calls >= n_expected);
        })
    }

    fn engine() -> Engine {
        Engine::new(slotvm::Config::new().tier(slotvm::Tier::Jit)).expect("there is native code")
    }

    fn func_type(_: &Engine, params: [ValType; 1], results: [ValType; 1]) -> FuncType {
        FuncType::new(params, results)
    }

    fn fail() -> Result<(), Error> {
        Err(Error::host(crate::Failed))
    }

    fn is_trap(error: &Error) -> bool {
        error.trap_code().is_some()
    }
}

mod theirs {
    use wasmtime::{Error, ExternRef, FuncType, Rooted, Trap};

    side!(wasmtime);

    /// There is nothing like it: an ordinary function of the same type.
    fn start_leaf(engine: &Engine) -> (Store<Data>, Instance) {
        start(engine, side::CALLERS)
    }

    /// Likewise.
    const DEEP: &str = r#"(module
      (import "host" "visit" (func $visit (param i32)))
      (global $last (mut externref) (ref.null extern))
      (func $deep (export "deep") (param i32 i32 externref)
        (if (local.get 0)
          (then
            (call $deep (i32.sub (local.get 0) (i32.const 1)) (local.get 1) (local.get 2))
            (global.set $last (local.get 2)))
          (else (call $visit (local.get 1))))))"#;

    fn start_deep(engine: &Engine, visits: bool) -> Box<dyn FnMut(u32)> {
        let mut linker = Linker::new(engine);
        let visit = |mut caller: Caller<'_, Data>, visits: i32| match visits {
            0 => Ok(()),
            _ => caller.gc(None),
        };
        linker.func_wrap("host", "visit", visit).unwrap();
        let module = module(engine, DEEP);
        let mut store = Store::new(engine, Data::default());
        let instance = linker.instantiate(&mut store, &module).unwrap();
        let deep = instance
            .get_typed_func::<(i32, i32, Option<Rooted<ExternRef>>), ()>(&mut store, "deep")
            .unwrap();
        let object = ExternRef::new(&mut store, 8_i32).unwrap();
        Box::new(move |n| {
            for _ in 0..n {
                let arguments = (side::FRAMES, i32::from(visits), Some(object));
                deep.call(&mut store, arguments).unwrap();
            }
        })
    }

    fn engine() -> Engine {
        Engine::default()
    }

    fn func_type(engine: &Engine, params: [ValType; 1], results: [ValType; 1]) -> FuncType {
        FuncType::new(engine, params, results)
    }

    fn fail() -> Result<(), Error> {
        Err(Error::new(crate::Failed))
    }

    fn is_trap(error: &Error) -> bool {
        error.is::<Trap>()
    }
}

/// Error of a host function.
#[derive(Debug)]
struct Failed;

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the host function fails")
    }
}

impl std::error::Error for Failed {}

/// Number of turns of each engine.
const ROUNDS: usize = 201;

/// Approximate time of one measurement in a round: less than a time slice of the system, so that most rounds are not
/// interrupted.
const TURN_NANOS: f64 = 200_000.0;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let is_test = args.iter().any(|arg| arg == "--test");
    let filters: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let is_wanted =
        |case: &Case| filters.is_empty() || filters.iter().any(|part| case.name.contains(*part));

    let (ours, theirs) = (ours::cases(), theirs::cases());
    if !is_test {
        println!("nanoseconds: the least of {ROUNDS} rounds and their median; ratios of these");
        println!("{:46} {:>18} {:>18} {:>6} {:>6}", "", "slotvm", "wasmtime", "least", "median");
    }
    for (mut ours, mut theirs) in ours.into_iter().zip(theirs) {
        assert_eq!(ours.name, theirs.name);
        if !is_wanted(&ours) {
            continue;
        }
        if is_test {
            (ours.run)(1);
            (theirs.run)(1);
            println!("{} works", ours.name);
            continue;
        }
        let [ours_min, ours_median, theirs_min, theirs_median] = measure(&mut ours, &mut theirs);
        println!(
            "{:46} {ours_min:9.1} {ours_median:8.1} {theirs_min:9.1} {theirs_median:8.1} {:6.2} {:6.2}",
            ours.name,
            ours_min / theirs_min,
            ours_median / theirs_median,
        );
    }
}

/// A measured thing, and its time in each round.
struct Timed<'a> {
    run: &'a mut dyn FnMut(u32),
    n: u32,
    nanos: Vec<f64>,
}

impl<'a> Timed<'a> {
    fn new(run: &'a mut dyn FnMut(u32)) -> Timed<'a> {
        let mut timed = Timed { run, n: 1, nanos: Vec::with_capacity(ROUNDS) };
        loop {
            // The first turns are slow, and any may be interrupted.
            let nanos = (0..9).map(|_| timed.turn()).fold(f64::INFINITY, f64::min);
            if nanos * f64::from(timed.n) > TURN_NANOS / 2.0 {
                return timed;
            }
            timed.n *= 2;
        }
    }

    /// Does it `n` times; the time for one.
    fn turn(&mut self) -> f64 {
        let start = Instant::now();
        (self.run)(self.n);
        start.elapsed().as_nanos() as f64 / f64::from(self.n)
    }

    /// The least time and the median.
    fn least_and_median(mut self) -> [f64; 2] {
        self.nanos.sort_by(f64::total_cmp);
        [self.nanos[0], self.nanos[self.nanos.len() / 2]]
    }
}

/// Ours, least and median, and theirs.
fn measure(ours: &mut Case, theirs: &mut Case) -> [f64; 4] {
    let bases = ours.base.as_mut().zip(theirs.base.as_mut());
    let mut all = vec![Timed::new(&mut ours.run), Timed::new(&mut theirs.run)];
    if let Some((ours, theirs)) = bases {
        all.extend([Timed::new(ours), Timed::new(theirs)]);
    }
    for round in 0..ROUNDS {
        // Whoever comes later finds a slower clock, or other caches.
        let n = all.len();
        for i in 0..n {
            let timed = &mut all[(i + round) % n];
            let nanos = timed.turn();
            timed.nanos.push(nanos);
        }
    }
    let times: Vec<_> = all.into_iter().map(Timed::least_and_median).collect();
    let base = |i: usize| times.get(2 + i).copied().unwrap_or_default();
    let of = |i: usize, j: usize| times[i][j] - base(i)[j];
    [of(0, 0), of(0, 1), of(1, 0), of(1, 1)]
}
