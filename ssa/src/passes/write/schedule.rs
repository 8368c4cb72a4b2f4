//! The order of a block's code on the operand stack.
//!
//! A stack machine needs no names for values that are taken in the reverse order of their making. The
//! instructions of a block are gone through from the last to the first. Each becomes the root of a tree:
//! its operands, from the last to the first, are made right before it if they may be, and so on for
//! theirs. An operand may be made there if
//! * all its other uses come later: it is then kept in a local besides, or duplicated if it is used again
//!   at once,
//! * it is pure, or is the last instruction before the tree that has an effect: effects and traps keep
//!   their order,
//! * no slot that it reads is written in between.
//!
//! Constants and reads of slots and of addresses in the frame are made anew for each use. What a tree
//! takes first may also be made where it stands, and *held* on the operand stack below the trees in between,
//! which leave the stack as it was; held values are taken in the reverse order of their making. All else goes
//! through a local that is *temporary*: its lifetime is inside the block, and other values have it before and
//! after. The operand stack is empty where a block starts and ends.

use slotvm_bytecode::verified::{Body, Storage};
use slotvm_bytecode::{Effect, Op, ValType};

use crate::ir::Function;
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::irop::{IrOp, Opcode};

/// A piece of code.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// An instruction of the IR that bytecode has; what its operands are stands before it.
    Inst(Inst),
    /// Reads a parameter that has no slot.
    Param(u32),
    /// Reads a variable.
    Get(u32),
    /// Writes a variable.
    Set(u32),
    /// Writes a variable, and keeps the operand.
    Tee(u32),
    /// Reads a local that lives in the frame, by its number among these.
    FrameGet(u32),
    /// Writes a local that lives in the frame.
    FrameSet(u32),
    /// The address of a local that lives in the frame.
    FrameAddr(u32),
    /// Removes the top of the operand stack.
    Drop,
    /// Copies the top of the operand stack.
    Dup,
}

/// No variable, no instruction.
const NONE: u32 = u32::MAX;

/// Makes code of blocks, one after the other.
pub(super) struct Scheduler<'f> {
    f: &'f Function,
    /// The types of the locals that live in the frame, each at eight times its number.
    pub(super) frame_types: Vec<ValType>,
    /// Index of each of these if it is a parameter.
    frame_params: Vec<Option<u32>>,
    /// Whether the address of each of these is used as a number.
    pub(super) escapes: Vec<bool>,
    /// The address of the frame.
    frame: Option<Value>,
    /// The types of the variables: those of the slots, and then temporary ones.
    pub(super) variables: Vec<ValType>,
    free: [Vec<u32>; ValType::ALL.len()],
    /// The instruction that makes a value, and its position in its block.
    defs: Vec<(Inst, u32)>,
    n_uses: Vec<u32>,
    /// Uses whose code has not been made.
    n_open: Vec<u32>,
    /// The temporary variable of a value.
    temporaries: Vec<u32>,
    /// Whether the code of the instruction at each position is made.
    is_made: Vec<bool>,
    /// The positions of instructions with effects whose code has not been made, ascending.
    effects: Vec<u32>,
    /// Positions of the writes of each slot whose code has not been made, ascending.
    writes: Vec<Vec<u32>>,
    /// The positions of instructions whose result is held until the code so far takes it, the first to be
    /// made on top.
    held: Vec<u32>,
    /// The code of the block, the last item first.
    items: Vec<Item>,
    /// Operands whose code has not been made, the next one on top.
    operands: Vec<Value>,
}

