//! Traps: the only module that decides how native code stops.
//!
//! There are two ways, see [`Trapping`]. Code that may fault traps by trap instructions and by faulting
//! accesses; both raise a signal, and the tables of [`crate::compile::function`] say which trap and which bytecode
//! offset belong to the faulting pc. Code that must not fault checks everything before, and calls the
//! function that [`Shared::raise`](slotvm_runtime::native::Shared::raise) names, which does not return
//! ([`crate::native::crossing::raise`]); the place belongs to the address that the call would return to. The methods here
//! and in [`super::checks`] hide the difference from the rest of the lowering.
//!
//! # Which instruction trapped
//! The location of a trap is the source location of the CLIF instruction, with three exceptions, in
//! which Cranelift is right about *that* a trap happens, and not about where:
//!
//! * Back ends fold a load into the instruction that uses its value, on aarch64 into one that extends it, and the
//!   fault then has that instruction's location. Loads that can be folded therefore have trap codes in turn
//!   ([`Lowering::loaded_flags`]). Where several have one code, [`crate::compile::folds`] tells them apart.
//! * A store that another one overwrites is removed even if it can fault, since the other one faults
//!   in its place. A trap that never happens, and that the optimiser deletes after its alias analysis
//!   has seen it, observes the first store ([`Lowering::observe_store`]). Only the next store can overwrite it,
//!   and only one of as many bytes at the same offset; whatever else follows in the block needs no such trap.
//! * A branch to a block that does nothing but trap becomes a conditional trap at the branch. A fence
//!   in that block avoids it ([`Lowering::trap`]).
//!
//! None of this concerns calls: they stay where they are.

use cranelift_codegen::ir::{self, AbiParam, InstBuilder, MemFlagsData, Signature, types};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::FunctionBuilder;
use slotvm_bytecode::{Effect, Op, TrapCode, ValType};
use slotvm_runtime::native::offsets;
use slotvm_ssa::ir::entity::Loc;
use slotvm_ssa::ir::irop::{IrOp, Opcode};

use super::{Lowering, Trapping};
use crate::code::pctable::TrapReason;
use crate::lower::abi::POINTER;
use crate::lower::isa::folds_loads;

/// The trap code of host trampolines.
pub(crate) const HOST_ERROR: ir::TrapCode = ir::TrapCode::unwrap_user(HOST_ERROR_NUMBER);

/// Its number, which [`crate::native::crossing::raise::raise`] takes.
pub(crate) const HOST_ERROR_NUMBER: u8 = 31;

/// Follows calls that do not return: Cranelift requires a terminator in each block.
pub(crate) const NEVER: ir::TrapCode = ir::TrapCode::unwrap_user(30);

/// The part of the bytes that a store writes which does not depend on its address. Stores that differ in it do not
/// overwrite each other for the optimiser.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredBytes {
    pub(super) offset: i32,
    pub(super) bytes: u32,
}

/// The codes from this one on belong to loads.
const FIRST_LOAD_CODE: u8 = 32;
/// The number of such codes.
pub(crate) const LOAD_CODES: usize = 219;

const _: () = assert!(ir::TrapCode::user(FIRST_LOAD_CODE + LOAD_CODES as u8 - 1).is_some());
const _: () = assert!(ir::TrapCode::user(FIRST_LOAD_CODE + LOAD_CODES as u8).is_none());

/// The code of a trap in compiled code.
pub(crate) const fn clif_trap_code(code: TrapCode) -> ir::TrapCode {
    ir::TrapCode::unwrap_user(code.number())
}

/// The trap that a code in compiled code stands for; `None` for [`HOST_ERROR`].
///
/// # Panics
/// Panics if this crate's lowering never uses the code.
pub(crate) fn trap_code_of(code: ir::TrapCode) -> Option<TrapCode> {
    if code == HOST_ERROR {
        return None;
    }
    Some(match code {
        ir::TrapCode::STACK_OVERFLOW => TrapCode::StackOverflow,
        ir::TrapCode::HEAP_OUT_OF_BOUNDS => TrapCode::MemoryOutOfBounds,
        ir::TrapCode::INTEGER_OVERFLOW => TrapCode::IntegerOverflow,
        ir::TrapCode::INTEGER_DIVISION_BY_ZERO => TrapCode::IntegerDivisionByZero,
        ir::TrapCode::BAD_CONVERSION_TO_INTEGER => TrapCode::BadConversionToInteger,
        _ if load_of(code).is_some() => TrapCode::MemoryOutOfBounds,
        _ => TrapCode::from_number(code.as_raw().get()).expect("a code of the lowering"),
    })
}

