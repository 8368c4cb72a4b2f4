//! What the numeric instructions compute, scalars and vectors: the evaluator's own definition.
//!
//! Written from `docs/bytecode.md`, sections 2 and 2.4, and from the numerics of the WebAssembly core specification that
//! it refers to. The interpreter and constant folding have another definition, [`slotvm_bytecode::numeric`] and
//! [`slotvm_bytecode::vector`], and native code has Cranelift's. This one shares no code with either, and takes other
//! ways where there are some, so that one mistake is not made twice: `integers` computes in 128 bits or bit by bit,
//! `floats` on integers instead of floats, `vectors` on lists of lanes. Its tests compare the two definitions.
//!
//! [`eval`] is one match on all opcodes, so that the compiler names a new one that is missing. Values are bits, as
//! everywhere in the evaluator: numbers are zero-extended to 128 bits. Every result is defined, with the exception of
//! NaNs, whose sign and payload the specification leaves open; [`Nans`] chooses.

mod conversions;
mod floats;
mod format;
mod integers;
mod opcodes;
mod vectors;

pub(super) use conversions::extend_s;
pub(super) use format::Nans;
pub(super) use opcodes::eval;
pub(super) use vectors::{Half, Sign, extend, lanes, replace, splat};

/// What a number is: an integer of a width in bits, or a float of a format.
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
