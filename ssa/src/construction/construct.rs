//! SSA construction for any representation: reads and writes of slots in, phis and values out.
//!
//! A compiler with an IR of its own describes a function as a [`SlotProgram`]: its control-flow graph,
//! with arbitrary block numbers, and for each block the reads and writes of slots in order. Values are
//! the compiler's numbers. [`construct`] returns an [`SsaForm`]: the phis to insert, with an operand for
//! each in-edge, and the value to use in place of each read. Then the reads and writes can be removed.
//! This is what [`crate::construction::promote`] does to the IR of this crate, with the same code inside.
//!
//! A [`Construction`] determines where phis stand. All give each read the same value along each path;
//! they differ in the number of phis.
//!
//! Special cases of graphs:
//! * Unreachable blocks are dropped: their writes do not count. Their reads return [`UNDEF`], which
//!   is also the phi operand on edges from them.
//! * The entry may have predecessors. It is split for the construction: an empty block goes before it,
//!   as LLVM requires of all functions. So the entry may have phis; the value on function entry is one
//!   more operand, after those of the in-edges.
//! * Each of several equal edges has an operand.
//!
//! # Example
//!
//! `x = 0; while … { x = x + 1 } return x`, where the constant, the sum and the results of the two reads
//! are the compiler's values:
//!
//! ```
//! use slotvm_ssa::graphs::cfg::Cfg;
//! use slotvm_ssa::construction::construct::{Access, ConstructOptions, Scratch, SlotProgram, TooLarge, construct};
//!
//! let cfg = Cfg::new(0, [vec![1], vec![2, 3], vec![1], vec![]]);
//! let [zero, sum, in_body, at_end] = [0, 1, 2, 3];
//! let accesses = [
//!     vec![Access::Write { slot: 0, value: zero }],
//!     vec![],
//!     vec![Access::Read { slot: 0, value: in_body }, Access::Write { slot: 0, value: sum }],
//!     vec![Access::Read { slot: 0, value: at_end }],
//! ];
//! let program = SlotProgram::new(cfg, 1, 4, accesses);
//! let form = construct(&program, &ConstructOptions::default(), &mut Scratch::default())?;
//!
//! let phi = form.phis()[0];
//! assert_eq!((phi.block, phi.slot), (1, 0));
//! assert!(form.operands(0).eq([zero, sum]));
//! assert_eq!([in_body, at_end].map(|read| form.value(read)), [phi.value; 2]);
//! # Ok::<(), TooLarge>(())
//! ```

use bumpalo::Bump;

use crate::construction::accesses::AccessLog;
use crate::construction::braun::BraunReport;
use crate::construction::on_the_fly::OnTheFly;
pub use crate::construction::options::{
    CONSTRUCTED_PHI_OPERANDS_MAX, ConstructOptions, Construction, SlotCounts, SlotPath, TooLarge,
    UNDEF, Undef,
};
pub use crate::construction::rename::Renaming;
use crate::construction::rename::{PhiOperands, Phis, Renamer};
use crate::construction::sites::{Graph, Limits, SiteFinder};
use crate::graphs::cfg::{Cfg, ControlFlow};
use crate::graphs::dominators::{DomScratch, DomTree};
pub use crate::graphs::idf::Placement;
use crate::graphs::ids::Slot;

/// A read or write of a slot. Values are the caller's.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// A read of a slot, which defines a value.
    Read {
        /// The slot.
        slot: u32,
        /// The value that it defines; no other read defines it.
        value: u32,
    },
    /// A write of a value to a slot.
    Write {
        /// The slot.
        slot: u32,
        /// The value. If a read defines it, that read must be earlier in the block or in a block that
        /// dominates it.
        value: u32,
    },
}

/// A function as construction sees it: a graph, and the accesses of each block.
#[derive(Clone, Debug)]
pub struct SlotProgram<G = Cfg> {
    cfg: G,
    n_slots: u32,
    n_values: u32,
    /// The start of the accesses of each block; one more entry than blocks.
    starts: Vec<u32>,
    accesses: Vec<Access>,
}

