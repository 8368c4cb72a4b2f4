//! Instructions that make, move and store values.

use slotvm_bytecode::{Access, Imm, Op, ValType, numeric};

use super::Translator;
use super::operands::{Operand, Value};
use crate::interp::handlers::memory::OFFSET_BITS;
use crate::interp::handlers::table::{
    AddressIn, Dest, HandlerCode, In, Loaded, RightIn, StoredIn, SumIn, touches_narrow_float,
};
use crate::steps::instr::StackOp;

impl Translator<'_> {
    pub(super) fn shuffle(&mut self, op: Op) {
        let wide = self.wide_operands();
        if wide != 0 && !self.is_exact() && op == Op::Drop {
            self.pop_wide();
            return;
        }
        if wide != 0 && !self.is_exact() && op == Op::Select {
            return self.select_wide();
        }
        if wide != 0 {
            let n_wide = |operands: u32| (wide & ((1 << operands) - 1)).count_ones();
            let (pops, pushes) = match op {
                Op::Drop => (2, 0),
                Op::Dup => (2, 4),
                Op::Swap => (2 + n_wide(2), 2 + n_wide(2)),
                Op::Over => (2 + n_wide(2), 3 + n_wide(2) + u32::from(wide >> 1 & 1)),
                Op::Rot => (3 + n_wide(3), 3 + n_wide(3)),
                _ => (5, 2),
            };
            self.stack_op(StackOp::Shuffle(op, wide), pops, pushes);
            return;
        }
        let top = self.operands.height() - 1;
        match op {
            Op::Drop => {
                self.pop();
            }
            Op::Dup => self.duplicate(top),
            Op::Over => self.duplicate(top - 1),
            Op::Swap => self.exchange(top - 1),
            Op::Rot => {
                self.exchange(top - 2);
                self.exchange(top - 1);
            }
            _ => self.select(),
        }
    }

    /// Pushes the operand of a cell once more.
    fn duplicate(&mut self, cell: u32) {
        match self.operands.peek(cell) {
            Some(value) => self.push(value),
            None => {
                let b = self.source(Operand { cell, value: Value::Cell(cell) });
                self.accumulators.read(cell);
                self.define(HandlerCode::Copy, b, 0);
            }
        }
    }

    fn select(&mut self) {
        let (condition, y, x) = (self.pop(), self.pop(), self.pop());
        let (x, y) = (self.source(x), self.source(y));
        let from = if self.try_acc(condition, false) { In::Acc } else { In::Cell };
        let b = self.source(condition);
        self.define(HandlerCode::Select(from, Dest::Cell), b, u32::from(x) | u32::from(y) << 16);
    }

    pub(super) fn local(&mut self, op: Op, local: u32) {
        let cell = self.body.local_cell(local);
        if self.local_type(local) == ValType::V128 {
            return self.wide_local(op, cell);
        }
        let Some((offset, bytes)) = self.frame_place(local) else {
            match op {
                Op::LocalGet => self.push(Value::Cell(cell)),
                // The token of a promotable local is never looked at.
                Op::LocalAddr => self.push(Value::Const(0)),
                _ => self.set_local(cell, op == Op::LocalTee),
            }
            return;
        };
        match op {
            Op::LocalGet => self.define(HandlerCode::FrameGet(bytes), 0, offset),
            Op::LocalAddr => self.define(HandlerCode::FrameAddr, 0, offset),
            _ => {
                let value = self.pop();
                let a = self.source(value);
                self.emit(HandlerCode::FrameSet(bytes), a, 0, offset);
                if op == Op::LocalTee {
                    self.unpop(value);
                }
            }
        }
    }

    /// Pushes an operand again that was popped, and that instructions have named since.
    fn unpop(&mut self, operand: Operand) {
        self.accumulators.read(operand.cell);
        match operand.value {
            Value::Cell(cell) if cell != operand.cell => self.push(operand.value),
            _ => self.operands.set_height(operand.cell + 1),
        }
    }

    /// Pops a value into a local, which may stay on the operand stack.
    fn set_local(&mut self, local: u32, stays: bool) {
        let value = self.pop();
        self.flush_local(local);
        match self.maker(value).filter(|last| !last.code.makes_pair()) {
            Some(last) => {
                self.instrs[last.slot].a = local as u16;
                self.accumulators.overwrite(local);
                self.accumulators.retarget(last.slot, local);
                self.last = None;
            }
            None => self.write(local, value.value),
        }
        if !stays {
            return;
        }
        if self.is_exact() {
            self.operands.set_height(value.cell + 1);
        } else if value.value == Value::Cell(value.cell) {
            self.push(Value::Cell(local));
        } else {
            self.push(value.value);
        }
    }

    pub(super) fn global(&mut self, op: Op, global: u32) {
        let cell = self.module.global_cell(global);
        if self.module.globals()[global as usize].ty == ValType::V128 {
            match op {
                Op::GlobalGet => self.stack_op(StackOp::GlobalGet(cell), 0, 2),
                _ => self.stack_op(StackOp::GlobalSet(cell), 2, 0),
            }
            return;
        }
        let n_defined = self.module.module().globals.len();
        let is_imported = (global as usize) < self.module.globals().len() - n_defined;
        if op == Op::GlobalGet {
            let code =
                if is_imported { HandlerCode::ImportedGlobalGet } else { HandlerCode::GlobalGet };
            self.define(code, 0, cell);
        } else {
            let code =
                if is_imported { HandlerCode::ImportedGlobalSet } else { HandlerCode::GlobalSet };
            let value = self.pop();
            let a = self.source(value);
            self.emit(code, a, 0, cell);
        }
    }

    // Memory.

    pub(super) fn access(&mut self, access: Access, imm: Imm) {
        if let Some(local) = self.direct_local() {
            return self.direct_access(access, local);
        }
        if access.store {
            let value = self.pop();
            let (address, b, c, data) = self.address(access.indexed, imm);
            let short = match value.value {
                Value::Const(value) => short_store(value, access.bytes),
                Value::Cell(_) => None,
            };
            let (stored, a) = match short {
                Some(a) => (StoredIn::Short, a),
                None if self.try_acc(value, false) => (StoredIn::Acc, self.source(value)),
                None if access.bytes == 8 && self.try_acc(value, true) => {
                    (StoredIn::FloatAcc, self.source(value))
                }
                None => (StoredIn::Cell, self.source(value)),
            };
            self.emit(HandlerCode::Store(access.bytes, stored, address), a, b, c);
            if let Some(data) = data {
                self.emit_data(data);
            }
        } else {
            let (address, b, c, data) = self.address(access.indexed, imm);
            self.define_with(
                HandlerCode::Load(Loaded::of(access), address, Dest::Cell),
                b,
                c,
                data,
            );
        }
    }

    /// An access to a promotable local by its address.
    fn direct_access(&mut self, access: Access, local: u32) {
        let cell = self.body.local_cell(local);
        if access.store {
            let value = self.pop();
            self.pop();
            self.flush_local(cell);
            self.write(cell, value.value);
        } else {
            self.pop();
            self.push(Value::Cell(cell));
        }
    }

    /// Pops the address of an access: how it is found, `b`, `c`, and the data of a second slot.
    pub(super) fn address(
        &mut self,
        is_indexed: bool,
        imm: Imm,
    ) -> (AddressIn, u16, u32, Option<u64>) {
        let offset = imm.offset();
        if is_indexed {
            let (index, base) = (self.pop(), self.pop());
            let (b, x) = (self.source(base), self.source(index));
            let scale = imm.scale_log2();
            return match near(x, scale, offset) {
                Some(c) => {
                    let sum = match self.try_acc(index, false) {
                        true => SumIn::IndexAcc,
                        false if self.try_acc(base, false) => SumIn::BaseAcc,
                        false => SumIn::Cells,
                    };
                    (AddressIn::Indexed(sum), b, c, None)
                }
                None => {
                    let data = u64::from(offset) | u64::from(scale) << 32;
                    (AddressIn::IndexedFar, b, x.into(), Some(data))
                }
            };
        }
        let address = self.pop();
        if let Value::Const(address) = address.value
            && let Some(address) = (address as u32).checked_add(offset)
        {
            return (AddressIn::Fixed, 0, address, None);
        }
        if let Some(last) = self.maker(address) {
            let moved = match last.code {
                HandlerCode::Binary(Op::I32Add, left, RightIn::Short, _) => {
                    Some(AddressIn::Moved(left))
                }
                HandlerCode::AddScaledConst(bits, left, _) => Some(AddressIn::Scaled(bits, left)),
                _ => None,
            };
            if let Some(moved) = moved.filter(|_| offset == 0) {
                self.take_back(last);
                return (moved, last.b, last.c, None);
            }
            let (sum, c) = match last.code {
                HandlerCode::Binary(
                    Op::I32Add,
                    left,
                    right @ (RightIn::Cell | RightIn::Acc),
                    _,
                ) => {
                    let sum = match (left, right) {
                        (In::Acc, _) => SumIn::BaseAcc,
                        (_, RightIn::Acc) => SumIn::IndexAcc,
                        _ => SumIn::Cells,
                    };
                    (sum, near(last.c as u16, 0, offset))
                }
                HandlerCode::AddScaled(index, _) if last.c >> 16 <= 3 => {
                    let sum = if index == In::Acc { SumIn::IndexAcc } else { SumIn::Cells };
                    (sum, near(last.c as u16, last.c >> 16, offset))
                }
                _ => (SumIn::Cells, None),
            };
            if let Some(c) = c {
                self.take_back(last);
                return (AddressIn::Wrapped(sum), last.b, c, None);
            }
        }
        let base = if self.try_acc(address, false) { In::Acc } else { In::Cell };
        (AddressIn::Plain(base), self.source(address), offset, None)
    }

    // Numbers.

    pub(super) fn numeric(&mut self, op: Op) {
        match op {
            // The bits stay as they are.
            Op::I64ExtendI32U
            | Op::I32ReinterpretF32
            | Op::F32ReinterpretI32
            | Op::I64ReinterpretF64
            | Op::F64ReinterpretI64 => {}
            _ if op.signature().is_some_and(|signature| signature.params.len() == 1) => {
                self.unary(op);
            }
            _ => self.binary(op),
        }
    }

    pub(super) fn unary(&mut self, op: Op) {
        let operand = self.pop();
        if op == Op::I32Eqz
            && let Some(last) = self.maker(operand)
            && let Some((code, is_negated)) = negated(last.code, last.is_negated)
        {
            let start = last.start;
            if code != last.code {
                self.take_back(last);
                self.define(code, last.b, last.c);
            } else {
                self.define_unary(op, operand);
                self.last = self.last.map(|eqz| super::Last {
                    start,
                    code,
                    b: last.b,
                    c: last.c,
                    is_negated,
                    before: last.before,
                    ..eqz
                });
            }
            return;
        }
        self.define_unary(op, operand);
        self.make_canonical(op);
    }

    fn define_unary(&mut self, op: Op, operand: Operand) {
        let is_in_acc = !touches_narrow_float(op) && self.try_acc(operand, takes_float(op));
        let left = if is_in_acc { In::Acc } else { In::Cell };
        let b = self.source(operand);
        self.define(HandlerCode::Unary(op, left, Dest::Cell), b, 0);
    }

    fn binary(&mut self, op: Op) {
        let (mut y, mut x) = (self.pop(), self.pop());
        let mut op = op;
        if let (Value::Const(_), Value::Cell(_)) = (x.value, y.value)
            && let Some(mirrored) = mirrored(op)
        {
            (x, y, op) = (y, x, mirrored);
        }
        if op == Op::I32Add && self.add_scaled(x, y) || op == Op::F64Add && self.mul_add(x, y) {
            return;
        }
        if let Value::Const(value) = x.value
            && self.const_binary(op, value, y)
        {
            self.make_canonical(op);
            return;
        }
        let (is_narrow_float, is_float) = (touches_narrow_float(op), takes_float(op));
        let left = match !is_narrow_float && self.try_acc(x, is_float) {
            true => In::Acc,
            false => In::Cell,
        };
        if let Value::Const(value) = y.value {
            let b = self.source(x);
            let is_short = value as i32 as u64 == value || is_narrow(op);
            match is_short {
                true => self.define(
                    HandlerCode::Binary(op, left, RightIn::Short, Dest::Cell),
                    b,
                    value as u32,
                ),
                false => {
                    let code = HandlerCode::Binary(op, left, RightIn::Long, Dest::Cell);
                    self.define_with(code, b, 0, Some(value));
                }
            }
        } else {
            let is_right = left == In::Cell && !is_narrow_float && self.try_acc(y, is_float);
            let right = if is_right { RightIn::Acc } else { RightIn::Cell };
            let (b, c) = (self.source(x), self.source(y));
            self.define(HandlerCode::Binary(op, left, right, Dest::Cell), b, c.into());
        }
        self.make_canonical(op);
    }

    /// Appends the addition of a number and one that was just shifted, as one instruction. Returns whether there was one.
    fn add_scaled(&mut self, x: Operand, y: Operand) -> bool {
        for (shifted, other) in [(x, y), (y, x)] {
            let Some(last) = self.maker(shifted) else { continue };
            let HandlerCode::Binary(Op::I32Shl, left, RightIn::Short, _) = last.code else {
                continue;
            };
            let other = match other.value {
                Value::Cell(other) => other,
                Value::Const(base) if (1..=3).contains(&last.c) => {
                    self.take_back(last);
                    let code = HandlerCode::AddScaledConst(last.c, left, Dest::Cell);
                    self.define(code, last.b, base as u32);
                    return true;
                }
                Value::Const(_) => continue,
            };
            if last.c < 32 {
                self.take_back(last);
                let c = u32::from(last.b) | last.c << 16;
                self.define(HandlerCode::AddScaled(left, Dest::Cell), other as u16, c);
                return true;
            }
        }
        false
    }

    /// Appends the addition of a product that was just made, as one instruction. Returns whether there was one.
    fn mul_add(&mut self, x: Operand, y: Operand) -> bool {
        if self.options.canonical_nans {
            return false;
        }
        for (product, other) in [(y, x), (x, y)] {
            let Some(last) = self.maker(product) else { continue };
            let Value::Cell(other) = other.value else { continue };
            let HandlerCode::Binary(Op::F64Mul, left, RightIn::Cell, _) = last.code else {
                continue;
            };
            self.take_back(last);
            let c = u32::from(last.b) | last.c << 16;
            self.define(HandlerCode::MulAdd(left, Dest::Cell), other as u16, c);
            return true;
        }
        false
    }

    /// Appends an operation whose left operand is a constant, if there is an instruction for that.
    fn const_binary(&mut self, op: Op, value: u64, y: Operand) -> bool {
        use Op::*;
        let is_float = matches!(op, F64Sub | F64Div);
        let is_int = matches!(
            op,
            I32Sub
                | I32DivS
                | I32DivU
                | I32RemS
                | I32RemU
                | I32Shl
                | I32ShrS
                | I32ShrU
                | I32Rotl
                | I32Rotr
                | I64Sub
                | I64DivS
                | I64DivU
                | I64RemS
                | I64RemU
                | I64Shl
                | I64ShrS
                | I64ShrU
                | I64Rotl
                | I64Rotr
        );
        let is_short = is_int && (is_narrow(op) || value as i32 as u64 == value);
        if !matches!(y.value, Value::Cell(_)) || !is_short && !is_float {
            return false;
        }
        let right = if self.try_acc(y, is_float) { In::Acc } else { In::Cell };
        let b = self.source(y);
        if is_float {
            self.define_with(HandlerCode::LongBinary(op, right, Dest::Cell), b, 0, Some(value));
        } else {
            self.define(HandlerCode::ShortBinary(op, right, Dest::Cell), b, value as u32);
        }
        true
    }

    /// Makes the NaN canonical that the topmost operand may be, if that is wanted.
    fn make_canonical(&mut self, op: Op) {
        if !self.options.canonical_nans {
            return;
        }
        let code = match op.nan_type() {
            Some(ValType::F32) => HandlerCode::CanonicalF32,
            Some(_) => HandlerCode::CanonicalF64,
            None => return,
        };
        let value = self.pop();
        let b = self.source(value);
        self.define(code, b, 0);
    }
}

