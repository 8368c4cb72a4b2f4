//! Calls of imports that are rarely called.
//!
//! All registers of guest code are the caller's to save, so a call, however rare, makes a function keep in its frame what
//! lives across it. A cold call is one of a *keeper*: code of a convention that preserves all registers, which makes the
//! call that the function would have made. There is one for each signature. Its copies stand at the end of the
//! functions that call it, so that code needs nothing else to reach it.
//!
//! The convention has no results. They go by the cells in which exits leave a frame, which nothing uses meanwhile.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use cranelift_codegen::ir::{
    self, AbiParam, ExtFuncData, ExternalName, InstBuilder, Signature, UserExternalName, types,
};
use cranelift_codegen::isa::{CallConv, TargetIsa};
use cranelift_frontend::FunctionBuilder;
use slotvm_bytecode::module::ImportCall;
use slotvm_bytecode::{FuncType, Op, VerifiedModule, n_cells};
use slotvm_runtime::native::{FuncRecord, offsets};
use slotvm_ssa::ir::entity::{Block, Inst};
use slotvm_ssa::ir::irop::Opcode;

use super::Lowering;
use crate::code::error::CodeError;
use crate::code::machine_code::{KEEPER_NAMESPACE, MachineCode};
use crate::lower::abi::{self, POINTER};
use crate::lower::glue::{TRUSTED, compile, entry_block};

/// Signatures of a module of which cold calls keep all registers. Calls of others are as all calls are.
const COLD_TYPES_MAX: usize = 16;
/// Cells of the parameters and results of such a signature.
const COLD_CELLS_MAX: usize = 8;

/// The keepers of a module, made when a function first needs them.
pub(crate) struct ColdCalls {
    /// The number of the signature, by index of the type.
    numbers: HashMap<u32, usize>,
    keepers: Vec<(FuncType, OnceLock<MachineCode>)>,
}

impl ColdCalls {
    /// Those of a module, if it has imports that are rarely called.
    pub(crate) fn of(module: &VerifiedModule) -> Option<Arc<ColdCalls>> {
        if !module.has_cold_imports() {
            return None;
        }
        let (mut numbers, mut by_type) = (HashMap::new(), HashMap::new());
        let mut keepers = Vec::new();
        let imported = 0..module.n_imported_funcs();
        for func in imported.filter(|&func| module.import_call(func) == ImportCall::Cold) {
            let ty = module.func_type(func);
            let n_cells = n_cells(&ty.params) + n_cells(&ty.results);
            if n_cells > COLD_CELLS_MAX || abi::returns_by_area(ty) {
                continue;
            }
            let known = by_type.get(ty).copied();
            if known.is_none() && keepers.len() == COLD_TYPES_MAX {
                continue;
            }
            let number = known.unwrap_or(keepers.len());
            if known.is_none() {
                by_type.insert(ty, number);
                keepers.push((ty.clone(), OnceLock::new()));
            }
            numbers.insert(module.func_type_index(func), number);
        }
        Some(Arc::new(ColdCalls { numbers, keepers }))
    }

    /// The keeper of a signature, by its number.
    ///
    /// # Errors
    /// Fails if Cranelift refuses it.
    pub(crate) fn keeper(
        &self,
        number: usize,
        isa: &dyn TargetIsa,
    ) -> Result<&MachineCode, CodeError> {
        let (ty, made) = &self.keepers[number];
        if let Some(made) = made.get() {
            return Ok(made);
        }
        // Another thread may be as far as this one; both make the same.
        let keeper = compile(isa, signature(ty), |b| build(b, ty))?;
        Ok(made.get_or_init(|| keeper))
    }
}

/// The signature of a keeper: the context, the distance of the import's record from the first one, and the parameters.
fn signature(ty: &FuncType) -> Signature {
    let mut signature = Signature::new(CallConv::PreserveAll);
    signature.params.extend([AbiParam::new(POINTER); 2]);
    signature.params.extend(ty.params.iter().map(|&ty| AbiParam::new(abi::clif_type(ty))));
    signature
}

fn build(b: &mut FunctionBuilder<'_>, ty: &FuncType) {
    let params = entry_block(b);
    let [context, distance, own @ ..] = &params[..] else { unreachable!("two parameters lead") };
    let imports = b.ins().load(POINTER, TRUSTED, *context, offsets::VMCTX_IMPORTS);
    let record = b.ins().iadd(imports, *distance);
    let entry = b.ins().load(POINTER, TRUSTED, record, offsets::FUNC_ENTRY);
    let code = b.ins().load(POINTER, TRUSTED, entry, 0);
    let callee = b.ins().load(POINTER, TRUSTED, record, offsets::FUNC_CTX);
    let args: Vec<_> = std::iter::once(callee).chain(own.iter().copied()).collect();
    let guest = b.import_signature(abi::guest_signature(ty));
    let call = b.ins().call_indirect(guest, code, &args);
    let results = b.inst_results(call).to_vec();
    let shared = b.ins().load(POINTER, TRUSTED, *context, offsets::VMCTX_SHARED);
    let cells = b.ins().load(POINTER, TRUSTED, shared, offsets::SHARED_EXIT_CELLS);
    for ((at, ty), result) in abi::in_cells(&ty.results).zip(results) {
        b.ins().store(abi::cell_flags(ty, TRUSTED), result, cells, at);
    }
    b.ins().return_(&[]);
}