impl<G: ControlFlow> SlotProgram<G> {
    /// Makes a function with this graph and these accesses, a list for each block in the order of block
    /// numbers. Slots and values are numbered below `n_slots` and `n_values`.
    ///
    /// # Panics
    /// Panics if there is not one list for each block, or a slot or value is out of range.
    pub fn new<L>(
        cfg: G,
        n_slots: u32,
        n_values: u32,
        accesses: impl IntoIterator<Item = L>,
    ) -> SlotProgram<G>
    where
        L: IntoIterator<Item = Access>,
    {
        let mut program = SlotProgram { cfg, n_slots, n_values, starts: vec![0], accesses: vec![] };
        for list in accesses {
            program.accesses.extend(list);
            program.starts.push(program.accesses.len() as u32);
        }
        assert_eq!(program.starts.len(), program.cfg.n_blocks() + 1, "each block has a list");
        for &(Access::Read { slot, value } | Access::Write { slot, value }) in &program.accesses {
            assert!(slot < n_slots, "slot {slot} of {n_slots}");
            assert!(value < n_values, "value {value} of {n_values}");
        }
        program
    }

    /// The graph.
    pub fn cfg(&self) -> &G {
        &self.cfg
    }

    /// The number of slots.
    pub fn n_slots(&self) -> u32 {
        self.n_slots
    }

    /// The number of values; those of phis are numbered from here.
    pub fn n_values(&self) -> u32 {
        self.n_values
    }

    /// The number of accesses in all blocks.
    pub fn n_accesses(&self) -> usize {
        self.accesses.len()
    }

    /// The accesses of a block, in order.
    pub fn accesses(&self, block: u32) -> &[Access] {
        let block = block as usize;
        &self.accesses[self.starts[block] as usize..self.starts[block + 1] as usize]
    }
}

/// A phi to insert at the start of a block.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Phi {
    /// The block.
    pub block: u32,
    /// The slot whose values meet.
    pub slot: u32,
    /// The value that the phi defines.
    pub value: u32,
}

/// The result of a construction.
#[derive(Clone, Debug, Default)]
pub struct SsaForm {
    phis: Vec<Phi>,
    /// The place of the operands of each phi.
    rows: Vec<Row>,
    operands: Vec<u32>,
    /// The value to use in place of each value of the caller.
    replacements: Vec<u32>,
    counts: SlotCounts,
    braun: Option<BraunReport>,
}

/// The operands of a phi: their number, and the distance from each to the next.
#[derive(Copy, Clone, Debug)]
struct Row {
    first: usize,
    stride: u32,
    n: u32,
}

impl SsaForm {
    /// The phis. Blocks are in preorder of the dominator tree, the phis of a block in the order of
    /// slots. Their values are numbered in this order, from the number of the program's values.
    pub fn phis(&self) -> &[Phi] {
        &self.phis
    }

    /// The operands of a phi, by its place in [`phis`](SsaForm::phis): one for each predecessor in the
    /// order of the graph's list; for a phi of the entry one more, the value on function entry.
    pub fn operands(&self, phi: usize) -> impl ExactSizeIterator<Item = u32> {
        let Row { first, stride, n } = self.rows[phi];
        (0..n as usize).map(move |i| self.operands[first + i * stride as usize])
    }

    /// The number of operands of all phis.
    pub fn n_operands(&self) -> usize {
        self.operands.len()
    }

    /// The value to use in place of a value of the program: for the value of a read, the value that the
    /// slot holds there; for any other, itself.
    pub fn value(&self, value: u32) -> u32 {
        self.replacements[value as usize]
    }

    /// The number of slots on each path.
    pub fn counts(&self) -> SlotCounts {
        self.counts
    }

    /// Counts of the phis, if they were made on the fly.
    pub fn braun(&self) -> Option<BraunReport> {
        self.braun
    }
}

/// Memory of the construction, to be reused from function to function.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Arena for tables of one function whose length is known when they are made.
    arena: Bump,
    dominators: DomScratch,
    /// The dominator tree of the caller's graph.
    outer: DomTree,
    /// The graph renumbered by it, without unreachable blocks and with an entry that has no
    /// predecessors; and its tree.
    cfg: Cfg,
    tree: DomTree,
    log: AccessLog,
    finder: SiteFinder,
    renamer: Renamer,
    on_the_fly: OnTheFly,
}

