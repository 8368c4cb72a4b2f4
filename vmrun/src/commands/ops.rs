//! `vmrun ops`: the opcode reference.

use crate::error::CliError;
use crate::output::print;

pub(super) fn ops() -> Result<(), CliError> {
    print(&slotvm_bytecode::reference())
}
