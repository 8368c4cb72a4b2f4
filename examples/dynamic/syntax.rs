//! Syntax tree: functions of expressions, with names resolved.

use crate::value::Value;

/// A program. Function 0 is its top level.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) functions: Vec<Function>,
}

/// A function. Its parameters are its first locals.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) n_params: usize,
    pub(crate) n_locals: usize,
    pub(crate) body: Expr,
}

/// An expression, with the line it is on where that is needed.
#[derive(Debug)]
pub(crate) enum Expr {
    /// An integer, or an object that is made before the program starts.
    Constant(Value),
    Local(usize),
    /// Sets a local; returns its new value.
    Set(usize, Box<Expr>),
    If(Box<[Expr; 3]>),
    /// Returns nil.
    While(Box<Expr>, Box<Expr>),
    /// Returns the last value, or nil.
    Do(Vec<Expr>),
    /// Calls a function of the program.
    Call {
        line: u32,
        function: usize,
        args: Vec<Expr>,
    },
    Binary {
        line: u32,
        operator: Binary,
        operands: Box<[Expr; 2]>,
    },
    Builtin {
        line: u32,
        builtin: Builtin,
        args: Vec<Expr>,
    },
    /// A new list.
    List {
        line: u32,
        items: Vec<Expr>,
    },
}

/// Operators that mostly meet integers.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Less,
    Equal,
}

impl Binary {
    pub(crate) const ALL: [(&str, Binary); 7] = [
        ("+", Binary::Add),
        ("-", Binary::Sub),
        ("*", Binary::Mul),
        ("/", Binary::Div),
        ("%", Binary::Rem),
        ("<", Binary::Less),
        ("=", Binary::Equal),
    ];
}

/// Functions of the host.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    Get,
    Put,
    Push,
    Len,
    Print,
}

impl Builtin {
    /// All built-in functions, with their names and numbers of arguments.
    pub(crate) const ALL: [(&str, Builtin, usize); 5] = [
        ("get", Builtin::Get, 2),
        ("put", Builtin::Put, 3),
        ("push", Builtin::Push, 2),
        ("len", Builtin::Len, 1),
        ("print", Builtin::Print, 1),
    ];
}
