//! Traps: the only place that decides how native code stops.
//!
//! Code traps by trap instructions and by faulting accesses; both raise a signal, and the tables of
//! [`crate::compile`] say which trap and which bytecode offset belong to the faulting pc. A second
//! mechanism, explicit checks that call the runtime to raise the trap, would replace the bodies of
//! the methods here and [`Lowering::faulting_flags`]; nothing else in the lowering knows how a trap
//! is raised.
//!
//! # Which instruction trapped
//! The location of a trap is the source location of the CLIF instruction, with three exceptions, in
//! which Cranelift is right about *that* a trap happens, and not about where:
//!
//! * The x86-64 back end folds a load into the instruction that uses its value, and the fault then has
//!   that instruction's location. Each load that can be folded therefore gets a trap code of its own,
//!   as long as there are any ([`Lowering::loaded_flags`]); the loads behind them are kept from being
//!   folded by a fence.
//! * A store that another one overwrites is removed even if it can fault, since the other one faults
//!   in its place. A trap that never happens, and that the optimiser deletes after its alias analysis
//!   has seen it, observes the first store ([`Lowering::keep_store`]).
//! * A branch to a block that does nothing but trap becomes a conditional trap at the branch. A fence
//!   in that block avoids it ([`Lowering::trap`]).

use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, types};
use slotvm_bytecode::TrapCode;
use slotvm_ssa::entity::Loc;
use slotvm_ssa::faults::{Fault, planted};

use super::Lowering;
use crate::trampoline::HOST_ERROR;

/// The codes from this one on belong to single loads.
const FIRST_LOAD_CODE: u8 = 32;
/// The number of loads that can have a code of their own.
pub(crate) const LOAD_CODES_MAX: usize = 219;

const _: () = assert!(ir::TrapCode::user(FIRST_LOAD_CODE + LOAD_CODES_MAX as u8 - 1).is_some());
const _: () = assert!(ir::TrapCode::user(FIRST_LOAD_CODE + LOAD_CODES_MAX as u8).is_none());

/// The code of a trap in compiled code.
pub(crate) const fn clif_trap_code(code: TrapCode) -> ir::TrapCode {
    ir::TrapCode::unwrap_user(code.number())
}

/// The trap that a code in compiled code stands for; `None` for [`HOST_ERROR`].
///
/// # Panics
/// If this crate's lowering never uses the code.
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

/// The load that a trap code belongs to, as an index into `Lowered::load_locs`.
pub(crate) fn load_of(code: ir::TrapCode) -> Option<usize> {
    let load = usize::from(code.as_raw().get().checked_sub(FIRST_LOAD_CODE)?);
    (load < LOAD_CODES_MAX).then_some(load)
}

impl Lowering<'_, '_> {
    /// Stops the program; ends the block.
    pub(super) fn trap(&mut self, code: TrapCode) {
        if self.optimises {
            self.builder.ins().sequence_point();
        }
        self.builder.ins().trap(clif_trap_code(code));
    }

    /// Stops the program if an integer is not zero.
    pub(super) fn trap_if(&mut self, condition: ir::Value, code: TrapCode) {
        self.builder.ins().trapnz(condition, clif_trap_code(code));
    }

    /// Stops the program if an integer is zero.
    pub(super) fn trap_unless(&mut self, condition: ir::Value, code: TrapCode) {
        self.builder.ins().trapz(condition, clif_trap_code(code));
    }

    /// Stops the program, for an error of the host that is pending in the store, if an integer is not
    /// zero.
    pub(super) fn trap_for_host(&mut self, failed: ir::Value) {
        self.builder.ins().trapnz(failed, HOST_ERROR);
    }

    /// The flags of an access of linear memory that faults if it is out of bounds.
    pub(super) fn faulting_flags(&self) -> MemFlagsData {
        self.memory_flags().with_trap_code(Some(ir::TrapCode::HEAP_OUT_OF_BOUNDS))
    }

    /// The flags of a load that the back end may fold into the use of its value, and that faults with
    /// the given location. Says whether [`Lowering::keep_load`] must follow.
    pub(super) fn loaded_flags(&mut self, loc: Loc) -> (MemFlagsData, bool) {
        if !self.folds_loads || planted(Fault::LoadFolded) {
            return (self.faulting_flags(), false);
        }
        let load = self.load_locs.len();
        if load == LOAD_CODES_MAX {
            return (self.faulting_flags(), true);
        }
        self.load_locs.push(loc);
        let code = ir::TrapCode::unwrap_user(FIRST_LOAD_CODE + load as u8);
        (self.memory_flags().with_trap_code(Some(code)), false)
    }

    /// Keeps the load before from being folded: no load moves across a fence.
    pub(super) fn keep_load(&mut self) {
        self.builder.ins().sequence_point();
    }

    /// Keeps the store before, which can fault, from being removed in favour of a later one.
    pub(super) fn keep_store(&mut self) {
        if self.optimises && !planted(Fault::StoreNotKept) {
            let never = self.builder.ins().iconst(types::I8, 0);
            self.builder.ins().trapnz(never, clif_trap_code(TrapCode::Unreachable));
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
        }
        assert_eq!(trap_code_of(HOST_ERROR), None);
        assert_eq!(load_of(HOST_ERROR), None);
        for &code in ir::TrapCode::non_user_traps() {
            assert!(trap_code_of(code).is_some());
            assert_eq!(load_of(code), None);
        }
        let last = ir::TrapCode::unwrap_user(FIRST_LOAD_CODE + LOAD_CODES_MAX as u8 - 1);
        assert_eq!(load_of(last), Some(LOAD_CODES_MAX - 1));
        assert_eq!(trap_code_of(last), Some(TrapCode::MemoryOutOfBounds));
    }
}
