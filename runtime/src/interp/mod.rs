//! The interpreter: runs a register form of the bytecode, which is made from verified code when a function is first
//! called.
//!
//! Each of these uses those below it:
//!
//! * [`translate`] makes the form. Its instructions name cells of the frame and constants, where bytecode moves values
//!   over the operand stack.
//! * [`handlers`] has the code that executes instructions, [`dispatch`] how one leads to the next, [`operands`] where it
//!   finds its operands.
//! * [`slow`] does what is rare or concerns the whole store, with [`services`], [`vector`], and [`tiers`], which leads
//!   to native code and back.
//! * [`activation`] is a call from the host: it enters and leaves functions, and traps. A function that is called for the
//!   first time is translated by the module's code ([`Translation`]), which has been given the way up from here.
//! * [`run`] starts, with [`regs`] and [`cells`].
//!
//! Guest calls do not recurse on the host's stack; only a host function that calls back does, which is limited by
//! [`crate::stack`].
//!
//! A frame is an array of cells, the locals and after them the operand stack, with the cell numbers of
//! [`slotvm_bytecode::verified::Body`]. At the start of each basic block all operands lie in their cells.
//!
//! On entering a function, (1) the depth is checked, (2) the frame in the frame stack is pushed and
//! zeroed and parameters that live there are stored; leaving gives both back; a tail call does so
//! before it enters. Traps in (1) and (2) are at offset 0 of the function that was to be entered.

mod activation;
mod cells;
mod dispatch;
mod exits;
mod handlers;
mod operands;
mod probe;
mod regs;
mod run;
mod services;
mod slow;
mod tiers;
mod translate;
mod vector;

use crate::steps::module_code::Translation;

/// What the interpreter translates functions by.
pub(crate) static TRANSLATION: Translation = Translation {
    translate: translate::translate,
    offset: translate::offset,
    exit: translate::exit,
    native: translate::native,
    places: translate::places,
    land: translate::land,
};

pub(crate) use activation::execute;
pub(crate) use probe::tail_calls_are_jumps;
pub use tiers::interpret;
