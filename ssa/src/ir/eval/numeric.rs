//! Numeric instructions on scalars and vectors: the evaluator's own definition.
//!
//! Written from `docs/bytecode.md`, sections 2 and 2.4, and from the numerics of the WebAssembly core specification, to
//! which it refers. The interpreter and constant folding use another definition, [`slotvm_bytecode::numeric`] and
//! [`slotvm_bytecode::vector`]; native code has Cranelift's. This one shares no code with either. It also uses other
//! methods, so that one mistake is not made twice: `integers` computes in 128 bits or bit by bit, `floats` on integers
//! instead of floats, `vectors` on lists of lanes. Tests compare the two definitions.
//!
//! Instructions with one result are those of [`eval`], those with two of [`eval_pair`].
//!
//! [`eval`] is one match on all opcodes without a default, so that the compiler names a new opcode. Values are bits, as
//! everywhere in the evaluator: numbers are zero-extended to 128 bits. Every result is defined except the sign and the
//! payload of NaNs, which the specification leaves open; [`Nans`] chooses them.

mod conversions;
mod floats;
mod format;
mod integers;
mod opcodes;
mod pairs;
mod vectors;

pub(super) use conversions::extend_s;
pub(super) use format::Nans;
pub(super) use opcodes::eval;
pub(super) use pairs::eval as eval_pair;
pub(super) use vectors::{Half, Sign, extend, lanes, replace, splat};

/// A kind of number: an integer of a width in bits, or a float of a format.
trait Kind: Copy {
    /// The width in bits.
    fn bits(self) -> u32;
}

impl Kind for u32 {
    fn bits(self) -> u32 {
        self
    }
}

impl Kind for format::Format {
    fn bits(self) -> u32 {
        format::Format::bits(self)
    }
}

#[cfg(test)]
mod tests;
