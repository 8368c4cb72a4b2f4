//! The bytecode of slotvm: a typed stack machine with local slots and unstructured branches.
//!
//! The modules, in the order of data flow:
//!
//! * [`op`] is the opcode table, the single source of the instruction set. [`inst`] packs, reads and writes
//!   instructions. [`numeric`] evaluates numeric instructions, [`pairs`] those on integers with two results, and
//!   [`vector`] SIMD instructions. [`typing`] types the few instructions without a signature in the table.
//!   [`reference()`] describes all of them.
//! * A [`Module`] is plain data. It comes from the binary form ([`decode()`], the inverse of [`encode()`]),
//!   from text ([`text`]), or from a front end ([`builder`]).
//! * [`verify()`] turns it into a [`VerifiedModule`], the only form that runs. This includes the results of
//!   verification: basic blocks, frame layout, and the locals that can be promoted. [`cost`] defines
//!   execution costs.
#![forbid(unsafe_code)]

mod branch_hint;
pub mod builder;
mod constant_tables;
pub mod cost;
pub mod decode;
pub mod encode;
pub mod inst;
pub mod leb;
pub mod limits;
pub mod load;
pub mod module;
pub mod numeric;
pub mod op;
pub mod pairs;
pub mod parallel;
pub mod printable;
pub mod reference;
pub mod refs;
pub mod section;
mod source_place;
mod stacks;
pub mod text;
pub mod trap;
pub mod types;
pub mod typing;
pub mod vector;
pub mod verified;
pub mod verify;
#[cfg(feature = "wasm")]
pub mod wasm;

pub use constant_tables::TableEntry;
pub use decode::{DecodeError, decode};
pub use encode::encode;
pub use inst::{CodeReader, Imm, Inst};
pub use module::{BranchHint, Module, SourcePlace};
pub use op::{Access, Effect, ImmKind, Op, VectorAccess, VectorPart};
pub use reference::reference;
pub use trap::{CustomTrap, TrapCode};
pub use types::{FuncType, ValType, n_cells};
pub use verified::VerifiedModule;
pub use verify::{VerifyError, verify, verify_in_parallel};
