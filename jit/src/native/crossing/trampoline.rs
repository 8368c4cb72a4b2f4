//! Trampolines: how the host calls native code and native code calls the host.
//!
//! Both have one form for each signature, and the direction out of a poll has one for all. Values cross in an array of
//! cells, `i32` and `f32` zero-extended; it has room for the parameters and for the results, which replace them.
//!
//! * The *entry trampoline* has the C convention, see
//!   [`EntryTrampoline`]. It stores in the activation
//!   record how to continue after a trap, and calls the guest function by a `try_call` whose
//!   exceptional edge is where a trap continues. The callee has the `tail` convention, which has no
//!   callee-saved registers: so nothing is lost when the guest's frames are abandoned.
//! * The *host trampoline* has the convention of guest functions; its context is a
//!   [`slotvm_runtime::native::HostCtx`]. It calls the runtime by `HostCtx::call`, and traps
//!   with [`HOST_ERROR`](crate::lower::traps::HOST_ERROR), by a call, if that reports an error.

use cranelift_codegen::ir::{
    AbiParam, Block, BlockArg, BlockCall, ExceptionTable, ExceptionTableData, ExceptionTableItem,
    InstBuilder, MemFlagsData, SigRef, Signature, StackSlotData, StackSlotKind, Value, types,
};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa, TargetIsa};
use cranelift_frontend::FunctionBuilder;
use slotvm_bytecode::{FuncType, ValType, n_cells};
use slotvm_runtime::native::offsets as rt;

use crate::code::error::CodeError;
use crate::code::unit::CodeUnit;
use crate::lower::abi::{self, CELL_BYTES, Direction, POINTER};
use crate::lower::glue::{TRUSTED, compile, entry_block};
use crate::lower::isa::{IN_ONE_PASS, with_settings};
use crate::lower::traps::trap_trampoline;
use crate::native::crossing::activation::offsets;
use slotvm_runtime::native::EntryTrampoline;

/// The time that the trampoline of a signature is estimated to take, in points: see [`crate::compile::budget`].
pub(crate) fn time(ty: &FuncType) -> u64 {
    let n_cells = n_cells_of(ty);
    TIME + if is_wide(n_cells) { TIME_PER_CELL_OF_WIDE } else { TIME_PER_CELL } * n_cells as u64
}

fn n_cells_of(ty: &FuncType) -> usize {
    n_cells(&ty.params) + n_cells(&ty.results)
}

/// Whether a trampoline of so many cells gets its registers in one pass over the code: where all parameters live
/// at a time, the other register allocator takes 0.2 s for a thousand of them.
const fn is_wide(n_cells: usize) -> bool {
    n_cells > CELLS_SPLIT_MAX
}

/// Cells of parameters and results of a trampoline that is made with the allocator that splits; those with more are made in
/// one pass.
const CELLS_SPLIT_MAX: usize = 48;

// The worst of both ways, of integers, floats and vectors, from the instructions that callgrind counts, at the
// 0.32 points that opcodes count for each (docs/decisions.md).
/// Cost of any trampoline: two thirds for its instructions, the rest for the system, which makes its page.
const TIME: u64 = 150_000;
/// Cost of each cell of its parameters and results.
const TIME_PER_CELL: u64 = 15_000;
/// The same where registers are allocated in one pass.
const TIME_PER_CELL_OF_WIDE: u64 = 4_000;

/// Compiles and places the trampoline of a signature.
///
/// # Errors
/// Fails if Cranelift refuses the signature, or there is no memory for code.
pub(crate) fn place(
    isa: &OwnedTargetIsa,
    direction: Direction,
    ty: &FuncType,
) -> Result<CodeUnit, CodeError> {
    let one_pass = is_wide(n_cells_of(ty)).then(|| with_settings(&**isa, IN_ONE_PASS));
    let one_pass =
        one_pass.transpose().map_err(|error| CodeError::Trampoline(error.to_string()))?;
    let target = one_pass.as_ref().unwrap_or(isa);
    let code = match direction {
        Direction::ToHost => compile(&**target, abi::guest_signature(ty), |b| build_host(b, ty))?,
        Direction::FromHost => compile(&**target, host_convention(&**isa), |b| build_entry(b, ty))?,
    };
    CodeUnit::place(isa, 0, &[code], None)
}

