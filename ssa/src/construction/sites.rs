//! Phi sites: the slots that need phis, and the blocks, in which the constructions differ.
//!
//! Most slots need no phi, and the scan alone shows that ([`Reach`]). These are the fast paths of LLVM's
//! `PromoteMemToReg`. The pruned form may take all of them. The others may only where their own
//! definition has no phi either: minimal form has phis of a slot that is never read, and semi-pruned
//! form has dead ones below a single write that dominates all reads.
//!
//! The other slots are *open*. They go through phi placement: [`crate::graphs::place`], 64 at a time, or one of
//! the other ways of [`crate::graphs::idf`]. Forms without liveness treat them as live everywhere.

use bumpalo::Bump;

use crate::construction::accesses::{AccessLog, NONE, Reach};
#[cfg(feature = "ir")]
use crate::construction::options::SlotPath;
use crate::construction::options::{Construction, SlotCounts, TooLarge};
use crate::construction::rename::Renamer;
use crate::graphs::cfg::{Cfg, ControlFlow};
use crate::graphs::dominators::DomTree;
use crate::graphs::idf::{Placement, Pruning, SitePlacer};
use crate::graphs::ids::Slot;
use crate::graphs::observe::PlacementObserver;
use crate::graphs::place::{PhiPlacer, bits};
use crate::graphs::slot_blocks::SlotBlocks;

/// Limits on the cost of finding sites.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Limits {
    /// Blocks times groups of 64 open slots.
    pub(crate) live_words_max: usize,
    /// Operands of all phis.
    pub(crate) phi_operands_max: usize,
}

/// A function, as far as phi sites depend on it, with memory for tables and the limits on its cost.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Graph<'a> {
    pub(crate) cfg: &'a Cfg,
    pub(crate) tree: &'a DomTree,
    pub(crate) arena: &'a Bump,
    pub(crate) limits: Limits,
}

/// Finds the phi sites of functions, in memory that is reused.
#[derive(Clone, Debug, Default)]
pub(crate) struct SiteFinder {
    construction: Construction,
    placement: Placement,
    /// Slots that the scan alone does not settle.
    open: Vec<Slot>,
    /// Whether phis may use the initial value of a slot, by slot; for forms without liveness.
    needs_initial: Vec<bool>,
    words: PhiPlacer,
    placer: SitePlacer,
    /// Block and slot of each phi. Those of one block are in the order of slots.
    pub(crate) sites: Vec<(u32, Slot)>,
    pub(crate) counts: SlotCounts,
}

impl SiteFinder {
    /// Settles the slots that need no phi by what the scan says; the others become open. `initial`
    /// returns the initial value of a slot, and is called for those that need it. Returns whether slots
    /// are open.
    pub(crate) fn sort_out(
        &mut self,
        construction: Construction,
        placement: Placement,
        log: &AccessLog,
        renamer: &mut Renamer,
        mut initial: impl FnMut(Slot) -> u32,
    ) -> bool {
        (self.construction, self.placement) = (construction, placement);
        self.counts = SlotCounts::default();
        self.open.clear();
        self.sites.clear();
        let SlotCounts { n_dead, n_single_block, n_local, n_unwritten, n_one_writer, .. } =
            &mut self.counts;
        for slot in log.slots() {
            let has_phis_unread = match construction {
                Construction::Maximal | Construction::Braun(_) => true,
                Construction::Minimal => log.is_written(slot),
                Construction::SemiPruned | Construction::Pruned => false,
            };
            if has_phis_unread {
                self.open.push(slot);
                continue;
            }
            match log.reach(slot) {
                Reach::Dead => *n_dead += 1,
                Reach::SingleBlock => *n_single_block += 1,
                Reach::Local => *n_local += 1,
                Reach::Unwritten => {
                    *n_unwritten += 1;
                    renamer.set_initial(slot, initial(slot));
                }
                // The entry dominates all blocks, and nothing is in its frontier.
                Reach::OneWriter { block: 0, reads: (1.., _) } => *n_one_writer += 1,
                Reach::OneWriter { .. } | Reach::Many => self.open.push(slot),
            }
        }
        !self.open.is_empty()
    }

    /// The path that a slot took.
    #[cfg(feature = "ir")]
    pub(crate) fn path(&self, log: &AccessLog, slot: Slot) -> SlotPath {
        if self.open.binary_search(&slot).is_ok() {
            return SlotPath::Placed;
        }
        match log.reach(slot) {
            Reach::Dead => SlotPath::Dead,
            Reach::SingleBlock => SlotPath::SingleBlock,
            Reach::Local => SlotPath::Local,
            Reach::Unwritten => SlotPath::Unwritten,
            Reach::OneWriter { .. } => SlotPath::OneWriter,
            Reach::Many => unreachable!("such slots are open"),
        }
    }

