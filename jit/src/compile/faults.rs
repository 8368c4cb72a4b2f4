//! Faults for the tests of containment, which only builds for unit tests have: the name of a function asks for them.

use slotvm_bytecode::VerifiedModule;

use crate::compile::error::CompileError;
use crate::compile::failure::CompileFailure;

/// Compiling the function panics.
pub(crate) const PANICS: &str = "fault_panics";
/// Compiling a loop of the function panics.
pub(crate) const LOOP_PANICS: &str = "fault_loop_panics";
/// A stage leaves an invalid function.
pub(crate) const INVALID: &str = "fault_invalid";

/// Fails as the name of the function asks for.
pub(super) fn inject(
    module: &VerifiedModule,
    func: u32,
    loops: &[u32],
) -> Result<(), CompileError> {
    let name = module.func_name(func);
    if name.starts_with(PANICS) || name.starts_with(LOOP_PANICS) && !loops.is_empty() {
        panic!("a fault was asked for");
    }
    match name.starts_with(INVALID) {
        true => {
            let (failure, reason) = (CompileFailure::InvalidForm, "it was asked for".to_owned());
            Err(CompileError { func, name, failure, reason })
        }
        false => Ok(()),
    }
}
