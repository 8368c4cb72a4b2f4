//! Between the C convention and that of guest functions.
//!
//! * The *entry* of a function is the C function that the embedder gets. It begins an activation on its own
//!   frame, calls the guest function by a `try_call`, as the entry trampolines of stores do
//!   ([`crate::native::crossing::trampoline`]), and ends the activation, by functions of this file. Code that traps calls
//!   [`crate::native::crossing::raise`], and goes on where the `try_call` says.
//! * The *stub* of an imported function is guest code that calls the C function, and then fails if the
//!   status of the context says so. The stub of a load or store is there for the numbers of functions only:
//!   the lowering does the access in place of a call.

use std::mem::offset_of;

use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, InstBuilder, MemFlagsData, Signature, StackSlotData,
    StackSlotKind, Type, Value, types,
};
use cranelift_codegen::isa::TargetIsa;
use cranelift_frontend::FunctionBuilder;
use slotvm_bytecode::{Access, FuncType};

use super::context::Context;
use super::libcalls::LIBCALLS;
use crate::code::error::CodeError;
use crate::code::machine_code::MachineCode;
use crate::lower::abi::{self, CELL_BYTES, POINTER};
use crate::lower::glue::{TRUSTED, compile, entry_block};
use crate::lower::memory::{load, store};
use crate::lower::traps::trap_trampoline;
use crate::native::crossing::activation::Activation;
use crate::native::crossing::executor::error_of_trap;
use crate::native::crossing::raise;
use crate::native::crossing::trampoline::{exits, load_cell, store_cell, store_handler};

/// The frame of an entry.
#[repr(C)]
struct Frame {
    /// The first field: the entry stores where to continue.
    activation: Activation,
    /// The activation before it.
    previous: *mut Activation,
    /// The limit of the stack before, and whose it was.
    stack_limit: usize,
    stack_thread: usize,
}

/// The alignment of frames.
const FRAME_ALIGNMENT_LOG2: u8 = 4;

/// Begins a call.
///
/// # Safety
/// Called by an entry, with its context, which nothing else uses, and its frame.
unsafe extern "C" fn begin(context: *mut Context, frame: *mut Frame) {
    // SAFETY: the entry passes what the embedder called it with, a context that nothing else uses meanwhile
    // (`Code::get`).
    let this = unsafe { &mut *context };
    this.status = 0;
    this.error = None;
    // The context may have moved since the last call.
    this.vm.shared = &raw mut this.shared;
    this.vm.memory = &raw mut this.memory;
    let shared = &mut this.shared;
    shared.libcalls = &LIBCALLS;
    shared.raise = Some(raise::raise);
    // SAFETY: the frame has room for these.
    unsafe {
        (&raw mut (*frame).stack_limit).write(shared.stack_limit);
        (&raw mut (*frame).stack_thread).write(shared.stack_thread);
    }
    shared.limit_stack(this.stack_bytes_max);
    // SAFETY: the frame has room for an activation, which `end` or `end_trapped` ends.
    unsafe {
        let previous = Activation::start(&raw mut (*frame).activation, shared);
        (&raw mut (*frame).previous).write(previous);
    }
}

/// Ends a call that returned.
///
/// # Safety
/// Called by an entry with what it has called [`begin`] with.
unsafe extern "C" fn end(context: *mut Context, frame: *mut Frame) {
    // SAFETY: the entry passes its context and its frame, which `begin` has filled.
    unsafe {
        let shared = &mut (*context).shared;
        shared.stack_limit = (*frame).stack_limit;
        shared.stack_thread = (*frame).stack_thread;
        Activation::end((*frame).previous);
    }
}

/// Ends a call that did not return.
///
/// # Safety
/// As for [`end`]; a trap was recorded in the activation.
unsafe extern "C" fn end_trapped(context: *mut Context, frame: *mut Frame) {
    // SAFETY: the entry passes its context and its frame, which `begin` has filled, after the guest code trapped:
    // `raise` has recorded that. The entry belongs to the unit of that code, so the code is alive.
    let (this, trap) = unsafe {
        end(context, frame);
        (&mut *context, (*frame).activation.trap())
    };
    let mut pending = this.error.take();
    let error = error_of_trap(trap, || pending.take().expect("a status comes with an error"));
    this.fail(error);
}

/// The signature of the C function for a type.
fn c_signature(isa: &dyn TargetIsa, ty: &FuncType) -> Signature {
    let mut signature = Signature::new(isa.default_call_conv());
    signature.params.push(AbiParam::new(POINTER));
    if ty.results.len() > 1 {
        signature.params.push(AbiParam::new(POINTER));
    }
    signature.params.extend(ty.params.iter().map(|&ty| AbiParam::new(abi::clif_type(ty))));
    if let [result] = ty.results[..] {
        signature.returns.push(AbiParam::new(abi::clif_type(result)));
    }
    signature
}

/// The parameters of a C function before those of the bytecode.
fn n_leading_params(ty: &FuncType) -> usize {
    1 + usize::from(ty.results.len() > 1)
}

/// The entry of a function of the unit.
///
/// # Errors
/// Fails if Cranelift refuses the signature.
pub(super) fn compile_entry(
    isa: &dyn TargetIsa,
    func: u32,
    ty: &FuncType,
) -> Result<MachineCode, CodeError> {
    compile(isa, c_signature(isa, ty), |b| build_entry(b, isa, func, ty))
}

