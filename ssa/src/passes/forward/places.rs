//! Places in linear memory, and the effects of instructions on them.
//!
//! A place is a number of bytes at a constant offset from a root: the address of a frame that the function has taken
//! from the frame stack, any other value, or zero for constant addresses. Two places with one root overlap if their
//! bytes do. Frames do not overlap each other, while the function that took them is active. Any two other roots may be
//! equal, and may point into a frame.
//!
//! A call may write anywhere, and so may a poll, a bulk operation, and a store of another width or to an address that
//! is computed.

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::RandomState;
use slotvm_bytecode::{Effect, Op, ValType};

use crate::ir::Function;
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::irop::{IrOp, Opcode};

/// The maximum number of places that are followed in a function: more would live in more registers than there are.
const FORWARDED_PLACES_MAX: usize = 24;

/// The start of an address.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
enum Root {
    Zero,
    Frame(Value),
    Other(Value),
}

/// A range of bytes in linear memory.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
struct Place {
    root: Root,
    /// From the root; addresses do not wrap.
    offset: u64,
    bytes: u32,
}

impl Place {
    fn overlaps(&self, other: &Place) -> bool {
        match (self.root, other.root) {
            (a, b) if a == b => {
                let end = |place: &Place| place.offset + u64::from(place.bytes);
                self.offset < end(other) && other.offset < end(self)
            }
            (Root::Frame(_), Root::Frame(_)) => false,
            _ => true,
        }
    }
}

/// The effect of an instruction on places.
#[derive(Copy, Clone, Debug)]
pub(super) enum Event {
    /// Loads a place, so that its content is known afterwards.
    Load(usize),
    /// Leaves places unknown, and then defines one of them.
    Store { place: Option<usize>, lost: u64 },
    /// Leaves places unknown, and then zeroes some.
    Zero { lost: u64, defined: u64 },
    /// Leaves places unknown.
    Unknown(u64),
}

/// The places of a function, by numbers below 64.
pub(super) struct Places {
    places: Vec<(Place, ValType)>,
    /// The events of all blocks, each with the index of its instruction in the block.
    events: Vec<(u32, Event)>,
    /// The events of each block.
    blocks: Vec<Range<usize>>,
}

impl Places {
    /// Finds the places that are worth following. Takes time linear in the function.
    pub(super) fn find(f: &Function) -> Places {
        let roots = Roots::find(f);
        let places = roots.places(f);
        let mut found = Places { places, events: Vec::new(), blocks: Vec::new() };
        if !found.places.is_empty() {
            found.find_events(f, &roots);
        }
        found
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn ty(&self, place: usize) -> ValType {
        self.places[place].1
    }

    pub(super) fn events(&self, block: Block) -> &[(u32, Event)] {
        &self.events[self.blocks[block.index()].clone()]
    }

    /// The places that an event leaves unknown, and those that it then defines.
    pub(super) fn effect(&self, event: Event) -> (u64, u64) {
        match event {
            Event::Load(place) => (0, 1 << place),
            Event::Store { place, lost } => (lost, place.map_or(0, |place| 1 << place)),
            Event::Zero { lost, defined } => (lost, defined),
            Event::Unknown(lost) => (lost, 0),
        }
    }

    /// The places that are known after an event.
    pub(super) fn after(&self, known: u64, event: Event) -> u64 {
        let (lost, defined) = self.effect(event);
        known & !lost | defined
    }

    fn find_events(&mut self, f: &Function, roots: &Roots) {
        let numbers: HashMap<(Place, ValType), usize, RandomState> =
            self.places.iter().enumerate().map(|(number, &place)| (place, number)).collect();
        for block in f.blocks() {
            let first = self.events.len();
            // What is known of a place was known with the value that its root had before.
            for &param in f.params(block) {
                self.push_unknown(0, self.with_root(Root::Other(param)));
            }
            for (i, &inst) in f.insts(block).iter().enumerate() {
                self.find_event(f, roots, &numbers, i as u32, inst);
            }
            self.blocks.push(first..self.events.len());
        }
    }

    fn find_event(
        &mut self,
        f: &Function,
        roots: &Roots,
        numbers: &HashMap<(Place, ValType), usize, RandomState>,
        at: u32,
        inst: Inst,
    ) {
        let all = u64::MAX;
        match f.opcode(inst) {
            Opcode::Op(op) if op.access_bytes().is_some() => {
                let place = roots.access(f, inst, op);
                let followed = place.and_then(|place| {
                    Some(numbers.get(&(place, full_access(op)?)).copied()).flatten()
                });
                if op.effect() == Effect::Write {
                    let lost = place.map_or(all, |place| self.overlapping(&place));
                    if lost != 0 || followed.is_some() {
                        self.events.push((at, Event::Store { place: followed, lost }));
                    }
                } else if let Some(followed) = followed {
                    self.events.push((at, Event::Load(followed)));
                }
            }
            Opcode::Ir(IrOp::FramePush) => {
                let frame = Root::Frame(f.result(inst));
                let defined = self.with_root(frame);
                let frames = self.having(|place| matches!(place.root, Root::Frame(_)));
                self.events.push((at, Event::Zero { lost: !frames | defined, defined }));
            }
            opcode if may_write(opcode) => self.push_unknown(at, all),
            _ => {}
        }
        for result in f.results(inst) {
            self.push_unknown(at, self.with_root(Root::Other(result)));
        }
    }

    fn push_unknown(&mut self, at: u32, lost: u64) {
        if lost != 0 {
            self.events.push((at, Event::Unknown(lost)));
        }
    }

    fn overlapping(&self, with: &Place) -> u64 {
        self.having(|place| place.overlaps(with))
    }

    fn with_root(&self, root: Root) -> u64 {
        self.having(|place| place.root == root)
    }

    fn having(&self, is: impl Fn(&Place) -> bool) -> u64 {
        let bits = self.places.iter().enumerate().filter(|(_, (place, _))| is(place));
        bits.fold(0, |bits, (number, _)| bits | 1 << number)
    }
}

/// The type of the value, if an access is of all of its bytes.
fn full_access(op: Op) -> Option<ValType> {
    op.access().filter(|access| access.is_full()).map(|access| access.ty)
}

/// Whether an instruction other than an access may write to memory.
pub(super) fn may_write(opcode: Opcode) -> bool {
    match opcode {
        Opcode::Ir(op) => op == IrOp::Poll,
        Opcode::Op(
            Op::GlobalSet | Op::TableSet | Op::TableFill | Op::TableCopy | Op::TableInit,
        ) => false,
        Opcode::Op(op) => matches!(op.effect(), Effect::Write | Effect::Call),
    }
}

/// The values that are addresses with known roots.
struct Roots {
    /// The root of each value that is a constant or an address in a frame, and its distance from there.
    known: Vec<Option<(Root, u32)>>,
    /// The bytes of each frame.
    frames: HashMap<Value, u32, RandomState>,
}

impl Roots {
    fn find(f: &Function) -> Roots {
        let mut roots = Roots { known: vec![None; f.n_values()], frames: HashMap::default() };
        for block in f.blocks() {
            for &inst in f.insts(block) {
                roots.add(f, inst);
            }
        }
        roots
    }

