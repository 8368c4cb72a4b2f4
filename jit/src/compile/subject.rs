//! What is being compiled, for messages about a compilation.

use std::cell::Cell;
use std::fmt;

use slotvm_bytecode::VerifiedModule;

thread_local! {
    /// The innermost compilation of this thread whose panic will be caught.
    static CONTAINED: Cell<Option<Subject>> = const { Cell::new(None) };
}

/// The subject of the compilation on this thread whose panic will be caught, if there is one. For panic hooks.
pub fn compiling() -> Option<Subject> {
    // A thread that ends compiles nothing any more.
    CONTAINED.try_with(Cell::get).ok().flatten()
}

/// Sets what [`compiling`] returns, and returns what it was.
pub(super) fn replace(subject: Option<Subject>) -> Option<Subject> {
    CONTAINED.replace(subject)
}

/// What is being compiled.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// A function, by its number in the function index space.
    Function(u32),
    /// A form of a function that is entered in loops.
    Loop {
        /// The number of the function.
        func: u32,
        /// The code offset of the first loop.
        offset: u32,
    },
    /// The code by which the host, the interpreter and native code call each other.
    Trampoline,
    /// All functions of a module, when their code is placed.
    Module,
}

impl Subject {
    /// A function, or its form that is entered in some loops, by their numbers.
    pub(crate) fn of(module: &VerifiedModule, func: u32, loops: &[u32]) -> Subject {
        match (loops.first(), module.body(func)) {
            (Some(&number), Some(body)) => {
                let start = body.loops()[number as usize].start;
                Subject::Loop { func, offset: body.blocks[start as usize].start }
            }
            _ => Subject::Function(func),
        }
    }

    /// The number of the function.
    pub(crate) fn func(self) -> Option<u32> {
        match self {
            Subject::Function(func) | Subject::Loop { func, .. } => Some(func),
            Subject::Trampoline | Subject::Module => None,
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Function(func) => write!(f, "function f{func}"),
            Subject::Loop { func, offset } => write!(f, "function f{func}, loop at {offset:#06x}"),
            Subject::Trampoline => f.write_str("a trampoline"),
            Subject::Module => f.write_str("a module"),
        }
    }
}