fn build_entry(b: &mut FunctionBuilder<'_>, isa: &dyn TargetIsa, func: u32, ty: &FuncType) {
    let params = entry_block(b);
    let context = params[0];
    let frame = StackSlotData::new(
        StackSlotKind::ExplicitSlot,
        size_of::<Frame>() as u32,
        FRAME_ALIGNMENT_LOG2,
    );
    let frame = b.create_sized_stack_slot(frame);
    let frame_address = |b: &mut FunctionBuilder<'_>| b.ins().stack_addr(POINTER, frame, 0);
    let address = frame_address(b);
    call_host(b, isa, begin as *const u8, &[context, address]);

    let call_block = b.create_block();
    b.ins().jump(call_block, &[]);
    b.switch_to_block(call_block);
    let mut args = vec![context];
    if abi::returns_by_area(ty) {
        args.push(params[1]);
    }
    args.extend(&params[n_leading_params(ty)..]);
    let activation = frame_address(b);
    store_handler(b, call_block, activation);
    let returned = b.create_block();
    let trapped = b.create_block();
    let signature = b.import_signature(abi::guest_signature(ty));
    let name = ExternalName::user(b.func.declare_imported_user_function(abi::func_name(func)));
    let callee = ExtFuncData { name, signature, colocated: true, patchable: false };
    let callee = b.import_function(callee);
    let (table, results) = exits(b, signature, returned, trapped);
    b.ins().try_call(callee, &args, table);

    b.switch_to_block(returned);
    let address = frame_address(b);
    call_host(b, isa, end as *const u8, &[context, address]);
    if ty.results.len() > 1 {
        for ((at, ty), &value) in abi::in_cells(&ty.results).zip(&results) {
            store_cell(b, ty, value, params[1], at);
        }
        b.ins().return_(&[]);
    } else {
        b.ins().return_(&results);
    }

    b.switch_to_block(trapped);
    let address = frame_address(b);
    call_host(b, isa, end_trapped as *const u8, &[context, address]);
    let zeros: Vec<Value> = match ty.results[..] {
        [result] => vec![zero(b, abi::clif_type(result))],
        _ => Vec::new(),
    };
    b.ins().return_(&zeros);
}

fn zero(b: &mut FunctionBuilder<'_>, ty: Type) -> Value {
    match ty {
        types::F32 => b.ins().f32const(0.0),
        types::F64 => b.ins().f64const(0.0),
        _ => b.ins().iconst(ty, 0),
    }
}

/// Calls a function of this file.
fn call_host(
    b: &mut FunctionBuilder<'_>,
    isa: &dyn TargetIsa,
    function: *const u8,
    args: &[Value; 2],
) {
    let mut signature = Signature::new(isa.default_call_conv());
    signature.params.extend([AbiParam::new(POINTER); 2]);
    let signature = b.import_signature(signature);
    let function = b.ins().iconst(POINTER, function.expose_provenance() as i64);
    b.ins().call_indirect(signature, function, args);
}

/// The stub of an imported function, by its address.
///
/// # Errors
/// As for [`compile_entry`].
pub(super) fn compile_stub(
    isa: &dyn TargetIsa,
    ty: &FuncType,
    function: usize,
) -> Result<MachineCode, CodeError> {
    compile(isa, abi::guest_signature(ty), |b| build_stub(b, isa, ty, function))
}

fn build_stub(b: &mut FunctionBuilder<'_>, isa: &dyn TargetIsa, ty: &FuncType, function: usize) {
    let params = entry_block(b);
    let context = params[0];
    let mut args = vec![context];
    let by_area = abi::returns_by_area(ty);
    let cells = (ty.results.len() > 1).then(|| match by_area {
        true => params[1],
        false => {
            let bytes = ty.results.len() as u32 * CELL_BYTES;
            let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 3);
            let slot = b.create_sized_stack_slot(slot);
            b.ins().stack_addr(POINTER, slot, 0)
        }
    });
    args.extend(cells);
    args.extend(&params[abi::n_leading_params(ty)..]);
    let signature = b.import_signature(c_signature(isa, ty));
    let function = b.ins().iconst(POINTER, function as i64);
    let call = b.ins().call_indirect(signature, function, &args);
    let mut results = b.inst_results(call).to_vec();
    let status = offset_of!(Context, status) as i32;
    let status = b.ins().load(types::I32, TRUSTED, context, status);
    trap_trampoline(b, context, status);
    if let Some(cells) = cells.filter(|_| !by_area) {
        let load = |(at, ty)| load_cell(b, ty, cells, at);
        results = abi::in_cells(&ty.results).map(load).collect();
    }
    b.ins().return_(&results);
}

/// The stub of a load or store at a host address.
///
/// # Errors
/// As for [`compile_entry`].
pub(super) fn compile_access(
    isa: &dyn TargetIsa,
    ty: &FuncType,
    access: Access,
) -> Result<MachineCode, CodeError> {
    compile(isa, abi::guest_signature(ty), |b| {
        let params = entry_block(b);
        let (flags, place) = (MemFlagsData::new().with_notrap(), (params[1], 0));
        if access.store {
            store(b, access, flags, params[2], place);
            b.ins().return_(&[]);
        } else {
            let value = load(b, access, flags, place);
            b.ins().return_(&[value]);
        }
    })
}

const _: () = assert!(offset_of!(Context, vm) == 0 && offset_of!(Frame, activation) == 0);
const _: () = assert!(align_of::<Frame>() <= 1 << FRAME_ALIGNMENT_LOG2);