/// Finds phis and values.
///
/// Linear in the size of the program and of the result except for phi placement, which [`crate::graphs::place`]
/// describes.
///
/// # Errors
/// Fails if a limit of [`TooLarge`] would be exceeded, or there would be 2³² values.
///
/// # Panics
/// Panics if the list of initial values is not as long as the program has slots, or holds others than the
/// program's values.
pub fn construct<G: ControlFlow>(
    program: &SlotProgram<G>,
    options: &ConstructOptions<'_>,
    scratch: &mut Scratch,
) -> Result<SsaForm, TooLarge> {
    if let Undef::Initial(values) = options.undef {
        assert_eq!(values.len(), program.n_slots as usize, "each slot has an initial value");
        assert!(values.iter().all(|&value| value < program.n_values), "initial values are values");
    }
    let mut arena = std::mem::take(&mut scratch.arena);
    let form = construct_in(program, options, scratch, &arena);
    arena.reset();
    scratch.arena = arena;
    form
}

fn construct_in<G: ControlFlow>(
    program: &SlotProgram<G>,
    options: &ConstructOptions<'_>,
    scratch: &mut Scratch,
    arena: &Bump,
) -> Result<SsaForm, TooLarge> {
    let Scratch { dominators, outer, cfg, tree, log, finder, renamer, on_the_fly, .. } = scratch;
    outer.compute(&program.cfg, dominators);
    let blocks = Renumbering::new(&program.cfg, outer);
    blocks.rebuild(&program.cfg, cfg);
    scan(program, &blocks, log);
    let initial = |slot: Slot| match options.undef {
        Undef::Undefined => UNDEF,
        Undef::Initial(values) => values[slot.index()],
    };
    renamer.start(program.n_slots as usize);
    finder.sort_out(options.construction, options.placement, log, renamer, initial);
    let most_phis = (UNDEF - program.n_values) as usize;
    let phi_operands_max = options.phi_operands_max.min(most_phis);
    let mut form = SsaForm::default();
    if let Construction::Braun(braun) = options.construction {
        form.braun = Some(on_the_fly.construct(cfg, log, braun, phi_operands_max, initial)?);
        finder.take_over(&on_the_fly.sites);
    } else {
        tree.compute_numbered(cfg, dominators);
        let limits = Limits { live_words_max: usize::MAX, phi_operands_max };
        let graph = Graph { cfg, tree, arena, limits };
        finder.place(graph, log, renamer, initial, &mut ())?;
    }
    form.counts = finder.counts;

    let phis = Phis::sort(arena, cfg.n_blocks(), &finder.sites, program.n_values);
    let mut operands = OutEdges::new(arena, &program.cfg, &blocks, &phis, &mut form);
    match options.construction {
        Construction::Braun(_) => on_the_fly.fill(log, &phis, &mut operands),
        _ => {
            let ends = tree.ends_by_number();
            renamer.run(options.renaming, ends, log, &phis, &mut operands, &mut ());
        }
    }
    form.settle_reads(program, &blocks, &log.replacements);
    Ok(form)
}

/// The internal numbering of blocks: in preorder of the dominator tree, reachable ones only, after an
/// empty block if the entry has predecessors.
struct Renumbering<'a> {
    tree: &'a DomTree,
    /// 1 if the empty block exists, otherwise 0.
    n_before: u32,
}

impl<'a> Renumbering<'a> {
    fn new(cfg: &impl ControlFlow, tree: &'a DomTree) -> Renumbering<'a> {
        let is_reachable = |&pred: &u32| tree.number(pred).is_some();
        let is_split = cfg.preds(cfg.entry()).iter().any(is_reachable);
        Renumbering { tree, n_before: u32::from(is_split) }
    }

    fn n_blocks(&self) -> u32 {
        self.tree.n_reachable() as u32 + self.n_before
    }

    /// The internal number of a block of the caller; `None` if it is unreachable.
    fn inside(&self, block: u32) -> Option<u32> {
        Some(self.tree.number(block)? + self.n_before)
    }

    /// The caller's block with this internal number; `None` for the empty one.
    fn outside(&self, block: u32) -> Option<u32> {
        let number = block.checked_sub(self.n_before)?;
        Some(self.tree.preorder()[number as usize])
    }

    /// Makes the internal graph.
    fn rebuild(&self, cfg: &impl ControlFlow, inside: &mut Cfg) {
        let succs = |block| {
            let outside = self.outside(block);
            let to_entry = outside.is_none().then_some(1);
            let succs = outside.map_or(&[][..], |outside| cfg.succs(outside));
            to_entry.into_iter().chain(succs.iter().filter_map(|&succ| self.inside(succ)))
        };
        inside.rebuild(0, (0..self.n_blocks()).map(succs));
    }
}

/// Scans the accesses of all blocks that are reachable.
fn scan<G: ControlFlow>(program: &SlotProgram<G>, blocks: &Renumbering<'_>, log: &mut AccessLog) {
    log.start(program.n_slots as usize, program.n_values as usize);
    for block in 0..blocks.n_blocks() {
        log.start_block();
        let accesses = blocks.outside(block).map_or(&[][..], |block| program.accesses(block));
        for &access in accesses {
            match access {
                Access::Read { slot, value } => log.read(Slot(slot), value, &mut ()),
                Access::Write { slot, value } => log.write(Slot(slot), value),
            }
        }
    }
    log.finish();
}

/// The edges that lead to phis, by the block that they leave, and the operands on them.
struct OutEdges<'a> {
    phis: &'a Phis<'a>,
    /// The start of the edges of each block; one more entry than blocks.
    starts: &'a [u32],
    /// The target of each edge, and the start of its operands for the target's phis.
    edges: &'a [(u32, usize)],
    operands: &'a mut [u32],
}

