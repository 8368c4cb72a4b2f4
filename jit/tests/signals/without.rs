//! Engines without signals: they leave the handlers of the process alone, and their code never faults.
//! And what raises no signal in any engine.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use slotvm::{
    Config, Engine, Error, Instance, Linker, MemoryPlan, Module, SlotMode, Store, Tier, Trap,
    TrapCode,
};

use crate::check_in_child;
use crate::guest::Guest;

const SIGNALS: [libc::c_int; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE];

/// Functions that trap when they are called with 0, each in a way of its own, and return when they are
/// called with 1.
const SOURCE: &str = r#"
    import "env" "host" func host(i32) -> i32
    memory mem 1 1
    table t funcref 4 4
    elem e t at i32.const 1 func other, itself
    frame_stack 1024 64
    global sink: mut i32 = i32.const 0
    func other(a: i64) -> i64 { local.get a return }
    func itself(n: i32) -> i32 { local.get n return }
    export "unreachable" func f.unreachable
    func f.unreachable(n: i32) -> i32 { local.get n br_if on unreachable on: local.get n return }
    export "custom" func f.custom
    func f.custom(n: i32) -> i32 { local.get n br_if on trap 7 on: local.get n return }
    export "load" func f.load
    func f.load(n: i32) -> i32 { local.get n i32.eqz i32.const -4 i32.mul i32.load 65532 return }
    export "store" func f.store
    func f.store(n: i32) -> i32 {
      local.get n i32.const 1 i32.sub i64.const 5 i64.store 65528 local.get n return
    }
    export "fill" func f.fill
    func f.fill(n: i32) -> i32 {
      i32.const 0 local.get n i32.const 65537 local.get n i32.sub memory.fill local.get n return
    }
    export "table" func f.table
    func f.table(n: i32) -> i32 {
      local.get n i32.const 1 i32.sub table.get t ref.is_null return
    }
    export "null" func f.null
    func f.null(n: i32) -> i32 {
      local.get n local.get n i32.const 1 i32.shl call_indirect (i32) -> i32, t return
    }
    export "signature" func f.signature
    func f.signature(n: i32) -> i32 {
      local.get n local.get n i32.const 1 i32.add call_indirect (i32) -> i32, t return
    }
    export "overflow" func f.overflow
    func f.overflow(n: i32) -> i32 {
      i32.const -2147483648 local.get n i32.const 1 i32.shl i32.const 1 i32.sub i32.div_s return
    }
    export "range" func f.range
    func f.range(n: i32) -> i32 {
      local.get n f64.convert_i32_s f64.const 1.0 f64.sub f64.const 1e30 f64.mul
      i32.trunc_f64_u return
    }
    export "zero" func f.zero
    func f.zero(n: i32) -> i32 { i32.const 7 local.get n i32.rem_u return }
    export "nan" func f.nan
    func f.nan(n: i32) -> i32 {
      f32.const 0.0 local.get n f32.convert_i32_s f32.div i64.trunc_f32_s i32.wrap_i64 return
    }
    export "deep" func f.deep
    func f.deep(n: i32) -> i32 {
      local.get n br_if on
      local.get n call f.deep i32.const 1 i32.add return
    on:
      local.get n return
    }
    export "frames" func f.frames
    func f.frames(n: i32) -> i32 {
      local a: i64
      local.addr a global.set sink
      local.get n br_if on
      local.get n call f.frames return
    on:
      local.get n return
    }
    export "fuel" func f.fuel
    func f.fuel(n: i32) -> i32 {
    again:
      local.get n i32.eqz br_if again
      local.get n return
    }
    export "host" func f.host
    func f.host(n: i32) -> i32 { local.get n call host return }
    "#;

/// Traps of the functions.
const TRAPS: [(&str, TrapCode); 16] = [
    ("unreachable", TrapCode::Unreachable),
    ("custom", TrapCode::Custom),
    ("load", TrapCode::MemoryOutOfBounds),
    ("store", TrapCode::MemoryOutOfBounds),
    ("fill", TrapCode::MemoryOutOfBounds),
    ("table", TrapCode::TableOutOfBounds),
    ("null", TrapCode::IndirectCallToNull),
    ("signature", TrapCode::BadSignature),
    ("overflow", TrapCode::IntegerOverflow),
    ("range", TrapCode::IntegerOverflow),
    ("zero", TrapCode::IntegerDivisionByZero),
    ("nan", TrapCode::BadConversionToInteger),
    ("deep", TrapCode::StackOverflow),
    ("frames", TrapCode::FrameStackOverflow),
    ("fuel", TrapCode::OutOfFuel),
    ("host", TrapCode::Unreachable),
];

/// Returns the process's disposition of each signal.
fn dispositions() -> Vec<(usize, libc::c_int)> {
    let of = |signal| {
        // SAFETY: only asks.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            assert_eq!(libc::sigaction(signal, std::ptr::null(), &mut action), 0);
            (action.sa_sigaction, action.sa_flags)
        }
    };
    SIGNALS.into_iter().map(of).collect()
}

extern "C" fn give_up(signal: libc::c_int) {
    // SAFETY: ends the process, which a handler may.
    unsafe { libc::_exit(100 + signal) }
}

