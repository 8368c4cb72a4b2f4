//! Modules for the tests, from text.

use slotvm_bytecode::{VerifiedModule, text};

use crate::build::{BuildOptions, BuildScratch, build};
use crate::ir::Function;
use crate::verify::{Form, verify};

/// The module with this text.
pub(crate) fn module(source: &str) -> VerifiedModule {
    let module = text::parse(source).unwrap_or_else(|error| panic!("{error}"));
    slotvm_bytecode::verify::verify(module).unwrap_or_else(|error| panic!("{error}"))
}

/// The slot form of a function, verified.
pub(crate) fn slot_form(module: &VerifiedModule, func: u32, options: &BuildOptions) -> Function {
    let f = build(module, func, options, &mut BuildScratch::default());
    verify(&f, Form::Slots, module).unwrap_or_else(|violation| panic!("{violation}\n{f}"));
    f
}

/// The slot forms of all functions that the module defines, made with one scratch memory.
pub(crate) fn slot_forms(module: &VerifiedModule, options: &BuildOptions) -> Vec<Function> {
    let mut scratch = BuildScratch::default();
    let funcs = module.n_imported_funcs()..module.n_funcs();
    funcs.map(|func| build(module, func, options, &mut scratch)).collect()
}
