//! Instructions on vectors, which lie in two cells each. A vector that is a local is two operands, its halves.

use slotvm_bytecode::{Imm, Op, ValType, inst, n_cells};

use super::Translator;
use super::operands::{Last, Operand, Value};
use crate::interp::handlers::table::HandlerCode;
use crate::steps::instr::StackOp;

impl Translator<'_> {
    pub(super) fn vector(&mut self, op: Op, imm: Imm) {
        let is_part = op.vector_access().is_some();
        if self.is_exact() || is_part {
            return self.vector_on_stack(op, imm);
        }
        match op {
            Op::V128Const => {
                let value = inst::vector(self.code(), imm);
                self.define_wide(HandlerCode::WideConst, 0, 0, &halves(value));
            }
            Op::V128Load => {
                let (address, b, c, data) = self.address(false, imm);
                self.define_wide(HandlerCode::LoadWide(address), b, c, data.as_slice());
            }
            Op::V128Store => {
                let a = self.pop_wide();
                let (address, b, c, data) = self.address(false, imm);
                self.emit(HandlerCode::StoreWide(address), a, b, c);
                data.into_iter().for_each(|data| self.emit_data(data));
            }
            _ => self.vector_op(op, imm),
        }
    }

    /// An operation on vectors alone.
    fn vector_op(&mut self, op: Op, imm: Imm) {
        let signature = op.signature().expect("operations on vectors have fixed signatures");
        let mut cells = [0, 0, imm.low() as u16];
        for (cell, &ty) in cells.iter_mut().zip(signature.params).rev() {
            *cell = match ty {
                ValType::V128 => self.pop_wide(),
                _ => {
                    let operand = self.pop();
                    self.source(operand)
                }
            };
        }
        let data = match op {
            Op::I8x16Shuffle => halves(inst::vector(self.code(), imm)).to_vec(),
            _ => Vec::new(),
        };
        let [b, x, y] = cells;
        let c = u32::from(x) | u32::from(y) << 16;
        if signature.results[0] != ValType::V128 {
            self.define(HandlerCode::VectorOp(op), b, c);
            return;
        }
        self.define_wide(HandlerCode::VectorOp(op), b, c, &data);
        let canonical = match op.nan_type() {
            Some(ValType::F64) => HandlerCode::CanonicalF64x2,
            Some(_) => HandlerCode::CanonicalF32x4,
            None => return,
        };
        if self.options.canonical_nans {
            let b = self.pop_wide();
            self.define_wide(canonical, b, 0, &[]);
        }
    }

    /// Any instruction on vectors, as an operation on the operand stack.
    fn vector_on_stack(&mut self, op: Op, imm: Imm) {
        let stack_op = match op {
            Op::V128Const => StackOp::Const(inst::vector(self.code(), imm)),
            Op::I8x16Shuffle => StackOp::Vector(op, inst::vector(self.code(), imm)),
            Op::V128Load => StackOp::Load(imm),
            Op::V128Store => StackOp::Store(imm),
            _ => match op.vector_access() {
                Some(access) => StackOp::Part(access, imm),
                None => StackOp::Vector(op, imm.low().into()),
            },
        };
        let signature = op.signature().expect("operations on vectors have fixed signatures");
        let pops = n_cells(signature.params) as u32;
        let pushes = n_cells(signature.results) as u32;
        self.stack_op(stack_op, pops, pushes);
    }

    pub(super) fn wide_local(&mut self, op: Op, local: u32) {
        if self.is_exact() {
            return match op {
                Op::LocalGet => self.stack_op(StackOp::LocalGet(local), 0, 2),
                Op::LocalSet => self.stack_op(StackOp::LocalSet(local), 2, 0),
                _ => self.stack_op(StackOp::LocalTee(local), 0, 0),
            };
        }
        if op == Op::LocalGet {
            return self.push_wide(local);
        }
        let value = self.pop_wide();
        self.flush_local(local);
        self.flush_local(local + 1);
        match self.wide_maker(value) {
            Some(last) => self.instrs[last.slot].a = local as u16,
            None => self.emit(HandlerCode::CopyWide, local as u16, value, 0),
        }
        self.accumulators.overwrite(local);
        self.accumulators.overwrite(local + 1);
        self.last = None;
        if op == Op::LocalTee {
            self.push_wide(local);
        }
    }

    /// A `select` between vectors.
    pub(super) fn select_wide(&mut self) {
        let condition = self.pop();
        let (y, x) = (self.pop_wide(), self.pop_wide());
        let b = self.source(condition);
        self.define_wide(HandlerCode::SelectWide, b, u32::from(x) | u32::from(y) << 16, &[]);
    }

    /// Pushes the vector that lies in a local's cells.
    fn push_wide(&mut self, local: u32) {
        self.push(Value::Cell(local));
        self.push(Value::Cell(local + 1));
    }

    /// Pops a vector. Returns the first of its cells: those of a local, or its own.
    pub(super) fn pop_wide(&mut self) -> u16 {
        let (upper, lower) = (self.pop(), self.pop());
        if let (Value::Cell(low), Value::Cell(high)) = (lower.value, upper.value)
            && high == low + 1
        {
            return low as u16;
        }
        for Operand { cell, value } in [lower, upper] {
            if value != Value::Cell(cell) {
                self.write(cell, value);
            }
        }
        lower.cell as u16
    }

    /// Appends an instruction that makes a vector, with slots of data.
    fn define_wide(&mut self, code: HandlerCode, b: u16, c: u32, data: &[u64]) {
        let cell = self.operands.height();
        self.operands.set_height(cell + 2);
        let (slot, before) = (self.instrs.len(), self.accumulators);
        self.emit(code, cell as u16, b, c);
        data.iter().for_each(|&data| self.emit_data(data));
        self.accumulators.overwrite(cell);
        self.accumulators.overwrite(cell + 1);
        self.last = Some(Last { slot, cell, start: slot, code, b, c, is_negated: false, before });
    }

    /// The last instruction, if it has made the vector in the cells from one on, which was popped.
    fn wide_maker(&self, cell: u16) -> Option<Last> {
        let is_own = |last: &Last| {
            last.cell == u32::from(cell)
                && last.cell == self.operands.height()
                && last.code.makes_vector()
        };
        self.last.filter(is_own)
    }
}

/// The two halves of a vector, as slots of data hold them.
fn halves(value: u128) -> [u64; 2] {
    crate::entities::cells_of(value)
}
