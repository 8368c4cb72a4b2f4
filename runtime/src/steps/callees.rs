//! The functions that indirect calls have called.
//!
//! Each call of the code of a function has a word with the first two functions that it has called, by their numbers among
//! those that the module defines, or the note that there were others: a third one, or one of another instance or of the host.
//! All threads that run a module write these words without order. One may overwrite what another has just noted: then that
//! function is noted the next time.

use super::instr::Instr;

/// No function.
const NONE: u32 = u32::MAX;
/// Functions that are not noted; no module defines one with this number.
const OTHERS: u32 = u32::MAX - 1;

/// The functions that a call has called.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Callees([u32; 2]);

impl Callees {
    /// None yet.
    pub(crate) const NONE: Callees = Callees([NONE; 2]);
    /// Those of which nothing is known, and nothing is noted.
    pub(crate) const OTHERS: Callees = Callees([OTHERS, NONE]);

    #[inline(always)]
    pub(crate) fn of_word(word: u64) -> Callees {
        Callees([word as u32, (word >> 32) as u32])
    }

    pub(crate) fn word(self) -> u64 {
        u64::from(self.0[0]) | u64::from(self.0[1]) << 32
    }

    /// Whether it need not be noted that a function is called.
    #[inline(always)]
    pub(crate) fn covers(self, defined: u32) -> bool {
        let Callees([first, second]) = self;
        first == defined || second == defined || first == OTHERS
    }

    /// The same, and a function that the module defines.
    fn and(self, defined: u32) -> Callees {
        match self {
            _ if self.covers(defined) => self,
            Callees([NONE, _]) => Callees([defined, NONE]),
            Callees([first, NONE]) => Callees([first, defined]),
            _ => Callees::OTHERS,
        }
    }

    /// The functions, unless there are others.
    pub(super) fn listed(self) -> impl Iterator<Item = u32> {
        self.0.into_iter().filter(|&func| func < OTHERS)
    }
}

/// Notes in the slot after a call that it calls a function of the active instance, by its number among those that the module
/// defines, or another one.
#[cold]
pub(crate) fn note(slot: &Instr, defined: Option<u32>) {
    let before = Callees::of_word(slot.data());
    let callees = defined.map_or(Callees::OTHERS, |func| before.and(func));
    if callees != before {
        slot.set_data(callees.word());
    }
}

/// An indirect call in the code of a function.
#[derive(Copy, Clone, Debug)]
pub(crate) struct CallSite {
    /// Its code offset.
    pub(crate) offset: u32,
    /// The slot with the functions that it has called.
    pub(crate) slot: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_functions_are_noted() {
        let listed = |callees: Callees| callees.listed().collect::<Vec<_>>();
        let mut callees = Callees::NONE;
        assert!(listed(callees).is_empty() && !callees.covers(0));
        for (func, expected) in [(7, &[7][..]), (7, &[7]), (0, &[7, 0]), (7, &[7, 0])] {
            callees = Callees::of_word(callees.and(func).word());
            assert_eq!(listed(callees), expected);
            assert!(callees.covers(func) && !callees.covers(1));
        }
        for func in [1, 7, 2] {
            callees = callees.and(func);
            assert_eq!(callees, Callees::OTHERS);
            assert!(listed(callees).is_empty() && callees.covers(func));
        }
    }

    #[test]
    fn other_functions_end_the_list() {
        let slot = Instr::of_data_and(Callees::NONE.word(), 3, 4);
        note(&slot, Some(5));
        assert_eq!((slot.data(), slot.ab(), slot.c), (Callees([5, NONE]).word(), 3, 4));
        note(&slot, None);
        note(&slot, Some(5));
        assert_eq!(Callees::of_word(slot.data()), Callees::OTHERS);
    }
}
