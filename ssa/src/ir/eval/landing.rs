//! Exits: the frames that go on in their place.
//!
//! A frame at the start of a block enters the form for that block. One after a call goes on in the middle of a block, in the
//! form of its function that has noted what waits at the call ([`Function::waiting`]): its slots and operands are set from the
//! cells of the frame. Other cells are never read, so they are set to a pattern that no program expects.

use super::run::{Frame, Runner, n_bits};
use crate::ir::entity::{Block, Inst};
use crate::ir::frame::{FramePlace, FrameState};
use crate::ir::{Entry, Function, WaitingValue};

/// The value of cells that an exit leaves as they are, which may hold anything.
pub(super) const UNKNOWN_CELL: u128 = 0xdead_beef_dead_beef_dead_beef_dead_beef;

impl Runner<'_, '_> {
    /// Puts the frames of an exit in the place of the active one.
    pub(super) fn land(&mut self, frame: &Frame, inst: Inst) {
        let function = self.function(frame);
        let exit = &function.exits[function.imm(inst).low() as usize];
        let values = self.read(frame, function.operands(inst));
        self.pop_frame();
        let mut values = &values[..];
        let mut frame_sp = self.state.frame_sp;
        let mut frames = Vec::new();
        for state in exit.frames() {
            let (own, outer) = values.split_at(state.places.len());
            frames.push((state, own, frame_sp));
            values = outer;
            let body = self.module.body(state.func).expect("the function is defined in the module");
            frame_sp += body.frame_bytes;
        }
        for (i, (state, values, frame_sp)) in frames.into_iter().enumerate().rev() {
            let value_at = |place| match state.places.iter().position(|&other| other == place) {
                Some(at) => values[at],
                None if place == FramePlace::FrameSp => frame_sp.into(),
                None => UNKNOWN_CELL,
            };
            match state.call {
                None => self.land_at_block(state, value_at),
                Some(call) => self.land_after_call(state, call, i == 0, value_at),
            }
        }
    }

    /// Goes on at the start of a block.
    fn land_at_block(&mut self, state: &FrameState, value_at: impl Fn(FramePlace) -> u128) {
        let lands = |landing: &Function| match &landing.entry {
            Entry::Frame(entry) => (entry.func, &entry.blocks) == (state.func, &state.blocks),
            Entry::Call => false,
        };
        let landing = self.landings.iter().position(lands).expect("each exit has a landing");
        let Entry::Frame(entry) = &self.landings[landing].entry else { unreachable!("it has one") };
        let args: Vec<u128> = entry.places.iter().map(|&place| value_at(place)).collect();
        self.push_frame(self.functions.len() + landing, &args);
    }

    /// Goes on after a call, or waits for it if its results are not known.
    fn land_after_call(
        &mut self,
        state: &FrameState,
        call: u32,
        has_results: bool,
        value_at: impl Fn(FramePlace) -> u128,
    ) {
        let offset = |f: &Function, inst: Inst| f.locs[f.loc(inst).index()].offset;
        let lands = |(number, landing): (usize, &Function)| {
            let calls = landing.waiting.iter().filter(|_| landing.func == state.func);
            let inst =
                calls.map(|waiting| waiting.inst).find(|&inst| offset(landing, inst) == call);
            Some((number, inst?))
        };
        let landing = self.landings.iter().enumerate().find_map(lands);
        let (landing, inst) = landing.expect("each call before an exit has a landing");
        let f = &self.landings[landing];
        self.push_frame(self.functions.len() + landing, &[]);
        let base = self.bits.len() - n_bits(f);
        self.bits[base..].fill(UNKNOWN_CELL);
        if let Entry::Frame(entry) = &f.entry {
            for (&param, &place) in f.params(Function::ENTRY).iter().zip(&entry.places) {
                if place == FramePlace::FrameSp {
                    self.bits[base + param.index()] = value_at(place);
                }
            }
        }
        let waiting = f.waiting_at(inst).expect("it was just found");
        for &(cell, value) in &waiting.values {
            let at = match value {
                WaitingValue::Slot(slot) => f.n_values() + slot as usize,
                WaitingValue::Operand(value) => value.index(),
            };
            self.bits[base + at] = value_at(FramePlace::Cell(cell));
        }
        let mut cell = waiting.args;
        for result in f.results(inst).filter(|_| has_results) {
            self.bits[base + result.index()] = value_at(FramePlace::Cell(cell));
            cell += f.value_type(result).cells() as u32;
        }
        let (block, next) = place_of(f, inst);
        let frame = self.current();
        (frame.block, frame.next) = (block, next + 1);
    }
}

/// The block of an instruction, and its place there.
fn place_of(f: &Function, inst: Inst) -> (Block, usize) {
    let at = |block| f.insts(block).iter().position(|&other| other == inst).map(|at| (block, at));
    f.blocks().find_map(at).expect("a call that has been noted is in some block")
}
