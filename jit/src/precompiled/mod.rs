//! Native code that outlives the process that made it: precompiled modules, and a cache of them.
//!
//! Code that is kept depends on no address: it reaches everything through the context that calls pass, and functions call
//! each other by a table there. Its pieces, functions, loops and trampolines ([`Item`]), are packed into chunks ([`chunk`]).
//! A file ([`mod@file`]) has an index of its chunks and the fields that code depends on ([`fields`]), all authenticated by a
//! keyed hash, and each chunk's own hash in the index. So a chunk is read, checked and placed when one of its parts is
//! first used: what runs was copied to memory of the process before it was checked.
//!
//! Guarantees that code comes from a file only if its index has the hash by the key, its fields are those of the engine,
//! and its chunk has the hash in the index. A chunk that has not is as if it were missing.

pub(crate) mod chunk;
pub(crate) mod fields;
pub(crate) mod file;

use slotvm_bytecode::FuncType;

use crate::lower::abi::Direction;

/// The key of the hash that authenticates files.
pub(crate) type Key = [u8; 32];

/// A piece of code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Item {
    /// A function, by its number among those that the module defines.
    Func(u32),
    /// The rest of a function from the start of one of some loops on, where the interpreter goes on by this code.
    Loops {
        /// The function, by its number among those that the module defines.
        func: u32,
        /// The numbers of the loops in [`Body::loops`](slotvm_bytecode::verified::Body::loops). There is code for the sake
        /// of the first one.
        loops: Vec<u32>,
    },
    /// The trampoline of a function type.
    Trampoline(Direction, FuncType),
}
