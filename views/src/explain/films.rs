//! Films of promotion: the steps of phi placement, by each way to place, and of renaming.
//!
//! The steps are those of the promotion that compiles the function, which reports them to an observer. Each way of
//! placing and of renaming runs once on a copy of the slot form.

use slotvm_ssa::construction::construct::{Placement, Renaming};
use slotvm_ssa::construction::observe::{Observer, ValueStep};
use slotvm_ssa::construction::promote::{PromoteOptions, Scratch, promote_observed};
use slotvm_ssa::graphs::ids::Slot;
use slotvm_ssa::graphs::observe::{
    EdgeOutcome, NotEnqueued, PlacementObserver, PlacementStep, Skip,
};
use slotvm_ssa::ir::Function;

use super::document::{FilmStep, Films, LeftOut, PlacementFilm, RenamingFilm};

/// The maximum number of steps of all films of a function. Films of slots that would exceed it are left out.
pub(super) const FILM_STEPS_MAX: usize = 50_000;

/// The value of a slot that has none.
const NO_VALUE: u32 = u32::MAX;

/// The ways to place phis, with their names in the document.
const WAYS: [(Placement, &str); 4] = [
    (Placement::PriorityQueue, "priority queue"),
    (Placement::LevelBuckets, "level buckets"),
    (Placement::Words, "words of 64 slots"),
    (Placement::Frontiers, "dominance frontiers"),
];

/// Records the films of the promotion of a function in slot form, whose blocks have these numbers in the document.
pub(super) fn record(slots: &Function, blocks: &[u32]) -> Films {
    let mut films = Films { placement: vec![], renaming: vec![], left_out: vec![] };
    let mut n_left = FILM_STEPS_MAX;
    for (renaming, way) in [(Renaming::Undo, "undo log"), (Renaming::Chains, "chains")] {
        let options = PromoteOptions { renaming, ..PromoteOptions::default() };
        // Three quarters are for phi placement.
        let recorder = run(slots, blocks, options, FILM_STEPS_MAX / 8);
        match recorder.values {
            Recorded::Steps(steps) => {
                n_left -= steps.len();
                films.renaming.push(RenamingFilm { way: way.into(), steps });
            }
            Recorded::TooMany => films.left_out.push(LeftOut { slot: None, way: way.into() }),
        }
    }
    for (placement, way) in WAYS {
        let options = PromoteOptions { placement, ..PromoteOptions::default() };
        let recorder = run(slots, blocks, options, n_left);
        for (slot, recorded) in (0..).zip(recorder.placements) {
            match recorded {
                Recorded::Steps(steps) if steps.is_empty() => {}
                Recorded::Steps(steps) => {
                    n_left -= steps.len();
                    films.placement.push(PlacementFilm { slot, way: way.into(), steps });
                }
                Recorded::TooMany => {
                    films.left_out.push(LeftOut { slot: Some(slot), way: way.into() });
                }
            }
        }
    }
    films
}

fn run<'a>(
    slots: &Function,
    blocks: &'a [u32],
    options: PromoteOptions,
    steps_max: usize,
) -> Recorder<'a> {
    let mut recorder = Recorder {
        blocks,
        placements: Vec::new(),
        group: Vec::new(),
        values: Recorded::Steps(vec![]),
        n_left: steps_max,
    };
    recorder.placements.resize_with(slots.slots.len(), || Recorded::Steps(vec![]));
    promote_observed(&mut slots.clone(), options, &mut Scratch::default(), &mut recorder);
    recorder
}

/// The steps of a film, if there is room for all of them.
enum Recorded {
    Steps(Vec<FilmStep>),
    TooMany,
}

impl Recorded {
    /// Adds a step, if there is room for it.
    fn push(&mut self, n_left: &mut usize, step: FilmStep) {
        let Recorded::Steps(steps) = self else { return };
        if *n_left > 0 {
            *n_left -= 1;
            steps.push(step);
        } else {
            // Others may have the room.
            *n_left += steps.len();
            *self = Recorded::TooMany;
        }
    }
}

/// Keeps the steps.
struct Recorder<'a> {
    blocks: &'a [u32],
    /// The placement of each slot.
    placements: Vec<Recorded>,
    group: Vec<Slot>,
    values: Recorded,
    /// The room that is left.
    n_left: usize,
}