impl<'f> Scheduler<'f> {
    pub(super) fn new(f: &'f Function, body: &Body, n_params: usize) -> Scheduler<'f> {
        let mut defs = vec![(Inst(NONE), NONE); f.n_values()];
        let mut n_uses = vec![0; f.n_values()];
        let mut frame = None;
        for block in f.blocks() {
            for (&inst, position) in f.insts(block).iter().zip(0..) {
                f.operands(inst).iter().for_each(|value| n_uses[value.index()] += 1);
                f.results(inst).for_each(|value| defs[value.index()] = (inst, position));
                if f.opcode(inst) == Opcode::Ir(IrOp::FramePush) {
                    frame = Some(f.result(inst));
                }
            }
        }
        let locals = body.locals.iter().zip(0..);
        let framed = locals.filter(|(local, _)| local.storage != Storage::Promotable);
        let (frame_types, frame_params): (Vec<_>, Vec<_>) =
            framed.map(|(local, i)| (local.ty, ((i as usize) < n_params).then_some(i))).unzip();
        Scheduler {
            f,
            escapes: vec![false; frame_types.len()],
            frame_types,
            frame_params,
            frame,
            variables: f.slots.iter().map(|slot| slot.ty).collect(),
            free: Default::default(),
            defs,
            n_open: n_uses.clone(),
            n_uses,
            temporaries: vec![NONE; f.n_values()],
            is_made: Vec::new(),
            effects: Vec::new(),
            writes: vec![Vec::new(); f.slots.len()],
            held: Vec::new(),
            items: Vec::new(),
            operands: Vec::new(),
        }
    }

    /// Appends the code of a block to `code`. Its terminator is the last item, if it has code at all.
    pub(super) fn block(&mut self, block: Block, code: &mut Vec<Item>) {
        let insts = self.f.insts(block);
        self.is_made.clear();
        self.is_made.resize(insts.len(), false);
        self.effects.clear();
        for (&inst, position) in insts.iter().zip(0..) {
            if self.has_effect(inst) {
                self.effects.push(position);
            } else if self.f.opcode(inst) == Opcode::Ir(IrOp::SlotSet) {
                self.writes[self.f.imm(inst).low() as usize].push(position);
            }
        }
        for position in (0..insts.len()).rev() {
            if !self.is_made[position] {
                self.root(insts[position], position as u32);
            }
        }
        code.extend(self.items.drain(..).rev());
    }

    /// Whether code of an instruction must stay in order with others.
    fn has_effect(&self, inst: Inst) -> bool {
        match self.f.opcode(inst) {
            Opcode::Op(op) => op.effect() != Effect::Pure && !self.stores_param(inst),
            Opcode::Ir(_) => false,
        }
    }

    /// Whether an instruction stores a parameter to its place in the frame, which entering a function
    /// does by itself.
    fn stores_param(&self, inst: Inst) -> bool {
        let Opcode::Op(op) = self.f.opcode(inst) else { return false };
        match (self.frame_access(inst, op), self.f.operands(inst)) {
            (Some(local), &[_, value]) => self.frame_params[local as usize] == Some(value.0),
            _ => false,
        }
    }

    /// The local in the frame that a load or store accesses as `local.get` or `local.set` do.
    fn frame_access(&self, inst: Inst, op: Op) -> Option<u32> {
        let access = op.access().filter(|access| !access.indexed && access.is_full())?;
        let address = self.frame_offset(self.f.operands(inst)[0])?;
        let local = self.frame_local(address.checked_add(self.f.imm(inst).offset())?)?;
        (self.frame_types[local as usize] == access.ty).then_some(local)
    }

    /// The local at an offset of the frame.
    fn frame_local(&self, offset: u32) -> Option<u32> {
        let is_one = offset.is_multiple_of(8) && ((offset / 8) as usize) < self.frame_types.len();
        is_one.then_some(offset / 8)
    }

    /// The offset of an address in the frame, if the value is the frame's or a constant away from it.
    fn frame_offset(&self, value: Value) -> Option<u32> {
        if Some(value) == self.frame {
            return Some(0);
        }
        let (inst, _) = self.defs[value.index()];
        if inst.0 == NONE || self.f.opcode(inst) != Opcode::Op(Op::I32Add) {
            return None;
        }
        let &[base, offset] = self.f.operands(inst) else { return None };
        let (constant, _) = self.defs[offset.index()];
        let is_constant = constant.0 != NONE && self.f.opcode(constant) == Opcode::Op(Op::I32Const);
        (Some(base) == self.frame && is_constant).then(|| self.f.imm(constant).low())
    }

    /// Makes the code of an instruction that is not an operand of the code after it.
    fn root(&mut self, inst: Inst, position: u32) {
        let mut is_needed = true;
        match self.f.opcode(inst) {
            Opcode::Ir(IrOp::SlotSet) => return self.write(inst),
            Opcode::Ir(IrOp::SlotGet) => is_needed = false,
            Opcode::Ir(_) => return,
            Opcode::Op(op) if op.effect() == Effect::Pure => is_needed = false,
            Opcode::Op(_) if self.stores_param(inst) => return,
            Opcode::Op(_) => {
                let made = self.effects.pop();
                debug_assert_eq!(
                    made,
                    Some(position),
                    "effects are made from the last to the first"
                );
            }
        }
        // What is pure has been made where it was used, unless a variable should have it.
        let has_variable = |value: Value| self.temporaries[value.index()] != NONE;
        let is_held = self.held.pop_if(|held| *held == position).is_some();
        if !is_needed && !is_held && !self.f.results(inst).any(has_variable) {
            return;
        }
        let results = if is_held { 0 } else { self.f.results(inst).len() };
        // The first result is the deepest on the operand stack, so the last to be taken.
        for result in self.f.results(inst).take(results) {
            match self.temporaries[result.index()] {
                NONE => self.items.push(Item::Drop),
                variable => {
                    self.release(variable);
                    self.set(variable);
                }
            }
        }
        self.inst(inst);
        self.make_operands();
    }

    /// The code of a write to a slot.
    fn write(&mut self, inst: Inst) {
        let slot = self.f.imm(inst).low();
        self.writes[slot as usize].pop();
        let value = self.f.operands(inst)[0];
        // A parameter is in its slot from the start.
        if self.defs[value.index()].0.0 != NONE {
            self.set(slot);
            self.operands.push(value);
            self.make_operands();
        }
    }

    fn set(&mut self, variable: u32) {
        let is_read_next = self.items.last() == Some(&Item::Get(variable));
        if is_read_next {
            self.items.pop();
        }
        self.items.push(if is_read_next { Item::Tee(variable) } else { Item::Set(variable) });
    }

    /// Puts an instruction before the code; its operands are to be made.
    fn inst(&mut self, inst: Inst) {
        let operands = self.f.operands(inst);
        match self.f.opcode(inst) {
            Opcode::Ir(_) => self.items.push(Item::Get(self.f.imm(inst).low())),
            Opcode::Op(op) => match self.frame_access(inst, op) {
                Some(local) => {
                    self.n_open[operands[0].index()] -= 1;
                    let is_store = operands.len() == 2;
                    let item = if is_store { Item::FrameSet } else { Item::FrameGet };
                    self.items.push(item(local));
                    self.operands.extend_from_slice(&operands[1..]);
                }
                None => {
                    self.items.push(Item::Inst(inst));
                    self.operands.extend_from_slice(operands);
                }
            },
        }
    }

    /// Makes the open operands, and theirs.
    fn make_operands(&mut self) {
        while let Some(value) = self.operands.pop() {
            self.n_open[value.index()] -= 1;
            match self.leaf(value) {
                Some(item) => {
                    if let Item::FrameAddr(local) = item {
                        self.escapes[local as usize] = true;
                    }
                    self.items.push(item);
                }
                None if self.can_be_made(value) => self.make(value),
                None if self.can_be_held(value) => self.held.push(self.defs[value.index()].1),
                None => {
                    let variable = self.variable(value);
                    self.items.push(Item::Get(variable));
                }
            }
        }
    }

    /// The code of a value that is made anew for each use.
    fn leaf(&self, value: Value) -> Option<Item> {
        use Op::{F32Const, F64Const, I32Const, I64Const, RefNull, V128Const};
        if let Some(local) = self.frame_offset(value).and_then(|offset| self.frame_local(offset)) {
            return Some(Item::FrameAddr(local));
        }
        let (inst, _) = self.defs[value.index()];
        if inst.0 == NONE {
            return Some(Item::Param(value.0));
        }
        match self.f.opcode(inst) {
            Opcode::Op(I32Const | I64Const | F32Const | F64Const | RefNull | V128Const) => {
                Some(Item::Inst(inst))
            }
            Opcode::Ir(IrOp::SlotGet) if !self.is_written_behind(value) => {
                Some(Item::Get(self.f.imm(inst).low()))
            }
            _ => None,
        }
    }

    /// Whether the slot that a value was read from is written before the code so far.
    fn is_written_behind(&self, value: Value) -> bool {
        let (inst, position) = self.defs[value.index()];
        let is_read = inst.0 != NONE && self.f.opcode(inst) == Opcode::Ir(IrOp::SlotGet);
        let last = || self.writes[self.f.imm(inst).low() as usize].last();
        is_read && last().is_some_and(|&write| write > position)
    }

    /// Whether a value, one of whose uses is next, can be made right there.
    fn can_be_made(&self, value: Value) -> bool {
        let (inst, position) = self.defs[value.index()];
        let is_in_order = !self.has_effect(inst) || self.effects.last() == Some(&position);
        let can_move = || {
            let operands = self.f.operands(inst);
            !operands.iter().any(|&operand| self.is_written_behind(operand))
        };
        let is_first_use = || {
            // Several results have to be taken together, all that are left of the operands being
            // those before.
            let n_results = self.f.results(inst).len();
            let others = self.operands.len().checked_sub(n_results - 1);
            let used_before = others.map(|others| &self.operands[others..]);
            let results = || self.f.results(inst);
            n_results == 1 && self.n_open[value.index()] == 0
                || results().all(|result| self.n_uses[result.index()] == 1)
                    && used_before
                        .is_some_and(|used| used.iter().copied().chain([value]).eq(results()))
        };
        let is_get = self.f.opcode(inst) == Opcode::Ir(IrOp::SlotGet);
        !is_get && is_in_order && is_first_use() && can_move()
    }

    /// Whether a value, whose use is next, can be on the operand stack since it was made.
    fn can_be_held(&self, value: Value) -> bool {
        let (inst, position) = self.defs[value.index()];
        self.operands.is_empty()
            && self.n_uses[value.index()] == 1
            && self.f.results(inst).len() == 1
            && self.held.last().is_none_or(|&held| held < position)
    }

    /// Makes a value right before the code so far.
    fn make(&mut self, value: Value) {
        let (inst, position) = self.defs[value.index()];
        self.is_made[position as usize] = true;
        if self.has_effect(inst) {
            self.effects.pop();
        }
        for _ in 1..self.f.results(inst).len() {
            let other = self.operands.pop().expect("the other results are operands, too");
            self.n_open[other.index()] -= 1;
        }
        if let Some(variable) = self.taken_variable(value) {
            self.release(variable);
            let is_used_next = self.items.last() == Some(&Item::Get(variable));
            if is_used_next && self.n_uses[value.index()] == 2 {
                self.items.pop();
                self.items.push(Item::Dup);
            } else {
                self.items.push(Item::Tee(variable));
            }
        }
        self.inst(inst);
    }

    fn taken_variable(&self, value: Value) -> Option<u32> {
        let variable = self.temporaries[value.index()];
        (variable != NONE).then_some(variable)
    }

    /// The temporary variable of a value.
    fn variable(&mut self, value: Value) -> u32 {
        if let Some(variable) = self.taken_variable(value) {
            return variable;
        }
        let ty = self.f.value_type(value);
        let variable = self.free[ty.index()].pop().unwrap_or_else(|| {
            self.variables.push(ty);
            self.variables.len() as u32 - 1
        });
        self.temporaries[value.index()] = variable;
        variable
    }

    /// Code before has other values in a temporary variable.
    fn release(&mut self, variable: u32) {
        self.free[self.variables[variable as usize].index()].push(variable);
    }
}
