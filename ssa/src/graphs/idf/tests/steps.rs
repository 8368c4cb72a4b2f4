//! The steps that an observer sees on the worked examples: each must be right by the example's tables of dominators,
//! frontiers and live-in blocks, and all of them together must give its phi sites.

use std::collections::BTreeSet;

use super::worked_examples::{members, slots_of};
use super::*;
use crate::construction::construct::Construction;
use crate::construction::construct::worked_examples::{Example, examples, split};
use crate::graphs::observe::{EdgeOutcome, NotEnqueued, PlacementObserver, PlacementStep, Skip};

/// The steps of all slots, one list for each.
struct Film {
    steps: Vec<Vec<PlacementStep>>,
    group: Vec<Slot>,
}

impl PlacementObserver for Film {
    fn place(&mut self, slots: &[Slot]) {
        self.group = slots.to_vec();
    }

    fn placement_step(&mut self, slots: u64, step: PlacementStep) {
        assert_ne!(slots, 0);
        for i in bits(slots) {
            self.steps[self.group[i].index()].push(step);
        }
    }
}

/// An example with what a step is checked against.
struct Checker<'a> {
    names: &'a [&'a str],
    tree: &'a DomTree,
    frontiers: Vec<BTreeSet<&'a str>>,
    live: BTreeSet<&'a str>,
    writes: BTreeSet<&'a str>,
    placement: Placement,
    is_pruned: bool,
    queue: Vec<u32>,
    root: Option<u32>,
    phis: BTreeSet<&'a str>,
}

impl<'a> Checker<'a> {
    fn name(&self, block: u32) -> &'a str {
        self.names[block as usize]
    }

    fn level(&self, block: u32) -> u32 {
        self.tree.levels_by_number()[self.tree.number(block).expect("reachable") as usize]
    }

    fn check(&mut self, step: PlacementStep) {
        match step {
            PlacementStep::Live { block } => {
                assert!(!self.is_pruned || self.live.contains(self.name(block)));
            }
            PlacementStep::Write { block } => assert!(self.writes.contains(self.name(block))),
            PlacementStep::Enqueue { block } => {
                let name = self.name(block);
                assert!(self.writes.contains(name) || self.phis.contains(name));
                self.queue.push(block);
            }
            PlacementStep::NotEnqueued { block, reason: NotEnqueued::NoFrontier } => {
                assert!(self.frontiers[block as usize].is_empty(), "{}", self.name(block));
            }
            PlacementStep::NotEnqueued { block, reason: NotEnqueued::Again } => {
                let name = self.name(block);
                assert!(self.writes.contains(name) && self.phis.contains(name));
            }
            PlacementStep::Dequeue { block } => {
                let place = self.queue.iter().position(|&other| other == block);
                self.queue.remove(place.expect("it is in the queue"));
                if self.placement != Placement::Frontiers {
                    assert!(self.queue.iter().all(|&other| self.level(other) <= self.level(block)));
                }
                self.root = Some(block);
            }
            PlacementStep::Visit { block } => {
                let root = self.root.expect("a block has left the queue");
                assert!(self.tree.dominates(root, block));
            }
            PlacementStep::Skip { block, reason } => self.check_skip(block, reason),
            PlacementStep::Edge { src, dst, outcome } => self.check_edge(src, dst, outcome),
        }
    }

    /// A child that is left out has no phi to offer.
    fn check_skip(&self, block: u32, reason: Skip) {
        let root = self.root.expect("a block has left the queue");
        if reason == Skip::NoFrontier {
            let leads_up = |below: usize| {
                let meets = |&name: &&str| {
                    let block = self.names.iter().position(|&other| other == name);
                    self.level(block.expect("a block") as u32) <= self.level(root)
                };
                self.frontiers[below].iter().any(meets)
            };
            let below = |&b: &usize| self.tree.dominates(block, b as u32);
            assert!(!(0..self.names.len()).filter(below).any(leads_up));
        }
    }

    fn check_edge(&mut self, src: u32, dst: u32, outcome: EdgeOutcome) {
        let root = self.root.expect("a block has left the queue");
        let name = self.name(dst);
        match outcome {
            EdgeOutcome::Deeper => {
                assert!(root != dst && self.tree.dominates(root, dst), "{root} {dst}");
                return;
            }
            EdgeOutcome::Phi => assert!(self.phis.insert(name), "{name} has a phi"),
            EdgeOutcome::HasPhi => assert!(self.phis.contains(name), "{name} has no phi"),
            EdgeOutcome::NotLive => assert!(self.is_pruned && !self.live.contains(name)),
        }
        assert!(self.frontiers[root as usize].contains(name), "{name} is in the root's frontier");
        assert!(self.frontiers[src as usize].contains(name), "and in that of the edge's source");
        assert!(self.tree.dominates(root, src));
    }
}

