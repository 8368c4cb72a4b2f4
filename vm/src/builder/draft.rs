//! Code that is written in order, before the numbers of the labels of its branches are known.
//!
//! Labels are numbered in the order of binding, which is that of the label table. So branches are written without
//! labels; [`Draft::lay_out`] inserts them and adjusts code offsets.

use crate::inst::write_op;
use crate::leb;
use crate::limits;
use crate::module::{BranchHint, Func, Label, SourcePlace};
use crate::op::Op;
use crate::stacks::StackId;

/// A label of the function being built.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelId(pub u32);

/// The code of a function that is being written.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    /// The code without the labels of branches, which belong at the offsets in `label_uses`.
    pub(crate) code: Vec<u8>,
    label_uses: Vec<(u32, LabelId)>,
    /// The number of each label in the label table, once it is bound.
    numbers: Vec<Option<u32>>,
    /// The code offsets of bound labels with their stacks, each offset once, in ascending order.
    bound: Vec<(u32, StackId)>,
    lines: Vec<(u32, SourcePlace)>,
    hints: Vec<(u32, BranchHint)>,
}

impl Draft {
    /// Takes everything back, and keeps allocations.
    #[cfg(feature = "wasm")]
    pub(crate) fn clear(&mut self) {
        self.code.clear();
        self.label_uses.clear();
        self.numbers.clear();
        self.bound.clear();
        self.lines.clear();
        self.hints.clear();
    }

    /// The number of bytes so far.
    pub(crate) fn offset(&self) -> u32 {
        self.code.len() as u32
    }

    /// Creates a label.
    pub(crate) fn label(&mut self) -> LabelId {
        self.numbers.push(None);
        LabelId(self.numbers.len() as u32 - 1)
    }

    /// The number of a label that is bound.
    pub(crate) fn number(&self, label: LabelId) -> Option<u32> {
        *self.numbers.get(label.0 as usize)?
    }

    /// Binds a label with a stack to the next instruction. Returns whether it is the first one there; others have the
    /// same stack, and share its number.
    pub(crate) fn bind(&mut self, label: LabelId, stack: StackId) -> bool {
        let offset = self.offset();
        let is_first = self.bound.last().is_none_or(|&(place, _)| place < offset);
        if is_first {
            self.bound.push((offset, stack));
        }
        self.numbers[label.0 as usize] = Some(self.bound.len() as u32 - 1);
        is_first
    }

    /// Writes a branch, except for what follows its label.
    pub(crate) fn branch(&mut self, op: Op, label: LabelId) {
        write_op(&mut self.code, op);
        self.label_uses.push((self.offset(), label));
    }

    /// Sets the hint of the conditional branch that is written next.
    pub(crate) fn hint(&mut self, hint: BranchHint) {
        self.hints.push((self.offset(), hint));
    }

    /// Writes a `br_keep`, which takes along the topmost `n` operands.
    pub(crate) fn br_keep(&mut self, label: LabelId, n: u32) {
        self.branch(Op::BrKeep, label);
        leb::write_u32(&mut self.code, n);
    }

    /// Writes a `br_table`.
    pub(crate) fn br_table(&mut self, labels: &[LabelId], default: LabelId) {
        write_op(&mut self.code, Op::BrTable);
        leb::write_u32(&mut self.code, labels.len() as u32);
        let place = self.offset();
        self.label_uses.extend(labels.iter().chain([&default]).map(|&label| (place, label)));
    }

    /// Sets the source place of the following instructions.
    pub(crate) fn place(&mut self, place: SourcePlace) {
        let place = if place.line == 0 { SourcePlace::NONE } else { place };
        let offset = self.offset();
        if self.lines.last().is_some_and(|&(o, _)| o == offset) {
            self.lines.pop();
        }
        if self.current_place() != place {
            self.lines.push((offset, place));
        }
    }

    /// The source place of the next instruction.
    pub(crate) fn current_place(&self) -> SourcePlace {
        self.lines.last().map_or(SourcePlace::NONE, |&(_, place)| place)
    }

    /// A label that a branch uses and that is not bound.
    pub(crate) fn unbound(&self) -> Option<LabelId> {
        let mut labels = self.label_uses.iter().map(|&(_, label)| label);
        labels.find(|&label| self.number(label).is_none())
    }

    /// The name of a limit that the code exceeds.
    pub(crate) fn exceeds(&self) -> Option<&'static str> {
        if self.bound.len() > limits::LABELS_MAX {
            return Some("LABELS_MAX");
        }
        // The missing labels take at most 4 bytes each.
        let code_bytes = self.code.len() + 4 * self.label_uses.len();
        (code_bytes > limits::CODE_BYTES_MAX).then_some("CODE_BYTES_MAX")
    }

    /// Returns the code with labels inserted. The shapes of labels are numbers of stacks. `marks` are offsets in the
    /// draft, in ascending order; they become offsets in the code. The labels of a branch come before a mark behind it.
    ///
    /// # Panics
    /// Panics if a branch uses a label that is not bound.
    pub(crate) fn lay_out<'a>(&self, marks: impl Iterator<Item = &'a mut u32>) -> Func {
        let mut code = Vec::with_capacity(self.code.len() + self.label_uses.len());
        let mut labels = Vec::with_capacity(self.bound.len());
        let mut lines = Vec::with_capacity(self.lines.len());
        let mut hints = Vec::with_capacity(self.hints.len());
        let mut uses = self.label_uses.iter().peekable();
        let mut bound = self.bound.iter().peekable();
        let mut of_lines = self.lines.iter().peekable();
        let mut of_hints = self.hints.iter().peekable();
        let mut marks = marks.peekable();
        let mut copied = 0;
        loop {
            let next_use = uses.peek().map(|&&(place, _)| place);
            let places = [bound.peek().map(|&&(p, _)| p), of_lines.peek().map(|&&(p, _)| p)];
            let mark = marks.peek().map(|place| **place);
            let next_hint = of_hints.peek().map(|&&(place, _)| place);
            let others = [next_use, mark, next_hint];
            let Some(place) = places.into_iter().chain(others).flatten().min() else {
                break;
            };
            code.extend_from_slice(&self.code[copied..place as usize]);
            copied = place as usize;
            while let Some((_, label)) = uses.next_if(|&&(p, _)| p == place) {
                leb::write_u32(&mut code, self.number(*label).expect("the label is bound"));
            }
            let offset = code.len() as u32;
            if let Some((_, stack)) = bound.next_if(|&&(p, _)| p == place) {
                labels.push(Label { offset, shape: stack.to_shape() });
            }
            if let Some(&(_, source)) = of_lines.next_if(|&&(p, _)| p == place) {
                lines.push((offset, source));
            }
            if let Some(&(_, hint)) = of_hints.next_if(|&&(p, _)| p == place) {
                hints.push((offset, hint));
            }
            while let Some(mark) = marks.next_if(|mark| **mark == place) {
                *mark = offset;
            }
        }
        code.extend_from_slice(&self.code[copied..]);
        // A line set after the last instruction has no instruction.
        lines.retain(|&(offset, _)| (offset as usize) < code.len());
        Func { labels, code, lines, hints, ..Func::default() }
    }
}
