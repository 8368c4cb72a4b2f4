//! Promotion: from slot form to SSA form.
//!
//! Every slot becomes values, unless it is marked to stay ([`SlotData::kept`](crate::ir::SlotData::kept)): phis are placed where different writes meet (as block parameters), each
//! `slot.get` is replaced by the value that reaches it, and all `slot.get` and `slot.set` are removed.
//! [`PromoteOptions`] choose the set of phis. By default the result is *pruned* and *minimal* SSA, as
//! LLVM's `mem2reg` makes it: a block has a phi of a slot exactly if it lies in the iterated dominance
//! frontier of the slot's writing blocks and the slot is live there. A slot that is read before it is
//! written reads as zero or null; there is one constant for each type that needs one, at the start of
//! the entry block.
//!
//! Which locals have slots is decided before: one whose address is used for more than plain accesses
//! lives in linear memory. [`report`] explains why a local was not promoted.
//!
//! Steps:
//! 1. One scan takes the slot instructions out of the layout and logs their accesses
//!    (`accesses`). It settles all accesses that depend on their block alone.
//! 2. Most slots need no phi, and the scan alone shows that (`Reach`). The dominator tree is made only
//!    if some may need one (`sites`).
//! 3. Phis of the others are placed, 64 slots at a time ([`crate::graphs::place`]).
//! 4. Renaming finds the value of each logged read and of each phi operand (`rename`).
//! 5. Operands are rewritten in one pass over their pool.
//!
//! A function of n blocks with n slots that are live in all of them costs n² / 64 words of liveness, and
//! may need n² phis. [`LIVE_WORDS_MAX`] and [`PromoteOptions::phi_operands_max`] limit both; a
//! function beyond them stays in slot form.
//!
//! It relies on the numbering of blocks that [`crate::ir`] promises. Block parameters that are there
//! already stay, before the new ones. The removed instructions keep their ids, which then occur in no
//! block; so do the results of the removed `slot.get`s, which then occur nowhere.

use bumpalo::Bump;
use slotvm_bytecode::ValType;

use crate::construction::accesses::AccessLog;
use crate::construction::construct::{Construction, Placement, Renaming, SlotCounts, TooLarge};
use crate::construction::observe::Observer;
use crate::construction::on_the_fly::OnTheFly;
use crate::construction::rename::{PhiOperands, Phis, Renamer};
use crate::construction::sites::{Graph, Limits, SiteFinder};
use crate::graphs::cfg::Cfg;
use crate::graphs::dominators::{DomScratch, DomTree};
use crate::graphs::place::PhiPlacer;
use crate::ir::Function;
use crate::ir::entity::{Inst, Loc, Slot, Value};
use crate::ir::fold;
use crate::ir::irop::{IrOp, Opcode};

/// The maximum number of words of liveness in a promotion: blocks, times the slots that may need phis in
/// groups of 64. Looking at so many takes less than a second.
pub const LIVE_WORDS_MAX: usize = 1 << 24;
/// The default maximum number of operands of all phis of a function. Large
/// functions of real programs have less than a hundredth; each operand takes a register allocator about
/// a microsecond and 100 bytes.
pub const PHI_OPERANDS_MAX: usize = 1 << 22;

/// Options of a promotion.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct PromoteOptions {
    /// The placement of phis.
    pub construction: Construction,
    /// The way to find their places. The result does not depend on it. [`Placement::Auto`] is
    /// [`Placement::Words`] here, since the scan has the accesses in groups of 64 slots anyway.
    pub placement: Placement,
    /// The way to keep the values that reach a block. The result does not depend on it.
    pub renaming: Renaming,
    /// The maximum number of operands of all phis. A function that needs more stays in slot form.
    pub phi_operands_max: usize,
}

impl Default for PromoteOptions {
    fn default() -> PromoteOptions {
        PromoteOptions {
            construction: Construction::default(),
            placement: Placement::default(),
            renaming: Renaming::default(),
            phi_operands_max: PHI_OPERANDS_MAX,
        }
    }
}

/// Counts and decisions of a promotion.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct PromotionReport {
    /// The limit that promotion would exceed, so that the function was left in slot form. All numbers
    /// except that of the slots are then zero.
    pub too_large: Option<TooLarge>,
    /// The function's slots.
    pub n_slots: usize,
    /// The slots that stay in memory because registers are short: [`mod@crate::passes::pressure`].
    pub n_kept: usize,
    /// The number of slots on each path.
    pub counts: SlotCounts,
    /// The phis placed.
    pub n_phis: usize,
    /// The `slot.get` instructions removed.
    pub n_gets: usize,
    /// The `slot.set` instructions removed.
    pub n_sets: usize,
}

