//! Any text as a module: assembled, printed, verified.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = slotvm_filetests::campaign::text::check(bytes) {
        panic!("{error}");
    }
});
