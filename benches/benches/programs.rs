//! Each program in each slot mode, with its `; bench-size:`. Every run has an instance of its own, which
//! is made outside of the measurement. Runs take turns with code at several places, since its time depends on that.

use std::time::Duration;

use criterion::{BatchSize, Criterion, SamplingMode, criterion_group, criterion_main};
use slotvm::{PassSet, SlotMode};
use slotvm_benches::program_files;
use vmrun::bench::program::{Program, engine_at};

/// The places of the code of a program.
const PLACEMENTS: usize = 5;

fn programs(c: &mut Criterion) {
    for path in program_files() {
        let program = Program::load(&path, None).unwrap_or_else(|error| panic!("{error}"));
        let mut group = c.benchmark_group(format!("programs/{}", program.name));
        group.sample_size(10).sampling_mode(SamplingMode::Flat);
        group.warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
        for mode in SlotMode::ALL {
            group.bench_function(mode.name(), |b| {
                let all = PassSet::all();
                let module =
                    |i| engine_at(mode, all, i).and_then(|engine| program.compile(&engine));
                let module = |i| module(i).unwrap_or_else(|error| panic!("{error}"));
                let modules: Vec<_> = (0..PLACEMENTS).map(module).collect();
                let mut next = modules.iter().cycle();
                b.iter_batched_ref(
                    || {
                        let module = next.next().expect("the modules never end");
                        program.start(module).expect("it exports `main`")
                    },
                    |run| run.call().expect("programs end well"),
                    BatchSize::PerIteration,
                );
            });
        }
        group.finish();
    }
}

criterion_group!(benches, programs);
criterion_main!(benches);
