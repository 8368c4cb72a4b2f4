//! Damaged programs: each is refused with a place inside of the source, or compiles to bytecode that verifies.

use slotvm_bytecode::verify;
use slotvm_filetests::choices::{Choices, random_bytes};
use slotvm_filetests::seeds;

use super::{generate, programs};
use crate::compile;

/// Damaged programs that every run of the tests compiles.
const MUTANTS_USUAL: u64 = 3_000;
/// Pieces that damage puts in.
const PIECES: [&str; 24] = [
    "{",
    "}",
    "(",
    ")",
    ";",
    ",",
    "=",
    "==",
    "!",
    "&&",
    "-",
    "/",
    "//",
    "\"",
    "\\",
    "int ",
    "bool ",
    "return ",
    "while ",
    "f(",
    "2147483648",
    "true",
    "é",
    "\0",
];

/// Replaces, removes, moves and inserts pieces of a text.
fn damage(source: &str, choices: &mut Choices<'_>) -> String {
    let mut chars: Vec<char> = source.chars().collect();
    for _ in 0..1 + choices.below(4) {
        let start = choices.bits() as usize % (chars.len() + 1);
        let end = (start + choices.below(12)).min(chars.len());
        let piece: Vec<char> = match choices.below(3) {
            0 => choices.pick(&PIECES).chars().collect(),
            1 => Vec::new(),
            _ => {
                let from = choices.bits() as usize % (chars.len() + 1);
                chars[from..(from + choices.below(40)).min(chars.len())].to_vec()
            }
        };
        chars.splice(start..end, piece);
    }
    chars.into_iter().collect()
}

#[test]
fn damaged_programs_are_refused_or_verify() {
    let sources: Vec<String> = programs()
        .iter()
        .map(|path| std::fs::read_to_string(path).expect("it can be read"))
        .collect();
    let (mut n_compiled, mut n_refused) = (0u64, 0u64);
    for seed in 0..seeds::count_or(MUTANTS_USUAL) {
        let bytes = random_bytes(seed, 1_600);
        let mut choices = Choices::new(&bytes);
        let source = match choices.below(3) {
            0 => sources[choices.below(sources.len())].clone(),
            _ => generate::generate(&random_bytes(seed, 400)),
        };
        let damaged = damage(&source, &mut choices);
        match compile(&damaged) {
            Ok(compiled) => {
                verify(compiled.module)
                    .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{damaged}"));
                n_compiled += 1;
            }
            Err(error) => {
                let (line, column) = error.position(&damaged);
                assert!(line >= 1 && column >= 1 && error.span.end <= damaged.len(), "seed {seed}");
                assert!(
                    error.render("damaged.wend", &damaged).contains(&error.message),
                    "seed {seed}"
                );
                n_refused += 1;
            }
        }
    }
    println!("{n_compiled} compile, {n_refused} are refused");
    assert!(n_compiled > 0 && n_refused > n_compiled);
}