    /// Takes sites that were found on the fly for those of the open slots, which are all.
    pub(crate) fn take_over(&mut self, sites: &[(u32, Slot)]) {
        self.sites.extend_from_slice(sites);
        self.counts.n_placed = self.open.len();
    }

    /// Finds the sites of the open slots. Passes the slots to track and the initial values needed to
    /// `renamer`.
    pub(crate) fn place(
        &mut self,
        graph: Graph<'_>,
        log: &mut AccessLog,
        renamer: &mut Renamer,
        initial: impl FnMut(Slot) -> u32,
        observer: &mut impl PlacementObserver,
    ) -> Result<(), TooLarge> {
        if self.construction == Construction::Pruned {
            self.drop_dominating_writers(graph.tree, log);
        }
        if self.open.is_empty() {
            return Ok(());
        }
        self.counts.n_placed = self.open.len();
        for &slot in &self.open {
            renamer.track(slot);
        }
        if self.construction != Construction::Pruned {
            self.needs_initial.clear();
            self.needs_initial.resize(log.n_slots(), true);
            for slot in log.written_at_entry() {
                self.needs_initial[slot.index()] = false;
            }
        }
        match self.construction {
            Construction::Maximal => self.place_everywhere(graph, renamer, initial)?,
            _ if matches!(self.placement, Placement::Auto | Placement::Words) => {
                self.place_in_words(graph, log, renamer, initial, observer)?;
            }
            _ => self.place_one_by_one(graph, log, renamer, initial, observer)?,
        }
        Ok(())
    }

    /// Settles open slots that are written in one block which dominates all reads.
    fn drop_dominating_writers(&mut self, tree: &DomTree, log: &AccessLog) {
        let n_open = self.open.len();
        let ends = tree.ends_by_number();
        self.open.retain(|&slot| match log.reach(slot) {
            Reach::OneWriter { block, reads: (from, to) } => {
                let reads_itself = from == block;
                from < block || reads_itself || to >= ends[block as usize]
            }
            _ => true,
        });
        self.counts.n_one_writer += n_open - self.open.len();
    }

    /// Maximal form: all open slots in each block with several in-edges.
    fn place_everywhere(
        &mut self,
        Graph { cfg, limits, .. }: Graph<'_>,
        renamer: &mut Renamer,
        mut initial: impl FnMut(Slot) -> u32,
    ) -> Result<(), TooLarge> {
        let joins = || (1..cfg.n_blocks() as u32).filter(|&block| cfg.preds(block).len() >= 2);
        let n_in_edges: usize = joins().map(|block| cfg.preds(block).len()).sum();
        if n_in_edges.saturating_mul(self.open.len()) > limits.phi_operands_max {
            return Err(TooLarge::PhiOperands(limits.phi_operands_max));
        }
        for &slot in self.open.iter().filter(|&&slot| self.needs_initial[slot.index()]) {
            renamer.set_initial(slot, initial(slot));
        }
        for block in joins() {
            self.sites.extend(self.open.iter().map(|&slot| (block, slot)));
        }
        Ok(())
    }

    /// The other forms: the iterated dominance frontier of the writes, where the slot counts as live;
    /// for 64 slots at a time.
    fn place_in_words(
        &mut self,
        Graph { cfg, tree, arena, limits }: Graph<'_>,
        log: &mut AccessLog,
        renamer: &mut Renamer,
        mut initial: impl FnMut(Slot) -> u32,
        observer: &mut impl PlacementObserver,
    ) -> Result<(), TooLarge> {
        let SiteFinder { construction, open, needs_initial, words, sites, .. } = self;
        let n_groups = open.len().div_ceil(PhiPlacer::GROUP_SLOTS_MAX);
        if n_groups.saturating_mul(cfg.n_blocks()) > limits.live_words_max {
            return Err(TooLarge::LiveWords(limits.live_words_max));
        }
        let mut n_operands = 0;
        words.start(cfg, tree);
        let groups = Groups::sort(arena, log, open);
        for (number, group) in open.chunks(PhiPlacer::GROUP_SLOTS_MAX).enumerate() {
            words.start_group();
            observer.place(group);
            for &(block, access) in groups.accesses(number) {
                match access {
                    GroupAccess::Read(slot) => words.add_read(block, slot.into()),
                    GroupAccess::Write(slot) => words.add_write(block, slot.into()),
                }
            }
            let is_pruned = *construction == Construction::Pruned;
            if !is_pruned {
                let all = u64::MAX >> (PhiPlacer::GROUP_SLOTS_MAX - group.len());
                (0..cfg.n_blocks() as u32).for_each(|block| words.add_live(block, all));
            }
            for i in bits(words.place_observed(cfg, tree, observer)) {
                if is_pruned || needs_initial[group[i].index()] {
                    renamer.set_initial(group[i], initial(group[i]));
                }
            }
            for (block, phis) in words.sites() {
                sites.extend(bits(phis).map(|i| (block, group[i])));
                n_operands += phis.count_ones() as usize * cfg.preds(block).len();
            }
            if n_operands > limits.phi_operands_max {
                return Err(TooLarge::PhiOperands(limits.phi_operands_max));
            }
        }
        Ok(())
    }

