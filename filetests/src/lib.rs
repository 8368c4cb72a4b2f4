//! File tests of slotvm, and what other tests of several crates share: the generator of random modules
//! ([`generate`]).

pub mod case;
pub mod choices;
pub mod generate;
