//! The syntax tree. Names are resolved already: a variable is a local, a capture or a global.

use std::collections::HashMap;

use crate::library;

/// A place in the source, from 1.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// Error of a source text, at a place of it.
#[derive(Debug, thiserror::Error)]
#[error("{}:{}: {message}", place.line, place.column)]
pub(crate) struct SyntaxError {
    pub(crate) place: Place,
    pub(crate) message: String,
}

/// A variable as a function sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Variable {
    /// One of its own, by the index in [`Function::locals`].
    Local(usize),
    /// One of a function around it, by the index in [`Function::captures`].
    Captured(usize),
    /// One of the whole program.
    Global(String),
}

/// A local, with the facts that are known at the end of its function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Local {
    pub(crate) name: String,
    /// Whether it changes after its declaration.
    pub(crate) is_assigned: bool,
    pub(crate) is_captured: bool,
}

#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) n_params: usize,
    /// The parameters come first.
    pub(crate) locals: Vec<Local>,
    /// Each as the function around it sees it.
    pub(crate) captures: Vec<Variable>,
    pub(crate) body: Vec<Statement>,
}

#[derive(Debug)]
pub(crate) struct Expr {
    pub(crate) place: Place,
    /// Expressions within each other here, itself included.
    pub(crate) depth: u32,
    pub(crate) kind: ExprKind,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
    /// The quotient, rounded down.
    FloorDiv,
    /// What [`Arithmetic::FloorDiv`] leaves.
    Rem,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Logic {
    And,
    Or,
}

#[derive(Debug)]
pub(crate) enum ExprKind {
    Nil,
    Bool(bool),
    Number(f64),
    Text(String),
    Variable(Variable),
    Function(Box<Function>),
    Array(Vec<Expr>),
    Object(Vec<(String, Expr)>),
    Field(Box<Expr>, String),
    Index(Box<[Expr; 2]>),
    Call(Box<Expr>, Vec<Expr>),
    Library(&'static library::Function, Vec<Expr>),
    Arithmetic(Arithmetic, Box<[Expr; 2]>),
    Negate(Box<Expr>),
    Concat(Box<[Expr; 2]>),
    Compare(Comparison, Box<[Expr; 2]>),
    Equal { negated: bool, operands: Box<[Expr; 2]> },
    Logic(Logic, Box<[Expr; 2]>),
    Not(Box<Expr>),
}

#[derive(Debug)]
pub(crate) enum Statement {
    Expr(Expr),
    /// Declares a local, or sets a global for the first time.
    Let(Variable, Expr),
    /// Declares a local, which the function may name itself.
    Fn(usize, Expr),
    Assign(Variable, Expr),
    AssignField(Expr, String, Expr),
    AssignIndex(Expr, Expr, Expr),
    If(Vec<(Expr, Vec<Statement>)>, Vec<Statement>),
    While(Expr, Vec<Statement>),
    /// Counts a local from one number up to another one, exclusively.
    For(usize, Expr, Expr, Vec<Statement>),
    Return(Option<Expr>),
    Break,
    Continue,
}

/// A program, or a line of a dialogue.
#[derive(Debug)]
pub(crate) struct Program {
    /// The statements outside all functions.
    pub(crate) main: Function,
    /// The functions declared by `fn` outside all others. They capture nothing.
    pub(crate) functions: Vec<Function>,
    /// The other globals that it declares.
    pub(crate) globals: Vec<String>,
    /// All globals that it reads or writes, each with the place of the first use.
    pub(crate) used: HashMap<String, Place>,
}