    /// Definitions come before their uses: blocks are in preorder of the dominator tree.
    fn add(&mut self, f: &Function, inst: Inst) {
        match f.opcode(inst) {
            Opcode::Ir(IrOp::FramePush) => {
                let frame = f.result(inst);
                self.frames.insert(frame, f.imm(inst).low());
                self.known[frame.index()] = Some((Root::Frame(frame), 0));
            }
            Opcode::Op(Op::I32Const) => {
                self.known[f.result(inst).index()] = Some((Root::Zero, f.imm(inst).low()));
            }
            Opcode::Op(Op::I32Add) if !self.frames.is_empty() => {
                let [a, b] = [0, 1].map(|i| self.known[f.operands(inst)[i].index()]);
                if let (Some((root @ Root::Frame(_), offset)), Some((Root::Zero, constant)))
                | (Some((Root::Zero, constant)), Some((root @ Root::Frame(_), offset))) = (a, b)
                {
                    let sum = (root, offset.wrapping_add(constant));
                    self.known[f.result(inst).index()] = Some(sum);
                }
            }
            _ => {}
        }
    }

    /// The place of a load or store, unless its address is computed from an index.
    fn access(&self, f: &Function, inst: Inst, op: Op) -> Option<Place> {
        if op.access().is_some_and(|access| access.indexed) {
            return None;
        }
        let (address, bytes) = (f.operands(inst)[0], op.access_bytes()?);
        let offset = u64::from(f.imm(inst).offset());
        let other = Place { root: Root::Other(address), offset, bytes };
        let Some((root, from_root)) = self.known[address.index()] else { return Some(other) };
        let offset = offset + u64::from(from_root);
        match root {
            // What lies beyond the frame may lie anywhere.
            Root::Frame(frame) if offset + u64::from(bytes) > u64::from(self.frames[&frame]) => {
                Some(other)
            }
            root => Some(Place { root, offset, bytes }),
        }
    }

    /// The places that are loaded, and loaded again or stored, those first that are accessed most.
    fn places(&self, f: &Function) -> Vec<(Place, ValType)> {
        let mut counts: HashMap<(Place, ValType), (u32, u32, usize), RandomState> =
            HashMap::default();
        for block in f.blocks() {
            for &inst in f.insts(block) {
                if let Opcode::Op(op) = f.opcode(inst)
                    && let Some(ty) = full_access(op)
                    && let Some(place) = self.access(f, inst, op)
                {
                    let order = counts.len();
                    let (loads, stores, _) = counts.entry((place, ty)).or_insert((0, 0, order));
                    match op.effect() {
                        Effect::Write => *stores += 1,
                        _ => *loads += 1,
                    }
                }
            }
        }
        let is_zeroed = |place: &Place| matches!(place.root, Root::Frame(_));
        let mut places: Vec<_> = counts
            .into_iter()
            .filter(|((place, _), (loads, stores, _))| {
                *loads > 0 && (loads + stores > 1 || is_zeroed(place))
            })
            .collect();
        places.sort_unstable_by_key(|&(_, (loads, _, order))| (std::cmp::Reverse(loads), order));
        places.truncate(FORWARDED_PLACES_MAX);
        places.into_iter().map(|(place, _)| place).collect()
    }
}
