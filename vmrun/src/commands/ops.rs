//! `vmrun ops`: the opcode reference.

use super::print;
use crate::error::CliError;

pub(super) fn ops() -> Result<(), CliError> {
    print(&slotvm_bytecode::reference())
}