impl<'a> OutEdges<'a> {
    /// Makes a form's phis, with room for their operands: for each in-edge of a block one of each phi.
    fn new(
        arena: &'a Bump,
        outer: &impl ControlFlow,
        blocks: &Renumbering<'_>,
        phis: &'a Phis<'a>,
        form: &'a mut SsaForm,
    ) -> OutEdges<'a> {
        let joins = || (1..blocks.n_blocks()).filter(|&block| !phis.slots(block).is_empty());
        // The internal sources of the in-edges, in the order of the operands.
        let sources = |block| {
            let block = blocks.outside(block).expect("the empty block has no phis");
            let enters = (block == outer.entry()).then_some(Some(0));
            outer.preds(block).iter().map(|&pred| blocks.inside(pred)).chain(enters)
        };
        let starts = arena.alloc_slice_fill_copy(blocks.n_blocks() as usize + 1, 0);
        let mut value = phis.first_value();
        let mut n_operands = 0;
        for block in joins() {
            let slots = phis.slots(block);
            let mut n = 0;
            for source in sources(block) {
                n += 1;
                if let Some(source) = source {
                    starts[source as usize] += 1;
                }
            }
            for (i, &slot) in slots.iter().enumerate() {
                let outside = blocks.outside(block).expect("the empty block has no phis");
                form.phis.push(Phi { block: outside, slot: slot.0, value });
                form.rows.push(Row { first: n_operands + i, stride: slots.len() as u32, n });
                value += 1;
            }
            n_operands += n as usize * slots.len();
        }
        form.operands.resize(n_operands, UNDEF);

        let mut end = 0;
        for start in &mut *starts {
            end += *start;
            *start = end;
        }
        let edges = arena.alloc_slice_fill_copy(end as usize, (0, 0));
        let mut first = 0;
        for block in joins() {
            for source in sources(block) {
                if let Some(source) = source {
                    let start = &mut starts[source as usize];
                    *start -= 1;
                    edges[*start as usize] = (block, first);
                }
                first += phis.slots(block).len();
            }
        }
        OutEdges { phis, starts, edges, operands: &mut form.operands }
    }
}

impl PhiOperands for OutEdges<'_> {
    fn fill(&mut self, block: u32, mut value: impl FnMut(u32, Slot) -> u32) {
        let start = self.starts[block as usize] as usize;
        let end = self.starts[block as usize + 1] as usize;
        for &(target, first) in &self.edges[start..end] {
            for (operand, &slot) in self.operands[first..].iter_mut().zip(self.phis.slots(target)) {
                *operand = value(target, slot);
            }
        }
    }
}

impl SsaForm {
    /// Takes over the values that renaming found for the reads.
    fn settle_reads<G: ControlFlow>(
        &mut self,
        program: &SlotProgram<G>,
        blocks: &Renumbering<'_>,
        replacements: &[u32],
    ) {
        // A read that its block settles may have been settled as the value of one that it does not.
        let settled = |&value: &u32| *replacements.get(value as usize).unwrap_or(&value);
        self.replacements.extend(replacements.iter().map(settled));
        let n_blocks = program.cfg.n_blocks() as u32;
        for block in (0..n_blocks).filter(|&block| blocks.inside(block).is_none()) {
            for access in program.accesses(block) {
                if let Access::Read { value, .. } = *access {
                    self.replacements[value as usize] = UNDEF;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod worked_examples;