/// `c` of an address with an index, if scale and offset fit.
fn near(index: u16, scale: u32, offset: u32) -> Option<u32> {
    (offset < 1 << OFFSET_BITS)
        .then(|| u32::from(index) | offset << 16 | scale << (16 + OFFSET_BITS))
}

/// A constant that a store of so many bytes finds in 16 bits.
fn short_store(value: u64, bytes: u32) -> Option<u16> {
    let value = match bytes {
        1 => (value as i8).into(),
        2 => value as i16,
        4 => i16::try_from(value as i32).ok()?,
        _ => i16::try_from(value as i64).ok()?,
    };
    Some(value as u16)
}

/// Whether the operands of an operation are floats of 64 bits.
fn takes_float(op: Op) -> bool {
    op.signature().is_some_and(|signature| signature.params[0] == ValType::F64)
}

/// Whether the operands of an operation have 32 bits.
pub(super) fn is_narrow(op: Op) -> bool {
    use ValType::{F32, I32};
    op.signature().is_some_and(|signature| matches!(signature.params, [I32 | F32, ..]))
}

/// The operation that is 1 where this one is 0, or the fact that there is none.
fn negated(code: HandlerCode, is_negated: bool) -> Option<(HandlerCode, bool)> {
    match code {
        HandlerCode::Binary(op, left, right, to) if right != RightIn::Long => match inverse(op) {
            Some(inverse) => Some((HandlerCode::Binary(inverse, left, right, to), is_negated)),
            None if numeric::is_numeric(op) && is_comparison(op) => Some((code, !is_negated)),
            None => None,
        },
        _ => None,
    }
}

