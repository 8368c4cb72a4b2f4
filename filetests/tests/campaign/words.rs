//! Edits of texts by their words.

use std::ops::Range;

use slotvm_bytecode::Op;

use crate::mutate;
use crate::rng::Rng;

/// Words that the assembler knows, and difficult numbers and strings.
const WORDS: &[&str] = &[
    "func",
    "import",
    "export",
    "memory",
    "table",
    "global",
    "elem",
    "data",
    "start",
    "local",
    "mut",
    "type",
    "i32",
    "i64",
    "f32",
    "f64",
    "v128",
    "funcref",
    "externref",
    "passive",
    "declared",
    "frame_stack",
    "{",
    "}",
    "(",
    ")",
    ":",
    ",",
    "=",
    "->",
    "[",
    "]",
    ";",
    "\"\"",
    "\"\\u{10ffff}\"",
    "\"\\u{d800}\"",
    "\"\\ff\"",
    "\"",
    "0",
    "1",
    "-1",
    "-0",
    "4294967295",
    "4294967296",
    "-9223372036854775808",
    "18446744073709551616",
    "0x8000000000000000",
    "nan",
    "-nan",
    "nan:0x1",
    "inf",
    "-inf",
    "1e400",
    "1e-400",
    "0x1p-1074",
    "0x1.fffffffffffffp1023",
    "1_000",
    "999999999999999999999999999999999999999999",
    ".line",
    "$",
    "@",
    "\u{0}",
    "\u{1b}[31m",
    "é",
    "\n",
];

/// Makes an input from a text, and perhaps from words of another one.
pub(crate) fn mutant(rng: &mut Rng, input: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..rng.few() {
        if rng.one_in(6) {
            mutate::bytes(rng, &mut bytes, other);
        } else {
            words(rng, &mut bytes, other);
        }
    }
    bytes
}

fn words(rng: &mut Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    let from = word(rng, bytes);
    let to = word(rng, bytes);
    match rng.below(10) {
        0 => drop(bytes.drain(from)),
        1 | 2 => {
            let copy = bytes[from].to_vec();
            match rng.one_in(2) {
                true => insert(bytes, to.start, &copy),
                false => replace(bytes, to, &copy),
            }
        }
        3 | 4 => {
            let theirs = word(rng, other);
            replace(bytes, from, &other[theirs]);
        }
        5 => replace(bytes, from, rng.pick(Op::ALL).mnemonic().as_bytes()),
        6 => insert(bytes, from.start, rng.pick(WORDS).as_bytes()),
        7 => {
            let line = line(rng, bytes);
            bytes.drain(line);
        }
        8 => {
            let part = bytes[line(rng, bytes)].to_vec();
            let at = line(rng, bytes).start;
            bytes.splice(at..at, part);
        }
        _ => replace(bytes, from, rng.pick(WORDS).as_bytes()),
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, word: &[u8]) {
    bytes.splice(at..at, word.iter().chain(b" ").copied());
}

fn replace(bytes: &mut Vec<u8>, place: Range<usize>, word: &[u8]) {
    bytes.splice(place, word.iter().copied());
}

/// The range of a random word: letters, digits and separators of mnemonics, or one other character.
fn word(rng: &mut Rng, bytes: &[u8]) -> Range<usize> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-+\"$\\".contains(byte);
    around(rng.below(bytes.len()), bytes, is_part)
}

fn line(rng: &mut Rng, bytes: &[u8]) -> Range<usize> {
    around(rng.below(bytes.len()), bytes, |&byte| byte != b'\n')
}

fn around(at: usize, bytes: &[u8], is_part: impl Fn(&u8) -> bool) -> Range<usize> {
    let before = bytes[..at].iter().rev().take_while(|&byte| is_part(byte)).count();
    let after = bytes[at..].iter().take_while(|&byte| is_part(byte)).count();
    at - before..(at + after.max(1)).min(bytes.len())
}