impl Recorder<'_> {
    fn block(&self, block: u32) -> Option<u32> {
        Some(self.blocks[block as usize])
    }

    fn placement(&self, step: PlacementStep) -> FilmStep {
        let of = |what, block, why| FilmStep { what, block, why, ..FilmStep::default() };
        match step {
            PlacementStep::Live { block } => of("live", self.block(block), None),
            PlacementStep::Write { block } => of("write", self.block(block), None),
            PlacementStep::Enqueue { block } => of("enqueue", self.block(block), None),
            PlacementStep::NotEnqueued { block, reason } => {
                let why = match reason {
                    NotEnqueued::Again => "again",
                    NotEnqueued::NoFrontier => "no frontier",
                };
                of("not enqueued", self.block(block), Some(why))
            }
            PlacementStep::Dequeue { block } => of("dequeue", self.block(block), None),
            PlacementStep::Visit { block } => of("visit", self.block(block), None),
            PlacementStep::Skip { block, reason } => {
                let why = match reason {
                    Skip::Walked => "walked",
                    Skip::NoFrontier => "no frontier",
                };
                of("skip", self.block(block), Some(why))
            }
            PlacementStep::Edge { src, dst, outcome } => {
                let (what, why) = match outcome {
                    EdgeOutcome::Phi => ("phi", None),
                    EdgeOutcome::Deeper => ("no phi", Some("deeper")),
                    EdgeOutcome::NotLive => ("no phi", Some("not live")),
                    EdgeOutcome::HasPhi => ("no phi", Some("has phi")),
                };
                FilmStep { to: self.block(dst), ..of(what, self.block(src), why) }
            }
        }
    }

    fn value(&self, step: ValueStep) -> FilmStep {
        let of = |what, slot: Slot, value| FilmStep {
            what,
            slot: Some(slot.0),
            value: (value != NO_VALUE).then_some(value),
            ..FilmStep::default()
        };
        match step {
            ValueStep::Settled { slot, read, value } => {
                FilmStep { read: Some(read), ..of("settled", slot, value) }
            }
            ValueStep::Initial { slot, value } => of("initial", slot, value),
            ValueStep::Enter { block } => {
                FilmStep { what: "enter", block: self.block(block), ..FilmStep::default() }
            }
            ValueStep::Restore { slot, value } => of("restore", slot, value),
            ValueStep::Phi { slot, value } => of("phi", slot, value),
            ValueStep::Read { slot, read, value } => {
                FilmStep { read: Some(read), ..of("read", slot, value) }
            }
            ValueStep::Write { slot, value } => of("write", slot, value),
            ValueStep::Operand { dst, slot, value } => {
                FilmStep { to: self.block(dst), ..of("operand", slot, value) }
            }
        }
    }
}

impl PlacementObserver for Recorder<'_> {
    fn place(&mut self, slots: &[Slot]) {
        self.group = slots.to_vec();
    }

    fn placement_step(&mut self, slots: u64, step: PlacementStep) {
        for bit in (0..self.group.len()).filter(|bit| slots >> bit & 1 != 0) {
            let step = self.placement(step);
            let slot = self.group[bit];
            self.placements[slot.index()].push(&mut self.n_left, step);
        }
    }
}

impl Observer for Recorder<'_> {
    fn value_step(&mut self, step: ValueStep) {
        let step = self.value(step);
        self.values.push(&mut self.n_left, step);
    }
}

/// A phi that promotion places.
#[derive(Copy, Clone, Debug)]
pub(super) struct Phi {
    /// The block, by its number in the function.
    pub(super) block: u32,
    pub(super) slot: u32,
    pub(super) value: u32,
}

/// The phis of a function in slot form, by the steps of its promotion.
pub(super) fn phis(slots: &Function) -> Vec<Phi> {
    let mut recorder = PhiRecorder::default();
    let options = PromoteOptions::default();
    promote_observed(&mut slots.clone(), options, &mut Scratch::default(), &mut recorder);
    recorder.phis
}

/// Keeps the phis.
#[derive(Default)]
struct PhiRecorder {
    block: u32,
    phis: Vec<Phi>,
}

impl PlacementObserver for PhiRecorder {
    fn place(&mut self, _: &[Slot]) {}

    fn placement_step(&mut self, _: u64, _: PlacementStep) {}
}

impl Observer for PhiRecorder {
    fn value_step(&mut self, step: ValueStep) {
        match step {
            ValueStep::Enter { block } => self.block = block,
            ValueStep::Phi { slot, value } => {
                self.phis.push(Phi { block: self.block, slot: slot.0, value });
            }
            _ => {}
        }
    }
}
