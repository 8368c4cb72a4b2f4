//! The operand stack while a function is translated.

use slotvm_bytecode::ValType;

use super::Translator;
use crate::interp::handlers::table::{self, HandlerCode};

/// Operands that are not in their cells; more are put there. It bounds the work for each instruction.
const PENDING_MAX: usize = 16;

/// An operand's value.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// That of a cell: the operand's own, or a local.
    Cell(u32),
    Const(u64),
}

/// An operand that was popped.
#[derive(Copy, Clone, Debug)]
pub(super) struct Operand {
    /// Its own cell.
    pub(super) cell: u32,
    pub(super) value: Value,
}

/// The operand stack, as the index of the cell above its top, and those operands that are not in their cells, in the order
/// of these.
#[derive(Debug, Default)]
pub(super) struct Operands {
    height: u32,
    pending: Vec<Operand>,
}

impl Operands {
    /// Starts a block, where all operands lie in their cells.
    pub(super) fn begin(&mut self, height: u32) {
        self.height = height;
        self.pending.clear();
    }

    /// Whether all operands lie in their cells.
    pub(super) fn is_flushed(&self) -> bool {
        self.pending.is_empty()
    }

    pub(super) fn height(&self) -> u32 {
        self.height
    }

    /// Sets the height, where the operands that come or go lie in their cells.
    pub(super) fn set_height(&mut self, height: u32) {
        self.height = height;
    }

    /// Pops an operand of one cell.
    pub(super) fn pop(&mut self) -> Operand {
        self.height -= 1;
        let cell = self.height;
        match self.pending.pop_if(|pending| pending.cell == cell) {
            Some(pending) => pending,
            None => Operand { cell, value: Value::Cell(cell) },
        }
    }

    /// The value of the operand of a cell, if it is pending.
    pub(super) fn peek(&self, cell: u32) -> Option<Value> {
        let pending = self.pending.iter().rev().find(|pending| pending.cell == cell);
        pending.map(|pending| pending.value)
    }

    /// Removes the operand of a cell from those that are pending, if it is one of them.
    fn take(&mut self, cell: u32) -> Option<Value> {
        let i = self.pending.iter().rposition(|pending| pending.cell == cell)?;
        Some(self.pending.remove(i).value)
    }

    /// Adds one to those that are pending.
    fn put(&mut self, cell: u32, value: Value) {
        let i = self.pending.partition_point(|pending| pending.cell < cell);
        self.pending.insert(i, Operand { cell, value });
    }
}

/// The instruction that has made the topmost operand, as long as it is the last one.
#[derive(Copy, Clone, Debug)]
pub(super) struct Last {
    /// Its slot.
    pub(super) slot: usize,
    /// The operand's cell.
    pub(super) cell: u32,
    /// For instructions that may take its place: the slot from which on they do so, its code, and its operands `b` and
    /// `c`.
    pub(super) start: usize,
    pub(super) code: HandlerCode,
    pub(super) b: u16,
    pub(super) c: u32,
    /// Whether the operand is the opposite.
    pub(super) is_negated: bool,
    /// The accumulators before it.
    pub(super) before: Accumulators,
}

/// An accumulator: the cell whose value is in it, too, and the instruction that has put it there.
#[derive(Copy, Clone, Debug)]
pub(super) struct Accumulator {
    pub(super) cell: u32,
    pub(super) slot: usize,
    pub(super) code: HandlerCode,
    /// Whether the cell itself is read, too.
    is_read: bool,
}

/// The accumulators.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Accumulators {
    pub(super) int: Option<Accumulator>,
    pub(super) float: Option<Accumulator>,
}

impl Accumulators {
    /// Forgets what is true no longer.
    fn retain(&mut self, is_true: impl Fn(&Accumulator) -> bool) {
        self.int = self.int.filter(&is_true);
        self.float = self.float.filter(&is_true);
    }

    /// A cell is about to change.
    pub(super) fn overwrite(&mut self, cell: u32) {
        self.retain(|acc| acc.cell != cell);
    }

    /// An instruction has put the value of a cell into one of them.
    fn set(&mut self, cell: u32, slot: usize, code: HandlerCode) {
        self.overwrite(cell);
        let acc = Some(Accumulator { cell, slot, code, is_read: false });
        match made_by(code) {
            Some(ValType::F64) => self.float = acc,
            Some(ValType::F32) | None => {}
            Some(_) => self.int = acc,
        }
    }

    /// An instruction reads a cell that stays on the operand stack.
    pub(super) fn read(&mut self, cell: u32) {
        for acc in [&mut self.int, &mut self.float].into_iter().flatten() {
            acc.is_read |= acc.cell == cell;
        }
    }

