//! Calls between host and guest, calls inside the guest, and what a trap costs until the host has its
//! error, in native code and in the interpreter.
//!
//! Calls inside the guest and from it are measured by a loop of [`CALLS`] of them; the throughput is
//! that of calls.

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use slotvm::{Caller, Config, Engine, Func, Instance, Linker, Module, Store, Tier, TrapCode, Val};

/// Calls of one loop.
const CALLS: i32 = 10_000;

const GUEST: &str = r#"
import "env" "double" func double(i32) -> i32
memory mem 1
table callees funcref 2 2
elem callees_funcs callees at i32.const 0 func triple, negate

export "triple" func triple
export "call_direct" func call_direct
export "call_indirect" func call_indirect
export "call_host" func call_host
export "stop" func stop
export "divide" func divide
export "load" func load

func triple(x: i32) -> i32 {
  local.get x  i32.const 3  i32.mul  return
}

func negate(x: i32) -> i32 {
  i32.const 0  local.get x  i32.sub  return
}

func call_direct(n: i32) -> i32 {
  local sum: i32
next:
  local.get sum  local.get n  call triple  i32.add  local.set sum
  local.get n  i32.const 1  i32.sub  local.tee n  br_if next
  local.get sum  return
}

func call_indirect(n: i32) -> i32 {
  local sum: i32
next:
  local.get sum
  local.get n  local.get n  i32.const 1  i32.and  call_indirect (i32) -> i32, callees
  i32.add  local.set sum
  local.get n  i32.const 1  i32.sub  local.tee n  br_if next
  local.get sum  return
}

func call_host(n: i32) -> i32 {
  local sum: i32
next:
  local.get sum  local.get n  call double  i32.add  local.set sum
  local.get n  i32.const 1  i32.sub  local.tee n  br_if next
  local.get sum  return
}

func stop(x: i32) -> i32 {
  unreachable
}

func divide(x: i32) -> i32 {
  i32.const 1  local.get x  i32.div_s  return
}

func load(x: i32) -> i32 {
  i32.const -1  local.get x  i32.sub  i32.load  return
}
"#;

/// The guest, running.
struct Guest {
    store: Store<()>,
    instance: Instance,
}

impl Guest {
    fn new(tier: Tier) -> Guest {
        let engine = Engine::new(Config::new().tier(tier)).expect("there is native code");
        let module =
            Module::from_text(&engine, GUEST).unwrap_or_else(|error| panic!("the guest: {error}"));
        let mut linker = Linker::new(&engine);
        linker
            .func_wrap("env", "double", |_: Caller<'_, ()>, x: i32| x.wrapping_mul(2))
            .expect("there is no other one");
        let mut store = Store::new(&engine, ());
        let instance = linker.instantiate(&mut store, &module).expect("its import is defined");
        Guest { store, instance }
    }

    fn func(&self, name: &str) -> Func {
        self.instance.get_func(&self.store, name).expect("it is exported")
    }

    /// Calls an exported function again and again.
    fn bench(&mut self, group: &mut BenchmarkGroup<'_, WallTime>, label: &str, name: &str, n: i32) {
        let func = self.instance.get_typed_func::<i32, i32>(&self.store, name).expect("its type");
        group.throughput(Throughput::Elements(n as u64));
        group.bench_function(label, |b| b.iter(|| func.call(&mut self.store, black_box(n))));
    }

    /// Calls an exported function that traps with argument 0.
    fn bench_trap(
        &mut self,
        group: &mut BenchmarkGroup<'_, WallTime>,
        name: &str,
        expected: TrapCode,
    ) {
        let func = self.instance.get_typed_func::<i32, i32>(&self.store, name).expect("its type");
        let error = func.call(&mut self.store, 0).expect_err("it traps");
        assert_eq!(error.trap_code(), Some(expected));
        group.throughput(Throughput::Elements(1));
        group.bench_function(format!("trap to error: {expected}"), |b| {
            b.iter(|| func.call(&mut self.store, black_box(0)));
        });
    }
}

fn calls(c: &mut Criterion) {
    for &tier in Tier::ALL {
        let mut group = c.benchmark_group(format!("calls/{tier}"));
        group.sample_size(20);
        group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
        let mut guest = Guest::new(tier);
        guest.bench(&mut group, "host to guest, typed", "triple", 1);
        let (triple, mut results) = (guest.func("triple"), [Val::I32(0)]);
        group.bench_function("host to guest, untyped", |b| {
            b.iter(|| triple.call(&mut guest.store, &[black_box(Val::I32(1))], &mut results));
        });
        guest.bench(&mut group, "guest to host", "call_host", CALLS);
        guest.bench(&mut group, "guest to guest, direct", "call_direct", CALLS);
        guest.bench(&mut group, "guest to guest, indirect", "call_indirect", CALLS);
        guest.bench_trap(&mut group, "stop", TrapCode::Unreachable);
        guest.bench_trap(&mut group, "divide", TrapCode::IntegerDivisionByZero);
        guest.bench_trap(&mut group, "load", TrapCode::MemoryOutOfBounds);
        group.finish();
    }
}

criterion_group!(benches, calls);
criterion_main!(benches);
