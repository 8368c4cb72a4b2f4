//! The verifier of the IR: the properties that a function must have around every pass.
//!
//! Relies only on tables of the [`Function`] that this crate made, so that ranges in them are in bounds.
//! It finds faults of passes and of text IR written by people, and is not a security boundary. Linear in
//! the size of the function, except for the dominator tree.
//!
//! In both forms, each block written `b`, each value `v`:
//!
//!  1. `one-block`: there is an entry block, and no block is empty.
//!  2. `layout-once`: an instruction stands at most once in all blocks.
//!  3. `terminator-last`: the last instruction of a block, and no other, is a terminator.
//!  4. `edges-of-terminator`: a block has as many out-edges as its terminator has targets, and their
//!     source is the block; they enter blocks that exist.
//!  5. `preds-agree`: the predecessor list of a block holds the edges that enter it, in ascending order.
//!  6. `entry-first`: no edge enters the entry.
//!  7. `all-reachable`: a path from the entry leads to every block.
//!  8. `dominator-preorder`: blocks are numbered in preorder of the dominator tree, the children of a
//!     block in reverse postorder of the graph.
//!  9. `entry-params`: the parameters of the entry have the types of the function's parameters. If it is entered from a
//!     frame, each has a place there of its own, of its type, and the frame is one of the function. Where it may be
//!     at several blocks, values may share a cell, which holds another operand at each.
//! 10. `opcode-of-ir`: an operation is one that the IR has: it neither shuffles operands nor accesses a
//!     local by its bytecode number.
//! 11. `immediates`: what immediates name exists: functions, types, globals (mutable where written),
//!     tables, segments, memory 0, slots. That of a `br_if` is a hint or none.
//! 12. `operand-types`: an instruction has the operands that its operation takes, of their types.
//! 13. `result-types`: an instruction has the results of its operation, of their types.
//! 14. `return-types`: `return` and the tail calls return the results of the function's type.
//! 15. `edge-arguments`: an edge has an operand of the right type for each parameter of its block.
//! 16. `defined-once`: a value is defined by one instruction or as one parameter.
//! 17. `defs-dominate`: a definition dominates the uses of its value. The operands of an edge are used
//!     at the end of the edge's source.
//! 18. `locations`: the location of an instruction exists, its function exists, and it is inlined at an
//!     earlier location.
//! 19. `slots-distinct`: no two slots stand for the same local, or for the same operand of one type.
//! 20. `exit-frames`: an exit has a value for each place of its frames, of its type. A frame is at one block, or
//!     after a call that one of the values is the callee of, and those that wait for it are after calls. No two values lie in
//!     one place of a frame.
//!
//! In SSA form:
//!
//! 21. `no-slot-access`: no instruction reads or writes a slot, except those that are kept in memory.
//!
//! Slot form may have phis too: it is what a pass that promotes some of the slots leaves.
//!
//! Of a stage or pass, which [`effects`] checks:
//!
//! 22. `effects-in-order`: on each path, effects stand in the order in which they stood before.

pub mod effects;
mod graph;
mod types;
mod values;

use std::fmt;

use slotvm_bytecode::module::GlobalType;
use slotvm_bytecode::{FuncType, ValType, VerifiedModule};

use crate::ir::Function;

/// The form of a function.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// Slots are read and written.
    Slots,
    /// SSA form: no slot is accessed.
    Ssa,
}

/// The verifier's view of the module that a function belongs to.
pub trait Context {
    /// The type of a function of the index space.
    fn func_type(&self, func: u32) -> Option<&FuncType>;
    /// A function type by its index.
    fn type_at(&self, index: u32) -> Option<&FuncType>;
    /// The type of a global.
    fn global(&self, global: u32) -> Option<GlobalType>;
    /// The type of the elements of a table.
    fn table(&self, table: u32) -> Option<ValType>;
    /// The type of the elements of an element segment.
    fn elem(&self, elem: u32) -> Option<ValType>;
    /// The number of memories.
    fn n_memories(&self) -> usize;
    /// The number of data segments.
    fn n_datas(&self) -> usize;
}

impl Context for VerifiedModule {
    fn func_type(&self, func: u32) -> Option<&FuncType> {
        (func < self.n_funcs()).then(|| self.func_type(func))
    }

    fn type_at(&self, index: u32) -> Option<&FuncType> {
        self.module().types.get(index as usize)
    }

    fn global(&self, global: u32) -> Option<GlobalType> {
        self.globals().get(global as usize).copied()
    }

    fn table(&self, table: u32) -> Option<ValType> {
        self.tables().get(table as usize).map(|table| table.elem)
    }

    fn elem(&self, elem: u32) -> Option<ValType> {
        self.module().elems.get(elem as usize).map(|elem| elem.ty)
    }

    fn n_memories(&self) -> usize {
        self.memories().len()
    }

    fn n_datas(&self) -> usize {
        self.module().datas.len()
    }
}

macro_rules! define_properties {
    ($($variant:ident $name:literal;)*) => {
        /// A property of the list in the [module's documentation](self).
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Property {
            $(#[doc = concat!("`", $name, "`.")] $variant,)*
        }

        impl Property {
            /// All properties, in the order of their numbers.
            pub const ALL: &'static [Property] = &[$(Property::$variant),*];

            /// The name in the list.
            pub const fn name(self) -> &'static str {
                match self { $(Property::$variant => $name,)* }
            }
        }
    };
}

define_properties! {
    OneBlock "one-block";
    LayoutOnce "layout-once";
    TerminatorLast "terminator-last";
    EdgesOfTerminator "edges-of-terminator";
    PredsAgree "preds-agree";
    EntryFirst "entry-first";
    AllReachable "all-reachable";
    DominatorPreorder "dominator-preorder";
    EntryParams "entry-params";
    OpcodeOfIr "opcode-of-ir";
    Immediates "immediates";
    OperandTypes "operand-types";
    ResultTypes "result-types";
    ReturnTypes "return-types";
    EdgeArguments "edge-arguments";
    DefinedOnce "defined-once";
    DefsDominate "defs-dominate";
    Locations "locations";
    SlotsDistinct "slots-distinct";
    ExitFrames "exit-frames";
    NoSlotAccess "no-slot-access";
    EffectsInOrder "effects-in-order";
}

impl Property {
    /// The number in the list, from 1.
    pub const fn number(self) -> usize {
        self as usize + 1
    }
}

/// A violated property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The property.
    pub property: Property,
    /// The place and reason, with the ids of the [`Function`]'s tables.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { property, detail } = self;
        write!(f, "property {} ({}) does not hold: {detail}", property.number(), property.name())
    }
}

impl std::error::Error for Violation {}

/// Returns the violation of a property unless a condition holds.
macro_rules! require {
    ($condition:expr, $property:ident, $($detail:tt)*) => {
        if !$condition {
            return Err($crate::ir::verify::Violation {
                property: $crate::ir::verify::Property::$property,
                detail: format!($($detail)*),
            });
        }
    };
}
use require;

/// Checks that the properties in the [module's documentation](self) hold.
///
/// # Errors
/// Returns the first property that does not hold.
pub fn verify(f: &Function, form: Form, context: &impl Context) -> Result<(), Violation> {
    graph::check_blocks(f)?;
    let dom = graph::check_graph(f)?;
    types::check_types(f, form, context)?;
    values::check_values(f, &dom)
}

#[cfg(test)]
mod tests;
