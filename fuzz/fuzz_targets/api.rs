//! Interprets bytes as calls of the embedding API, in any order, on several stores.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = slotvm_filetests::campaign::api::check(bytes) {
        panic!("{error}");
    }
});
