//! Branch hints from the custom section `metadata.code.branch_hint`, as the proposal for branch hinting defines it.
//!
//! The section stands before the code. It has no meaning for the program, so a malformed one is left out as a whole: one that
//! cannot be read, whose functions or offsets are not strictly ascending, that names a function which the module does not
//! define, or an offset outside the function's body. A hint where neither `if` nor `br_if` is, or where code is unreachable,
//! is left out alone: functions may be translated long after the section was read.

use wasmparser::BranchHintSectionReader;

use super::Body;
use crate::module::BranchHint;

/// Hints by offset in the module's bytes, in strictly ascending order.
///
/// An entry has 8 bytes, and takes three bytes of the section at least. Offsets are below
/// [`MODULE_BYTES_MAX`](crate::limits::MODULE_BYTES_MAX).
#[derive(Debug, Default)]
pub(super) struct Hints(Vec<(u32, BranchHint)>);

impl Hints {
    /// Reads the hints of a module with these functions. There are none if the section is malformed.
    pub(super) fn read(section: BranchHintSectionReader<'_>, bodies: &[Body<'_>]) -> Hints {
        Hints(read_all(section, bodies).unwrap_or_default())
    }

    /// Returns a cursor behind the function that ends at an offset, or 0 for one before all functions.
    pub(super) fn cursor_behind(&self, end: u64) -> HintCursor<'_> {
        let n_passed = self.0.partition_point(|&(at, _)| u64::from(at) < end);
        HintCursor { rest: &self.0[n_passed..] }
    }
}

/// Returns the hints, unless the section is malformed.
fn read_all(
    section: BranchHintSectionReader<'_>,
    bodies: &[Body<'_>],
) -> Option<Vec<(u32, BranchHint)>> {
    let first = bodies.first()?.0.index;
    let mut all: Vec<(u32, BranchHint)> = Vec::new();
    for func in section {
        let func = func.ok()?;
        let (_, body) = bodies.get(func.func.checked_sub(first)? as usize)?;
        for hint in func.hints {
            let hint = hint.ok()?;
            let offset = body.range().start + u64::from(hint.func_offset);
            // Functions that are not ascending have offsets that are not, unless they have no hints.
            if offset >= body.range().end
                || all.last().is_some_and(|&(o, _)| u64::from(o) >= offset)
            {
                return None;
            }
            let hint = if hint.taken { BranchHint::Likely } else { BranchHint::Unlikely };
            all.push((offset as u32, hint));
        }
    }
    Some(all)
}

/// Follows the hints while code is read in ascending order.
#[derive(Debug)]
pub(super) struct HintCursor<'h> {
    rest: &'h [(u32, BranchHint)],
}

impl HintCursor<'_> {
    /// Returns the hint of the instruction at an offset, if it has one.
    pub(super) fn at(&mut self, offset: u64) -> Option<BranchHint> {
        while let [(at, hint), rest @ ..] = self.rest
            && u64::from(*at) <= offset
        {
            self.rest = rest;
            if u64::from(*at) == offset {
                return Some(*hint);
            }
        }
        None
    }
}
