//! wend, the language of [tinycompiler](https://github.com/ssloy/tinycompiler) and
//! [tinyoptimizer](https://github.com/ssloy/tinyoptimizer), as a front end for slotvm.
//!
//! A program is one function, in which others are nested:
//!
//! ```text
//! main() {
//!     int n;
//!     bool is_even(int x) { n = n + 1; if x == 0 { return true; } return is_odd(x - 1); }
//!     bool is_odd(int x)  { if x == 0 { return false; } return is_even(x - 1); }
//!     println is_even(10);
//!     println n;
//! }
//! ```
//!
//! [`parse`] makes a syntax tree of the source, [`check`] resolves names and types, [`captures`] finds the variables of
//! its surroundings that each function needs, and [`emit`] makes bytecode. `docs/wend.md` shows what becomes of each
//! construct.

pub mod captures;
pub mod check;
pub mod emit;
pub mod error;
pub mod host;
pub mod parse;
pub mod program;
pub mod show;
pub mod syntax;

pub use emit::Compiled;
pub use error::CompileError;
pub use host::run;
pub use show::{show, show_llvm};

/// Compiles a program.
///
/// # Errors
/// Fails if the program breaks a rule of the language, or a function exceeds a limit of the bytecode.
pub fn compile(source: &str) -> Result<Compiled, CompileError> {
    let main = parse::parse(source)?;
    let program = check::check(source, &main)?;
    let too_large = |error: slotvm::builder::BuildError| {
        CompileError::new(&main.name.span, format!("the program is too large: {error}"))
    };
    emit::emit(&program).map_err(too_large)
}

#[cfg(test)]
mod tests;
