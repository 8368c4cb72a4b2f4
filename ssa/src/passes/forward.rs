//! Store-to-load forwarding: a load whose value is known on every path becomes that value.
//!
//! Relies on SSA form, and guarantees it. Works on linear memory alone; its assumptions about aliasing stand in
//! `places`. In these steps:
//! 1. `places` finds the places that are loaded more than once, or loaded and stored, and the effect of each instruction
//!    on them: it is a place's definition, or leaves its content unknown.
//! 2. `available` finds the places whose content is known at the start of each block: on every path from the entry
//!    there is a definition, and nothing after it that may write there. This is the dataflow problem of available
//!    expressions (Aho, Lam, Sethi, Ullman, *Compilers*, section 9.2.6), for 64 places at a time.
//! 3. A place is a slot now: its definitions write the slot, and a load where its content is known reads it.
//!    [Promotion](mod@crate::construction::promote) turns the slots into values, with phis where definitions meet.
//!
//! Stores stay, so memory is the same at each trap and call. A load that goes away cannot trap: the same bytes were
//! accessed before on every path, and a memory never shrinks.
//!
//! Then `rounds` does the same from one round of a loop to the next, where addresses change from round to round.
//!
//! Cranelift forwards within a block and along chains of blocks. This pass does it where paths meet, above all round
//! loops. It is for the frames of locals whose address is taken, after the functions that take them were inlined, and
//! for counters in memory.

mod available;
mod places;
mod rounds;

use slotvm_bytecode::{Imm, ValType};

use self::available::available;
use self::places::{Event, Places};
use self::rounds::forward_rounds;
use crate::construction::promote::{PHI_OPERANDS_MAX, Scratch, promote};
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::irop::{IrOp, Opcode};
use crate::ir::{Function, SlotData, SlotOrigin, fold};

/// Statistics of forwarding.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct ForwardReport {
    /// Places in memory that became values somewhere.
    pub n_places: usize,
    /// Loads that became values.
    pub n_loads: usize,
    /// Loops that carry values from one round to the next.
    pub n_loops: usize,
    /// Loads in these loops that became values.
    pub n_carried: usize,
}

/// Forwards stores and loads to later loads of a function in SSA form.
pub fn forward(f: &mut Function) -> ForwardReport {
    if !has_join(f) {
        return ForwardReport::default();
    }
    let report = forward_places(f);
    let rounds = forward_rounds(f);
    ForwardReport { n_loops: rounds.n_loops, n_carried: rounds.n_loads, ..report }
}

/// Forwards to the same place.
fn forward_places(f: &mut Function) -> ForwardReport {
    let places = Places::find(f);
    // Within this limit, promotion never gives up.
    if places.len() == 0 || places.len() * f.n_edges() > PHI_OPERANDS_MAX {
        return ForwardReport::default();
    }
    let known_at = available(f, &places);
    let loads = Loads::find(f, &places, &known_at);
    if loads.n_known == 0 {
        return ForwardReport::default();
    }
    // The function's own slots are promoted already, or stay in memory.
    let n_own = f.slots.len();
    Rewriter { f, places: &places, is_used: loads.places, n_own }.run(&known_at);
    let promotion = promote(f, &mut Scratch::default());
    assert_eq!(promotion.too_large, None, "so few slots can be promoted");
    f.slots.truncate(n_own);
    let n_places = loads.places.count_ones() as usize;
    ForwardReport { n_places, n_loads: loads.n_known, ..ForwardReport::default() }
}

/// Whether several edges enter a block.
fn has_join(f: &Function) -> bool {
    f.blocks().any(|block| f.pred_edges(block).len() > 1)
}

/// The loads of places whose content is known.
struct Loads {
    n_known: usize,
    /// The places of which there are such loads.
    places: u64,
}

impl Loads {
    fn find(f: &Function, places: &Places, known_at: &[u64]) -> Loads {
        let mut loads = Loads { n_known: 0, places: 0 };
        for block in f.blocks() {
            let mut known = known_at[block.index()];
            for &(_, event) in places.events(block) {
                if let Event::Load(place) = event
                    && known >> place & 1 == 1
                {
                    loads.n_known += 1;
                    loads.places |= 1 << place;
                }
                known = places.after(known, event);
            }
        }
        loads
    }
}

/// Makes slots of places.
struct Rewriter<'a> {
    f: &'a mut Function,
    places: &'a Places,
    /// The places that become slots.
    is_used: u64,
    /// The number of slots that the function has, which come first.
    n_own: usize,
}

impl Rewriter<'_> {
    fn run(mut self, known_at: &[u64]) {
        for place in 0..self.places.len() {
            let origin = SlotOrigin::Inlined(place as u32);
            self.f.slots.push(SlotData::new(self.places.ty(place), origin));
        }
        let layout = std::mem::take(&mut self.f.layout);
        for block in self.f.blocks() {
            let (start, end) = self.f.blocks[block.index()].insts;
            let first = self.f.layout.len() as u32;
            self.block(block, &layout[start as usize..end as usize], known_at[block.index()]);
            self.f.blocks[block.index()].insts = (first, self.f.layout.len() as u32);
        }
    }

    fn block(&mut self, block: Block, insts: &[Inst], mut known: u64) {
        let mut events = self.places.events(block).iter().peekable();
        for (i, &inst) in insts.iter().enumerate() {
            self.f.layout.push(inst);
            while let Some(&(_, event)) = events.next_if(|&&(at, _)| at as usize == i) {
                match event {
                    Event::Load(place) if self.is_slot(place) && known >> place & 1 == 1 => {
                        self.f.ops[inst.index()] = Opcode::Ir(IrOp::SlotGet);
                        self.f.imms[inst.index()] = self.slot(place);
                        self.f.unmark(inst);
                        self.f.operands[inst.index()].1 = 0;
                    }
                    Event::Load(place) => self.write(place, self.f.result(inst), inst),
                    Event::Store { place: Some(place), .. } => {
                        let value = *self.f.operands(inst).last().expect("a store has a value");
                        self.write(place, value, inst);
                    }
                    Event::Zero { defined, .. } => self.write_zeros(defined, inst),
                    Event::Store { place: None, .. } | Event::Unknown(_) => {}
                }
                known = self.places.after(known, event);
            }
        }
    }

    /// The slot of a place, as an immediate.
    fn slot(&self, place: usize) -> Imm {
        Imm::index((self.n_own + place) as u32)
    }

    fn is_slot(&self, place: usize) -> bool {
        self.is_used >> place & 1 == 1
    }

    /// Writes the slot of a place, if it is one.
    fn write(&mut self, place: usize, value: Value, at: Inst) {
        if self.is_slot(place) {
            let (op, imm) = (Opcode::Ir(IrOp::SlotSet), self.slot(place));
            let set = self.f.make_inst(op, imm, &[value], &[], self.f.loc(at));
            self.f.layout.push(set);
        }
    }

    fn write_zeros(&mut self, places: u64, at: Inst) {
        for place in (0..self.places.len()).filter(|place| places >> place & 1 == 1) {
            if self.is_slot(place) {
                let ty: ValType = self.places.ty(place);
                let (op, imm) = fold::constant(self.f, ty, 0);
                let zero = self.f.make_inst(Opcode::Op(op), imm, &[], &[ty], self.f.loc(at));
                self.f.layout.push(zero);
                self.write(place, self.f.result(zero), at);
            }
        }
    }
}

#[cfg(test)]
mod tests;
