//! The mistakes of a front end.

use std::fmt;

use super::FuncId;
use crate::op::Op;
use crate::printable::Printable;
use crate::types::ValType;

/// A mistake of a front end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildError {
    /// The function it is in, if it is in one.
    pub func: Option<FuncId>,
    /// The name of the function, if it has one.
    pub func_name: Option<String>,
    /// The instruction that was being emitted, and how many came before it in the function.
    pub inst: Option<(u32, Op)>,
    /// The source line that was set, 0 if none.
    pub line: u32,
    /// What is wrong.
    pub rule: BuildRule,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildRule {
    /// An import of this kind after a definition of the same kind, whose index it would shift.
    #[error("a {0} is imported after one was defined")]
    ImportAfterDefinition(&'static str),
    /// A declared function was never defined, or its builder never finished.
    #[error("the function is declared but not defined")]
    Undefined,
    /// A function that is imported, already defined, or not declared at all.
    #[error("the function cannot be defined: it is imported, already defined or not declared")]
    NotDefinable,
    /// An index of an entity that does not exist.
    #[error("there is no {what} {index}")]
    NoSuch {
        /// The kind of entity.
        what: &'static str,
        /// Its index.
        index: u32,
    },
    /// The operand stack does not end in what the instruction takes.
    #[error("expected {expected} on top of the operand stack {stack}")]
    Operand {
        /// The type, or what it must be like.
        expected: String,
        /// The operand stack.
        stack: String,
    },
    /// A branch, or running into a label, with another operand stack than the label has.
    #[error("the operand stack is {stack}, but at label {label} it is {expected}")]
    LabelStack {
        /// The label.
        label: u32,
        /// The operand stack of the label.
        expected: String,
        /// The operand stack of the branch.
        stack: String,
    },
    /// A `br_keep` that does not give the operand stack of the label.
    #[error(
        "label {label} has {expected}, which the topmost {n} operands and the lowest of {stack} are not"
    )]
    Kept {
        /// The number of operands that it takes along.
        n: u32,
        /// The label.
        label: u32,
        /// The operand stack of the label.
        expected: String,
        /// The operand stack of the branch.
        stack: String,
    },
    /// A tail call to a function with other results.
    #[error("a tail call needs the results ({expected}), the callee gives ({found})")]
    TailResults {
        /// The results of the function.
        expected: String,
        /// Those of the callee.
        found: String,
    },
    /// A write to an immutable global.
    #[error("global {0} is immutable")]
    Immutable(u32),
    /// Two tables of different element types.
    #[error("the types {0} and {1} differ")]
    ElementTypes(ValType, ValType),
    /// An instruction behind an unconditional jump, where no label stands.
    #[error("unreachable code: no label stands here")]
    Unreachable,
    /// A label is bound where no code runs into it and no branch has gone to it, so that its operand
    /// stack is not known.
    #[error("the operand stack at label {0} is not known; create or bind it with its stack")]
    UnknownStack(u32),
    /// A label is bound twice.
    #[error("label {0} is bound twice")]
    Rebound(u32),
    /// A branch goes to a label that is never bound.
    #[error("label {0} is used but never bound")]
    Unbound(u32),
    /// Control runs past the end of the code.
    #[error("control runs off the end of the code")]
    FallsOff,
    /// An instruction emitted by the wrong method.
    #[error("the instruction needs other immediates: emit it by its own method")]
    Immediates,
    /// The scale of an indexed access is not 1, 2, 4 or 8.
    #[error("the scale {0} is not 1, 2, 4 or 8")]
    Scale(u32),
    /// More than a named limit of [`crate::limits`] allows.
    #[error("exceeds the limit {0}")]
    Limit(&'static str),
}

impl BuildError {
    pub(super) fn in_module(rule: BuildRule) -> BuildError {
        BuildError { func: None, func_name: None, inst: None, line: 0, rule }
    }

    pub(super) fn in_func(func: FuncId, func_name: Option<String>, rule: BuildRule) -> BuildError {
        BuildError { func: Some(func), func_name, inst: None, line: 0, rule }
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.func_name, self.func) {
            (Some(name), _) => write!(f, "function `{}`: ", Printable(name))?,
            (None, Some(func)) => write!(f, "function {}: ", func.0)?,
            (None, None) => {}
        }
        if let Some((n, op)) = self.inst {
            write!(f, "instruction {n}, `{}`: ", op.mnemonic())?;
        }
        write!(f, "{}", self.rule)?;
        if self.line != 0 {
            write!(f, " (source line {})", self.line)?;
        }
        Ok(())
    }
}

impl std::error::Error for BuildError {}
