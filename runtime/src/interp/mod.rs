//! The interpreter: the semantic reference, to which every other engine must be equal.
//!
//! The code of a function is prepared when it is first called (`prepare`): decoded into steps of equal
//! size, with branches resolved. `run` executes the steps that concern the active frame; `drive` does
//! the rest: it calls, returns, traps and does what concerns the whole store (`services`). Guest calls
//! do not recurse on the host's stack; only a host function that calls back does, which is limited by
//! [`crate::stack`].
//!
//! A frame is an array of cells, the locals and after them the operand stack, with the cell numbers of
//! [`slotvm_bytecode::verified::Body`].
//!
//! On entering a function, (1) the depth is checked, (2) the frame in the frame stack is pushed and
//! zeroed and parameters that live there are stored; leaving gives both back; a tail call does so
//! before it enters. Traps in (1) and (2) are at offset 0 of the function that was to be entered.

mod drive;
mod frame;
mod run;
mod services;
mod vector;

pub(crate) use drive::execute;
