//! Comparisons of the end of a call with the end that the model expects.

use slotvm::Error;

use super::model::{End, NONE, Value};
use crate::campaign::ensure;

pub(super) fn old_size(old: Option<u32>) -> End {
    old.map_or(End::Error, |old| End::Values(vec![Value::I64(old.into())]))
}

pub(super) fn equal<T: PartialEq + std::fmt::Debug>(
    what: &str,
    found: &T,
    expected: &T,
) -> Result<(), String> {
    ensure(found == expected, || format!("{what}: expected {expected:?}, found {found:?}"))
}

/// The result of an operation that is expected to return one. Values are not compared.
pub(super) fn ended<T>(
    what: &str,
    found: Result<Result<T, Error>, String>,
    expected: &End,
) -> Result<Option<T>, String> {
    let (end, value) = match found {
        Ok(Ok(value)) => (NONE, Some(value)),
        Ok(Err(error)) => match error.trap_code() {
            Some(code) => (End::Trap(code), None),
            None => (End::Error, None),
        },
        Err(message) => match expected {
            End::Panic(part) if message.contains(part) => (expected.clone(), None),
            _ => return Err(format!("{what}: expected {expected:?}, found panic `{message}`")),
        },
    };
    equal(what, &end, expected)?;
    Ok(value)
}

pub(super) fn end<T>(
    what: &str,
    found: Result<Result<T, Error>, String>,
    expected: &End,
) -> Result<(), String> {
    ended(what, found, expected).map(drop)
}

/// Like [`end`], with values.
pub(super) fn values(
    what: &str,
    found: Result<Result<Vec<Value>, Error>, String>,
    expected: &End,
) -> Result<(), String> {
    let End::Values(values) = expected else { return end(what, found, expected) };
    match ended(what, found, &NONE)? {
        Some(found) => equal(what, &found, values),
        None => Ok(()),
    }
}
