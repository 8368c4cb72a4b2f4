//! Compiles text as a program in wend, and verifies the bytecode.

#![no_main]

libfuzzer_sys::fuzz_target!(|source: &str| {
    if let Ok(compiled) = wend::compile(source) {
        slotvm_bytecode::verify(compiled.module).expect("compiled programs verify");
    }
});
