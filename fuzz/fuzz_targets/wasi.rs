//! Any bytes as calls of WASI's functions of paths, while somebody changes the directory.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = slotvm_filetests::campaign::wasi::check(bytes) {
        panic!("{error}");
    }
});
