//! Interprets bytes as operations with references into a heap of the embedder, and with handles of them.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = slotvm_filetests::campaign::roots::check(bytes) {
        panic!("{error}");
    }
});
