//! The runs of a program, as criterion measures them. Every run has an instance of its own, which is made outside of the
//! measurement. Runs take turns with code at several places, since its time depends on that.

use std::time::Duration;

use criterion::measurement::Measurement;
use criterion::{BatchSize, BenchmarkGroup, SamplingMode};
use slotvm::{PassSet, SlotMode};
use vmrun::bench::program::{Program, engine_at};

/// The places of the code of a program.
const PLACEMENTS: usize = 5;

/// Sets how long the programs of a group run.
pub(crate) fn settle(group: &mut BenchmarkGroup<'_, impl Measurement>) {
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
}

/// Measures a program in a mode.
pub(crate) fn measure(
    group: &mut BenchmarkGroup<'_, impl Measurement>,
    program: &Program,
    mode: SlotMode,
) {
    group.bench_function(mode.name(), |b| {
        let module =
            |i| engine_at(mode, PassSet::all(), i).and_then(|engine| program.compile(&engine));
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
