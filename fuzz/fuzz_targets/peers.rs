//! slotvm agrees with wasmtime and wasmi on the modules of any bytes.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(difference) = slotvm_peers::check(bytes) {
        panic!("{difference}");
    }
});