    /// The same by other placements, one slot at a time.
    fn place_one_by_one(
        &mut self,
        Graph { cfg, tree, limits, .. }: Graph<'_>,
        log: &AccessLog,
        renamer: &mut Renamer,
        mut initial: impl FnMut(Slot) -> u32,
        observer: &mut impl PlacementObserver,
    ) -> Result<(), TooLarge> {
        let SiteFinder { construction, placement, open, needs_initial, placer, sites, .. } = self;
        // Without those of slots that are not open.
        let is_open = |&(_, slot): &(u32, Slot)| open.binary_search(&slot).is_ok();
        let slots = SlotBlocks::new(
            log.n_slots(),
            log.writes().filter(is_open),
            log.reads().filter(is_open),
        );
        let pruning = match construction {
            Construction::Pruned => Pruning::Full,
            Construction::SemiPruned => Pruning::Semi,
            Construction::Minimal | Construction::Maximal => Pruning::None,
            Construction::Braun(_) => unreachable!("its sites are taken over"),
        };
        placer.place_observed(cfg, tree, &slots, pruning, *placement, observer)?;
        let in_edges = |&(block, _): &(u32, Slot)| cfg.preds(block).len();
        if placer.sites().iter().map(in_edges).sum::<usize>() > limits.phi_operands_max {
            return Err(TooLarge::PhiOperands(limits.phi_operands_max));
        }
        sites.extend_from_slice(placer.sites());
        let slots = if pruning == Pruning::Full { placer.live_at_entry() } else { &open[..] };
        for &slot in slots {
            if pruning == Pruning::Full || needs_initial[slot.index()] {
                renamer.set_initial(slot, initial(slot));
            }
        }
        Ok(())
    }
}

/// The logged accesses of the open slots, by group of slots, and within a group in the order of blocks.
struct Groups<'a> {
    /// The start of the accesses of each group; one more entry than groups.
    starts: &'a mut [u32],
    accesses: &'a mut [(u32, GroupAccess)],
}

/// An access of a slot by its number in the group.
#[derive(Copy, Clone, Debug)]
enum GroupAccess {
    Read(u8),
    Write(u8),
}

impl<'a> Groups<'a> {
    fn sort(arena: &'a Bump, log: &mut AccessLog, open_slots: &[Slot]) -> Groups<'a> {
        // The position of a slot among the open ones.
        let positions = arena.alloc_slice_fill_copy(log.n_slots(), NONE);
        let n_groups = open_slots.len().div_ceil(PhiPlacer::GROUP_SLOTS_MAX);
        // An entry is the end of its group's accesses so far; the first one stays zero.
        let starts = arena.alloc_slice_fill_copy(n_groups + 1, 0);
        let mut n_accesses = 0;
        for (position, &slot) in open_slots.iter().enumerate() {
            if position % PhiPlacer::GROUP_SLOTS_MAX == 0 {
                starts[position / PhiPlacer::GROUP_SLOTS_MAX + 1] = n_accesses;
            }
            positions[slot.index()] = position as u32;
            n_accesses += log.n_logged(slot);
        }
        let nothing = (0, GroupAccess::Read(0));
        let accesses = arena.alloc_slice_fill_copy(n_accesses as usize, nothing);
        let mut groups = Groups { starts, accesses };
        for block in 0..log.n_blocks() as u32 {
            let (reads, writes, _) = log.of_block(block);
            for read in reads {
                groups.add(block, positions[read.slot.index()], GroupAccess::Read);
            }
            for write in writes {
                groups.add(block, positions[write.slot.index()], GroupAccess::Write);
            }
        }
        groups
    }

    #[inline]
    fn add(&mut self, block: u32, position: u32, access: impl Fn(u8) -> GroupAccess) {
        if position != NONE {
            let (group, slot) = (position >> 6, (position & 63) as u8);
            let end = &mut self.starts[group as usize + 1];
            self.accesses[*end as usize] = (block, access(slot));
            *end += 1;
        }
    }

    fn accesses(&self, group: usize) -> &[(u32, GroupAccess)] {
        &self.accesses[self.starts[group] as usize..self.starts[group + 1] as usize]
    }
}