fn check(example: &Example<'_>, placement: Placement, pruning: Pruning, form: Construction) {
    let (cfg, names) = example.graph();
    let tree = DomTree::semi_nca(&cfg);
    let slots = slots_of(example, &names);
    let mut film = Film { steps: vec![vec![]; slots.n_slots()], group: vec![] };
    let mut placer = SitePlacer::default();
    placer
        .place_observed(&cfg, &tree, &slots, pruning, placement, &mut film)
        .expect("the frontiers are small");
    let frontiers: Vec<BTreeSet<&str>> = names
        .iter()
        .map(|name| {
            let lines = split(example.lines["frontiers"], ";");
            let of = lines.iter().find_map(|line| line.strip_prefix(&format!("{name}={{")));
            members(of.expect("each block has a frontier"))
        })
        .collect();
    for (slot, (name, line)) in (0..).zip(&example.slots) {
        let steps = &film.steps[slot as usize];
        let mut checker = Checker {
            names: &names,
            tree: &tree,
            frontiers: frontiers.clone(),
            live: members(line.split_once("live-in {").expect("the set is there").1),
            writes: slots.writes(Slot(slot)).iter().map(|&b| names[b as usize]).collect(),
            placement,
            is_pruned: pruning == Pruning::Full,
            queue: vec![],
            root: None,
            phis: BTreeSet::new(),
        };
        steps.iter().for_each(|&step| checker.check(step));
        let title = format!("{name} of {}, {placement:?}, {pruning:?}", example.name);
        assert!(checker.queue.is_empty(), "{title}");
        assert_eq!(checker.phis, example.sites(form, slot), "{title}");
        let is_live = |step: &PlacementStep| matches!(step, PlacementStep::Live { .. });
        let is_write = |step: &PlacementStep| matches!(step, PlacementStep::Write { .. });
        let count = |is: &dyn Fn(&PlacementStep) -> bool| steps.iter().filter(|s| is(s)).count();
        let is_placed = pruning == Pruning::None || !slots.reads(Slot(slot)).is_empty();
        assert_eq!(count(&is_write), if is_placed { checker.writes.len() } else { 0 }, "{title}");
        if pruning == Pruning::Full {
            assert!(count(&is_live) >= checker.live.len(), "{title}");
        }
    }
}

#[test]
fn each_step_of_the_worked_examples_is_right() {
    for example in examples() {
        for placement in Placement::ALL {
            check(&example, placement, Pruning::None, Construction::Minimal);
            check(&example, placement, Pruning::Semi, Construction::SemiPruned);
            check(&example, placement, Pruning::Full, Construction::Pruned);
        }
    }
}

/// A placement of fib's `b` in full: what the page shows.
#[test]
fn the_film_of_a_slot_of_fib_is_this() {
    let fib = examples().into_iter().find(|example| example.name.contains("fib")).expect("fib");
    let (cfg, names) = fib.graph();
    let tree = DomTree::semi_nca(&cfg);
    let slots = slots_of(&fib, &names);
    let b = fib.slots.keys().position(|&name| name == "b").expect("a slot");
    let mut film = Film { steps: vec![vec![]; slots.n_slots()], group: vec![] };
    let mut placer = SitePlacer::default();
    let queue = Placement::PriorityQueue;
    placer.place_observed(&cfg, &tree, &slots, Pruning::Full, queue, &mut film).expect("small");
    let name = |block: u32| names[block as usize];
    let lines: Vec<String> = film.steps[b]
        .iter()
        .map(|step| match *step {
            PlacementStep::Live { block } => format!("live {}", name(block)),
            PlacementStep::Write { block } => format!("write {}", name(block)),
            PlacementStep::Enqueue { block } => format!("enqueue {}", name(block)),
            PlacementStep::NotEnqueued { block, reason } => {
                format!("not enqueued {} {reason:?}", name(block))
            }
            PlacementStep::Dequeue { block } => format!("dequeue {}", name(block)),
            PlacementStep::Visit { block } => format!("visit {}", name(block)),
            PlacementStep::Skip { block, reason } => format!("skip {} {reason:?}", name(block)),
            PlacementStep::Edge { src, dst, outcome } => {
                format!("edge {} {} {outcome:?}", name(src), name(dst))
            }
        })
        .collect();
    assert_eq!(
        lines,
        [
            "live while.body",
            "live while.end",
            "live while.cond",
            "live if.end",
            "write entry",
            "not enqueued entry NoFrontier",
            "write while.body",
            "enqueue while.body",
            "dequeue while.body",
            "visit while.body",
            "edge while.body while.cond Phi",
            "enqueue while.cond",
            "dequeue while.cond",
            "visit while.cond",
            "edge while.cond while.body Deeper",
            "edge while.cond while.end Deeper",
            "skip while.body Walked",
            "visit while.end",
            "edge while.end return NotLive",
        ]
    );
}
