//! Interface to engines for comparing programs, and its implementations.

use std::fmt;

use slotvm::TrapCode;

use crate::program::{Call, Program};
use crate::value::Value;

mod slotvm_engine;
mod wasmi_engine;
pub(crate) mod wasmi_faults;
mod wasmtime_engine;

/// The name of the last engine.
pub(crate) const WASMI: &str = "wasmi";

/// All engines, the reference first.
pub(crate) fn all() -> Vec<Box<dyn Engine>> {
    let mut engines = slotvm_engine::all();
    engines.push(Box::new(wasmtime_engine::Wasmtime::new()));
    engines.push(Box::new(wasmi_engine::Wasmi::new()));
    engines
}

pub(crate) trait Engine: Send + Sync {
    fn name(&self) -> &str;

    /// Makes the module ready to be instantiated, or returns why not.
    fn compile(&self, wasm: &[u8]) -> Result<Box<dyn Compiled>, String>;
}

pub(crate) trait Compiled {
    /// Makes a store with an instance of the program's module and what it imports. If the instance cannot
    /// be made, says how it ended; what it imports can then still be looked at.
    fn instantiate(&self, program: &Program) -> (Box<dyn Instance>, Result<(), End>);
}

/// Exports of an instance, or its imports if it does not exist.
pub(crate) trait Instance {
    fn call(&mut self, call: &Call) -> End;

    /// The first memory; empty if there is none.
    fn memory(&self) -> &[u8];

    fn globals(&mut self) -> Vec<Value>;

    fn tables(&mut self) -> Vec<Vec<Value>>;

    /// The arguments of host functions.
    fn log(&self) -> &[Value];
}

/// End of a call or instantiation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Results.
    Returned(Vec<Value>),
    /// A trap. A segment that does not fit counts as one.
    Trapped(TrapCode),
    /// The error of a host function.
    HostFailed,
    /// The engine does not do it, for this reason.
    Refused(String),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Returned(values) => write!(f, "returned {values:x?}"),
            End::Trapped(code) => write!(f, "trap: {code}"),
            End::HostFailed => f.write_str("a host function failed"),
            End::Refused(reason) => write!(f, "refused: {reason}"),
        }
    }
}
