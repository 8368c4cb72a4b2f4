//! Imports bytes as a WebAssembly module, with names and DWARF.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = slotvm_filetests::campaign::wasm::check(bytes) {
        panic!("{error}");
    }
});
