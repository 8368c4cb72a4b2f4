//! Values that the code of an instruction is made of and that no form shows, but which an optimiser knows
//! again: addresses, bounds, and what the context holds.

use slotvm_bytecode::pairs::is_pair;
use slotvm_bytecode::{Effect, Op};
use slotvm_ssa::ir::Function;
use slotvm_ssa::ir::entity::{Inst, Value};
use slotvm_ssa::ir::irop::{IrOp, Opcode};
use slotvm_ssa::ir::work::HiddenValue;

use super::checks::n_checks;

/// HiddenValues of the configuration that decide how code makes calls and what it checks.
#[derive(Copy, Clone, Debug)]
pub(crate) struct HiddenValues {
    /// Functions below this are imported, and called by a record.
    pub(crate) n_imported_funcs: u32,
    /// Whether the entries of other functions are loaded, too.
    pub(crate) loads_entries: bool,
    /// Whether operands are checked by comparisons that split blocks, as no instruction may fault.
    pub(crate) checks: bool,
    /// Whether results that are NaNs become the canonical one.
    pub(crate) canonical_nans: bool,
}

/// The live ranges of an operation whose NaNs become canonical, for one of another operation: 9.4 were counted for
/// chains of `f32.sub` (docs/decisions.md).
const PLACES_OF_CANONICAL: u64 = 10;

/// The kinds of parts, which their keys begin with.
#[derive(Copy, Clone)]
enum Kind {
    /// A memory address.
    Address,
    /// An element of a table, and the table.
    Element,
    Table,
    /// Code and context of a function, or its handle.
    Callee,
    /// A type as calls compare it.
    Type,
    Global,
    /// Comparisons before a division or conversion.
    Check,
    /// A number of 128 bits in two registers, or a result and a comparison that is its flag.
    Pair,
    /// A constant of a vector, and those that vector operations have.
    Vector,
    Lanes,
}

impl Kind {
    fn key(self, number: impl Into<u64>) -> u64 {
        (self as u64) << 56 ^ number.into()
    }
}

impl HiddenValues {
    /// The most values without effects that the code of an operation computes and that may recur.
    pub(super) fn n_max(self, op: Opcode) -> u64 {
        let of_result = u64::from(op.effect() == Effect::Pure);
        let Opcode::Op(op) = op else {
            return of_result + u64::from(op == Opcode::Ir(IrOp::RefIsFunc));
        };
        let of_parts = match op {
            _ if op.access_bytes().is_some() => 1,
            Op::Call | Op::ReturnCall => 2,
            Op::CallIndirect | Op::ReturnCallIndirect => 5,
            Op::TableGet | Op::TableSet => 4,
            Op::TableSize => 2,
            Op::GlobalGet | Op::GlobalSet | Op::RefFunc => 1,
            _ if self.compares(op) => 3,
            _ if is_pair(op) => 2,
            _ if op.is_vector() => 1,
            _ => 0,
        };
        of_result + of_parts
    }

    /// The places that an operation counts for where a value lives through it without a register.
    pub(super) fn n_places(self, op: Opcode) -> u64 {
        match op {
            Opcode::Op(op) if self.canonical_nans && op.makes_nan() => PLACES_OF_CANONICAL,
            _ => 1,
        }
    }

    /// Whether code compares the operands of an operation before.
    fn compares(self, op: Op) -> bool {
        self.checks && n_checks(Opcode::Op(op)) > 0 && op.effect() == Effect::Trap
    }

    /// The parts of an instruction.
    pub(super) fn of(self, func: &Function, inst: Inst, part: &mut dyn FnMut(HiddenValue)) {
        let (imm, operands) = (func.imm(inst), func.operands(inst));
        let op = match func.opcode(inst) {
            Opcode::Op(op) => op,
            // The handle is what `ref.func` gives.
            Opcode::Ir(IrOp::RefIsFunc) => Op::RefFunc,
            Opcode::Ir(_) => return,
        };
        let operand = |i: usize| operands.get(i).copied();
        let mut add = |key, operands: [Option<Value>; 2], n_values| {
            part(HiddenValue { key, operands, n_values });
        };
        const NONE: [Option<Value>; 2] = [None, None];
        if op.access_bytes().is_some() {
            // The end, if it is compared, is that and a constant, and made again where it is needed.
            let is_indexed = op.access().is_some_and(|access| access.indexed);
            let index = if is_indexed { operand(1) } else { None };
            let scale = if is_indexed { imm.scale_log2() } else { 0 };
            add(Kind::Address.key(scale), [operand(0), index], 1);
        }
        match op {
            Op::Call | Op::ReturnCall
                if imm.low() < self.n_imported_funcs || self.loads_entries =>
            {
                add(Kind::Callee.key(imm.low()), NONE, 2);
            }
            Op::CallIndirect | Op::ReturnCallIndirect => {
                add(Kind::Element.key(imm.high()), [operands.last().copied(), None], 2);
                add(Kind::Table.key(imm.high()), NONE, 2);
                add(Kind::Type.key(imm.low()), NONE, 1);
            }
            Op::TableGet | Op::TableSet => {
                add(Kind::Element.key(imm.low()), [operand(0), None], 2);
                add(Kind::Table.key(imm.low()), NONE, 2);
            }
            Op::TableSize => add(Kind::Table.key(imm.low()), NONE, 2),
            Op::GlobalGet | Op::GlobalSet => add(Kind::Global.key(imm.low()), NONE, 1),
            Op::RefFunc => add(Kind::Callee.key(imm.low()), NONE, 1),
            Op::V128Const | Op::I8x16Shuffle => {
                let lanes = func.vector_imm(inst);
                add(Kind::Vector.key(lanes as u64 ^ (lanes >> 64) as u64), NONE, 1);
            }
            _ if self.compares(op) => add(Kind::Check.key(op as u32), [operand(0), operand(1)], 3),
            _ if is_pair(op) => add(Kind::Pair.key(op as u32), [operand(0), operand(1)], 2),
            _ if op.is_vector() => add(Kind::Lanes.key(op as u32), NONE, 1),
            _ => {}
        }
    }
}
