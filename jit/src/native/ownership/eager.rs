//! Native code of all functions of a module, made at once and placed together.

use std::sync::Arc;
use std::sync::atomic::AtomicPtr;

use slotvm_bytecode::VerifiedModule;
use slotvm_runtime::Error;
use slotvm_ssa::pipeline::Stage;

use crate::code::machine_code::MachineCode;
use crate::code::unit::CodeUnit;
use crate::compile::budget::ModuleBudget;
use crate::compile::function::CompileOptions;
use crate::compile::function_info::FunctionInfo;
use crate::compile::parallel::compile_all;
use crate::compile::stack;
use crate::compile::subject::Subject;
use crate::compile::timings::Timings;
use crate::native::ownership::engine::NativeEngine;

/// The code of a module.
pub(crate) struct EagerCode {
    unit: CodeUnit,
    functions: Vec<FunctionInfo>,
    /// See [`EagerCode::entries`].
    entries: Box<[AtomicPtr<u8>]>,
}

impl EagerCode {
    /// Compiles all functions that something enters, on several threads if it `is_parallel`.
    ///
    /// # Errors
    /// Fails if the code generator refuses one, or there is no memory for code.
    pub(crate) fn new(
        native: &NativeEngine,
        module: &Arc<VerifiedModule>,
        options: CompileOptions,
        budget: &ModuleBudget,
        is_parallel: bool,
        timings: &mut Timings,
    ) -> Result<EagerCode, Error> {
        let n_funcs = module.module().funcs.len();
        let mut codes = Vec::with_capacity(n_funcs);
        let mut functions = Vec::with_capacity(n_funcs);
        let slots = options.lower.slots;
        let containment = options.containment.clone();
        let shares = budget.functions();
        let all = stack::with_room(|| compile_all(module, options, &shares, is_parallel));
        let no_thread = |error| containment.no_thread(Subject::Module, &error);
        let all = all.map_err(no_thread).map_err(Error::compile)??;
        for (func, compiled) in (module.n_imported_funcs()..).zip(all) {
            let Some(compiled) = compiled else {
                codes.push(MachineCode::none());
                continue;
            };
            timings.0 += compiled.times;
            budget.draw_function(compiled.work.time(slots));
            functions.push(compiled.info(module, func));
            codes.push(compiled.code);
        }
        let unit = timings.0.stage(Stage::Place, || {
            let (isa, first_func) = (native.isa(), module.n_imported_funcs());
            let offset = native.config().code_offset_bytes;
            let place =
                || CodeUnit::place_at(offset, isa, first_func, &codes, Some(module.clone()));
            let name = || module.module().names.module.clone().unwrap_or_default();
            containment.run(Subject::Module, name, place)
        });
        let mut unit = unit.map_err(Error::compile)?;
        let names = functions.iter().map(|function: &FunctionInfo| function.name.clone());
        native.announce(&mut unit, names);
        let entry = |index| match unit.placed(index) {
            Some(_) => AtomicPtr::new(unit.func(index).cast_mut()),
            None => AtomicPtr::default(),
        };
        let entries = (0..n_funcs).map(entry).collect();
        Ok(EagerCode { unit, functions, entries })
    }

    /// The entries of the functions that the module defines, null where nothing enters one.
    pub(crate) fn entries(&self) -> &[AtomicPtr<u8>] {
        &self.entries
    }

    /// The distance of a function from the start of the code, and its bytes as they run, by its number among those that
    /// the module defines. `None` if nothing enters it.
    pub(crate) fn placed(&self, index: usize) -> Option<(u64, &[u8])> {
        self.unit.placed(index)
    }

    #[cfg(test)]
    pub(crate) fn codes(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        self.unit.codes()
    }

    /// Compilation statistics of each function that has code.
    pub(crate) fn functions(&self) -> &[FunctionInfo] {
        &self.functions
    }

    /// The bytes of memory that the code takes.
    pub(crate) fn bytes(&self) -> usize {
        self.unit.bytes()
    }
}