/// The first load that a trap code belongs to, as an index into `Lowered::load_locs`.
pub(crate) fn load_of(code: ir::TrapCode) -> Option<usize> {
    let load = usize::from(code.as_raw().get().checked_sub(FIRST_LOAD_CODE)?);
    (load < LOAD_CODES).then_some(load)
}

/// Decodes the number that code passes when it traps by a call.
///
/// # Panics
/// Panics if no code passes it.
pub(crate) fn reason_of_number(number: u32) -> TrapReason {
    if number == raised_number(HOST_ERROR) {
        return TrapReason::HostError;
    }
    let code = u8::try_from(number).ok().and_then(TrapCode::from_number);
    TrapReason::Guest(code.expect("native code passes codes of traps"))
}

fn raised_number(code: ir::TrapCode) -> u32 {
    code.as_raw().get().into()
}

/// The signature of [`crate::native::crossing::raise::raise`].
fn raise_signature(b: &mut FunctionBuilder<'_>) -> ir::SigRef {
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params.push(AbiParam::new(types::I32));
    b.import_signature(signature)
}

/// Traps by a call of `raise`, which ends the block.
fn raise(b: &mut FunctionBuilder<'_>, sig: ir::SigRef, raise: ir::Value, code: ir::TrapCode) {
    let number = b.ins().iconst(types::I32, i64::from(raised_number(code)));
    b.ins().call_indirect(sig, raise, &[number]);
    b.ins().trap(NEVER);
}

/// Stops the trampoline of a host function, whose context is `ctx`, for an error of the host that is
/// pending in the store, if `failed` is not zero. This is a call in all engines: errors are not rare,
/// and a signal takes ten times as long.
pub(crate) fn trap_trampoline(b: &mut FunctionBuilder<'_>, ctx: ir::Value, failed: ir::Value) {
    let rest = branch_to_cold(b, failed, true);
    let sig = raise_signature(b);
    let flags = MemFlagsData::trusted();
    let shared = b.ins().load(POINTER, flags, ctx, offsets::VMCTX_SHARED);
    let callee = b.ins().load(POINTER, flags, shared, offsets::SHARED_RAISE);
    raise(b, sig, callee, HOST_ERROR);
    b.switch_to_block(rest);
}

/// Branches to a cold block, which becomes the current one, if an integer has the given truth value, and
/// otherwise to the returned block.
fn branch_to_cold(b: &mut FunctionBuilder<'_>, condition: ir::Value, truth: bool) -> ir::Block {
    let (cold, rest) = (b.create_block(), b.create_block());
    let (then, otherwise) = if truth { (cold, rest) } else { (rest, cold) };
    b.ins().brif(condition, then, &[], otherwise, &[]);
    b.set_cold_block(cold);
    b.seal_block(cold);
    b.seal_block(rest);
    b.switch_to_block(cold);
    rest
}

impl Lowering<'_, '_> {
    /// Whether no instruction may fault.
    pub(super) fn traps_by_calls(&self) -> bool {
        self.options.trapping == Trapping::Calls
    }

    /// Traps by a call if an integer has the given truth value.
    fn raise_if(&mut self, condition: ir::Value, truth: bool, code: ir::TrapCode) {
        let rest = branch_to_cold(&mut self.builder, condition, truth);
        self.raise(code);
        self.builder.switch_to_block(rest);
    }

    fn raise(&mut self, code: ir::TrapCode) {
        let shared = self.shared();
        let callee = self.constant_pointer(shared, offsets::SHARED_RAISE);
        let sig = *self.raise_signature.get_or_insert_with(|| raise_signature(&mut self.builder));
        raise(&mut self.builder, sig, callee, code);
    }

    /// Stops the program; ends the block.
    pub(super) fn trap(&mut self, code: TrapCode) {
        if self.traps_by_calls() {
            return self.raise(clif_trap_code(code));
        }
        if self.optimises {
            self.builder.ins().sequence_point();
        }
        self.builder.ins().trap(clif_trap_code(code));
    }

    /// Stops the program if an integer is not zero.
    pub(super) fn trap_if(&mut self, condition: ir::Value, code: TrapCode) {
        if self.traps_by_calls() {
            return self.raise_if(condition, true, clif_trap_code(code));
        }
        self.builder.ins().trapnz(condition, clif_trap_code(code));
    }

