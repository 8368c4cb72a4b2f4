//! Safepoints: references into the embedder's heap are where it finds them whenever the function calls.
//!
//! Relies on slot form. Before each call that the function waits for, the references that
//! are used after it are written to *root cells*, which the embedder may read and update, and after it they are read again:
//! a safepoint is a use of the live references and a new definition of each. So what passes and lowering do afterwards is
//! right by itself: the bits of a reference before a call and after it are those of different values. What is not live is
//! not in the list of the call, so a cell that is in one holds a reference of this time.
//!
//! A function has root cells for its slots, and for operands that wait at calls. A reference that its cell holds already,
//! since earlier calls on all ways there (slots, `held`) or of the block (operands), is not written again.
//!
//! Polls are safepoints, too. The lowering writes and reads cells only where a poll is due, so what is written for a poll
//! alone is not in its cell afterwards.
//!
//! Where that would take more than [`ROOT_CELLS_MAX`] cells, or more than `COPIES_PER_INST` copies for each instruction, or
//! liveness is too large, all references of slots and all that wait at calls lie in root cells for good, and each call lists
//! all cells ([`ALL_ROOT_CELLS`](crate::ir::ALL_ROOT_CELLS)), which start as null. What such a cell held last stays a reference of this time: it is
//! updated like all others.
//!
//! Linear in the function, apart from liveness, which has a limit.

mod held;
mod in_memory;
mod live;
mod localise;

use std::collections::HashMap;

use slotvm_bytecode::module::ImportCall;
use slotvm_bytecode::{Imm, Op, ValType, VerifiedModule};

use crate::graphs::ids::Slot;
use crate::ir::Function;
use crate::ir::analyses::Analyses;
use crate::ir::entity::{Inst, Loc, Value};
use crate::ir::irop::{IrOp, Opcode};
use live::{LiveAt, Root};

/// Root cells of a function that its safepoints list one by one, each as a bit of the immediate.
pub const ROOT_CELLS_MAX: u32 = 31;
/// Copies of references into root cells, for each instruction of a function.
const COPIES_PER_INST: usize = 2;

/// Statistics of the pass.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct RootsReport {
    /// Calls that list references.
    pub n_safepoints: usize,
    /// Whether all references stay in root cells.
    pub is_in_memory: bool,
}

/// Makes the safepoints of a function in slot form.
pub fn roots(f: &mut Function, module: &VerifiedModule, analyses: &mut Analyses) -> RootsReport {
    if !f.value_types.contains(&ValType::Ref) {
        return RootsReport::default();
    }
    localise::localise(f);
    let copies_max = COPIES_PER_INST * f.n_insts_in_blocks();
    let Some(live) = live::at_safepoints(f, module, analyses, copies_max) else {
        return in_memory::keep(f, module);
    };
    let Some(cells) = Cells::new(&live) else { return in_memory::keep(f, module) };
    let n_safepoints = live.safepoints.len();
    if n_safepoints > 0 {
        let mut held = held::at_starts(f, &live, &cells, analyses.graph(f));
        if std::env::var_os("NOHELD").is_some() {
            held.fill(0);
        }
        let waiting = HashMap::new();
        Placement { f, live, cells, held, layout: Vec::new(), n_cells: 0, waiting }.run();
    }
    RootsReport { n_safepoints, is_in_memory: false }
}

/// Whether the embedder may visit references while the function waits at an instruction. A leaf function has no store.
fn is_safepoint(f: &Function, module: &VerifiedModule, inst: Inst) -> bool {
    match f.opcode(inst) {
        Opcode::Op(Op::Call) => module.import_call(f.imm(inst).low()) != ImportCall::Leaf,
        Opcode::Op(Op::CallIndirect) | Opcode::Ir(IrOp::Poll) => true,
        _ => false,
    }
}

/// The root cells of slots, and those that are left for operands.
struct Cells {
    of_slots: HashMap<Slot, u32>,
    n_of_slots: u32,
}

