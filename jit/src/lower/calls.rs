//! Calls: of the module's own functions, of records, and of the runtime.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self, AbiParam, ExtFuncData, ExternalName, InstBuilder, MemFlagsData, Signature, StackSlotData,
    StackSlotKind, Type, types,
};
use slotvm_bytecode::limits::IMPORTS_MAX;
use slotvm_bytecode::module::ImportCall;
use slotvm_bytecode::{Access, FuncType, Op, TrapCode};
use slotvm_runtime::native::{FuncRecord, LeafFn, offsets};
use slotvm_ssa::ir::entity::Inst;

use super::{Lowering, UnitImport};
use crate::lower::abi::{self, POINTER};

/// Offsets of records of imported functions, and of leaves, are not too large for loads.
const _: () = assert!(IMPORTS_MAX * size_of::<FuncRecord>() <= i32::MAX as usize);

const _: () = assert!(size_of::<LeafFn>() <= size_of::<FuncRecord>());

/// The callee.
enum Callee {
    /// A function of this module, which shares its context.
    Own(ir::FuncRef),
    /// The same, by its address.
    OwnAt(ir::SigRef, ir::Value),
    /// Code and context of a record.
    Record(ir::SigRef, ir::Value, ir::Value),
    /// The C function of a leaf, and its first argument.
    Leaf(ir::SigRef, ir::Value, ir::Value),
}

impl Lowering<'_, '_> {
    pub(super) fn lower_call(&mut self, inst: Inst, op: Op) {
        let list = self.safepoint.take();
        if let Some(access) = self.host_access(inst, op) {
            let value = self.lower_host_access(inst, access);
            value.into_iter().for_each(|value| self.define_result(inst, value));
            return;
        }
        if let Some(number) = self.cold_call(inst, op) {
            return self.lower_cold_call(inst, number, list);
        }
        let (callee, ty) = self.callee(inst, op);
        let ty = self.func_type(ty);
        let area = abi::returns_by_area(ty).then(|| self.callee_area(ty));
        let args = self.call_args(inst, &callee, ty, area);
        let call = match callee {
            Callee::Own(func) => self.builder.ins().call(func, &args),
            Callee::OwnAt(sig, code)
            | Callee::Record(sig, code, _)
            | Callee::Leaf(sig, code, _) => self.builder.ins().call_indirect(sig, code, &args),
        };
        self.list_roots(list, call);
        match area {
            Some(area) => self.load_results(inst, area),
            None => {
                for (i, result) in self.func.results(inst).enumerate() {
                    let value = self.builder.inst_results(call)[i];
                    self.define(result, value);
                }
            }
        }
    }

    /// A call in place of this function. Its results are this function's, so they go where this
    /// function's were to go.
    pub(super) fn lower_return_call(&mut self, inst: Inst, op: Op) {
        if let Some(access) = self.host_access(inst, op) {
            let value = self.lower_host_access(inst, access);
            self.builder.ins().return_(value.as_slice());
            return;
        }
        let (callee, ty) = self.callee(inst, op);
        let ty = self.func_type(ty);
        let args = self.call_args(inst, &callee, ty, self.return_area);
        match callee {
            Callee::Own(func) => self.builder.ins().return_call(func, &args),
            Callee::OwnAt(sig, code) | Callee::Record(sig, code, _) => {
                self.builder.ins().return_call_indirect(sig, code, &args)
            }
            // C functions return to their callers.
            Callee::Leaf(sig, code, _) => {
                let call = self.builder.ins().call_indirect(sig, code, &args);
                let results = self.builder.inst_results(call).to_vec();
                self.builder.ins().return_(&results)
            }
        };
    }

    /// Returns the callee of a call instruction, and the index of its type.
    fn callee(&mut self, inst: Inst, op: Op) -> (Callee, u32) {
        let imm = self.func.imm(inst);
        match op {
            Op::Call | Op::ReturnCall => {
                let func = imm.low();
                let ty = self.module.func_type_index(func);
                (self.direct_callee(func, ty), ty)
            }
            Op::CallIndirect | Op::ReturnCallIndirect => {
                let index = *self.func.operands(inst).last().expect("an index");
                let index = self.value(index);
                (self.indirect_callee(imm.low(), imm.high(), index), imm.low())
            }
            _ => unreachable!("`{}` calls nothing", op.mnemonic()),
        }
    }

