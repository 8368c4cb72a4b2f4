//! Interprets bytes as calls of the path functions of WASI, while the host changes the directory.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = slotvm_filetests::campaign::wasi::check(bytes) {
        panic!("{error}");
    }
});
