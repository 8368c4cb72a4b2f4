//! Slots for classes. Classes of one type whose live ranges lie apart share a slot.
//!
//! Linear scan (Poletto and Sarkar 1999): the live range of a class is approximated by the interval from its
//! first point to its last, with the blocks in the order of their numbers. The interval covers the live
//! range. It costs a sort, and classes used in different parts of a function share slots.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use slotvm_bytecode::ValType;

use super::classes::Classes;
use super::live::{AT_EDGE, Liveness, Point};
use crate::graphs::steps::step;
use crate::ir::entity::{Block, Value};
use crate::ir::{Function, SlotData, SlotOrigin};

/// The slots of classes.
#[derive(Debug)]
pub(super) struct Slots {
    /// The slot of each class; `None` if its values are in no slot.
    of_class: Vec<Option<u32>>,
    pub(super) slots: Vec<SlotData>,
}

/// The data of a class that decide its slot.
#[derive(Copy, Clone, Debug)]
struct Range {
    class: u32,
    ty: ValType,
    from: Point,
    to: Point,
    /// The function's parameter that is a member: its slot stands for it.
    param: Option<u32>,
}

impl Slots {
    /// Gives slots to the classes of these values.
    pub(super) fn assign(
        f: &Function,
        classes: &Classes,
        defs: &[Option<Point>],
        live: &Liveness,
        values: &[Value],
    ) -> Slots {
        let mut ranges: Vec<Option<Range>> = vec![None; classes.len()];
        for &value in values {
            let class = classes.of(value).expect("values with slots are in classes");
            let def = defs[value.index()].expect("values with slots have definitions");
            let ty = f.value_type(value);
            let new = Range { class, ty, from: def, to: def, param: None };
            let range = ranges[class as usize].get_or_insert(new);
            range.add(f, value, def, live);
        }
        let mut ranges: Vec<Range> = ranges.into_iter().flatten().collect();
        ranges.sort_unstable_by_key(|range| (range.from, range.class));
        let mut result = Slots { of_class: vec![None; classes.len()], slots: Vec::new() };
        result.scan(f, &ranges);
        result
    }

    fn scan(&mut self, f: &Function, ranges: &[Range]) {
        let mut free: [Vec<u32>; ValType::ALL.len()] = Default::default();
        let mut taken = BinaryHeap::new();
        let mut n_locals = f.ty.params.len() as u32;
        for range in ranges {
            while let Some(&Reverse((to, slot))) = taken.peek()
                && to <= range.from
            {
                step();
                taken.pop();
                free[self.slots[slot as usize].ty.index()].push(slot);
            }
            let reused = if range.param.is_none() { free[range.ty.index()].pop() } else { None };
            let slot = reused.unwrap_or_else(|| {
                let local = range.param.unwrap_or_else(|| {
                    n_locals += 1;
                    n_locals - 1
                });
                self.slots.push(SlotData::new(range.ty, SlotOrigin::Local(local)));
                self.slots.len() as u32 - 1
            });
            self.of_class[range.class as usize] = Some(slot);
            taken.push(Reverse((range.to, slot)));
        }
    }

    /// The slot of a class.
    pub(super) fn of(&self, class: u32) -> Option<u32> {
        self.of_class[class as usize]
    }
}

impl Range {
    /// Extends the range to a value.
    fn add(&mut self, f: &Function, value: Value, def: Point, live: &Liveness) {
        self.include(def);
        for &(block, last) in live.of(value) {
            step();
            if block != def.0 {
                self.include((block, 0));
            }
            self.include((block, last));
        }
        let (block, position) = def;
        if position > 0 {
            return;
        }
        if block == Function::ENTRY {
            // The parameters are the first values.
            self.param = Some(value.0);
        }
        // A phi is written where its block is entered from.
        for &edge in f.pred_edges(block) {
            self.include((f.edge_src(edge), AT_EDGE));
        }
    }

    fn include(&mut self, point: (Block, u32)) {
        self.from = self.from.min(point);
        self.to = self.to.max(point);
    }
}
