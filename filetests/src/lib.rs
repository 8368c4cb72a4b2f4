//! File tests of slotvm, and what other tests of several crates share: the generator of random modules
//! ([`generate`]), the programs of the repository ([`programs`]) and what their host provides
//! ([`host`]).

pub mod case;
pub mod choices;
pub mod generate;
pub mod host;
pub mod programs;