    /// Instructions that are not followed may read any cell.
    pub(super) fn read_all(&mut self) {
        for acc in [&mut self.int, &mut self.float].into_iter().flatten() {
            acc.is_read = true;
        }
    }

    /// The cells whose values they have, of integers and of floats.
    pub(super) fn cells(&self) -> [Option<u32>; 2] {
        [self.int, self.float].map(|acc| acc.map(|acc| acc.cell))
    }

    /// The instruction at a slot writes another cell.
    pub(super) fn retarget(&mut self, slot: usize, cell: u32) {
        for acc in [&mut self.int, &mut self.float].into_iter().flatten() {
            if acc.slot == slot {
                acc.cell = cell;
            }
        }
    }
}

/// The type of an instruction's result, up to those that have the same accumulator.
fn made_by(code: HandlerCode) -> Option<ValType> {
    match code {
        HandlerCode::Unary(op, ..)
        | HandlerCode::Binary(op, ..)
        | HandlerCode::ShortBinary(op, ..)
        | HandlerCode::LongBinary(op, ..) => Some(op.signature()?.results[0]),
        HandlerCode::MulAdd(..) => Some(ValType::F64),
        HandlerCode::Load(loaded, ..) if loaded.is_float() => Some(ValType::F64),
        HandlerCode::Load(..)
        | HandlerCode::AddScaled(..)
        | HandlerCode::AddScaledConst(..)
        | HandlerCode::Select(..)
        | HandlerCode::FrameAddr
        | HandlerCode::FrameGet(_)
        | HandlerCode::MemorySize
        | HandlerCode::GlobalGet
        | HandlerCode::ImportedGlobalGet => Some(ValType::I64),
        _ => None,
    }
}

