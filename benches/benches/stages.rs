//! Each stage of compilation, in bytecode operations a second, on a few programs and on large functions.
//!
//! `slots` is bytecode to the slot form of the IR, `ssa` is promotion. The stages after them cannot be
//! run alone: `compile` is everything from the verified module to placed code in mode `ssa`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use slotvm::{Module, PassSet, SlotMode};
use slotvm_benches::program_files;
use slotvm_bytecode::{VerifiedModule, decode, encode, verify};
use slotvm_filetests::large::{self, Control, Plan};
use slotvm_ssa::construction::build::{BuildOptions, BuildScratch, build};
use slotvm_ssa::construction::promote::{Scratch, promote};
use slotvm_ssa::ir::Function;
use vmrun::bench::program::{self, engine};

/// The programs, from small ones to those with much code.
const PROGRAMS: [&str; 5] = ["fib_rec", "mandelbrot", "sha256", "json", "locals200"];

/// A compiled input.
struct Input {
    name: String,
    binary: Vec<u8>,
    module: slotvm_bytecode::Module,
    verified: Arc<VerifiedModule>,
    n_ops: u64,
}

impl Input {
    fn new(name: String, binary: Vec<u8>) -> Input {
        let module = decode(&binary).unwrap_or_else(|error| panic!("{name}: {error}"));
        let verified = verify(module.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let bodies = (0..verified.n_funcs()).filter_map(|func| verified.body(func));
        let n_ops = bodies.flat_map(|body| &body.blocks).map(|block| u64::from(block.cost)).sum();
        Input { name, binary, module, verified: Arc::new(verified), n_ops }
    }

    fn slot_forms(&self, scratch: &mut BuildScratch) -> Vec<Function> {
        let funcs = self.verified.n_imported_funcs()..self.verified.n_funcs();
        let options = BuildOptions::default();
        funcs.map(|func| build(&self.verified, func, &options, scratch)).collect()
    }
}

fn inputs() -> Vec<Input> {
    let mut inputs = Vec::new();
    for path in program_files() {
        let name = program::name(&path);
        if PROGRAMS.contains(&name.as_str()) {
            inputs.push(Input::new(name, std::fs::read(path).expect("it is there")));
        }
    }
    for control in Control::ALL {
        let plan = Plan { control, n_ops: 20_000, n_locals: 200, seed: 1 };
        let name = format!("{}_20000", control.name());
        inputs.push(Input::new(name, encode(&large::module(plan))));
    }
    inputs
}

fn stages(c: &mut Criterion) {
    let inputs = inputs();
    let mut stage = |name: &str, bench: &mut dyn FnMut(&mut criterion::Bencher<'_>, &Input)| {
        let mut group = c.benchmark_group(name);
        group.sample_size(20);
        group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(2));
        for input in &inputs {
            group.throughput(Throughput::Elements(input.n_ops));
            group.bench_function(BenchmarkId::from_parameter(&input.name), |b| bench(b, input));
        }
        group.finish();
    };
    stage("decode", &mut |b, input| b.iter(|| decode(black_box(&input.binary))));
    stage("verify", &mut |b, input| {
        b.iter_batched(|| input.module.clone(), verify, BatchSize::LargeInput);
    });
    let mut build_scratch = BuildScratch::default();
    stage("slots", &mut |b, input| {
        b.iter_with_large_drop(|| black_box(input).slot_forms(&mut build_scratch));
    });
    let mut scratch = Scratch::default();
    stage("ssa", &mut |b, input| {
        b.iter_batched(
            || input.slot_forms(&mut BuildScratch::default()),
            |mut functions| {
                for function in &mut functions {
                    promote(function, &mut scratch);
                }
                functions
            },
            BatchSize::LargeInput,
        );
    });
    let engine = engine(SlotMode::Ssa, PassSet::all()).unwrap_or_else(|error| panic!("{error}"));
    stage("compile", &mut |b, input| {
        b.iter_with_large_drop(|| Module::from_verified(&engine, input.verified.clone()));
    });
}

criterion_group!(benches, stages);
criterion_main!(benches);
