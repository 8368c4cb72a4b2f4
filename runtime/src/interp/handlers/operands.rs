//! Where handlers find operands and leave results.

use slotvm_bytecode::numeric::Numeric;
use slotvm_bytecode::{Op, TrapCode, ValType};

use crate::interp::dispatch::{Dispatch, Regs};
use crate::steps::code::Instr;

/// Where a handler finds an operand of an operation `N`.
pub(in crate::interp) trait Operand {
    /// The slots of an instruction with such an operand.
    const SLOTS: usize = 1;

    fn get<N: Numeric, D: Dispatch>(r: &Regs<D>) -> u64;
}

/// In the cell `a`.
pub(in crate::interp) enum CellA {}

/// In the cell `b`.
pub(in crate::interp) enum CellB {}

/// In the cell `x`.
pub(in crate::interp) enum CellX {}

/// In the accumulator for the operands of `N`.
pub(in crate::interp) enum Acc {}

/// In `a`, sign-extended.
pub(in crate::interp) enum ShortA {}

/// In `b`, sign-extended.
pub(in crate::interp) enum ShortB {}

/// In `c`, sign-extended.
pub(in crate::interp) enum ShortC {}

/// In the next slot.
pub(in crate::interp) enum Long {}

/// The number of bits by which a number is shifted.
pub(in crate::interp) trait Shift {
    const BITS: u32;
}

pub(in crate::interp) enum By1 {}
pub(in crate::interp) enum By2 {}
pub(in crate::interp) enum By3 {}

impl Shift for By1 {
    const BITS: u32 = 1;
}

impl Shift for By2 {
    const BITS: u32 = 2;
}

impl Shift for By3 {
    const BITS: u32 = 3;
}

macro_rules! operands {
    ($($name:ident $slots:literal: $r:ident $value:expr;)*) => {$(
        impl Operand for $name {
            const SLOTS: usize = $slots;

            #[inline(always)]
            fn get<N: Numeric, D: Dispatch>($r: &Regs<D>) -> u64 {
                $value
            }
        }
    )*};
}

operands! {
    CellA 1: r r.get(r.instr().a);
    CellB 1: r r.get(r.instr().b);
    CellX 1: r r.get(r.instr().x());
    ShortA 1: r r.instr().a as i16 as u64;
    ShortB 1: r r.instr().b as i16 as u64;
    ShortC 1: r r.instr().c as i32 as u64;
    Long 2: r r.data(1);
}

impl Operand for Acc {
    #[inline(always)]
    fn get<N: Numeric, D: Dispatch>(r: &Regs<D>) -> u64 {
        match const { takes(N::OP) } {
            ValType::F64 => r.float_acc.to_bits(),
            _ => r.acc,
        }
    }
}

/// The type of the operands of an operation.
const fn takes(op: Op) -> ValType {
    match op.signature() {
        Some(signature) => signature.params[0],
        None => panic!("numeric instructions have signatures"),
    }
}

/// The type of the result of an operation.
const fn makes(op: Op) -> ValType {
    match op.signature() {
        Some(signature) => signature.results[0],
        None => panic!("numeric instructions have signatures"),
    }
}

/// Where a result goes: into the cell `a` and the accumulator, or into the accumulator alone.
pub(in crate::interp) trait To {
    const IS_WRITTEN: bool;
}

pub(in crate::interp) enum ToCell {}
pub(in crate::interp) enum ToAcc {}

impl To for ToCell {
    const IS_WRITTEN: bool = true;
}

impl To for ToAcc {
    const IS_WRITTEN: bool = false;
}

impl<D: Dispatch> Regs<D> {
    /// Goes on with a result, which is no float.
    #[inline(always)]
    pub(super) fn finish<T: To>(mut self, slots: usize, value: u64) -> *const Instr {
        if T::IS_WRITTEN {
            self.set(self.instr().a, value);
        }
        self.acc = value;
        self.next(slots)
    }

    /// Goes on with a result that is a float of 64 bits.
    #[inline(always)]
    pub(super) fn finish_float<T: To>(mut self, slots: usize, value: u64) -> *const Instr {
        if T::IS_WRITTEN {
            self.set(self.instr().a, value);
        }
        self.float_acc = f64::from_bits(value);
        self.next(slots)
    }

    /// Goes on with the result of an operation `N`.
    #[inline(always)]
    pub(super) fn finish_op<N: Numeric, T: To>(
        self,
        slots: usize,
        result: Result<u64, TrapCode>,
    ) -> *const Instr {
        match result {
            Ok(value) => match const { makes(N::OP) } {
                ValType::F64 => self.finish_float::<T>(slots, value),
                ValType::F32 => {
                    self.set(self.instr().a, value);
                    self.next(slots)
                }
                _ => self.finish::<T>(slots, value),
            },
            Err(code) => self.trap(code),
        }
    }
}
