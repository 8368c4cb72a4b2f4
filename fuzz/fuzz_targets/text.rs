//! Assembles text as a module, prints it and verifies it.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = slotvm_filetests::campaign::text::check(bytes) {
        panic!("{error}");
    }
});
