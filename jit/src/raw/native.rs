//! The native code of C functions: one unit with the stubs of imported functions, the guest functions, and
//! the entries of those, in this order.

use std::sync::Arc;

use slotvm_runtime::{Error, MemoryPlan};

use super::entry::{compile_access, compile_entry, compile_stub};
use super::input::{Import, Input};
use crate::code::machine_code::MachineCode;
use crate::code::unit::CodeUnit;
use crate::compile::budget::{Budget, Share};
use crate::compile::error::CompileError;
use crate::compile::function::{CompileOptions, CompiledFunction, Compiler};
use crate::compile::parallel::compile_all;
use crate::compile::stack;
use crate::compile::subject::Subject;
use crate::lower::Trapping;
use crate::lower::UnitImport;
use crate::native::ownership::engine::NativeEngine;

/// The native code.
pub(super) struct NativeCode {
    unit: CodeUnit,
    /// The number of the first entry in the unit.
    first_entry: usize,
}

impl NativeCode {
    /// # Errors
    /// Fails if the code generator refuses a function, or there is no memory for code.
    pub(super) fn compile(native: &NativeEngine, input: Input) -> Result<NativeCode, Error> {
        let isa = &**native.isa();
        let (module, containment) = (&input.module, native.containment());
        let mut codes: Vec<MachineCode> = Vec::new();
        for (func, import) in (0..).zip(&input.imports) {
            let ty = module.func_type(func);
            let compile = || match *import {
                Import::Function(address) => compile_stub(isa, ty, address),
                Import::Access(access) => compile_access(isa, ty, access),
            };
            let code = containment.run(Subject::Trampoline, || ty.to_string(), compile);
            codes.push(code.map_err(Error::compile)?);
        }
        let functions = stack::with_room(|| compile_functions(native, &input));
        let no_thread = |error| containment.no_thread(Subject::Module, &error);
        let functions = functions.map_err(no_thread).map_err(Error::compile)??;
        codes.extend(functions.into_iter().map(|function| function.code));
        let first_entry = codes.len();
        let defined = module.n_imported_funcs()..module.n_funcs();
        for func in defined.clone() {
            let compile = || compile_entry(isa, func, module.func_type(func));
            let name = || module.func_name(func);
            let entry = containment.run(Subject::Trampoline, name, compile);
            codes.push(entry.map_err(Error::compile)?);
        }
        let place = || CodeUnit::place(native.isa(), 0, &codes, Some(module.clone()));
        let unit = containment.run(Subject::Module, String::new, place);
        let mut unit = unit.map_err(Error::compile)?;
        let mut names: Vec<String> = (0..module.n_funcs()).map(|f| module.func_name(f)).collect();
        names.extend(defined.map(|func| format!("entry of {}", module.func_name(func))));
        native.announce(&mut unit, names.into_iter());
        Ok(NativeCode { unit, first_entry })
    }

    /// The entry of a function, by its number among those that the module defines.
    pub(super) fn entry(&self, index: usize) -> *const u8 {
        self.unit.func(self.first_entry + index)
    }

    /// The bytes of memory that the code takes.
    pub(super) fn bytes(&self) -> usize {
        self.unit.bytes()
    }
}

/// Compiles the functions that the module defines.
fn compile_functions(
    native: &NativeEngine,
    input: &Input,
) -> Result<Vec<CompiledFunction>, CompileError> {
    let options = compile_options(native, &input.imports);
    let Input { module, functions, .. } = input;
    let budget = Budget::new(module);
    if functions.is_empty() {
        let is_parallel = native.config().parallel_compilation;
        let all = compile_all(module, options, &budget, is_parallel)?;
        return Ok(all.into_iter().map(|compiled| compiled.expect("all can be entered")).collect());
    }
    // The bytecode of a function that is given in slot form is not what it does.
    let mut passes = options.passes.clone();
    passes.switch("inline", false);
    let mut compiler = Compiler::new(CompileOptions { passes, ..options });
    let compile = |func| match functions.get(&func) {
        Some(function) => {
            compiler.compile_slot_form(module, function, Share::of_slot_form(function))
        }
        None => compiler.compile(module, func, budget.share(module, func)),
    };
    (module.n_imported_funcs()..module.n_funcs()).map(compile).collect()
}

/// Memories of the embedder have no guard pages, and signals are the embedder's: all is checked, and traps
/// are calls.
fn compile_options(native: &NativeEngine, imports: &[Import]) -> CompileOptions {
    let unit_import = |import: &Import| match *import {
        Import::Function(_) => UnitImport::Stub,
        Import::Access(access) => UnitImport::Access(access),
    };
    let imports: Arc<[UnitImport]> = imports.iter().map(unit_import).collect();
    let mut options = native.compile_options(MemoryPlan::CHECKED);
    options.lower.trapping = Trapping::Calls;
    options.lower.imports = Some(imports);
    options
}