fn is_comparison(op: Op) -> bool {
    op.signature().is_some_and(|signature| {
        matches!(signature.params, [ValType::F32 | ValType::F64, _])
            && signature.results == [ValType::I32]
    })
}

/// The comparison of integers that holds where this one does not.
pub(super) fn inverse(op: Op) -> Option<Op> {
    use Op::*;
    Some(match op {
        I32Eq => I32Ne,
        I32Ne => I32Eq,
        I32LtS => I32GeS,
        I32LtU => I32GeU,
        I32GtS => I32LeS,
        I32GtU => I32LeU,
        I32LeS => I32GtS,
        I32LeU => I32GtU,
        I32GeS => I32LtS,
        I32GeU => I32LtU,
        I64Eq => I64Ne,
        I64Ne => I64Eq,
        I64LtS => I64GeS,
        I64LtU => I64GeU,
        I64GtS => I64LeS,
        I64GtU => I64LeU,
        I64LeS => I64GtS,
        I64LeU => I64GtU,
        I64GeS => I64LtS,
        I64GeU => I64LtU,
        _ => return None,
    })
}

/// The operation on exchanged operands.
pub(super) fn mirrored(op: Op) -> Option<Op> {
    use Op::*;
    Some(match op {
        I32Add | I32Mul | I32And | I32Or | I32Xor | I32Eq | I32Ne => op,
        I64Add | I64Mul | I64And | I64Or | I64Xor | I64Eq | I64Ne => op,
        F32Eq | F32Ne | F64Eq | F64Ne => op,
        I32LtS => I32GtS,
        I32LtU => I32GtU,
        I32GtS => I32LtS,
        I32GtU => I32LtU,
        I32LeS => I32GeS,
        I32LeU => I32GeU,
        I32GeS => I32LeS,
        I32GeU => I32LeU,
        I64LtS => I64GtS,
        I64LtU => I64GtU,
        I64GtS => I64LtS,
        I64GtU => I64LtU,
        I64LeS => I64GeS,
        I64LeU => I64GeU,
        I64GeS => I64LeS,
        I64GeU => I64LeU,
        F32Lt => F32Gt,
        F32Gt => F32Lt,
        F32Le => F32Ge,
        F32Ge => F32Le,
        F64Lt => F64Gt,
        F64Gt => F64Lt,
        F64Le => F64Ge,
        F64Ge => F64Le,
        _ => return None,
    })
}