/// Memory of the promotion, to be reused from function to function.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Arena for tables of one function whose length is known when they are made.
    arena: Bump,
    log: AccessLog,
    cfg: Cfg,
    tree: DomTree,
    dominators: DomScratch,
    finder: SiteFinder,
    renamer: Renamer,
    on_the_fly: OnTheFly,
}

/// Turns all slots of a function into values, in pruned form, unless the report says that it is too
/// large.
pub fn promote(func: &mut Function, scratch: &mut Scratch) -> PromotionReport {
    promote_with(func, PromoteOptions::default(), scratch)
}

/// Turns all slots of a function into values, unless the report says that it is too large.
pub fn promote_with(
    func: &mut Function,
    options: PromoteOptions,
    scratch: &mut Scratch,
) -> PromotionReport {
    promote_observed(func, options, scratch, &mut ())
}

/// Does the same as [`promote_with`] while an observer sees the steps. Constructions on the fly report none but those
/// of the scan.
pub fn promote_observed(
    func: &mut Function,
    options: PromoteOptions,
    scratch: &mut Scratch,
    observer: &mut impl Observer,
) -> PromotionReport {
    let n_slots = func.slots.len();
    let n_kept = func.slots.iter().filter(|slot| slot.kept.is_some()).count();
    let mut report = PromotionReport { n_slots, n_kept, ..PromotionReport::default() };
    if n_slots == n_kept {
        return report;
    }
    // What may turn out to be too large is restored from a copy.
    let may_be_too_large =
        matches!(options.construction, Construction::Braun(_)) || may_be_too_large(func, options);
    let copy = may_be_too_large.then(|| (func.layout.clone(), func.blocks.clone()));
    // Outside of the scratch memory, so that tables can be made while the rest of it changes.
    let mut arena = std::mem::take(&mut scratch.arena);
    if let Err(too_large) = promote_in(func, options, scratch, &arena, &mut report, observer) {
        (func.layout, func.blocks) = copy.expect("only large functions are too large");
        let too_large = Some(too_large);
        report = PromotionReport { too_large, n_slots, ..PromotionReport::default() };
    }
    arena.reset();
    scratch.arena = arena;
    report
}

/// Whether a function can exceed a limit at all, by its size alone.
fn may_be_too_large(func: &Function, options: PromoteOptions) -> bool {
    let n_slots = func.slots.len();
    live_words(func, n_slots) > LIVE_WORDS_MAX
        || n_slots.saturating_mul(func.n_edges()) > options.phi_operands_max
}

fn live_words(func: &Function, n_slots: usize) -> usize {
    n_slots.div_ceil(PhiPlacer::GROUP_SLOTS_MAX).saturating_mul(func.n_blocks())
}

fn promote_in(
    func: &mut Function,
    options: PromoteOptions,
    scratch: &mut Scratch,
    arena: &Bump,
    report: &mut PromotionReport,
    observer: &mut impl Observer,
) -> Result<(), TooLarge> {
    let limits =
        Limits { live_words_max: LIVE_WORDS_MAX, phi_operands_max: options.phi_operands_max };
    let entry_loc = func.loc(func.insts(Function::ENTRY)[0]);
    let named_writes = func.names.is_some().then(|| writes(func));
    let n_removed = take_out_accesses(func, &mut scratch.log, observer);
    report.n_gets = scratch.log.n_reads();
    report.n_sets = n_removed - report.n_gets;

    let Scratch { log, cfg, tree, dominators, finder, renamer, on_the_fly, .. } = scratch;
    renamer.start(func.slots.len());
    let mut zeros = Zeros::new(func.layout.len(), entry_loc);
    let initial = |slot| zeros.of_slot(func, slot);
    let needs_graph =
        finder.sort_out(options.construction, options.placement, log, renamer, initial);
    if needs_graph {
        load_graph(func, cfg);
        let initial = |slot| zeros.of_slot(func, slot);
        if let Construction::Braun(braun) = options.construction {
            on_the_fly.construct(cfg, log, braun, limits.phi_operands_max, initial)?;
            finder.take_over(&on_the_fly.sites);
        } else {
            tree.compute_numbered(cfg, dominators);
            let graph = Graph { cfg, tree, arena, limits };
            finder.place(graph, log, renamer, initial, observer)?;
        }
    }
    report.counts = finder.counts;
    report.n_phis = finder.sites.len();

    let phis = Phis::sort(arena, func.n_blocks(), &finder.sites, func.n_values() as u32);
    make_params(func, arena, &phis);
    let mut edge_args = EdgeArgs { func, phis: &phis };
    if let Construction::Braun(_) = options.construction {
        on_the_fly.fill(log, &phis, &mut edge_args);
    } else {
        let ends = if needs_graph { tree.ends_by_number() } else { &[] };
        renamer.run(options.renaming, ends, log, &phis, &mut edge_args, observer);
    }
    rewrite_operands(func, &mut log.replacements, &phis);
    zeros.insert(func);
    if let Some(writes) = named_writes {
        name_values(func, &phis, &writes);
    }
    Ok(())
}

