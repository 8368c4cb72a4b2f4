//! Machine code that comes from no bytecode: what lies between calling conventions.

use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{Function, MemFlagsData, Signature, UserFuncName, Value};
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::{CodegenError, Context};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

use crate::code::error::CodeError;
use crate::code::machine_code::MachineCode;
use crate::code::pctable::PlaceId;

/// Accesses to structures of ours, which are there and aligned.
pub(crate) const TRUSTED: MemFlagsData = MemFlagsData::trusted();

/// Compiles code without places in bytecode.
///
/// # Errors
/// Fails if Cranelift refuses the signature.
pub(crate) fn compile(
    isa: &dyn TargetIsa,
    signature: Signature,
    build: impl FnOnce(&mut FunctionBuilder<'_>),
) -> Result<MachineCode, CodeError> {
    let func = Function::with_name_signature(UserFuncName::default(), signature);
    let mut context = Context::for_function(func);
    let mut scratch = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut context.func, &mut scratch);
    build(&mut builder);
    builder.seal_all_blocks();
    builder.finalize(isa.frontend_config());
    let compiled = context
        .compile(isa, &mut ControlPlane::default())
        .map_err(|error| refused(&error.inner))?
        .clone();
    Ok(MachineCode::new(&compiled, &context.func, isa, |_| None, |_, _| PlaceId::NONE))
}

fn refused(refusal: &CodegenError) -> CodeError {
    match refusal {
        CodegenError::ImplLimitExceeded | CodegenError::CodeTooLarge => CodeError::WideTrampoline,
        other => CodeError::Trampoline(format!("{other:?}")),
    }
}

/// Starts the function and returns its parameters.
pub(crate) fn entry_block(b: &mut FunctionBuilder<'_>) -> Vec<Value> {
    let block = b.create_block();
    b.append_block_params_for_function_params(block);
    b.switch_to_block(block);
    b.block_params(block).to_vec()
}