impl Cells {
    /// Gives cells to the slots that wait anywhere, unless they and the operands that wait need too many.
    fn new(live: &LiveAt) -> Option<Cells> {
        let mut cells = Cells { of_slots: HashMap::new(), n_of_slots: 0 };
        for root in &live.roots {
            if let Root::Slot(slot) = *root {
                let next = cells.of_slots.len() as u32;
                cells.of_slots.entry(slot).or_insert(next);
            }
        }
        cells.n_of_slots = cells.of_slots.len() as u32;
        let n_operands = |roots: &[Root]| {
            roots.iter().filter(|root| matches!(root, Root::Operand(_))).count() as u32
        };
        let n_most = live.safepoints.iter().map(|at| n_operands(&live.roots[at.roots.clone()]));
        let n_cells = cells.n_of_slots + n_most.max().unwrap_or(0);
        (n_cells <= ROOT_CELLS_MAX).then_some(cells)
    }
}

impl Cells {
    /// The cells of the slots among some roots.
    fn listed(&self, roots: &[Root]) -> u32 {
        let cells = roots.iter().filter_map(|root| match root {
            Root::Slot(slot) => Some(self.of_slots[slot]),
            Root::Operand(_) => None,
        });
        cells.fold(0, |listed, cell| listed | 1 << cell)
    }
}

/// An operand that has waited at a call of the block, or waits at the next one.
#[derive(Copy, Clone)]
struct Waiting {
    cell: u32,
    /// The value that it is by now.
    current: Value,
    /// Whether the cell holds that.
    is_held: bool,
}

/// The pass over all blocks, which writes the layout anew.
struct Placement<'f> {
    f: &'f mut Function,
    live: LiveAt,
    cells: Cells,
    /// The cells that hold what their slots do, at the start of each block.
    held: Vec<u32>,
    layout: Vec<Inst>,
    n_cells: u32,
    /// The operands of the block at hand.
    waiting: HashMap<Value, Waiting>,
}