/// The trampoline in a unit, to be called while the unit exists.
///
/// # Safety
/// [`place`] has made the unit, for calls from the host.
pub(crate) unsafe fn entry(unit: &CodeUnit) -> EntryTrampoline {
    let entry = unit.func(0);
    // SAFETY: `place` has compiled it by `build_entry`, with the parameters, the result and the convention of
    // `host_convention`, which are those of the type.
    unsafe { std::mem::transmute::<*const u8, EntryTrampoline>(entry) }
}

/// Compiles and places the code that guest code calls when a poll is due: it calls the runtime, and traps
/// if that reports an error. So the place of the trap is that of the poll.
///
/// # Errors
/// Fails if there is no memory for code.
pub(crate) fn poll_trampoline(isa: &OwnedTargetIsa) -> Result<CodeUnit, CodeError> {
    let code = compile(&**isa, abi::poll_signature(), build_poll)?;
    CodeUnit::place(isa, 0, &[code], None)
}

/// The signature of entry trampolines.
fn host_convention(isa: &dyn TargetIsa) -> Signature {
    let mut signature = Signature::new(isa.default_call_conv());
    signature.params.extend([AbiParam::new(POINTER); 4]);
    signature.returns.push(AbiParam::new(types::I32));
    signature
}

fn build_entry(b: &mut FunctionBuilder<'_>, ty: &FuncType) {
    let params = entry_block(b);
    let [ctx, code, cells, activation] = params[..] else { unreachable!("four parameters") };

    // `get_exception_handler_address` must stand in the block of the `try_call` that it names, and
    // may not stand in the entry block.
    let call_block = b.create_block();
    b.ins().jump(call_block, &[]);
    b.switch_to_block(call_block);
    let mut args = vec![ctx];
    if abi::returns_by_area(ty) {
        // The cells are the return area: the parameters are out of them before the call.
        args.push(cells);
    }
    args.extend(abi::in_cells(&ty.params).map(|(at, ty)| load_cell(b, ty, cells, at)));
    store_handler(b, call_block, activation);

    let returned = b.create_block();
    let trapped = b.create_block();
    let signature = b.import_signature(abi::guest_signature(ty));
    let (table, results) = exits(b, signature, returned, trapped);
    b.ins().try_call_indirect(code, &args, table);

    b.switch_to_block(returned);
    for ((at, ty), &value) in abi::in_cells(&ty.results).zip(&results) {
        store_cell(b, ty, value, cells, at);
    }
    let one = b.ins().iconst(types::I32, 1);
    b.ins().return_(&[one]);

    b.switch_to_block(trapped);
    let zero = b.ins().iconst(types::I32, 0);
    b.ins().return_(&[zero]);
}

/// Stores in an activation where to continue after a trap: at the exit of the `try_call` that ends the block.
pub(crate) fn store_handler(b: &mut FunctionBuilder<'_>, call_block: Block, activation: Value) {
    let sp = b.ins().get_stack_pointer(POINTER);
    let fp = b.ins().get_frame_pointer(POINTER);
    let handler = b.ins().get_exception_handler_address(POINTER, call_block, 0);
    b.ins().store(TRUSTED, sp, activation, offsets::HANDLER_SP);
    b.ins().store(TRUSTED, fp, activation, offsets::HANDLER_FP);
    b.ins().store(TRUSTED, handler, activation, offsets::HANDLER_PC);
}

/// Returns the exits of a `try_call` that continues in `returned`, or in `trapped` if a trap ends the call, and the
/// results, which are parameters of `returned`.
pub(crate) fn exits(
    b: &mut FunctionBuilder<'_>,
    signature: SigRef,
    returned: Block,
    trapped: Block,
) -> (ExceptionTable, Vec<Value>) {
    let types: Vec<_> =
        b.func.dfg.signatures[signature].returns.iter().map(|result| result.value_type).collect();
    let results = types.iter().map(|&ty| b.append_block_param(returned, ty)).collect();
    let pool = &mut b.func.dfg.value_lists;
    let forward = (0..types.len()).map(|i| BlockArg::TryCallRet(i as u32));
    let to_returned = BlockCall::new(returned, forward, pool);
    let to_trapped = BlockCall::new(trapped, None, pool);
    let table =
        ExceptionTableData::new(signature, to_returned, [ExceptionTableItem::Default(to_trapped)]);
    (b.func.dfg.exception_tables.push(table), results)
}

