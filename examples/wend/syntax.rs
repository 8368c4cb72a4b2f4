//! The syntax tree, with the place of each part in the source.

use std::ops::Range;

/// A place in the source, in bytes.
pub type Span = Range<usize>;

/// A type. Texts are arguments of `print` only.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    /// No value.
    Void,
    /// A signed integer of 32 bits.
    Int,
    /// A truth value.
    Bool,
    /// A text.
    Text,
}

impl Type {
    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Type::Void => "void",
            Type::Int => "int",
            Type::Bool => "bool",
            Type::Text => "text",
        }
    }
}

/// A name.
#[derive(Clone, Debug)]
pub struct Name {
    /// The name itself.
    pub text: String,
    /// Its place.
    pub span: Span,
}

/// A declaration of a variable or a parameter.
#[derive(Clone, Debug)]
pub struct Variable {
    /// The type.
    pub ty: Type,
    /// The name.
    pub name: Name,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// The type of its value.
    pub result: Type,
    /// The name.
    pub name: Name,
    /// The parameters.
    pub params: Vec<Variable>,
    /// The variables, which are zero or false at first.
    pub variables: Vec<Variable>,
    /// The nested functions.
    pub functions: Vec<Function>,
    /// The statements.
    pub body: Vec<Statement>,
    /// The closing brace.
    pub end: Span,
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Statement {
    /// A call whose value is dropped.
    Call(Call),
    /// An assignment.
    Assign(Name, Expr),
    /// A return, and the place of the keyword.
    Return(Option<Expr>, Span),
    /// Output of a value, with a line break after it or not.
    Print {
        /// The value.
        value: Expr,
        /// Whether a line break follows.
        newline: bool,
    },
    /// A conditional statement.
    If {
        /// The condition.
        condition: Expr,
        /// The statements if it holds.
        then: Vec<Statement>,
        /// The statements if not.
        otherwise: Vec<Statement>,
    },
    /// A loop.
    While(Expr, Vec<Statement>),
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// The operation.
    pub kind: ExprKind,
    /// Its place.
    pub span: Span,
}

/// The operation of an expression.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A number.
    Int(i32),
    /// `true` or `false`.
    Bool(bool),
    /// The bytes of a text, with escapes decoded.
    Text(Vec<u8>),
    /// The value of a variable.
    Variable(String),
    /// The value of a call.
    Call(Call),
    /// `!`.
    Not(Box<Expr>),
    /// Unary `-`.
    Negate(Box<Expr>),
    /// Operators of one strength, from left to right. A list does not nest, however long it is.
    Chain(Box<Expr>, Vec<(Operator, Expr)>),
}

/// A call.
#[derive(Clone, Debug)]
pub struct Call {
    /// The name of the function.
    pub name: Name,
    /// The arguments.
    pub args: Vec<Expr>,
}

/// A binary operator.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Rem,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `&&`
    And,
    /// `||`
    Or,
}

impl Operator {
    /// All operators, with their symbols.
    pub const ALL: [(Operator, &'static str); 13] = [
        (Operator::Add, "+"),
        (Operator::Sub, "-"),
        (Operator::Mul, "*"),
        (Operator::Div, "/"),
        (Operator::Rem, "%"),
        (Operator::Equal, "=="),
        (Operator::NotEqual, "!="),
        (Operator::Less, "<"),
        (Operator::LessEqual, "<="),
        (Operator::Greater, ">"),
        (Operator::GreaterEqual, ">="),
        (Operator::And, "&&"),
        (Operator::Or, "||"),
    ];

    /// The symbol.
    pub fn symbol(self) -> &'static str {
        let (_, symbol) = Operator::ALL[self as usize];
        symbol
    }

    /// The type of the operands, or `None` if they can be of either type, but both of one.
    pub fn operands(self) -> Option<Type> {
        match self {
            Operator::Equal | Operator::NotEqual => None,
            Operator::And | Operator::Or => Some(Type::Bool),
            _ => Some(Type::Int),
        }
    }

    /// The type of the result.
    pub fn result(self) -> Type {
        match self {
            Operator::Add | Operator::Sub | Operator::Mul | Operator::Div | Operator::Rem => {
                Type::Int
            }
            _ => Type::Bool,
        }
    }
}
