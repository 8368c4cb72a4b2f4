//! Each program in each slot mode, with its `; bench-size:`.

mod runs;

use criterion::{Criterion, criterion_group, criterion_main};
use slotvm::SlotMode;
use slotvm_benches::program_files;
use vmrun::bench::program::Program;

fn programs(c: &mut Criterion) {
    for path in program_files() {
        let program = Program::load(&path, None).unwrap_or_else(|error| panic!("{error}"));
        let mut group = c.benchmark_group(format!("programs/{}", program.name));
        runs::settle(&mut group);
        for mode in SlotMode::ALL {
            runs::measure(&mut group, &program, mode);
        }
        group.finish();
    }
}

criterion_group!(benches, programs);
criterion_main!(benches);
