//! Where handlers find operands and leave results.

use slotvm_bytecode::numeric::Numeric;
use slotvm_bytecode::{Op, ValType};

use super::regs::Regs;

/// Where a handler finds an operand of an operation `N`.
pub(super) trait Operand {
    /// The slots of an instruction with such an operand.
    const SLOTS: usize = 1;

    fn get<N: Numeric, D>(r: &Regs<D>) -> u64;
}

/// In the cell `a`.
pub(super) enum CellA {}

/// In the cell `b`.
pub(super) enum CellB {}

/// In the cell `x`.
pub(super) enum CellX {}

/// In the accumulator for the operands of `N`.
pub(super) enum Acc {}

/// In `a`, sign-extended.
pub(super) enum ShortA {}

/// In `b`, sign-extended.
pub(super) enum ShortB {}

/// In `c`, sign-extended.
pub(super) enum ShortC {}

/// In the next slot.
pub(super) enum Long {}

/// In the cell that the next slot names.
pub(super) enum NextCell {}

/// The number of bits by which a number is shifted.
pub(super) trait Shift {
    const BITS: u32;
}

pub(super) enum By1 {}
pub(super) enum By2 {}
pub(super) enum By3 {}

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
            fn get<N: Numeric, D>($r: &Regs<D>) -> u64 {
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
    NextCell 2: r r.get(r.slot(1).a);
}

impl Operand for Acc {
    #[inline(always)]
    fn get<N: Numeric, D>(r: &Regs<D>) -> u64 {
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
pub(super) const fn makes(op: Op) -> ValType {
    match op.signature() {
        Some(signature) => signature.results[0],
        None => panic!("numeric instructions have signatures"),
    }
}

/// Where a result goes: into the cell `a` and the accumulator, or into the accumulator alone.
pub(super) trait To {
    const IS_WRITTEN: bool;
}

pub(super) enum ToCell {}
pub(super) enum ToAcc {}

impl To for ToCell {
    const IS_WRITTEN: bool = true;
}

impl To for ToAcc {
    const IS_WRITTEN: bool = false;
}
