//! Values: 64 bits, of which the upper 16 say what they are.
//!
//! A double is its own bits, up to those of the NaN that machines make. Above it are the tags: of integers of 32 bits, of
//! `nil` and the booleans, and of what lies in the heap, with its address. A number is one to programs, whether it is kept
//! as an integer or as a double.

/// A value. If it has an address, it is valid until the next collection.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Value(pub(crate) u64);

/// The least tag; what is below is a double.
pub(crate) const ATOM: u64 = 0xfff9;
pub(crate) const TEXT: u64 = 0xfffa;
pub(crate) const ARRAY: u64 = 0xfffb;
pub(crate) const MAP: u64 = 0xfffc;
pub(crate) const OBJECT: u64 = 0xfffd;
/// Also that of blocks, which programs do not see.
pub(crate) const FUNCTION: u64 = 0xfffe;
pub(crate) const INTEGER: u64 = 0xffff;

impl Value {
    pub(crate) const FALSE: Value = Value(ATOM << 48);
    pub(crate) const NIL: Value = Value(ATOM << 48 | 1);
    pub(crate) const TRUE: Value = Value(ATOM << 48 | 2);

    pub(crate) fn of(is_true: bool) -> Value {
        if is_true { Value::TRUE } else { Value::FALSE }
    }

    pub(crate) fn tagged(tag: u64, address: u32) -> Value {
        Value(tag << 48 | u64::from(address))
    }

    pub(crate) fn integer(n: i32) -> Value {
        Value::tagged(INTEGER, n as u32)
    }

    /// A number, as an integer if it is one of 32 bits.
    pub(crate) fn number(n: f64) -> Value {
        let integer = n as i32;
        match f64::from(integer).to_bits() == n.to_bits() {
            true => Value::integer(integer),
            false if n.is_nan() => Value(f64::NAN.to_bits()),
            false => Value(n.to_bits()),
        }
    }

    pub(crate) fn tag(self) -> u64 {
        self.0 >> 48
    }

    /// Whether its lower half is an address.
    pub(crate) fn is_in_heap(self) -> bool {
        (TEXT..=FUNCTION).contains(&self.tag())
    }

    pub(crate) fn address(self) -> u32 {
        self.0 as u32
    }

    pub(crate) fn as_number(self) -> Option<f64> {
        match self.tag() {
            INTEGER => Some(f64::from(self.0 as i32)),
            tag if tag < ATOM => Some(f64::from_bits(self.0)),
            _ => None,
        }
    }

    /// The integer of 32 bits that it is, however it is kept.
    pub(crate) fn as_integer(self) -> Option<i32> {
        let n = self.as_number()?;
        (f64::from(n as i32) == n).then_some(n as i32)
    }

    /// The name of its kind in error messages.
    pub(crate) fn kind(self) -> &'static str {
        match self.tag() {
            TEXT => "a string",
            ARRAY => "an array",
            MAP => "a map",
            OBJECT => "an object",
            FUNCTION => "a function",
            _ if self == Value::NIL => "nil",
            ATOM => "a boolean",
            _ => "a number",
        }
    }
}
