//! Runs binary modules that verify in several engines.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = slotvm_filetests::campaign::engines::check(bytes) {
        panic!("{error}");
    }
});
