//! Compiling a module of many functions by one thread, and by the threads of pools of several sizes.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use rayon::ThreadPoolBuilder;
use slotvm::{Config, Engine, Module, Tier};
use slotvm_bytecode::{VerifiedModule, text, verify};

const N_FUNCS: usize = 400;

/// Functions of many sizes, with a loop each, that call each other.
fn many_functions() -> VerifiedModule {
    let mut source = String::new();
    for i in 0..N_FUNCS {
        let adds = "local.get n i64.const 3 i64.mul local.get m i64.add local.set n ";
        let adds = adds.repeat(i * 7 % 60);
        let other = (i * 31 + 7) % N_FUNCS;
        writeln!(
            source,
            "func f{i}(n: i64, m: i64) -> i64 {{
               again: {adds} local.get n local.get m call f{other} local.set m
               local.get n i64.const 1 i64.sub local.tee n i64.eqz i32.eqz br_if again
               local.get m return }}"
        )
        .expect("strings take all that is written");
    }
    verify(text::parse(&source).expect("it is text")).expect("it is well-typed")
}

fn parallel(c: &mut Criterion) {
    let module = Arc::new(many_functions());
    let mut group = c.benchmark_group("compile_400_functions");
    group.sample_size(10).measurement_time(Duration::from_secs(5));
    let engine = |parallel| {
        let mut config = Config::new();
        config.tier(Tier::BEST);
        config.verify_passes(false).parallel_compilation(parallel);
        Engine::new(&config).expect("the machine is supported")
    };
    let compile = |engine| Module::from_verified(engine, module.clone()).expect("it is compiled");
    let sequential = engine(false);
    group.bench_function("one_after_the_other", |b| b.iter(|| compile(&sequential)));
    let engine = engine(true);
    for n_threads in [1, 2, 4] {
        let pool = ThreadPoolBuilder::new().num_threads(n_threads).build().expect("threads");
        group.bench_with_input(BenchmarkId::new("threads", n_threads), &pool, |b, pool| {
            b.iter(|| pool.install(|| compile(&engine)));
        });
    }
}

criterion_group!(benches, parallel);
criterion_main!(benches);
