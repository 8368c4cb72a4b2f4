//! A compiled program at a stage of slotvm's pipeline, as text or LLVM IR.

use slotvm_bytecode::VerifiedModule;
use slotvm_ssa::pipeline::{self, ShowError, Style};
use slotvm_ssa::tools::llvm;

/// All functions of a program at a stage, or in a view such as `promotion`, as text.
///
/// # Errors
/// Fails if there is no such stage, or a function is too large for it.
pub fn show(module: &VerifiedModule, stage: &str) -> Result<String, ShowError> {
    functions(module, stage, &mut Style::Text)
}

/// A program before promotion, in LLVM IR: its variables are `alloca`s. What LLVM has no instruction for is a call of
/// a function that is declared at the end.
///
/// # Errors
/// Fails if a function is too large.
pub fn show_llvm(module: &VerifiedModule) -> Result<String, ShowError> {
    let mut printer = llvm::Printer::new(module);
    let text = functions(module, "slots", &mut Style::Llvm(&mut printer))?;
    Ok(format!("{text}\n{}", printer.declarations()))
}

fn functions(
    module: &VerifiedModule,
    stage: &str,
    style: &mut Style<'_, '_>,
) -> Result<String, ShowError> {
    let defined = module.n_imported_funcs()..module.n_funcs();
    let texts: Result<Vec<String>, _> =
        defined.map(|func| pipeline::show(module, func, stage, style)).collect();
    Ok(texts?.join("\n"))
}
