//! What the assembler has read and not resolved: instructions, labels and references that may go forward.

use std::ops::Range;

use super::cursor::Ref;
use super::lexer::Token;
use crate::inst::Imm;
use crate::module::{BranchHint, ShapeId, SourcePlace};
use crate::op::Op;

/// Work left after all items have been parsed.
#[derive(Default)]
pub(super) struct Pending {
    /// The instructions of all functions and constant expressions.
    pub(super) insts: Vec<PendingInst>,
    /// The labels of all `br_table`s.
    pub(super) labels: Vec<Ref>,
    /// The bodies of the functions defined here, in order.
    pub(super) funcs: Vec<PendingFunc>,
    pub(super) exprs: Vec<(ExprPlace, Range<usize>)>,
    /// Element segments that list functions.
    pub(super) elem_funcs: Vec<(u32, Vec<Ref>)>,
    /// The tables and memories of active segments.
    pub(super) targets: Vec<(Target, Ref)>,
    /// The exported entities, in order.
    pub(super) exports: Vec<Ref>,
    pub(super) start: Option<Ref>,
}

/// An instruction whose operands may be names.
pub(super) struct PendingInst {
    pub(super) op: Op,
    /// The mnemonic.
    pub(super) token: Token,
    pub(super) imm: PendingImm,
}

/// The immediates of an instruction before names are resolved.
pub(super) enum PendingImm {
    /// Nothing to resolve.
    Ready(Imm),
    /// An entity of the opcode's kind.
    One(Ref),
    /// A label and a number of operands.
    LabelCount(Ref, u32),
    /// Two entities of the opcode's kinds.
    Two(Ref, Ref),
    /// A type and a table.
    Type(u32, Ref),
    /// A memory and the other immediates of a load or store.
    Access(Ref, Imm),
    /// The 16 bytes of a vector, as a little-endian number.
    Vector(u128),
    /// The labels of a `br_table`, the default last, as a range of [`Pending::labels`].
    Labels {
        /// The first.
        start: u32,
        /// The end, after the default.
        end: u32,
    },
}

/// A function body before its code is encoded.
pub(super) struct PendingFunc {
    /// The range in [`Pending::insts`].
    pub(super) insts: Range<usize>,
    pub(super) labels: Vec<PendingLabel>,
    /// `.line` directives.
    pub(super) lines: Vec<(Place, SourcePlace)>,
    /// `.likely` and `.unlikely` directives, with the word in the text.
    pub(super) hints: Vec<(Place, BranchHint, Token)>,
    /// The function's name in the text.
    pub(super) name: Token,
}

impl PendingFunc {
    /// Creates a body that starts at this instruction.
    pub(super) fn new(start: usize, name: Token) -> PendingFunc {
        PendingFunc {
            insts: start..start,
            labels: Vec::new(),
            lines: Vec::new(),
            hints: Vec::new(),
            name,
        }
    }
}

/// A label whose code offset is not known yet.
pub(super) struct PendingLabel {
    pub(super) place: Place,
    pub(super) shape: ShapeId,
}

/// A place in the code.
#[derive(Copy, Clone)]
pub(super) enum Place {
    /// Before an instruction, by its index in [`Pending::insts`].
    Inst(usize),
    /// A code offset.
    Offset(u32),
}

/// The place of a constant expression.
#[derive(Copy, Clone)]
pub(super) enum ExprPlace {
    /// The initial value of a global defined here.
    Global(u32),
    /// The offset of a data segment.
    DataOffset(u32),
    /// The offset of an element segment.
    ElemOffset(u32),
    /// An element of a segment.
    ElemItem(u32, u32),
}

/// An active segment.
#[derive(Copy, Clone)]
pub(super) enum Target {
    Elem(u32),
    Data(u32),
}