fn build_host(b: &mut FunctionBuilder<'_>, ty: &FuncType) {
    let params = entry_block(b);
    let ctx = params[0];
    let n_cells = n_cells(&ty.params).max(n_cells(&ty.results)) as u32;
    let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, n_cells * CELL_BYTES, 3);
    let slot = b.create_sized_stack_slot(slot);
    let cells = b.ins().stack_addr(POINTER, slot, 0);
    let own = &params[abi::n_leading_params(ty)..];
    for ((at, ty), &value) in abi::in_cells(&ty.params).zip(own) {
        store_cell(b, ty, value, cells, at);
    }

    let host_call = b.ins().load(POINTER, TRUSTED, ctx, rt::HOSTCTX_CALL);
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params.extend([AbiParam::new(POINTER); 3]);
    signature.returns.push(AbiParam::new(types::I32));
    let signature = b.import_signature(signature);
    let fp = b.ins().get_frame_pointer(POINTER);
    let call = b.ins().call_indirect(signature, host_call, &[ctx, cells, fp]);
    let failed = b.inst_results(call)[0];
    trap_trampoline(b, ctx, failed);

    let results: Vec<Value> =
        abi::in_cells(&ty.results).map(|(at, ty)| load_cell(b, ty, cells, at)).collect();
    if abi::returns_by_area(ty) {
        for ((at, ty), &value) in abi::in_cells(&ty.results).zip(&results) {
            store_cell(b, ty, value, params[1], at);
        }
        b.ins().return_(&[]);
    } else {
        b.ins().return_(&results);
    }
}

fn build_poll(b: &mut FunctionBuilder<'_>) {
    let ctx = entry_block(b)[0];
    let shared = b.ins().load(POINTER, TRUSTED, ctx, rt::VMCTX_SHARED);
    let libcalls = b.ins().load(POINTER, TRUSTED, shared, rt::SHARED_LIBCALLS);
    let poll = b.ins().load(POINTER, TRUSTED, libcalls, rt::LIBCALL_POLL);
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params.extend([AbiParam::new(POINTER); 2]);
    signature.returns.push(AbiParam::new(types::I32));
    let signature = b.import_signature(signature);
    let fp = b.ins().get_frame_pointer(POINTER);
    let call = b.ins().call_indirect(signature, poll, &[ctx, fp]);
    let failed = b.inst_results(call)[0];
    trap_trampoline(b, ctx, failed);
    b.ins().return_(&[]);
}

/// Loads a value from its cell or cells, `at` bytes after the first one of all.
pub(crate) fn load_cell(b: &mut FunctionBuilder<'_>, ty: ValType, cells: Value, at: i32) -> Value {
    b.ins().load(abi::clif_type(ty), abi::cell_flags(ty, TRUSTED), cells, at)
}

/// Stores a value into its cell or cells, zero-extended.
pub(crate) fn store_cell(
    b: &mut FunctionBuilder<'_>,
    ty: ValType,
    value: Value,
    cells: Value,
    at: i32,
) {
    let bits = match ty {
        ValType::I32 => b.ins().uextend(types::I64, value),
        ValType::F32 => {
            let bits = b.ins().bitcast(types::I32, MemFlagsData::new(), value);
            b.ins().uextend(types::I64, bits)
        }
        ValType::I64
        | ValType::F64
        | ValType::FuncRef
        | ValType::ExternRef
        | ValType::Ref
        | ValType::V128 => value,
    };
    b.ins().store(abi::cell_flags(ty, TRUSTED), bits, cells, at);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SlotMode;
    use crate::lower::isa::{IsaOptions, foreign_isa};

    #[test]
    fn what_polls_call_saves_registers_on_all_targets() {
        for target in ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"] {
            let isa = foreign_isa(target.parse().unwrap(), IsaOptions::new(SlotMode::Ssa)).unwrap();
            let code = compile(&*isa, abi::poll_signature(), build_poll).unwrap();
            // The runtime, and what ends guest code.
            assert_eq!(code.calls.len(), 2, "{target}");
            // Functions of the C convention may change 16 floats and 9 integers or more: here they are stored
            // and loaded, with 4 bytes of code at least on x86-64; aarch64 has instructions for two of them.
            assert!(code.bytes.len() >= (16 + 9) * 4, "{target}: {}", code.bytes.len());
        }
    }
}
