//! Errors of the builders: mistakes of a front end.

use std::fmt;

use super::FuncId;
use crate::op::Op;
use crate::printable::Printable;
use crate::types::ValType;

/// Error for a mistake of a front end, with its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildError {
    /// The function, unless the mistake concerns the whole module.
    pub func: Option<FuncId>,
    /// The name of the function, if it has one.
    pub func_name: Option<String>,
    /// The instruction being emitted, and the number of instructions before it in the function.
    pub inst: Option<(u32, Op)>,
    /// The source line that was set, 0 if none.
    pub line: u32,
    /// The kind of mistake.
    pub rule: BuildRule,
}

/// Kinds of mistakes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildRule {
    /// An import of this kind after a definition of the same kind, whose index it would shift.
    #[error("{0} import after a {0} definition; expected imports first")]
    ImportAfterDefinition(&'static str),
    /// A declared function was never defined, or its builder never finished.
    #[error("the function is declared but not defined")]
    Undefined,
    /// A function that is imported, already defined, or not declared at all.
    #[error("the function cannot be defined: it is imported, already defined or not declared")]
    NotDefinable,
    /// An entity index that does not exist.
    #[error("unknown {what} {index}")]
    NoSuch {
        /// The kind of entity.
        what: &'static str,
        /// Its index.
        index: u32,
    },
    /// The operands that the instruction expects are not on top of the operand stack.
    #[error("expected {expected} on top of the operand stack, found {stack}")]
    Operand {
        /// The type, or a description of it.
        expected: String,
        /// The operand stack.
        stack: String,
    },
    /// Control reaches a label with an operand stack that differs from the label's.
    #[error("expected the operand stack {expected} of label {label}, found {stack}")]
    LabelStack {
        /// The label.
        label: u32,
        /// The operand stack of the label.
        expected: String,
        /// The operand stack of the branch.
        stack: String,
    },
    /// A `br_keep` that does not produce the operand stack of the label.
    #[error(
        "the topmost {n} and the lowest operands of {stack} do not match {expected}, the stack of \
         label {label}"
    )]
    Kept {
        /// The number of operands that it keeps.
        n: u32,
        /// The label.
        label: u32,
        /// The operand stack of the label.
        expected: String,
        /// The operand stack of the branch.
        stack: String,
    },
    /// A tail call to a function with other results.
    #[error("expected a tail call with the results ({expected}), found ({found})")]
    TailResults {
        /// The results of the function.
        expected: String,
        /// The results of the callee.
        found: String,
    },
    /// A write to an immutable global.
    #[error("global {0} is immutable")]
    Immutable(u32),
    /// Two tables of different element types.
    #[error("element types {0} and {1} differ")]
    ElementTypes(ValType, ValType),
    /// An instruction after a terminator, without a label.
    #[error("unreachable code; expected a label")]
    Unreachable,
    /// A label is bound in unreachable code before any branch to it, so its operand stack is unknown.
    #[error("unknown operand stack at label {0}; create or bind the label with its stack")]
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
    /// An instruction was emitted with the wrong method.
    #[error("wrong immediates; emit the instruction with its own method")]
    Immediates,
    /// The scale of an indexed access is not 1, 2, 4 or 8.
    #[error("invalid scale {0}; expected 1, 2, 4 or 8")]
    Scale(u32),
    /// A limit of [`crate::limits`] is exceeded.
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