    /// The access that a call is done as, if it is.
    fn host_access(&self, inst: Inst, op: Op) -> Option<Access> {
        let imports = self.options.imports.as_deref()?;
        let is_direct = matches!(op, Op::Call | Op::ReturnCall);
        match imports.get(self.func.imm(inst).low() as usize).filter(|_| is_direct)? {
            UnitImport::Access(access) => Some(*access),
            UnitImport::Stub => None,
        }
    }

    fn direct_callee(&mut self, func: u32, ty: u32) -> Callee {
        if self.options.imports.is_some() {
            return Callee::Own(self.own_function(func, ty));
        }
        if func >= self.module.n_imported_funcs() {
            return self.own_callee(func, ty);
        }
        if self.module.import_call(func) == ImportCall::Leaf {
            return self.leaf_callee(func, ty);
        }
        let imports = self.constant_pointer(self.context, offsets::VMCTX_IMPORTS);
        let record = func as i32 * size_of::<FuncRecord>() as i32;
        let entry = self.constant_pointer(imports, record + offsets::FUNC_ENTRY);
        let context = self.constant_pointer(imports, record + offsets::FUNC_CTX);
        let code = self.entered_at(entry, 0);
        Callee::Record(self.signature(ty), code, context)
    }

    /// A leaf function, which the instance was given for an import: `runtime/src/store/link.rs` accepts nothing else.
    fn leaf_callee(&mut self, func: u32, ty: u32) -> Callee {
        let leaves = self.constant_pointer(self.context, offsets::VMCTX_LEAVES);
        let leaf = func as i32 * size_of::<LeafFn>() as i32;
        let code = self.constant_pointer(leaves, leaf + offsets::LEAF_CODE);
        let data = self.constant_pointer(leaves, leaf + offsets::LEAF_DATA);
        Callee::Leaf(self.leaf_signature(ty), code, data)
    }

    fn leaf_signature(&mut self, ty: u32) -> ir::SigRef {
        if let Some(&signature) = self.leaf_signatures.get(&ty) {
            return signature;
        }
        let convention = self.isa().default_call_conv();
        let signature = abi::leaf_signature(convention, self.func_type(ty));
        let signature = self.builder.import_signature(signature);
        self.leaf_signatures.insert(ty, signature);
        signature
    }

    fn own_callee(&mut self, func: u32, ty: u32) -> Callee {
        // A function is where it is. Code for its loops is elsewhere.
        let is_itself = self.func.called_as() == Some(func);
        if !self.options.loads_entries || is_itself {
            return Callee::Own(self.own_function(func, ty));
        }
        let index = func - self.module.n_imported_funcs();
        let entries = self.constant_pointer(self.context, offsets::VMCTX_ENTRIES);
        let code = self.entered_at(entries, index as i32 * POINTER.bytes() as i32);
        Callee::OwnAt(self.signature(ty), code)
    }

    /// Checks, in this order: the index, that the entry is not null, the type.
    fn indirect_callee(&mut self, ty: u32, table: u32, index: ir::Value) -> Callee {
        let entry = self.table_entry(table, index);
        let flags = self.context_flags();
        let handle = self.builder.ins().load(types::I64, flags, entry, 0);
        self.trap_unless(handle, TrapCode::IndirectCallToNull);
        let record = self.record(handle);
        let flags = self.record_flags();
        let actual =
            self.builder.ins().load(types::I32, flags, record, record_at(offsets::FUNC_TYPE_ID));
        let ids = self.constant_pointer(self.context, offsets::VMCTX_TYPE_IDS);
        let id_offset = ty as i32 * types::I32.bytes() as i32;
        let expected = self.constant_field(types::I32, ids, id_offset);
        let same = self.builder.ins().icmp(IntCC::Equal, actual, expected);
        self.trap_unless(same, TrapCode::BadSignature);
        self.record_callee(record, ty)
    }

    /// The address after the record that a handle names; see [`record_at`].
    fn record(&mut self, handle: ir::Value) -> ir::Value {
        let shared = self.shared();
        let flags = self.context_flags();
        let records = self.builder.ins().load(POINTER, flags, shared, offsets::SHARED_FUNCS);
        self.builder.ins().iadd(records, handle)
    }

    /// Flags for the fields of records. Those that are called exist, but they hang on the checks
    /// before, so the loads must stay where they are.
    fn record_flags(&self) -> MemFlagsData {
        self.context_flags()
    }

    fn record_callee(&mut self, record: ir::Value, ty: u32) -> Callee {
        let flags = self.record_flags();
        let entry = self.builder.ins().load(POINTER, flags, record, record_at(offsets::FUNC_ENTRY));
        let context = self.builder.ins().load(POINTER, flags, record, record_at(offsets::FUNC_CTX));
        let code = self.entered_at(entry, 0);
        Callee::Record(self.signature(ty), code, context)
    }

