//! The abstract operand stack of the block being built.

use slotvm_bytecode::module::ShapeId;
use slotvm_bytecode::{ValType, VerifiedModule};

use super::NO_SLOT;
use super::slots::Slots;
use crate::ir::entity::Value;
use crate::ir::{Function, SlotData, SlotOrigin};

/// An operand.
#[derive(Copy, Clone, Debug)]
pub(super) struct Operand {
    /// The value; [`Operand::TOKEN`] for the address of a promotable local.
    pub(super) value: Value,
    /// The position in the layout after the instruction that pushed it. For a token, the local.
    at: u32,
    /// The code offset of the instruction that pushed it.
    offset: u32,
}

impl Operand {
    /// Stands for the address of a promotable local, which never exists as a number: only stack
    /// shuffles move it, direct accesses consume it, and it does not leave the block.
    pub(super) const TOKEN: Value = Value(u32::MAX);
}

/// Memory of the abstract stack, to be reused from function to function.
#[derive(Debug, Default)]
pub(super) struct StackScratch {
    /// The slot of each operand-stack position, by depth and type. All are [`NO_SLOT`] between
    /// functions: what a function has set is undone by its list of slots, so that a deep stack in one
    /// function costs the others nothing.
    slots: Vec<[u32; ValType::ALL.len()]>,
    touched: Vec<Operand>,
    inherited: Vec<Value>,
    inherited_types: Vec<ValType>,
    /// The values of operands that are being read.
    values: Vec<Value>,
}

/// The operand stack: `touched` on top of what is left of the operands that the block inherits.
pub(super) struct AbstractStack<'a> {
    scratch: &'a mut StackScratch,
    /// The inherited operands that were not touched, and their number.
    below: ShapeId,
    below_depth: u32,
}

