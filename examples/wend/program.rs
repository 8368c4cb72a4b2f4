//! A program whose names and types are resolved.

use std::collections::BTreeSet;

use crate::syntax::{Operator, Type};

/// A function, by its position in [`Program::functions`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FuncId(pub usize);

/// A variable or parameter, by its position in [`Program::variables`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VarId(pub usize);

/// A program.
#[derive(Clone, Debug)]
pub struct Program {
    /// All functions; the first is the whole program.
    pub functions: Vec<Func>,
    /// The variables and parameters of all functions.
    pub variables: Vec<Var>,
}

/// A variable or parameter.
#[derive(Clone, Debug)]
pub struct Var {
    /// The name.
    pub name: String,
    /// The type.
    pub ty: Type,
    /// The function that it belongs to.
    pub owner: FuncId,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Func {
    /// The names of the functions around it and its own, with the types of its parameters: `main.f(int)`.
    pub name: String,
    /// The line of its name.
    pub line: u32,
    /// The type of its value.
    pub result: Type,
    /// The parameters.
    pub params: Vec<VarId>,
    /// The variables.
    pub locals: Vec<VarId>,
    /// The variables of functions around it that it or functions that it calls use.
    pub needs: BTreeSet<VarId>,
    /// The statements.
    pub body: Vec<Stmt>,
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// The operation.
    pub kind: StmtKind,
    /// The line that it starts in.
    pub line: u32,
}

/// The operation of a statement.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// Evaluates and drops the value, if there is one.
    Drop(Expr),
    /// Assigns.
    Assign(VarId, Expr),
    /// Returns.
    Return(Option<Expr>),
    /// Prints a value, and a line break or not.
    Print(Expr, bool),
    /// Executes the first statements if the condition holds, otherwise the second ones.
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    /// Repeats.
    While(Expr, Vec<Stmt>),
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// The operation.
    pub kind: ExprKind,
    /// The type.
    pub ty: Type,
    /// The line that it starts in.
    pub line: u32,
}

/// The operation of an expression.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A number.
    Int(i32),
    /// A truth value.
    Bool(bool),
    /// A text.
    Text(Vec<u8>),
    /// The value of a variable.
    Variable(VarId),
    /// The value of a call.
    Call(FuncId, Vec<Expr>),
    /// The opposite truth value.
    Not(Box<Expr>),
    /// Zero minus a number.
    Negate(Box<Expr>),
    /// Operators from left to right.
    Chain(Box<Expr>, Vec<(Operator, Expr)>),
}