impl Translator<'_> {
    /// Pushes a value that is in no cell of its own yet.
    pub(super) fn push(&mut self, value: Value) {
        let cell = self.operands.height;
        self.operands.height += 1;
        if self.is_exact() {
            self.write(cell, value);
            return;
        }
        self.operands.pending.push(Operand { cell, value });
        if self.operands.pending.len() > PENDING_MAX {
            let Operand { cell, value } = self.operands.pending.remove(0);
            self.write(cell, value);
        }
    }

    pub(super) fn pop(&mut self) -> Operand {
        self.operands.pop()
    }

    /// Puts a value into a cell.
    pub(super) fn write(&mut self, cell: u32, value: Value) {
        self.accumulators.overwrite(cell);
        let to = if self.is_far { self.next_scratch() } else { cell as u16 };
        match value {
            Value::Cell(from) if self.is_far => self.emit(HandlerCode::FarGet, to, 0, from),
            Value::Cell(from) => self.copy(to, from as u16),
            Value::Const(value) => self.constant(to, value),
        }
        if self.is_far {
            self.emit(HandlerCode::FarSet, to, 0, cell);
        }
    }

    /// Appends a copy, or lets the last instruction do it if that is one, too.
    fn copy(&mut self, to: u16, from: u16) {
        let slot = self.instrs.len();
        if self.last_copy == Some(slot) {
            let last = &mut self.instrs[slot - 1];
            last.set_handler(table::address(HandlerCode::CopyTwo, self.options.jumps));
            last.c = u32::from(to) | u32::from(from) << 16;
            self.last_copy = None;
            return;
        }
        self.emit(HandlerCode::Copy, to, from, 0);
        self.last_copy = Some(slot + 1);
    }

    fn constant(&mut self, to: u16, value: u64) {
        if value as i32 as u64 == value {
            self.emit(HandlerCode::ShortConst, to, 0, value as u32);
        } else if u64::from(value as u32) == value {
            self.emit(HandlerCode::ShortConstU, to, 0, value as u32);
        } else {
            self.emit(HandlerCode::LongConst, to, 0, 0);
            self.emit_data(value);
        }
    }

    pub(super) fn next_scratch(&mut self) -> u16 {
        self.scratch += 1;
        self.scratch - 1
    }

    /// The cell by which instructions name an operand.
    pub(super) fn source(&mut self, operand: Operand) -> u16 {
        match operand.value {
            Value::Cell(cell) if self.is_far => {
                let scratch = self.next_scratch();
                self.emit(HandlerCode::FarGet, scratch, 0, cell);
                scratch
            }
            Value::Cell(cell) => cell as u16,
            // HandlerCode that computes in scratch cells pushes no constants without writing them.
            Value::Const(value) => {
                self.accumulators.overwrite(operand.cell);
                self.constant(operand.cell as u16, value);
                operand.cell as u16
            }
        }
    }

    /// Appends an instruction that makes an operand.
    pub(super) fn define(&mut self, code: HandlerCode, b: u16, c: u32) {
        self.define_with(code, b, c, None);
    }

    /// The same, with a slot of data.
    pub(super) fn define_with(&mut self, code: HandlerCode, b: u16, c: u32, data: Option<u64>) {
        let cell = self.operands.height;
        self.operands.height += 1;
        let to = if self.is_far { self.next_scratch() } else { cell as u16 };
        let (slot, before) = (self.instrs.len(), self.accumulators);
        self.emit(code, to, b, c);
        if let Some(data) = data {
            self.emit_data(data);
        }
        if self.is_far {
            self.emit(HandlerCode::FarSet, to, 0, cell);
        }
        if !self.is_exact() {
            let start = slot;
            self.last = Some(Last { slot, cell, start, code, b, c, is_negated: false, before });
            self.accumulators.set(cell, slot, code);
        }
    }

    /// Whether an operand is in the accumulator of integers, or of floats.
    pub(super) fn is_in_acc(&self, operand: Operand, is_float: bool) -> bool {
        let Accumulators { int, float } = self.accumulators;
        let acc = if is_float { float } else { int };
        acc.is_some_and(|acc| operand.value == Value::Cell(acc.cell))
    }

    /// An operand that was popped is taken from an accumulator. Nobody looks at its own cell any more.
    pub(super) fn take_from_acc(&mut self, operand: Operand, is_float: bool) {
        let Accumulators { int, float } = self.accumulators;
        let Some(acc) = (if is_float { float } else { int }) else { return };
        if operand.value == Value::Cell(operand.cell)
            && !acc.is_read
            && let Some(code) = acc.code.without_cell()
        {
            self.instrs[acc.slot].set_handler(table::address(code, self.options.jumps));
        }
    }

    /// Takes an operand of an operation from an accumulator, if it is there. Returns whether it was.
    pub(super) fn try_acc(&mut self, operand: Operand, is_float: bool) -> bool {
        let is_there = self.is_in_acc(operand, is_float);
        if is_there {
            self.take_from_acc(operand, is_float);
        }
        is_there
    }

    /// The last instruction, if it has made an operand that was popped and lies in its cell.
    pub(super) fn maker(&self, operand: Operand) -> Option<Last> {
        let is_own = operand.value == Value::Cell(operand.cell);
        self.last.filter(|last| is_own && last.cell == operand.cell)
    }

    /// Puts all operands into their cells.
    pub(super) fn flush(&mut self) {
        self.flush_from(0);
    }

    /// Puts the operands of a cell and those above into their cells.
    pub(super) fn flush_from(&mut self, cell: u32) {
        let first = self.operands.pending.partition_point(|pending| pending.cell < cell);
        for i in first..self.operands.pending.len() {
            let Operand { cell, value } = self.operands.pending[i];
            self.write(cell, value);
        }
        self.operands.pending.truncate(first);
    }

    /// Puts the operands that are a local into their cells: the local is about to change.
    pub(super) fn flush_local(&mut self, local: u32) {
        while let Some(i) =
            self.operands.pending.iter().position(|pending| pending.value == Value::Cell(local))
        {
            let Operand { cell, value } = self.operands.pending.remove(i);
            self.write(cell, value);
        }
    }

    /// Exchanges the operands of a cell and of the one above.
    pub(super) fn exchange(&mut self, cell: u32) {
        self.scratch = 0;
        match (self.operands.take(cell), self.operands.take(cell + 1)) {
            (None, None) if self.is_far => {
                let lower = Operand { cell, value: Value::Cell(cell) };
                let upper = Operand { cell: cell + 1, value: Value::Cell(cell + 1) };
                let (a, b) = (self.source(lower), self.source(upper));
                self.emit(HandlerCode::FarSet, b, 0, cell);
                self.emit(HandlerCode::FarSet, a, 0, cell + 1);
            }
            (None, None) => {
                self.accumulators.overwrite(cell);
                self.accumulators.overwrite(cell + 1);
                self.emit(HandlerCode::Swap, cell as u16, cell as u16 + 1, 0);
            }
            (Some(lower), None) => {
                self.write(cell, Value::Cell(cell + 1));
                self.operands.put(cell + 1, lower);
            }
            (None, Some(upper)) => {
                self.write(cell + 1, Value::Cell(cell));
                self.operands.put(cell, upper);
            }
            (Some(lower), Some(upper)) => {
                self.operands.put(cell, upper);
                self.operands.put(cell + 1, lower);
            }
        }
    }
}