/// Makes each of the signals end the process, with its number and 100 as the exit code.
fn give_up_on_signals() {
    for signal in SIGNALS {
        // SAFETY: the handler has one parameter, and does what a handler may.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = give_up as *const () as usize;
            action.sa_flags = libc::SA_ONSTACK;
            assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
        }
    }
}

fn instance(config: &Config) -> (Store<()>, Instance) {
    let engine = Engine::new(config).unwrap();
    let mut linker = Linker::new(&engine);
    let host = |n: i32| match n {
        0 => Err(Error::from(Trap::new(TrapCode::Unreachable, []))),
        2 => Err(Error::host("the host fails")),
        3 => panic!("the host panics"),
        n => Ok(n),
    };
    linker.func_wrap("env", "host", host).unwrap();
    let mut store = Store::new(&engine, ());
    let module = Module::from_text(&engine, SOURCE).unwrap();
    let instance = linker.instantiate(&mut store, &module).unwrap();
    (store, instance)
}

/// Configurations without signals: all slot modes, with and without address space for guard pages.
fn configs() -> Vec<Config> {
    let mut configs = Vec::new();
    for slots in SlotMode::ALL {
        for plan in [None, Some(MemoryPlan::PLAIN)] {
            let mut config = Config::new();
            config.tier(Tier::BEST);
            config.slots(slots).memory(plan).consume_fuel(true).signals_based_traps(false);
            config.epoch_interruption(true);
            configs.push(config);
        }
    }
    configs
}

/// Traps in every way there is, and returns from every function.
fn trap_in_every_way(config: &Config) {
    let (mut store, instance) = instance(config);
    store.set_epoch_deadline(1);
    for (name, code) in TRAPS {
        let func = instance.get_typed_func::<i32, i32>(&store, name).unwrap();
        for _ in 0..2 {
            store.set_fuel(1_000_000).unwrap();
            let error = func.call(&mut store, 0).unwrap_err();
            assert_eq!(error.trap_code(), Some(code), "{name}: {error}");
            store.set_fuel(1_000_000).unwrap();
            assert!(func.call(&mut store, 1).is_ok(), "{name}");
        }
    }
    store.set_epoch_deadline(0);
    let endless = instance.get_typed_func::<i32, i32>(&store, "fuel").unwrap();
    let error = endless.call(&mut store, 0).unwrap_err();
    assert_eq!(error.trap_code(), Some(TrapCode::Interrupted), "{error}");
    store.set_epoch_deadline(1);
    let host = instance.get_typed_func::<i32, i32>(&store, "host").unwrap();
    assert_eq!(host.call(&mut store, 2).unwrap_err().to_string(), "the host fails");
    let panic = catch_unwind(AssertUnwindSafe(|| host.call(&mut store, 3))).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"the host panics"));
    assert_eq!(host.call(&mut store, 1).unwrap(), 1);
}

#[test]
fn every_trap_is_among_those_that_are_tried() {
    let mut tried: BTreeSet<TrapCode> = TRAPS.into_iter().map(|(_, code)| code).collect();
    // What the host makes of a function that would end for lack of fuel.
    tried.insert(TrapCode::Interrupted);
    assert_eq!(tried, BTreeSet::from(TrapCode::ALL));
}

#[test]
fn no_handler_is_installed_without_signals() {
    check_in_child("without::no_handler_is_installed_without_signals", || {
        let before = dispositions();
        for config in configs() {
            trap_in_every_way(&config);
            assert_eq!(dispositions(), before, "{config:?}");
        }
        // An engine with signals installs them all.
        Guest::new().trap(8);
        for (before, after) in before.into_iter().zip(dispositions()) {
            assert_ne!(before, after);
        }
    });
}

#[test]
fn nothing_faults_without_signals() {
    check_in_child("without::nothing_faults_without_signals", || {
        give_up_on_signals();
        for config in configs() {
            trap_in_every_way(&config);
        }
    });
}

/// Engines of both kinds have code in one process, and each traps in its own way.
#[test]
fn engines_with_and_without_signals_live_together() {
    check_in_child("without::engines_with_and_without_signals_live_together", || {
        let mut guest = Guest::new();
        for config in configs() {
            trap_in_every_way(&config);
            guest.trap(8);
            guest.trap_in_other_ways();
        }
    });
}

#[test]
fn host_functions_that_fail_raise_no_signal_in_any_engine() {
    check_in_child("without::host_functions_that_fail_raise_no_signal_in_any_engine", || {
        let mut guest = Guest::with_host(|n: i32| match n {
            0 => Err(Error::host("failed")),
            1 => panic!("by the host"),
            n => Ok(n),
        });
        // These take the place of the engine's handlers.
        give_up_on_signals();
        for _ in 0..3 {
            assert_eq!(guest.call("through", 0).unwrap_err().to_string(), "failed");
            let panic = catch_unwind(AssertUnwindSafe(|| guest.call("through", 1))).unwrap_err();
            assert_eq!(panic.downcast_ref(), Some(&"by the host"));
            assert_eq!(guest.call("through", 2).unwrap(), 2);
        }
    });
}