    /// Stops the program if an integer is zero.
    pub(super) fn trap_unless(&mut self, condition: ir::Value, code: TrapCode) {
        if self.traps_by_calls() {
            return self.raise_if(condition, false, clif_trap_code(code));
        }
        self.builder.ins().trapz(condition, clif_trap_code(code));
    }

    /// Stops the program, for an error of the host that is pending in the store, if an integer is not
    /// zero.
    pub(super) fn trap_for_host(&mut self, failed: ir::Value) {
        if self.traps_by_calls() {
            return self.raise_if(failed, true, HOST_ERROR);
        }
        self.builder.ins().trapnz(failed, HOST_ERROR);
    }

    /// The flags of an access of linear memory that faults if it is out of bounds.
    pub(super) fn faulting_flags(&self) -> MemFlagsData {
        self.memory_flags().with_trap_code(Some(ir::TrapCode::HEAP_OUT_OF_BOUNDS))
    }

    /// The flags of a load of a type that the back end may fold into the use of its value, and that faults
    /// with the given location.
    pub(super) fn loaded_flags(&mut self, ty: ValType, loc: Loc) -> MemFlagsData {
        if folds_loads(self.isa(), ty) {
            self.single_load_flags(loc)
        } else {
            self.faulting_flags()
        }
    }

    /// The flags of a load that faults with the given location wherever the back end moves it.
    pub(super) fn single_load_flags(&mut self, loc: Loc) -> MemFlagsData {
        let code = FIRST_LOAD_CODE + (self.load_locs.len() % LOAD_CODES) as u8;
        self.load_locs.push(loc);
        self.memory_flags().with_trap_code(Some(ir::TrapCode::unwrap_user(code)))
    }

    /// Keeps the last store, which can fault, from being removed in favour of a later one, if nothing has observed it yet.
    pub(super) fn observe_store(&mut self) {
        if self.unobserved_store.take().is_some() && self.optimises {
            let never = self.builder.ins().iconst(types::I8, 0);
            self.builder.ins().trapnz(never, clif_trap_code(TrapCode::Unreachable));
        }
    }

    /// Keeps the last store, if the next one may write the same bytes.
    pub(super) fn before_store(&mut self, next: StoredBytes) {
        if self.unobserved_store == Some(next) {
            self.observe_store();
        }
        self.unobserved_store = None;
    }

    /// Keeps the last store, if the instruction after it neither observes all stores nor leaves it alone.
    pub(super) fn observe_store_before(&mut self, opcode: Opcode) {
        if self.unobserved_store.is_none() {
            return;
        }
        match opcode {
            Opcode::Ir(IrOp::SlotGet | IrOp::SlotSet) => {}
            // These do, and a call is a fence.
            Opcode::Op(
                Op::Return | Op::ReturnCall | Op::ReturnCallIndirect | Op::Unreachable | Op::Trap,
            )
            | Opcode::Ir(IrOp::Exit) => self.unobserved_store = None,
            Opcode::Op(op) => match op.effect() {
                Effect::Call => self.unobserved_store = None,
                // Accesses of linear memory see to it themselves.
                _ if op.access().is_some() || op.vector_access().is_some() => {}
                Effect::Pure | Effect::Trap => {}
                _ if matches!(op, Op::GlobalGet | Op::GlobalSet) => {}
                _ => self.observe_store(),
            },
            Opcode::Ir(_) => self.observe_store(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_map_back() {
        for code in TrapCode::ALL {
            assert_eq!(trap_code_of(clif_trap_code(code)), Some(code));
            assert_eq!(load_of(clif_trap_code(code)), None);
            assert_ne!(clif_trap_code(code), HOST_ERROR);
            assert_ne!(clif_trap_code(code), NEVER);
            assert_eq!(reason_of_number(code.number().into()), TrapReason::Guest(code));
        }
        assert_eq!(reason_of_number(raised_number(HOST_ERROR)), TrapReason::HostError);
        assert_eq!(raised_number(HOST_ERROR), u32::from(HOST_ERROR_NUMBER));
        assert_eq!(load_of(NEVER), None);
        assert_eq!(trap_code_of(HOST_ERROR), None);
        assert_eq!(load_of(HOST_ERROR), None);
        for &code in ir::TrapCode::non_user_traps() {
            assert!(trap_code_of(code).is_some());
            assert_eq!(load_of(code), None);
        }
        let last = ir::TrapCode::unwrap_user(FIRST_LOAD_CODE + LOAD_CODES as u8 - 1);
        assert_eq!(load_of(last), Some(LOAD_CODES - 1));
        assert_eq!(trap_code_of(last), Some(TrapCode::MemoryOutOfBounds));
    }
}
