//! Each program in each slot mode, with its `; bench-size:`. Every run has an instance of its own, which
//! is made outside of the measurement.

use std::time::Duration;

use criterion::{BatchSize, Criterion, SamplingMode, criterion_group, criterion_main};
use slotvm::{PassSet, SlotMode};
use slotvm_benches::program_files;
use vmrun::bench::program::{Program, engine};

fn programs(c: &mut Criterion) {
    for path in program_files() {
        let program = Program::load(&path, None).unwrap_or_else(|error| panic!("{error}"));
        let mut group = c.benchmark_group(format!("programs/{}", program.name));
        group.sample_size(10).sampling_mode(SamplingMode::Flat);
        group.warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
        for mode in SlotMode::ALL {
            group.bench_function(mode.name(), |b| {
                let module =
                    engine(mode, PassSet::all()).and_then(|engine| program.compile(&engine));
                let module = module.unwrap_or_else(|error| panic!("{error}"));
                b.iter_batched_ref(
                    || program.start(&module).expect("it exports `main`"),
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
