//! Damaged modules: no input breaks the import, and its results obey the rules of the verifier.

use std::path::Path;

use slotvm_bytecode::verify::Rule;
use slotvm_bytecode::{verify, wasm};

use crate::binary;

/// The number of bits that are flipped in each module.
const N_FLIPS: u64 = 10_000;

/// Returns a module with every kind of section, and three that a C compiler has produced.
fn modules() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs/wasm");
    let compiled = ["bytecode.O0.wasm", "expression.O2.wasm", "sha256.O2.wasm"];
    let compiled =
        compiled.map(|name| std::fs::read(folder.join(name)).expect("the module can be read"));
    [binary(include_str!("everything.wat"))].into_iter().chain(compiled).collect()
}

/// Checks any bytes. Returns whether they are accepted.
fn check(bytes: &[u8]) -> bool {
    let Ok(module) = wasm::import(bytes) else { return false };
    if let Err(error) = verify(module) {
        assert_eq!(error.rule(), Rule::Limit, "{error}");
    }
    true
}

#[test]
fn truncations_are_refused() {
    for bytes in modules() {
        let n_taken = (0..bytes.len()).filter(|&len| check(&bytes[..len])).count();
        assert!(check(&bytes));
        // A module that is cut between sections can be valid.
        assert!(n_taken < 64, "{n_taken} of {}", bytes.len());
    }
}

#[test]
fn flipped_bits_give_an_error_or_a_module_that_verifies() {
    for mut bytes in modules() {
        let n_bits = bytes.len() as u64 * 8;
        let mut state = 1_u64;
        let mut n_taken = 0;
        for _ in 0..N_FLIPS {
            // Knuth's generator; its high bits are more random.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let bit = ((state >> 32) % n_bits) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
            n_taken += usize::from(check(&bytes));
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert!((1..N_FLIPS as usize).contains(&n_taken), "{n_taken} are taken");
    }
}
