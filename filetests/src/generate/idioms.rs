//! Short sequences that front ends emit, for corner cases that random instructions seldom reach.

use slotvm_bytecode::pairs::has_flag;
use slotvm_bytecode::{Imm, Op, ValType};

use super::{Generator, const_op};

/// The address where functions store their locals at the end.
const SINK: i32 = 0x2000;
/// Number of bytes there for each function.
const SINK_BYTES: i32 = 0x400;

impl Generator<'_> {
    pub(super) fn idiom(&mut self) {
        match self.choices.below(7) {
            0 | 1 => self.rotate_locals(),
            2 => self.load_into_operation(),
            3 => self.store_twice(),
            4 => self.access_last_cell(),
            5 => self.overflow(),
            _ => self.compare(),
        }
    }

    /// The most common numeric type first.
    fn numeric_type(&mut self) -> ValType {
        if self.integers {
            return self.choices.pick(&[ValType::I32, ValType::I64]);
        }
        self.choices.pick(&[ValType::I32, ValType::I64, ValType::I32, ValType::F64, ValType::F32])
    }

    /// Combines a value with one from memory.
    fn load_into_operation(&mut self) {
        let ty = self.numeric_type();
        let (load, op) = match ty {
            ValType::I32 => (Op::I32Load, Op::I32Add),
            ValType::I64 => (Op::I64Load, Op::I64Xor),
            ValType::F32 => (Op::F32Load, Op::F32Add),
            _ => (Op::F64Load, Op::F64Mul),
        };
        self.value(ty);
        self.address();
        self.stack.pop();
        let offset = self.offset();
        self.raw(load, Imm::mem(offset));
        self.raw(op, Imm::NONE);
    }

    /// Writes to the same place twice.
    fn store_twice(&mut self) {
        let ty = self.numeric_type();
        let addresses = self.writable_locals(ValType::I32);
        if addresses.is_empty() {
            return;
        }
        let address = self.choices.pick(&addresses);
        if !self.is_wild() {
            self.raw(Op::LocalGet, Imm::index(address));
            self.raw(Op::I32Const, Imm::i32(0xfff8));
            self.raw(Op::I32And, Imm::NONE);
            self.raw(Op::LocalSet, Imm::index(address));
        }
        let offset = self.choices.pick(&[0, 0, 4]);
        for _ in 0..2 {
            self.raw(Op::LocalGet, Imm::index(address));
            self.value(ty);
            self.stack.pop();
            self.raw(store_op(ty), Imm::mem(offset));
        }
    }

    /// Reads the last bytes of memory, however long it is, perhaps after it has grown.
    fn access_last_cell(&mut self) {
        if self.choices.percent(40) {
            self.raw(Op::I32Const, Imm::i32(1));
            self.raw(Op::MemoryGrow, Imm::NONE);
            self.raw(Op::Drop, Imm::NONE);
        }
        self.raw(Op::MemorySize, Imm::NONE);
        self.raw(Op::I32Const, Imm::i32(16));
        self.raw(Op::I32Shl, Imm::NONE);
        let is_out = self.is_wild();
        self.raw(Op::I32Const, Imm::i32(if is_out { 7 } else { 8 }));
        self.raw(Op::I32Sub, Imm::NONE);
        self.raw(Op::I64Load, Imm::mem(0));
        self.stack.push(ValType::I64);
    }

    /// A sum, difference or product of two values or of a value and a constant, with the flag on top for what follows, perhaps
    /// inverted.
    fn overflow(&mut self) {
        let flagged: Vec<Op> = Op::ALL.iter().copied().filter(|&op| has_flag(op)).collect();
        let op = self.choices.pick(&flagged);
        let ty = op.signature().expect("it has a fixed signature").params[0];
        self.value(ty);
        match self.choices.percent(50) {
            true => self.constant(ty, true),
            false => {
                self.value(ty);
                self.stack.pop();
            }
        }
        self.raw(op, Imm::NONE);
        if self.choices.percent(30) {
            self.raw(Op::I32Eqz, Imm::NONE);
        }
        self.stack.push(ValType::I32);
    }

    /// A comparison of any two values, perhaps of NaNs, perhaps inverted.
    pub(super) fn compare(&mut self) {
        const COMPARISONS: &[(Op, ValType)] = &[
            (Op::I32LtS, ValType::I32),
            (Op::I64LtU, ValType::I64),
            (Op::F64Lt, ValType::F64),
            (Op::F32Lt, ValType::F32),
            (Op::F64Ge, ValType::F64),
            (Op::I64Eq, ValType::I64),
            (Op::F32Ne, ValType::F32),
            (Op::I32GeU, ValType::I32),
        ];
        let (op, ty) = self.choices.pick(COMPARISONS);
        self.value(ty);
        let nan = match ty {
            ValType::F32 => Imm(0x7fc0_0000),
            _ => Imm(0x7ff8 << 48),
        };
        if matches!(ty, ValType::F32 | ValType::F64) && self.choices.percent(25) {
            self.raw(const_op(ty), nan);
        } else {
            self.value(ty);
            self.stack.pop();
        }
        self.stack.pop();
        self.raw(op, Imm::NONE);
        if self.choices.percent(30) {
            self.raw(Op::I32Eqz, Imm::NONE);
        }
        self.stack.push(ValType::I32);
    }

    /// Assigns to each of some locals the value of the next: a swap for two.
    fn rotate_locals(&mut self) {
        const ROTATED_MAX: usize = 24;
        let ty = self.any_type();
        let mut locals = self.writable_locals(ty);
        if locals.len() < 2 {
            return;
        }
        let start = self.choices.below(locals.len());
        locals.rotate_left(start);
        locals.truncate((2 + self.choices.below(ROTATED_MAX)).min(locals.len()));
        for &local in &locals {
            self.raw(Op::LocalGet, Imm::index(local));
        }
        locals.rotate_left(1);
        for &local in locals.iter().rev() {
            self.raw(Op::LocalSet, Imm::index(local));
        }
    }

    /// Initialises some locals.
    pub(super) fn initialize_locals(&mut self) {
        for local in self.counter + 1..self.locals.len() as u32 {
            let ty = self.locals[local as usize];
            if ty.is_num() && self.choices.percent(80) {
                self.constant(ty, true);
                self.raw(Op::LocalSet, Imm::index(local));
            }
        }
    }

    /// Writes the numeric locals to memory, so that wrong values are detected.
    pub(super) fn show_locals(&mut self) {
        let start = SINK + self.func as i32 * SINK_BYTES;
        let mut end = 0;
        for local in 0..self.locals.len() as u32 {
            let ty = self.locals[local as usize];
            let at = end;
            end += ty.bytes().max(8) as i32;
            if ty.is_num() && end <= SINK_BYTES {
                self.raw(Op::I32Const, Imm::i32(start + at));
                self.raw(Op::LocalGet, Imm::index(local));
                self.raw(store_op(ty), Imm::mem(0));
            }
        }
    }
}

fn store_op(ty: ValType) -> Op {
    match ty {
        ValType::I32 => Op::I32Store,
        ValType::I64 => Op::I64Store,
        ValType::F32 => Op::F32Store,
        ValType::V128 => Op::V128Store,
        _ => Op::F64Store,
    }
}