    /// The code in the cell of an entry. It changes when the function is compiled. What it was before leads there, too, but by
    /// a detour, so a loop must look each time.
    fn entered_at(&mut self, cells: ir::Value, offset: i32) -> ir::Value {
        let flags = self.context_flags();
        self.builder.ins().load(POINTER, flags, cells, offset)
    }

    pub(super) fn signature(&mut self, ty: u32) -> ir::SigRef {
        if let Some(&signature) = self.signatures.get(&ty) {
            return signature;
        }
        let signature = abi::guest_signature(self.func_type(ty));
        let signature = self.builder.import_signature(signature);
        self.signatures.insert(ty, signature);
        signature
    }

    fn own_function(&mut self, func: u32, ty: u32) -> ir::FuncRef {
        if let Some(&imported) = self.functions.get(&func) {
            return imported;
        }
        let signature = self.signature(ty);
        let name = self.builder.func.declare_imported_user_function(abi::func_name(func));
        let name = ExternalName::user(name);
        let data = ExtFuncData { name, signature, colocated: true, patchable: false };
        let imported = self.builder.import_function(data);
        self.functions.insert(func, imported);
        imported
    }

    fn call_args(
        &self,
        inst: Inst,
        callee: &Callee,
        ty: &FuncType,
        area: Option<ir::Value>,
    ) -> Vec<ir::Value> {
        let context = match *callee {
            Callee::Own(_) | Callee::OwnAt(..) => self.context,
            Callee::Record(_, _, context) => context,
            Callee::Leaf(_, _, data) => data,
        };
        // An indirect call has the index after the parameters.
        let params = &self.func.operands(inst)[..ty.params.len()];
        let params = params.iter().map(|&value| self.value(value));
        std::iter::once(context).chain(area).chain(params).collect()
    }

    /// The address of an area for the results of a call. All calls share it: its contents are read
    /// before anything else can be called.
    fn callee_area(&mut self, ty: &FuncType) -> ir::Value {
        let bytes = abi::return_area_bytes(ty);
        let (area, known) = *self.callee_area.get_or_insert_with(|| {
            let data = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 3);
            (self.builder.func.create_sized_stack_slot(data), bytes)
        });
        if known < bytes {
            self.builder.func.sized_stack_slots[area].size = bytes;
            self.callee_area = Some((area, bytes));
        }
        self.builder.ins().stack_addr(POINTER, area, 0)
    }

    fn load_results(&mut self, inst: Inst, area: ir::Value) {
        let flags = self.result_flags();
        let results: Vec<_> = self.func.results(inst).collect();
        let types: Vec<_> = results.iter().map(|&result| self.func.value_type(result)).collect();
        for (&result, (offset, ty)) in results.iter().zip(abi::in_cells(&types)) {
            let flags = abi::cell_flags(ty, flags);
            let value = self.builder.ins().load(abi::clif_type(ty), flags, area, offset);
            self.define(result, value);
        }
    }

    /// Flags of return areas.
    pub(super) fn result_flags(&self) -> MemFlagsData {
        MemFlagsData::trusted().with_alias_region(Some(self.regions.results))
    }

    /// Calls a function of the runtime with the context and `args`, by the offset of its pointer.
    pub(super) fn libcall(
        &mut self,
        libcall: i32,
        args: &[ir::Value],
        result: Option<Type>,
    ) -> Option<ir::Value> {
        let mut signature = Signature::new(self.isa().default_call_conv());
        signature.params.push(AbiParam::new(POINTER));
        for &arg in args {
            let ty = self.builder.func.dfg.value_type(arg);
            signature.params.push(AbiParam::new(ty).uext());
        }
        signature.returns.extend(result.map(AbiParam::new));
        let signature = self.builder.import_signature(signature);
        let code = self.libcall_code(libcall);
        let args: Vec<_> = std::iter::once(self.context).chain(args.iter().copied()).collect();
        let call = self.builder.ins().call_indirect(signature, code, &args);
        self.builder.inst_results(call).first().copied()
    }

    /// The address of a function of the runtime.
    pub(super) fn libcall_code(&mut self, libcall: i32) -> ir::Value {
        let shared = self.shared();
        let libcalls = self.constant_pointer(shared, offsets::SHARED_LIBCALLS);
        self.constant_pointer(libcalls, libcall)
    }
}

/// The offset of a field of a record from the address after it.
fn record_at(field: i32) -> i32 {
    field - size_of::<FuncRecord>() as i32
}
