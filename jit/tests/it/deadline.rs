//! The thread that watches the time of calls: when it is there, in the children of forks, and with many
//! threads that run and compile.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use slotvm::{Config, Engine, Instance, Module, SlotMode, Store, Tier, TrapCode, TypedFunc};

use crate::alone::alone;
use crate::fork::in_both;
use crate::support::{n_threads, threads_become};

const SPIN: &str = "export \"spin\" func spin\nfunc spin() { again: br again }";

fn spinning(engine: &Engine) -> (Store<()>, TypedFunc<(), ()>) {
    let module = Module::from_text(engine, SPIN).unwrap();
    let mut store = Store::new(engine, ());
    let instance = Instance::new(&mut store, &module, &[]).unwrap();
    let spin = instance.get_typed_func(&store, "spin").unwrap();
    (store, spin)
}

fn is_interrupted(store: &mut Store<()>, spin: TypedFunc<(), ()>) -> bool {
    spin.call(store, ()).unwrap_err().trap_code() == Some(TrapCode::Interrupted)
}

fn engine(tier: Tier) -> Engine {
    Engine::new(Config::new().tier(tier).timeout(Some(Duration::from_millis(3)))).unwrap()
}

/// The threads of this process that watch the time.
fn n_tickers() -> usize {
    n_threads("slotvm-ticker")
}

/// Waits until this number of threads watch the time: one that has been joined may still be listed.
fn tickers_become(n: usize) -> bool {
    threads_become("slotvm-ticker", n)
}

#[test]
fn the_thread_starts_with_a_call_and_ends_with_engine_and_stores() {
    alone("deadline::the_thread_starts_with_a_call_and_ends_with_engine_and_stores", || {
        for &tier in Tier::ALL {
            let engine = engine(tier);
            let (mut store, spin) = spinning(&engine);
            assert_eq!(n_tickers(), 0);
            assert!(is_interrupted(&mut store, spin));
            let (mut other, other_spin) = spinning(&engine);
            assert!(is_interrupted(&mut other, other_spin));
            assert_eq!(n_tickers(), 1);
            drop(other);
            drop(engine);
            assert!(is_interrupted(&mut store, spin));
            assert_eq!(n_tickers(), 1);
            drop(store);
            assert!(tickers_become(0));
        }
    });
}

#[test]
fn the_child_of_a_fork_watches_the_time_too() {
    alone("deadline::the_child_of_a_fork_watches_the_time_too", || {
        for &tier in Tier::ALL {
            let engine = engine(tier);
            let (mut store, spin) = spinning(&engine);
            assert!(is_interrupted(&mut store, spin));
            // SAFETY: the child runs what only this thread uses, until it exits.
            let child = unsafe { libc::fork() };
            in_both(child, || {
                assert!(is_interrupted(&mut store, spin) && is_interrupted(&mut store, spin));
                let (mut other, spin) = spinning(&engine);
                assert!(is_interrupted(&mut other, spin));
                assert_eq!(n_tickers(), 1);
                drop((store, other, engine));
                assert!(tickers_become(0));
            });
        }
    });
}

/// Takes some ten thousand turns, and copies memory.
const WORK: &str = r#"
    memory m 2
    export "work" func work
    func work(n: i64) -> i64 {
      local sum: i64, i: i64
    again:
      local.get sum local.get i local.get i i64.mul i64.xor i64.const 3 i64.rotl local.set sum
      local.get i i64.const 1 i64.add local.tee i local.get n i64.lt_u br_if again
      i32.const 8 local.get sum i64.store
      i32.const 16 i32.const 8 i32.const 100000 memory.copy
      i32.const 16 i64.load return }"#;

/// Result of `work`.
fn work(n: u64) -> u64 {
    (0..n).fold(0_u64, |sum, i| (sum ^ i.wrapping_mul(i)).rotate_left(3))
}

/// 16 threads compile the same module, and run what they have compiled and what all of them share, with
/// times of random length. Takes a minute with `SLOTVM_FULL=1`, otherwise a number of rounds.
#[test]
fn threads_run_and_compile_while_deadlines_pass() {
    const N_THREADS: u64 = 16;
    let is_full = std::env::var("SLOTVM_FULL").as_deref() == Ok("1");
    let end = Instant::now() + Duration::from_secs(60);
    let engine = |tier, slots| {
        let mut config = Config::new();
        config.tier(tier).slots(slots).timeout(Some(Duration::from_secs(3600)));
        Engine::new(&config).unwrap()
    };
    let native = [SlotMode::Ssa, SlotMode::Memory].map(|slots| engine(Tier::BEST, slots));
    let interpreter = engine(Tier::Interpreter, SlotMode::default());
    let engines: Vec<Engine> = native.into_iter().chain([interpreter]).collect();
    let shared: Vec<Module> =
        engines.iter().map(|engine| Module::from_text(engine, WORK).unwrap()).collect();
    let (n_returned, n_interrupted) = (AtomicU64::new(0), AtomicU64::new(0));
    let thread = |number: u64| {
        let mut random = number + 1;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % below
        };
        for round in 0.. {
            if if is_full { Instant::now() >= end } else { round >= 20 } {
                break;
            }
            let which = next(engines.len() as u64) as usize;
            let own = Module::from_text(&engines[which], WORK).unwrap();
            for module in [&own, &shared[which]] {
                let mut store = Store::new(&engines[which], ());
                let instance = Instance::new(&mut store, module, &[]).unwrap();
                let run = instance.get_typed_func::<u64, u64>(&store, "work").unwrap();
                for _ in 0..10 {
                    let n = next(20_000);
                    // No time, time enough, or about as much as it takes.
                    let timeout = match next(8) {
                        0 => Duration::ZERO,
                        1 => Duration::from_secs(3600),
                        _ => Duration::from_nanos(1 + next(n * 20 + 1000)),
                    };
                    store.set_timeout(Some(timeout)).unwrap();
                    match run.call(&mut store, n) {
                        Ok(result) => {
                            assert_eq!(result, work(n.max(1)));
                            n_returned.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(error) => {
                            assert_eq!(error.trap_code(), Some(TrapCode::Interrupted));
                            n_interrupted.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    store.set_timeout(None).unwrap();
                    assert_eq!(run.call(&mut store, 5).unwrap(), work(5));
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for number in 0..N_THREADS {
            let thread = &thread;
            scope.spawn(move || thread(number));
        }
    });
    let (n_returned, n_interrupted) = (n_returned.into_inner(), n_interrupted.into_inner());
    println!("{n_returned} calls returned, {n_interrupted} were interrupted");
    assert!(n_returned > 0 && n_interrupted > 0);
}