impl Placement<'_> {
    fn run(mut self) {
        let old = std::mem::take(&mut self.f.layout);
        let safepoints = std::mem::take(&mut self.live.safepoints);
        let mut safepoints = safepoints.into_iter().peekable();
        for block in self.f.blocks() {
            let (start, end) = self.f.blocks[block.index()].insts;
            let new_start = self.layout.len() as u32;
            self.waiting.clear();
            let mut held = self.held[block.index()];
            for &inst in &old[start as usize..end as usize] {
                self.rename(inst);
                if self.f.opcode(inst) == Opcode::Ir(IrOp::SlotSet)
                    && let Some(cell) = self.cells.of_slots.get(&Slot(self.f.imm(inst).low()))
                {
                    held &= !(1 << cell);
                }
                match safepoints.next_if(|at| at.inst == inst) {
                    Some(at) => {
                        let roots = self.live.roots[at.roots].to_vec();
                        held = self.safepoint(inst, &roots, held);
                    }
                    None => self.layout.push(inst),
                }
            }
            for i in self.f.edge_arg_places(block) {
                if let Some(waiting) = self.waiting.get(&self.f.edge_args[i]) {
                    self.f.edge_args[i] = waiting.current;
                }
            }
            self.f.blocks[block.index()].insts = (new_start, self.layout.len() as u32);
        }
        self.f.layout = self.layout;
        self.f.n_root_cells = self.n_cells;
    }

    /// Lets an instruction use what its operands are by now.
    fn rename(&mut self, inst: Inst) {
        if self.waiting.is_empty() {
            return;
        }
        let (start, len) = self.f.operands[inst.index()];
        for operand in &mut self.f.operand_pool[start as usize..(start + len) as usize] {
            if let Some(waiting) = self.waiting.get(operand) {
                *operand = waiting.current;
            }
        }
    }

    /// Appends a call at which references wait. Returns the cells that hold what their slots do afterwards.
    fn safepoint(&mut self, call: Inst, roots: &[Root], held: u32) -> u32 {
        self.take_cells(roots);
        let loc = self.f.loc(call);
        let mut mask = 0;
        for &root in roots {
            let (cell, is_held) = self.cell(root, held);
            mask |= 1 << cell;
            if !is_held {
                let value = match root {
                    Root::Slot(slot) => self.emit(IrOp::SlotGet, slot.0, &[], &[ValType::Ref], loc),
                    Root::Operand(value) => Some(self.waiting[&value].current),
                };
                let value = value.expect("a slot has a value");
                self.emit(IrOp::RootSet, cell, &[value], &[], loc);
            }
        }
        self.emit(IrOp::Safepoint, mask, &[], &[], loc);
        self.layout.push(call);
        let polls = self.f.opcode(call) == Opcode::Ir(IrOp::Poll);
        let mut held_after = 0;
        for &root in roots {
            let (cell, was_held) = self.cell(root, held);
            let is_held = was_held || !polls;
            let value = self.emit(IrOp::RootGet, cell, &[], &[ValType::Ref], loc);
            let current = value.expect("a cell has a value");
            match root {
                Root::Slot(slot) => {
                    self.emit(IrOp::SlotSet, slot.0, &[current], &[], loc);
                    held_after |= u32::from(is_held) << cell;
                }
                Root::Operand(value) => {
                    self.waiting.insert(value, Waiting { cell, current, is_held });
                }
            }
        }
        held_after
    }

    /// Gives cells to the operands that wait now. Those that waited before and do so no more are used up, and leave theirs.
    fn take_cells(&mut self, roots: &[Root]) {
        let mut taken = 0_u32;
        let operands = roots.iter().filter_map(|root| match *root {
            Root::Operand(value) => Some(value),
            Root::Slot(_) => None,
        });
        let operands: Vec<Value> = operands.collect();
        for value in &operands {
            if let Some(waiting) = self.waiting.get(value) {
                taken |= 1 << waiting.cell;
            }
        }
        for waiting in self.waiting.values_mut() {
            waiting.is_held &= taken >> waiting.cell & 1 == 1;
        }
        for value in operands {
            if self.waiting.contains_key(&value) {
                continue;
            }
            let free = !taken >> self.cells.n_of_slots << self.cells.n_of_slots;
            let cell = free.trailing_zeros();
            taken |= 1 << cell;
            self.waiting.insert(value, Waiting { cell, current: value, is_held: false });
        }
    }

    /// The cell of a reference, and whether it holds that.
    fn cell(&self, root: Root, held: u32) -> (u32, bool) {
        match root {
            Root::Slot(slot) => {
                let cell = self.cells.of_slots[&slot];
                (cell, held >> cell & 1 == 1)
            }
            Root::Operand(value) => {
                let waiting = self.waiting[&value];
                (waiting.cell, waiting.is_held)
            }
        }
    }

    fn emit(
        &mut self,
        op: IrOp,
        imm: u32,
        operands: &[Value],
        results: &[ValType],
        loc: Loc,
    ) -> Option<Value> {
        if op == IrOp::RootSet {
            if std::env::var_os("COUNTSETS").is_some() {
                eprintln!("ROOTSET");
            }
            self.n_cells = self.n_cells.max(imm + 1);
        }
        append(self.f, &mut self.layout, (op, imm), operands, results, loc)
    }
}

/// Appends a new instruction to a layout. Returns its result, if it has one.
fn append(
    f: &mut Function,
    layout: &mut Vec<Inst>,
    (op, imm): (IrOp, u32),
    operands: &[Value],
    results: &[ValType],
    loc: Loc,
) -> Option<Value> {
    let inst = f.make_inst(Opcode::Ir(op), Imm::index(imm), operands, results, loc);
    layout.push(inst);
    (!results.is_empty()).then(|| f.result(inst))
}

#[cfg(test)]
mod tests;
