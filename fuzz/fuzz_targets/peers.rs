//! Compares slotvm with wasmtime and wasmi on modules generated from bytes.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(difference) = slotvm_peers::check(bytes) {
        panic!("{difference}");
    }
});
