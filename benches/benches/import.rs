//! The import of WebAssembly, in bytes of the binary a second, on large real modules.
//!
//! `validate` is wasmparser's validation alone, which the import contains; `import` is from bytes to a
//! module, `verified` from bytes to a verified one, by one thread and by several. Modules that cannot be
//! fetched are left out.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use slotvm_bytecode::load::{LoadOptions, load};
use slotvm_bytecode::wasm;
use slotvm_filetests::packages::{BUNDLER, SQLITE, TYPESCRIPT_FORMATTER};
use wasmparser::Validator;

fn import(c: &mut Criterion) {
    let mut modules = Vec::new();
    for file in [SQLITE, TYPESCRIPT_FORMATTER, BUNDLER] {
        match file.read() {
            Ok(bytes) => modules.push((file.package, bytes)),
            Err(reason) => eprintln!("{} is left out: {reason}", file.package),
        }
    }
    let mut stage = |name: &str, run: &dyn Fn(&[u8])| {
        let mut group = c.benchmark_group(name);
        group.sample_size(20);
        group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(3));
        for (package, bytes) in &modules {
            group.throughput(Throughput::Bytes(bytes.len() as u64));
            let id = BenchmarkId::from_parameter(package);
            group.bench_function(id, |b| b.iter(|| run(black_box(bytes))));
        }
        group.finish();
    };
    stage("validate", &|bytes| drop(Validator::new().validate_all(bytes).expect("it is valid")));
    stage("import", &|bytes| drop(black_box(wasm::import(bytes).expect("it needs nothing more"))));
    let verified = |bytes: &[u8], is_parallel: bool| {
        let loaded = load(bytes, LoadOptions { is_parallel, ..LoadOptions::default() });
        drop(black_box(loaded.expect("as before").verify(is_parallel).expect("it verifies")));
    };
    stage("verified", &|bytes| verified(bytes, false));
    stage("verified in parallel", &|bytes| verified(bytes, true));
}

criterion_group!(benches, import);
criterion_main!(benches);