impl AbstractStack<'_> {
    pub(super) fn new(scratch: &mut StackScratch) -> AbstractStack<'_> {
        AbstractStack { scratch, below: ShapeId::EMPTY, below_depth: 0 }
    }

    /// Starts a block that inherits operands of this shape.
    pub(super) fn start(&mut self, shape: ShapeId, depth: u32) {
        self.below = shape;
        self.below_depth = depth;
        self.scratch.touched.clear();
        // Top to bottom: the value that each touched position had at the start of the block, or a
        // token if it was dropped unread.
        self.scratch.inherited.clear();
    }

    /// The operands that were not touched.
    pub(super) fn below(&self) -> ShapeId {
        self.below
    }

    /// The touched operands; [`AbstractStack::touch`] makes sure that there are enough.
    pub(super) fn operands(&mut self) -> &mut Vec<Operand> {
        &mut self.scratch.touched
    }

    /// Ensures that at least `n` operands are touched: reads inherited ones from their slots.
    #[inline]
    pub(super) fn touch(
        &mut self,
        n: usize,
        module: &VerifiedModule,
        f: &mut Function,
        slots: &mut impl Slots,
        offset: u32,
    ) {
        if self.scratch.touched.len() < n {
            self.read_inherited(n - self.scratch.touched.len(), module, f, slots, offset);
        }
    }

    #[cold]
    fn read_inherited(
        &mut self,
        n: usize,
        module: &VerifiedModule,
        f: &mut Function,
        slots: &mut impl Slots,
        offset: u32,
    ) {
        self.scratch.inherited_types.clear();
        for _ in 0..n {
            let (parent, ty) =
                module.shape_top(self.below).expect("verified code does not underflow");
            self.scratch.inherited_types.push(ty);
            self.below = parent;
        }
        self.below_depth -= n as u32;
        let mut values = std::mem::take(&mut self.scratch.values);
        values.clear();
        for i in 0..n {
            let ty = self.scratch.inherited_types[n - 1 - i];
            let slot = self.slot(self.below_depth + i as u32, ty, f);
            values.push(slots.read(f, slot, ty, offset));
        }
        self.scratch.inherited.extend(values.iter().rev());
        let at = f.layout.len() as u32;
        let operands = values.iter().map(|&value| Operand { value, at, offset });
        self.scratch.touched.splice(0..0, operands);
        self.scratch.values = values;
    }

    #[inline]
    pub(super) fn push(&mut self, value: Value, f: &Function, offset: u32) {
        self.scratch.touched.push(Operand { value, at: f.layout.len() as u32, offset });
    }

    pub(super) fn push_token(&mut self, local: u32) {
        self.scratch.touched.push(Operand { value: Operand::TOKEN, at: local, offset: 0 });
    }

    /// Removes the topmost operand, which is touched.
    #[inline]
    pub(super) fn pop(&mut self) -> Value {
        self.scratch.touched.pop().expect("the operand was touched").value
    }

    /// Removes the topmost operand without reading it.
    pub(super) fn drop_top(&mut self, module: &VerifiedModule) {
        if self.scratch.touched.pop().is_none() {
            let (parent, _) =
                module.shape_top(self.below).expect("verified code does not underflow");
            self.below = parent;
            self.below_depth -= 1;
            self.scratch.inherited.push(Operand::TOKEN);
        }
    }

    /// Records that a shuffle pushed the `n` topmost operands, which are touched.
    pub(super) fn repush(&mut self, n: usize, f: &Function, offset: u32) {
        let start = self.scratch.touched.len() - n;
        for operand in &mut self.scratch.touched[start..] {
            if operand.value != Operand::TOKEN {
                (operand.at, operand.offset) = (f.layout.len() as u32, offset);
            }
        }
    }

    /// Writes the touched operands to their slots, each after the instruction that pushed it, for the
    /// successors of the block, which inherit the stack as it is. An operand below another was not
    /// pushed after it, so the places ascend.
    pub(super) fn write_surviving(&mut self, f: &mut Function, slots: &mut impl Slots) {
        self.write_touched(f, slots);
        slots.end_surviving(f);
    }

    fn write_touched(&mut self, f: &mut Function, slots: &mut impl Slots) {
        let n_inherited = self.scratch.inherited.len();
        for i in 0..self.scratch.touched.len() {
            let Operand { value, at, offset } = self.scratch.touched[i];
            // `inherited` goes from the top down, and ends where `touched` starts.
            let inherited = n_inherited.checked_sub(i + 1).map(|i| self.scratch.inherited[i]);
            if inherited == Some(value) {
                continue;
            }
            debug_assert_ne!(value, Operand::TOKEN, "an escaping address is a number");
            let slot = self.slot(self.below_depth + i as u32, slots.value_type(f, value), f);
            slots.write_surviving(f, slot, value, at, offset);
        }
    }

    /// Prepares a branch to a block whose stack has this depth, which keeps the `n` topmost operands. These
    /// are touched. Drops the operands between them and those that the target inherits, and writes all to
    /// their slots.
    pub(super) fn keep(
        &mut self,
        n: u32,
        depth: u32,
        offset: u32,
        f: &mut Function,
        slots: &mut impl Slots,
    ) {
        let StackScratch { touched, values, .. } = &mut *self.scratch;
        let n_below = touched.len() - n as usize;
        if self.below_depth as usize + touched.len() == depth as usize {
            return self.write_surviving(f, slots);
        }
        // They move, so they are written after all that is read: at the end.
        let mut kept = std::mem::take(values);
        kept.clear();
        kept.extend(touched.drain(n_below..).map(|operand| operand.value));
        let n_lowest = depth - n;
        touched.truncate(n_lowest.saturating_sub(self.below_depth) as usize);
        self.write_touched(f, slots);
        let at = f.layout.len() as u32;
        for (position, &value) in (n_lowest..).zip(&kept) {
            debug_assert_ne!(value, Operand::TOKEN, "an escaping address is a number");
            let slot = self.slot(position, slots.value_type(f, value), f);
            slots.write_surviving(f, slot, value, at, offset);
        }
        self.scratch.values = kept;
        slots.end_surviving(f);
    }

    /// The slot of an operand-stack position while it has a type.
    pub(super) fn slot(&mut self, depth: u32, ty: ValType, f: &mut Function) -> u32 {
        let depths = &mut self.scratch.slots;
        if depth as usize >= depths.len() {
            depths.resize(depth as usize + 1, [NO_SLOT; ValType::ALL.len()]);
        }
        let slot = &mut depths[depth as usize][ty.index()];
        if *slot == NO_SLOT {
            *slot = f.slots.len() as u32;
            f.slots.push(SlotData::new(ty, SlotOrigin::Stack(depth)));
        }
        *slot
    }

    /// Undoes the changes of [`AbstractStack::slot`] to the scratch memory.
    pub(super) fn forget_slots(&mut self, slots: &[SlotData]) {
        for slot in slots {
            if let SlotOrigin::Stack(depth) = slot.origin {
                self.scratch.slots[depth as usize][slot.ty.index()] = NO_SLOT;
            }
        }
    }
}

impl Operand {
    /// The local whose address a token stands for.
    pub(super) fn token_local(&self) -> u32 {
        debug_assert_eq!(self.value, Operand::TOKEN);
        self.at
    }
}
