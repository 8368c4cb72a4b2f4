//! Edits of a function: each gives a smaller or simpler one, which may behave differently.

use slotvm_bytecode::{Imm, ImmKind, Op};

use super::body::{Body, Inst, Item, Operands};

/// The targets of a switch that are tried in its place.
const TARGETS_MAX: usize = 8;

impl Body {
    /// Replaces the instructions of a range by constants: each drops its operands, and pushes `value` in the place of
    /// its results. Instructions that end a block stay.
    pub(super) fn without(
        &self,
        range: std::ops::Range<usize>,
        operands: &[Operands],
        value: i32,
    ) -> Body {
        let mut items = self.items[..range.start].to_vec();
        for (item, operands) in self.items[range.clone()].iter().zip(&operands[range.clone()]) {
            match item {
                Item::Inst(inst) if !inst.ends_block() => {
                    items.extend(operands.pops.iter().map(|_| drop_one()));
                    let constants = operands.pushes.iter().map(|&ty| Inst::constant(ty, value));
                    items.extend(constants.map(Item::Inst));
                }
                other => items.push(other.clone()),
            }
        }
        items.extend_from_slice(&self.items[range.end..]);
        self.with(items)
    }

    /// Returns zeros in the place of an instruction and the rest of its block.
    pub(super) fn cut(&self, place: usize, stub: &Body) -> Body {
        self.replaced_to_end(place, stub.items.clone())
    }

    /// The simpler forms of an instruction: a branch that always goes one way, a return in the place of another end of
    /// a block, an operand in the place of the result, a constant, or nothing, which the types of operands may forbid.
    pub(super) fn simpler(&self, place: usize, operands: &[Operands], stub: &Body) -> Vec<Body> {
        let Item::Inst(inst) = &self.items[place] else { return Vec::new() };
        let mut forms = Vec::new();
        if inst.ends_block() {
            forms.push(self.cut(place, stub));
        } else {
            forms.push(self.replaced(place, Vec::new()));
        }
        match inst.op {
            Op::BrIf | Op::BrTable => {
                let mut labels = inst.labels.clone();
                labels.sort_unstable();
                labels.dedup();
                for &label in labels.iter().take(TARGETS_MAX) {
                    let items = vec![drop_one(), Item::Inst(Inst::br(label))];
                    forms.push(self.replaced_to_end(place, items));
                }
            }
            _ => {
                let Operands { pops, pushes } = &operands[place];
                if let ([first, rest @ ..], [result]) = (&pops[..], &pushes[..])
                    && first == result
                {
                    forms.push(self.replaced(place, rest.iter().map(|_| drop_one()).collect()));
                }
                if let ([_, second], [result]) = (&pops[..], &pushes[..])
                    && second == result
                {
                    let swap = Item::Inst(Inst::new(Op::Swap, Imm::NONE));
                    forms.push(self.replaced(place, vec![swap, drop_one()]));
                }
                let constants = [0, 1, -1];
                forms
                    .extend(constants.map(|value| self.without(place..place + 1, operands, value)));
            }
        }
        forms
    }

    /// The locals that instructions name, once for each.
    pub(super) fn locals_used(&self) -> impl Iterator<Item = usize> + '_ {
        self.items.iter().filter_map(|item| match item {
            Item::Inst(inst) if inst.op.imm_kind() == ImmKind::Local => {
                Some(inst.imm.low() as usize)
            }
            _ => None,
        })
    }

    /// Removes the last parameters, which are not used.
    pub(super) fn remove_params(&mut self, n: usize) {
        self.n_params -= n;
        for item in &mut self.items {
            if let Item::Inst(inst) = item
                && inst.op.imm_kind() == ImmKind::Local
                && inst.imm.low() as usize >= self.n_params
            {
                inst.imm = Imm::index(inst.imm.low() - n as u32);
            }
        }
    }

    /// Drops the last operands of each call of a function. Returns `None` if the function is named otherwise.
    pub(super) fn drop_before_calls(&mut self, func: u32, n: usize) -> Option<()> {
        let mut items = Vec::with_capacity(self.items.len());
        for item in std::mem::take(&mut self.items) {
            if let Item::Inst(inst) = &item
                && inst.imm.low() == func
            {
                match inst.op {
                    Op::Call | Op::ReturnCall => items.extend((0..n).map(|_| drop_one())),
                    Op::RefFunc => return None,
                    _ => {}
                }
            }
            items.push(item);
        }
        self.items = items;
        self.clean();
        Some(())
    }

    fn replaced(&self, place: usize, by: Vec<Item>) -> Body {
        let mut items = self.items.clone();
        items.splice(place..=place, by);
        self.with(items)
    }

    /// Replaces an instruction and the rest of its block.
    fn replaced_to_end(&self, place: usize, by: Vec<Item>) -> Body {
        let ends = |item: &Item| matches!(item, Item::Inst(inst) if inst.ends_block());
        let rest = self.items[place..].iter().position(ends).expect("blocks end");
        // Labels in between begin other blocks, which others may still reach.
        let is_label = |item: &Item| matches!(item, Item::Label(_));
        let label = self.items[place..=place + rest].iter().position(is_label);
        let end = place + label.unwrap_or(rest + 1);
        let mut items = self.items.clone();
        items.splice(place..end, by);
        self.with(items)
    }

    fn with(&self, items: Vec<Item>) -> Body {
        let mut body = Body { items, ..self.clone() };
        body.clean();
        body
    }

    /// Removes unreachable code, computations that are only dropped, and branches to the next instruction.
    pub(super) fn clean(&mut self) {
        let reachable = self.reachable();
        let is_target = self.targets(&reachable);
        let items = std::mem::take(&mut self.items);
        let mut out: Vec<Item> = Vec::with_capacity(items.len());
        for (item, _) in items.into_iter().zip(&reachable).filter(|(_, reached)| **reached) {
            match item {
                Item::Label(label) if !is_target[label as usize] => {}
                Item::Label(label) => {
                    let jump = Item::Inst(Inst::br(label));
                    if out.last() == Some(&jump) {
                        out.pop();
                    }
                    out.push(Item::Label(label));
                }
                Item::Inst(inst) if inst.op == Op::Drop => drop_top(&mut out),
                inst => out.push(inst),
            }
        }
        self.items = out;
    }
}

fn drop_one() -> Item {
    Item::Inst(Inst::new(Op::Drop, Imm::NONE))
}

/// Appends a drop, or removes the computation of the operand.
fn drop_top(out: &mut Vec<Item>) {
    let mut n_drops = 1;
    while n_drops > 0 {
        let Some(Item::Inst(last)) = out.last_mut() else { break };
        match last.op {
            Op::LocalTee => {
                last.op = Op::LocalSet;
                n_drops -= 1;
                break;
            }
            Op::Dup | Op::Over => {
                out.pop();
                n_drops -= 1;
            }
            _ => match last.n_pure_operands() {
                Some(n) => {
                    out.pop();
                    n_drops += n;
                    n_drops -= 1;
                }
                None => break,
            },
        }
    }
    out.extend((0..n_drops).map(|_| drop_one()));
}