impl Lowering<'_, '_> {
    /// Whether a block calls an import that is rarely called.
    pub(super) fn calls_rarely(&self, block: Block) -> bool {
        let is_rare = |&inst: &Inst| {
            let is_call =
                [Op::Call, Op::ReturnCall].map(Opcode::Op).contains(&self.func.opcode(inst));
            is_call && self.module.import_call(self.func.imm(inst).low()) == ImportCall::Cold
        };
        self.module.has_cold_imports() && self.func.insts(block).iter().any(is_rare)
    }

    /// The number of the signature of a call that keeps all registers, if it is one.
    pub(super) fn cold_call(&self, inst: Inst, op: Op) -> Option<usize> {
        let cold = self.options.cold.as_deref()?;
        let func = self.func.imm(inst).low();
        // Imports that are code of the unit have no records.
        let has_record = op == Op::Call && self.options.imports.is_none();
        if !has_record || self.module.import_call(func) != ImportCall::Cold {
            return None;
        }
        cold.numbers.get(&self.module.func_type_index(func)).copied()
    }

    pub(super) fn lower_cold_call(&mut self, inst: Inst, number: usize, roots: Option<u32>) {
        let func = self.func.imm(inst).low();
        let ty = self.func_type(self.module.func_type_index(func));
        let keeper = self.keeper(number, ty);
        let distance = i64::from(func) * size_of::<FuncRecord>() as i64;
        let distance = self.builder.ins().iconst(types::I64, distance);
        let own = self.func.operands(inst).iter().map(|&value| self.value(value));
        let args: Vec<_> = [self.context, distance].into_iter().chain(own).collect();
        let call = self.builder.ins().call(keeper, &args);
        self.list_roots(roots, call);
        if ty.results.is_empty() {
            return;
        }
        // Not constants: the optimiser would load them where they are needed always, into registers.
        let flags = self.context_flags();
        let shared = self.builder.ins().load(POINTER, flags, self.context, offsets::VMCTX_SHARED);
        let cells = self.builder.ins().load(POINTER, flags, shared, offsets::SHARED_EXIT_CELLS);
        let results: Vec<_> = self.func.results(inst).zip(abi::in_cells(&ty.results)).collect();
        for (result, (at, ty)) in results {
            let (flags, ty) = (abi::cell_flags(ty, flags), abi::clif_type(ty));
            let value = self.builder.ins().load(ty, flags, cells, at);
            self.define(result, value);
        }
    }

    /// The name of a keeper in this function.
    fn keeper(&mut self, number: usize, ty: &FuncType) -> ir::FuncRef {
        if let Some(i) = self.cold.iter().position(|&known| known == number) {
            return self.keepers[i];
        }
        let signature = self.builder.import_signature(signature(ty));
        let name = UserExternalName { namespace: KEEPER_NAMESPACE, index: self.cold.len() as u32 };
        let name = ExternalName::user(self.builder.func.declare_imported_user_function(name));
        let data = ExtFuncData { name, signature, colocated: true, patchable: false };
        let keeper = self.builder.import_function(data);
        self.cold.push(number);
        self.keepers.push(keeper);
        keeper
    }
}

#[cfg(test)]
mod tests {
    use slotvm_bytecode::{text, verify};

    use super::*;
    use crate::SlotMode;
    use crate::lower::isa::{IsaOptions, foreign_isa};

    fn calls_of(imports: &str) -> Option<Arc<ColdCalls>> {
        ColdCalls::of(&verify(text::parse(imports).unwrap()).unwrap())
    }

    #[test]
    fn keepers_save_registers_on_all_targets() {
        let import = "import \"m\" \"f\" cold func f(i32, f64, i64, i64, i64, i64) -> v128";
        for target in ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"] {
            let isa = foreign_isa(target.parse().unwrap(), IsaOptions::new(SlotMode::Ssa)).unwrap();
            let calls = calls_of(import).unwrap();
            let keeper = calls.keeper(0, &*isa).unwrap();
            assert_eq!(keeper.calls.len(), 1, "{target}");
            // Functions of guest code may change all registers: here they are stored and loaded, with 4 bytes of code at
            // least on x86-64; aarch64 has instructions for two of them.
            assert!(keeper.bytes.len() >= (16 + 13) * 4, "{target}: {}", keeper.bytes.len());
        }
    }

    #[test]
    fn signatures_with_keepers_are_few_and_short() {
        assert!(calls_of("import \"m\" \"f\" func f(i32)").is_none());
        let params = |n: usize| vec!["i64"; n].join(", ");
        let import = |i: usize, n| format!("import \"m\" \"f{i}\" cold func f{i}({})\n", params(n));
        // The second one is of the type of the first, and the last two have too many cells.
        let lengths = [3, 3, 0, 1, COLD_CELLS_MAX, COLD_CELLS_MAX + 1, 100];
        let few = lengths.iter().enumerate().map(|(i, &n)| import(i, n)).collect::<String>();
        let few = calls_of(&few).unwrap();
        assert_eq!((few.keepers.len(), few.numbers.len()), (4, 4));

        let mixed = |i: u32| {
            let params: Vec<_> =
                (0..5).map(|bit| if i >> bit & 1 == 1 { "f64" } else { "i64" }).collect();
            format!("import \"m\" \"f{i}\" cold func f{i}({})\n", params.join(", "))
        };
        let many = calls_of(&(0..32).map(mixed).collect::<String>()).unwrap();
        assert_eq!((many.keepers.len(), many.numbers.len()), (COLD_TYPES_MAX, COLD_TYPES_MAX));
    }
}
