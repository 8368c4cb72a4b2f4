//! Decodes bytes as a binary module, encodes it again and verifies it.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = slotvm_filetests::campaign::bytecode::check(bytes) {
        panic!("{error}");
    }
});