/// The instructions that write slots.
fn writes(func: &Function) -> Vec<Inst> {
    let is_write = |&inst: &Inst| func.opcode(inst) == Opcode::Ir(IrOp::SlotSet);
    func.layout.iter().copied().filter(is_write).collect()
}

/// Names phis after their slots, then the values of these writes. Those that were removed still have their operands.
fn name_values(func: &mut Function, phis: &Phis<'_>, writes: &[Inst]) {
    let Some(mut names) = func.names.take() else { return };
    for block in func.blocks() {
        let slots = phis.slots(block.0);
        let params = func.params(block);
        for (&phi, &slot) in params[params.len() - slots.len()..].iter().zip(slots) {
            names.name_after_slot(phi, slot);
        }
    }
    for &inst in writes {
        names.name_after_slot(func.operands(inst)[0], Slot(func.imm(inst).low()));
    }
    func.names = Some(names);
}

/// Scans the function, and removes the slot instructions from its blocks. Returns their number.
fn take_out_accesses(
    func: &mut Function,
    log: &mut AccessLog,
    observer: &mut impl Observer,
) -> usize {
    log.start(func.slots.len(), func.n_values());
    let Function { slots, layout, blocks, ops, imms, operands, operand_pool, results, .. } = func;
    let is_kept = |slot: u32| slots[slot as usize].kept.is_some();
    let mut kept = 0;
    for block in blocks {
        log.start_block();
        let (start, end) = block.insts;
        block.insts.0 = kept as u32;
        for i in start as usize..end as usize {
            let inst = layout[i];
            match ops[inst.index()] {
                Opcode::Ir(IrOp::SlotGet) if !is_kept(imms[inst.index()].low()) => {
                    let slot = Slot(imms[inst.index()].low());
                    log.read(slot, results[inst.index()].0.0, observer);
                }
                Opcode::Ir(IrOp::SlotSet) if !is_kept(imms[inst.index()].low()) => {
                    let (operand, _) = operands[inst.index()];
                    log.write(Slot(imms[inst.index()].low()), operand_pool[operand as usize].0);
                }
                _ => {
                    layout[kept] = inst;
                    kept += 1;
                }
            }
        }
        block.insts.1 = kept as u32;
    }
    log.finish();
    let n_removed = layout.len() - kept;
    layout.truncate(kept);
    n_removed
}

/// Makes the phis' values, appends them to the block parameters, and makes room for their operands.
fn make_params(func: &mut Function, arena: &Bump, phis: &Phis<'_>) {
    if phis.all().is_empty() {
        return;
    }
    let Function { slots, blocks, block_params, edges, edge_args, value_types, .. } = func;
    let mut phi_value = value_types.len() as u32;
    value_types.extend(phis.all().iter().map(|&slot| slots[slot.index()].ty));

    let old_params = arena.alloc_slice_copy(block_params);
    block_params.clear();
    for (i, block) in blocks.iter_mut().enumerate() {
        let (old_start, old_end) = block.params;
        let n_phis = phis.slots(i as u32).len() as u32;
        let start = block_params.len() as u32;
        block_params.extend_from_slice(&old_params[old_start as usize..old_end as usize]);
        block_params.extend((phi_value..phi_value + n_phis).map(Value));
        block.params = (start, block_params.len() as u32);
        phi_value += n_phis;
    }

    let old_args = arena.alloc_slice_copy(edge_args);
    edge_args.clear();
    for edge in edges {
        let (start, end) = blocks[edge.dst.index()].params;
        let n_phis = phis.slots(edge.dst.0).len();
        let n_old = (end - start) as usize - n_phis;
        let old = edge.args as usize;
        edge.args = edge_args.len() as u32;
        edge_args.extend_from_slice(&old_args[old..old + n_old]);
        edge_args.resize(edge_args.len() + n_phis, Value(u32::MAX));
    }
}

