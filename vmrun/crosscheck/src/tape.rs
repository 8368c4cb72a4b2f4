//! The answers of host functions: recorded in one run of the program, replayed in every other.
//!
//! Only the recording run has effects outside. A second run with real host functions could find other files, another
//! time and other random numbers. A host without any of these could not run most programs. So the interpreter runs
//! the program with its real host functions, and a tape keeps what they answered: results, writes to memory, errors.
//!
//! An answer is found by the function's name and the number of its call. Programs that are being reduced make fewer
//! calls, or in another order, and still get the same answers in both engines. Calls beyond the tape return zeros.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use slotvm::{Error, Trap, TrapCode};

use super::points::Cell;

/// The answers of all host functions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tape {
    /// The answers of each function, in the order of its calls.
    answers: BTreeMap<String, Vec<Answer>>,
}

/// The answer to a call. The default is that of a function that does nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Answer {
    /// The results; zeros if there are none.
    pub(super) results: Vec<Cell>,
    /// Bytes that changed in memory 0, by their addresses.
    pub(super) writes: Vec<(u64, Vec<u8>)>,
    /// The error, if the function failed.
    pub(super) failure: Option<Failure>,
}

/// The error of a host function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Failure {
    /// A trap, by its number.
    Trap(u8),
    /// A trap that the function has chosen, by its number and message.
    Custom(u32, Option<String>),
    /// Another error, by its message.
    Other(String),
}

impl Failure {
    /// The failure that an error is.
    pub(super) fn of(error: &Error) -> Failure {
        match error {
            Error::Trap(trap) => match trap.custom_trap() {
                Some(custom) => Failure::Custom(custom.number, custom.message.clone()),
                None => Failure::Trap(trap.code.number()),
            },
            other => Failure::Other(other.to_string()),
        }
    }

    /// The error to fail with again.
    pub(super) fn error(&self) -> Error {
        match self {
            Failure::Trap(number) => {
                let code = TrapCode::from_number(*number).unwrap_or(TrapCode::Unreachable);
                Trap::new(code, []).into()
            }
            Failure::Custom(number, message) => {
                Trap::custom(*number, message.clone().unwrap_or_default()).into()
            }
            Failure::Other(message) => Error::host(message.clone()),
        }
    }
}

impl Tape {
    /// Appends the answer to the next call of a function.
    pub(super) fn record(&mut self, name: &str, answer: Answer) {
        match self.answers.get_mut(name) {
            Some(answers) => answers.push(answer),
            None => _ = self.answers.insert(name.to_owned(), vec![answer]),
        }
    }

    /// The answer to a call of a function; calls are counted from 0.
    pub(super) fn answer(&self, name: &str, call: usize) -> Option<&Answer> {
        self.answers.get(name)?.get(call)
    }

    /// Removes the answers at the ends that are the default: most functions that print have no other.
    pub(super) fn trim(&mut self) {
        for answers in self.answers.values_mut() {
            let n = answers.iter().rposition(|answer| *answer != Answer::default());
            answers.truncate(n.map_or(0, |last| last + 1));
        }
        self.answers.retain(|_, answers| !answers.is_empty());
    }
}

/// The bytes that differ between two states of a memory, which may have grown.
pub(super) fn writes(before: &[u8], after: &[u8]) -> Vec<(u64, Vec<u8>)> {
    /// Bytes that are compared at once, since most of a memory does not change.
    const PIECE: usize = 4096;
    let mut writes: Vec<(u64, Vec<u8>)> = Vec::new();
    for (i, (old, new)) in before.chunks(PIECE).zip(after.chunks(PIECE)).enumerate() {
        if old == new {
            continue;
        }
        for (j, (_, &byte)) in old.iter().zip(new).enumerate().filter(|(_, (a, b))| a != b) {
            let address = (i * PIECE + j) as u64;
            match writes.last_mut() {
                Some((start, bytes)) if *start + bytes.len() as u64 == address => bytes.push(byte),
                _ => writes.push((address, vec![byte])),
            }
        }
    }
    writes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_found_by_name_and_call() {
        let mut tape = Tape::default();
        let one = Answer { results: vec![Cell(1)], ..Answer::default() };
        tape.record("env print", Answer::default());
        for answer in [Answer::default(), one.clone(), Answer::default()] {
            tape.record("env read", answer);
        }
        tape.trim();
        assert_eq!(tape.answer("env print", 0), None);
        assert_eq!(tape.answer("env read", 0), Some(&Answer::default()));
        assert_eq!(tape.answer("env read", 1), Some(&one));
        assert_eq!(tape.answer("env read", 2), None);
        let text = serde_json::to_string(&tape).expect("it is plain data");
        assert_eq!(serde_json::from_str::<Tape>(&text).expect("it reads back"), tape);
    }

    #[test]
    fn writes_are_runs_of_changed_bytes() {
        let before = vec![0; 10_000];
        let mut after = before.clone();
        after[1..3].copy_from_slice(&[5, 6]);
        after[4095..4097].copy_from_slice(&[7, 8]);
        after[9_999] = 9;
        let expected = vec![(1, vec![5, 6]), (4095, vec![7, 8]), (9_999, vec![9])];
        assert_eq!(writes(&before, &after), expected);
        assert_eq!(writes(&before, &before), []);
    }

    #[test]
    fn failures_fail_again() {
        let custom = Failure::of(&Trap::custom(7, "no such key").into());
        assert_eq!(custom.error().to_string(), "no such key (trap 7)");
        let trap = Failure::of(&Trap::new(TrapCode::IntegerOverflow, []).into());
        assert_eq!(trap.error().trap_code(), Some(TrapCode::IntegerOverflow));
        let other = Failure::of(&Error::host("no more"));
        assert_eq!(other.error().to_string(), "no more");
    }
}
