//! The references that wait at each call: those of slots that are live after it, and operands that are used after it.

use std::collections::HashMap;
use std::ops::Range;

use slotvm_bytecode::{ValType, VerifiedModule};

use super::is_safepoint;
use crate::graphs::cfg::{Cfg, ControlFlow};
use crate::graphs::ids::Slot;
use crate::graphs::liveness::Liveness;
use crate::graphs::slot_blocks::SlotBlocks;
use crate::ir::Function;
use crate::ir::analyses::Analyses;
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::irop::{IrOp, Opcode};

/// The maximum number of words of liveness: blocks, and safepoints, times slots in groups of 64.
const ROOT_WORDS_MAX: usize = 1 << 18;

/// A reference that waits.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Root {
    /// In a slot.
    Slot(Slot),
    /// A value of the block.
    Operand(Value),
}

/// A call at which references wait.
pub(super) struct Safepoint {
    pub(super) inst: Inst,
    /// Their range in [`LiveAt::roots`].
    pub(super) roots: Range<usize>,
}

/// The references that wait at all calls.
#[derive(Default)]
pub(super) struct LiveAt {
    /// The calls at which any wait, in the order of blocks and instructions.
    pub(super) safepoints: Vec<Safepoint>,
    pub(super) roots: Vec<Root>,
}

/// Finds what waits at calls, unless that is more than some number in all, or liveness is too large.
pub(super) fn at_safepoints(
    f: &Function,
    module: &VerifiedModule,
    analyses: &mut Analyses,
    roots_max: usize,
) -> Option<LiveAt> {
    let slots = RefSlots::find(f);
    let n_words = slots.slots.len().div_ceil(64);
    let n_safepoints = f.layout.iter().filter(|&&inst| is_safepoint(f, module, inst)).count();
    if n_words.saturating_mul(f.n_blocks() + n_safepoints) > ROOT_WORDS_MAX {
        return None;
    }
    let cfg = analyses.graph(f);
    let live = slots.liveness(f, cfg)?;
    let mut found = Finder::new(f, module, &slots, n_words);
    for block in f.blocks() {
        found.start(cfg, &live, block);
        found.block(block);
        let is_param = |value: &Value| f.params(block).contains(value);
        assert!(found.operands.iter().all(is_param), "references in no slot live in one block");
        if found.all.roots.len() > roots_max {
            return None;
        }
    }
    Some(found.all)
}

/// The slots of references that are accessed, with dense numbers.
struct RefSlots {
    slots: Vec<Slot>,
    numbers: HashMap<u32, u32>,
}

impl RefSlots {
    fn find(f: &Function) -> RefSlots {
        let mut found = RefSlots { slots: Vec::new(), numbers: HashMap::new() };
        for &inst in &f.layout {
            if let Some((slot, _)) = ref_access(f, inst) {
                found.numbers.entry(slot).or_insert_with(|| {
                    found.slots.push(Slot(slot));
                    found.slots.len() as u32 - 1
                });
            }
        }
        found
    }

    fn liveness(&self, f: &Function, cfg: &Cfg) -> Option<Liveness> {
        let (mut writes, mut reads) = (Vec::new(), Vec::new());
        // The block that wrote a slot last.
        let mut written_in = vec![None; self.slots.len()];
        for block in f.blocks() {
            for &inst in f.insts(block) {
                let Some((slot, is_write)) = ref_access(f, inst) else { continue };
                let number = self.numbers[&slot];
                let written_in = &mut written_in[number as usize];
                if *written_in == Some(block) {
                    continue;
                }
                if is_write {
                    *written_in = Some(block);
                }
                let list = if is_write { &mut writes } else { &mut reads };
                list.push((block.0, Slot(number)));
            }
        }
        Liveness::new(cfg, &SlotBlocks::new(self.slots.len(), writes, reads)).ok()
    }
}

/// The slot of a reference that an instruction reads or writes, and whether it writes.
fn ref_access(f: &Function, inst: Inst) -> Option<(u32, bool)> {
    let is_write = match f.opcode(inst) {
        Opcode::Ir(IrOp::SlotGet) => false,
        Opcode::Ir(IrOp::SlotSet) => true,
        _ => return None,
    };
    let slot = f.imm(inst).low();
    (f.slots[slot as usize].ty == ValType::Ref).then_some((slot, is_write))
}

/// Goes through blocks, each from its end.
struct Finder<'a> {
    f: &'a Function,
    module: &'a VerifiedModule,
    slots: &'a RefSlots,
    /// The slots that are live, by number.
    live: Vec<u64>,
    /// The operands of the block that are used later, and the place of each among them.
    operands: Vec<Value>,
    places: HashMap<Value, usize>,
    all: LiveAt,
}

impl<'a> Finder<'a> {
    fn new(
        f: &'a Function,
        module: &'a VerifiedModule,
        slots: &'a RefSlots,
        n_words: usize,
    ) -> Finder<'a> {
        let (live, all) = (vec![0; n_words], LiveAt::default());
        Finder { f, module, slots, live, operands: Vec::new(), places: HashMap::new(), all }
    }

    /// Begins with what is live at the end of a block.
    fn start(&mut self, cfg: &Cfg, live: &Liveness, block: Block) {
        self.live.fill(0);
        for &succ in cfg.succs(block.0) {
            for (word, live) in self.live.iter_mut().zip(live.words(succ)) {
                *word |= live;
            }
        }
        self.operands.clear();
        self.places.clear();
    }

    fn block(&mut self, block: Block) {
        let first = self.all.safepoints.len();
        for edge in self.f.succ_edges(block) {
            self.f.edge_args(edge).iter().for_each(|&value| self.used(value));
        }
        for &inst in self.f.insts(block).iter().rev() {
            for result in self.f.results(inst) {
                self.defined(result);
            }
            if let Some((slot, is_write)) = ref_access(self.f, inst) {
                let number = self.slots.numbers[&slot];
                let (word, bit) = (number as usize / 64, 1 << (number % 64));
                self.live[word] =
                    if is_write { self.live[word] & !bit } else { self.live[word] | bit };
            }
            if is_safepoint(self.f, self.module, inst) {
                self.safepoint(inst);
            }
            for &value in self.f.operands(inst) {
                self.used(value);
            }
        }
        // Found from the last to the first.
        self.all.safepoints[first..].reverse();
    }

    fn safepoint(&mut self, inst: Inst) {
        let start = self.all.roots.len();
        for (i, &word) in self.live.iter().enumerate() {
            let mut rest = word;
            while rest != 0 {
                let number = i * 64 + rest.trailing_zeros() as usize;
                rest &= rest - 1;
                self.all.roots.push(Root::Slot(self.slots.slots[number]));
            }
        }
        self.all.roots.extend(self.operands.iter().map(|&value| Root::Operand(value)));
        let roots = start..self.all.roots.len();
        if !roots.is_empty() {
            self.all.safepoints.push(Safepoint { inst, roots });
        }
    }

    fn used(&mut self, value: Value) {
        if self.f.value_type(value) == ValType::Ref && !self.places.contains_key(&value) {
            self.places.insert(value, self.operands.len());
            self.operands.push(value);
        }
    }

    fn defined(&mut self, value: Value) {
        if let Some(place) = self.places.remove(&value) {
            self.operands.swap_remove(place);
            if let Some(moved) = self.operands.get(place) {
                self.places.insert(*moved, place);
            }
        }
    }
}