/// The operands that edges carry for the new phis, which come after those for older parameters.
struct EdgeArgs<'f> {
    func: &'f mut Function,
    phis: &'f Phis<'f>,
}

impl PhiOperands for EdgeArgs<'_> {
    #[inline]
    fn fill(&mut self, block: u32, mut value: impl FnMut(u32, Slot) -> u32) {
        if self.phis.all().is_empty() {
            return;
        }
        let func = &mut *self.func;
        let first = func.blocks[block as usize].first_edge as usize;
        let end =
            func.blocks.get(block as usize + 1).map_or(func.edges.len(), |b| b.first_edge as usize);
        for edge in &func.edges[first..end] {
            let slots = self.phis.slots(edge.dst.0);
            let (start, end) = func.blocks[edge.dst.index()].params;
            let args_end = (edge.args + end - start) as usize;
            for (arg, &slot) in
                func.edge_args[args_end - slots.len()..args_end].iter_mut().zip(slots)
            {
                *arg = Value(value(edge.dst.0, slot));
            }
        }
    }
}

/// Replaces the results of reads by the values that the slots hold there.
fn rewrite_operands(func: &mut Function, replacements: &mut Vec<u32>, phis: &Phis<'_>) {
    // The new values stand for themselves.
    replacements.extend(replacements.len() as u32..func.n_values() as u32);
    // A read that its block settles may have been settled as the value of one that it does not.
    let replace = |value: &mut Value| {
        let settled = replacements[value.index()];
        *value = Value(replacements[settled as usize]);
    };
    func.operand_pool.iter_mut().for_each(replace);
    // The operands of the new phis are already right.
    let n_others = func.block_params.len() - phis.all().len();
    if n_others > func.params(Function::ENTRY).len() {
        for edge in &func.edges {
            let (start, end) = func.blocks[edge.dst.index()].params;
            let n_old = (end - start) as usize - phis.slots(edge.dst.0).len();
            let args = edge.args as usize;
            func.edge_args[args..args + n_old].iter_mut().for_each(replace);
        }
    }
}

/// Makes the function's graph.
fn load_graph(func: &Function, cfg: &mut Cfg) {
    cfg.rebuild_from_rows(
        func.blocks.iter().map(|block| block.first_edge),
        func.edges.iter().map(|edge| edge.dst.0),
        &func.pred_starts,
        func.pred_edges.iter().map(|&edge| func.edges[edge.index()].src.0),
    );
}

/// The zero constants, one for each type that needs one.
struct Zeros {
    values: [Option<Value>; ValType::ALL.len()],
    /// The length of the layout without them; they are appended to it.
    n_insts: usize,
    loc: Loc,
}

impl Zeros {
    fn new(n_insts: usize, loc: Loc) -> Zeros {
        Zeros { values: [None; ValType::ALL.len()], n_insts, loc }
    }

    /// The zero of a slot's type.
    fn of_slot(&mut self, func: &mut Function, slot: Slot) -> u32 {
        let ty = func.slots[slot.index()].ty;
        let value = *self.values[ty.index()].get_or_insert_with(|| {
            let (op, imm) = fold::constant(func, ty, 0);
            let inst = func.make_inst(Opcode::Op(op), imm, &[], &[ty], self.loc);
            func.layout.push(inst);
            func.result(inst)
        });
        value.0
    }

    /// Moves the constants from the end of the layout to the start of the entry block.
    fn insert(self, func: &mut Function) {
        let n_zeros = func.layout.len() - self.n_insts;
        if n_zeros == 0 {
            return;
        }
        func.layout.rotate_right(n_zeros);
        for block in &mut func.blocks {
            block.insts.0 += n_zeros as u32;
            block.insts.1 += n_zeros as u32;
        }
        func.blocks[0].insts.0 = 0;
    }
}

pub mod report;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod worked_examples;
