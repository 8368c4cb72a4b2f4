//! Trap codes: the reasons why a program stops.

use std::fmt;

use crate::printable::Printable;

/// The reason why a program stopped before it returned.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[non_exhaustive]
pub enum TrapCode {
    /// An `unreachable` instruction was executed.
    Unreachable = 1,
    /// A memory access past the end of the memory, bulk operations included.
    MemoryOutOfBounds = 2,
    /// A table access past the end of the table, bulk operations included.
    TableOutOfBounds = 3,
    /// An indirect call through a null table entry.
    IndirectCallToNull = 4,
    /// An indirect call to a function of another type.
    BadSignature = 5,
    /// An integer result that its type cannot hold: `MIN / -1`, or a float out of range.
    IntegerOverflow = 6,
    /// An integer division or remainder by zero.
    IntegerDivisionByZero = 7,
    /// A NaN converted to an integer.
    BadConversionToInteger = 8,
    /// The call stack is used up.
    StackOverflow = 9,
    /// The frame stack in linear memory, which holds the locals whose address escapes, is used up.
    FrameStackOverflow = 10,
    /// Not enough fuel for the next basic block.
    OutOfFuel = 11,
    /// The host has interrupted the program, or its time is up.
    Interrupted = 12,
    /// A `trap` instruction was executed, or a host function has trapped with a number of its own. See [`CustomTrap`].
    Custom = 13,
}

impl TrapCode {
    /// All codes, in the order of their numbers.
    pub const ALL: [TrapCode; 13] = [
        TrapCode::Unreachable,
        TrapCode::MemoryOutOfBounds,
        TrapCode::TableOutOfBounds,
        TrapCode::IndirectCallToNull,
        TrapCode::BadSignature,
        TrapCode::IntegerOverflow,
        TrapCode::IntegerDivisionByZero,
        TrapCode::BadConversionToInteger,
        TrapCode::StackOverflow,
        TrapCode::FrameStackOverflow,
        TrapCode::OutOfFuel,
        TrapCode::Interrupted,
        TrapCode::Custom,
    ];

    /// The number of the trap in native code and tables; never 0.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The trap with this number.
    pub fn from_number(number: u8) -> Option<TrapCode> {
        TrapCode::ALL.into_iter().find(|code| code.number() == number)
    }

    /// Description as a phrase for an error message.
    pub const fn message(self) -> &'static str {
        match self {
            TrapCode::Unreachable => "unreachable executed",
            TrapCode::MemoryOutOfBounds => "out of bounds memory access",
            TrapCode::TableOutOfBounds => "out of bounds table access",
            TrapCode::IndirectCallToNull => "indirect call to a null table entry",
            TrapCode::BadSignature => "indirect call to a function of another type",
            TrapCode::IntegerOverflow => "integer overflow",
            TrapCode::IntegerDivisionByZero => "integer division by zero",
            TrapCode::BadConversionToInteger => "invalid conversion to integer",
            TrapCode::StackOverflow => "call stack exhausted",
            TrapCode::FrameStackOverflow => "frame stack exhausted",
            TrapCode::OutOfFuel => "all fuel consumed",
            TrapCode::Interrupted => "interrupted",
            TrapCode::Custom => "trap of the program",
        }
    }
}

impl fmt::Display for TrapCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

/// A trap that the maker of a program or the embedder has chosen ([`TrapCode::Custom`]).
///
/// Its `Display` writes `message (trap 7)`, or `trap 7`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CustomTrap {
    /// The number, which means what the front end or the host function defines.
    pub number: u32,
    /// The meaning of the number, for people.
    pub message: Option<String>,
}

impl fmt::Display for CustomTrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.message {
            Some(message) => write!(f, "{} (trap {})", Printable(message), self.number),
            None => write!(f, "trap {}", self.number),
        }
    }
}
