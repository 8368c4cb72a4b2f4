//! The binary form: it represents every module, each in one way only, and the decoder survives any bytes.

mod arbitrary;
mod rules;
mod sample;

use proptest::prelude::*;
use slotvm_bytecode::{Module, decode, encode, verify};

/// Checks any bytes, random or from a damaged module.
fn check(bytes: &[u8]) {
    if let Ok(module) = decode(bytes) {
        assert_eq!(encode(&module), bytes, "a module has one encoding only");
        // The verifier accepts or rejects every decoded module without panicking.
        let _ = verify(module);
    }
}

fn check_bit_flips(bytes: &mut [u8]) {
    for bit in 0..bytes.len() * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        check(bytes);
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}

#[test]
fn the_sample_is_valid_and_round_trips() {
    let module = sample::module();
    let bytes = encode(&module);
    assert_eq!(decode(&bytes), Ok(module.clone()));
    verify(module).expect("the sample is valid");
}

#[test]
fn the_empty_module_is_magic_and_version() {
    let bytes = encode(&Module::default());
    assert_eq!(bytes, *b"\0svm\x01\0\0\0");
    assert_eq!(decode(&bytes), Ok(Module::default()));
}

#[test]
fn truncations_are_refused() {
    let bytes = encode(&sample::module());
    let starts = sample::section_starts(&bytes);
    for len in 0..bytes.len() {
        check(&bytes[..len]);
        let outcome = decode(&bytes[..len]);
        // A module that is cut between sections can be valid, unless its functions lack their code.
        assert!(outcome.is_err() || starts.contains(&len), "a module of {len} bytes");
    }
}

#[test]
fn bit_flips_give_an_error_or_a_canonical_module() {
    check_bit_flips(&mut encode(&sample::module()));
}

#[test]
fn inserted_and_removed_bytes_give_an_error_or_a_canonical_module() {
    let bytes = encode(&sample::module());
    for place in 0..bytes.len() {
        let (before, behind) = bytes.split_at(place);
        check(&[before, &behind[1..]].concat());
        for byte in [0, 1, 0x7f, 0x80, 0xff] {
            check(&[before, &[byte], behind].concat());
        }
    }
}

proptest! {
    #[test]
    fn any_module_round_trips(module in arbitrary::module()) {
        let bytes = encode(&module);
        prop_assert_eq!(decode(&bytes), Ok(module));
    }

    #[test]
    fn damaged_modules_give_an_error_or_a_canonical_module(
        module in arbitrary::module(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = encode(&module);
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        check(&bytes);
    }

    #[test]
    fn bytes_behind_a_header_give_an_error_or_a_canonical_module(
        behind in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        check(&[b"\0svm\x01\0\0\0", &*behind].concat());
    }
}
