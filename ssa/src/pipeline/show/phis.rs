//! The placement of phis as text: for each slot the blocks with a phi and the reason, and the joins without one.
//!
//! A block has a phi of a slot if it lies in the iterated dominance frontier of the blocks that write it (Cytron et al.
//! 1991) and the slot is live there (Choi et al. 1991). The places are those of [promotion](promote); the sets that the
//! reasons name come from the graph algorithms on their own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use slotvm_bytecode::VerifiedModule;
use slotvm_bytecode::printable::counted;

use super::ShowError;
use super::graphs::{accesses, check_items, frontiers};
use crate::construction::promote::report::{self, Fate, LocalReport};
use crate::construction::promote::{Scratch, promote};
use crate::graphs::cfg::ControlFlow;
use crate::graphs::dominators::DomTree;
use crate::graphs::frontier::Frontiers;
use crate::graphs::idf::{Placement, Pruning, SitePlacer};
use crate::graphs::ids::Slot;
use crate::graphs::slot_blocks::SlotBlocks;
use crate::ir::Function;
use crate::ir::analyses::Analyses;
use crate::ir::entity::Block;
use crate::ir::graph::{control_flow, list, origin, title};
use crate::passes::pressure::{PreservedRegisters, pressure};

/// Prints where promotion places phis in a function in slot form, and why.
pub(super) fn print_phis(f: &Function, module: &VerifiedModule) -> Result<String, ShowError> {
    let explained = Explained::new(f, module)?;
    let mut out = title(f);
    let n_phis = counted(explained.placed.len() as u64, "phi", "phis");
    writeln!(out, "  ; {n_phis}").expect(INFALLIBLE);
    let mut n_reasons = 0;
    for local in &explained.locals {
        match (local.slot, local.fate) {
            (Some(slot), Fate::Promoted(path)) => {
                n_reasons += explained.write_slot(&mut out, local, slot, path.message());
                check_items("reasons of phis", n_reasons)?;
            }
            (_, fate) => {
                writeln!(out, "  {}  {fate}", explained.text_of(local)).expect(INFALLIBLE);
            }
        }
    }
    Ok(out)
}

/// A promotion, and the sets that explain it.
struct Explained<'m> {
    f: Function,
    module: &'m VerifiedModule,
    texts: Vec<String>,
    accesses: SlotBlocks,
    frontiers: Frontiers,
    /// The blocks with more than one in-edge.
    joins: Vec<u32>,
    /// The iterated frontier of the writes of each slot: slot and block.
    iterated: BTreeSet<(Slot, u32)>,
    /// The phis of each slot: slot and block.
    placed: BTreeSet<(Slot, u32)>,
    locals: Vec<LocalReport>,
}

impl<'m> Explained<'m> {
    fn new(f: &Function, module: &'m VerifiedModule) -> Result<Explained<'m>, ShowError> {
        let cfg = control_flow(f);
        let tree = DomTree::semi_nca(&cfg);
        let joins = (0..cfg.n_blocks() as u32).filter(|&block| cfg.preds(block).len() > 1);
        let joins: Vec<u32> = joins.collect();
        // One line says of each join and slot whether there is a phi.
        check_items("joins of slots", joins.len().saturating_mul(f.slots.len()))?;
        let frontiers = frontiers(&cfg, &tree)?;
        let accesses = accesses(f);
        let mut placer = SitePlacer::default();
        placer
            .place(&cfg, &tree, &accesses, Pruning::None, Placement::Auto)
            .map_err(|_| ShowError::TooLong { items: "blocks in dominance frontiers" })?;
        let by_slot = |sites: &[(u32, Slot)]| sites.iter().map(|&(b, slot)| (slot, b)).collect();
        let (mut promoted, mut scratch) = (f.clone(), Scratch::default());
        pressure(&mut promoted, module, PreservedRegisters::default(), &mut Analyses::default());
        let report = promote(&mut promoted, &mut scratch);
        let mut locals = report::slots(&promoted, &report, &scratch);
        locals.extend(report::escaping(&promoted, module));
        Ok(Explained {
            texts: f.slot_texts(),
            iterated: by_slot(placer.sites()),
            placed: by_slot(report::phis(&report, &scratch)),
            f: promoted,
            module,
            accesses,
            frontiers,
            joins,
            locals,
        })
    }

    fn text_of(&self, local: &LocalReport) -> String {
        report::text_of(&self.f, &self.texts, self.module, local)
    }

    /// Writes a slot: its accesses, its phis, and the joins without one. Returns the number of reasons.
    fn write_slot(&self, out: &mut String, local: &LocalReport, slot: Slot, path: &str) -> usize {
        let blocks = |blocks: &BTreeSet<u32>| list(blocks.iter().copied().map(Block));
        let writes = self.accesses.writes(slot).iter().copied().collect();
        let reads = self.accesses.reads(slot).iter().copied().collect();
        let text = self.text_of(local);
        writeln!(
            out,
            "  {text}  written in {}, read in {}; {path}",
            blocks(&writes),
            blocks(&reads)
        )
        .expect(INFALLIBLE);
        let reasons = self.reasons(slot, &writes);
        for (&block, sources) in &reasons {
            let (what, live) = match self.placed.contains(&(slot, block)) {
                true => ("phi", "live in"),
                false => ("no phi", "not live in"),
            };
            let mark = |&source: &u32| match self.placed.contains(&(slot, source)) {
                _ if writes.contains(&source) => Block(source).to_string(),
                true => format!("{} (phi)", Block(source)),
                false => format!("{} (no phi)", Block(source)),
            };
            let sources: Vec<String> = sources.iter().map(mark).collect();
            let (block, of) = (Block(block), origin(&self.f, Block(block)));
            writeln!(
                out,
                "    {what} in {block}: {live}, in the frontier of {}  ; {of}",
                sources.join(", ")
            )
            .expect(INFALLIBLE);
        }
        let is_outside = |block: &u32| !reasons.contains_key(block);
        let outside = self.joins.iter().copied().filter(is_outside).map(Block);
        let outside = list(outside);
        if outside != "-" {
            writeln!(out, "    no phi in {outside}: not in the iterated frontier of the writes")
                .expect(INFALLIBLE);
        }
        reasons.values().map(Vec::len).sum()
    }

    /// The iterated frontier of a slot's writes: each block with the writes and the blocks of the iterated frontier in
    /// whose frontier it is.
    fn reasons(&self, slot: Slot, writes: &BTreeSet<u32>) -> BTreeMap<u32, Vec<u32>> {
        let iterated = self.iterated.range((slot, 0)..=(slot, u32::MAX)).map(|&(_, block)| block);
        let mut reasons: BTreeMap<u32, Vec<u32>> =
            iterated.clone().map(|block| (block, Vec::new())).collect();
        let sources: BTreeSet<u32> = writes.iter().copied().chain(iterated).collect();
        for source in sources {
            for block in self.frontiers.of(source) {
                reasons.get_mut(block).expect("frontiers of the set are in the set").push(source);
            }
        }
        reasons
    }
}

const INFALLIBLE: &str = "writing to a string succeeds";
