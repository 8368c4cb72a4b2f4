//! Bounds: accesses of memory that need no check, since an earlier one shows that they lie inside.
//!
//! Relies on SSA form, and guarantees it. Marks instructions ([`Function::is_in_bounds`])
//! and changes nothing else. It is the last pass, since a mark depends on instructions before it. The lowering makes no
//! checks of marked accesses where it checks bounds; where accesses fault, the pass does not run.
//!
//! A walk over the dominator tree remembers, for each address, the end of the farthest byte that was accessed from
//! there. A memory never shrinks, so an access up to that end is in bounds, as Cranelift's proof-carrying code and
//! HotSpot's range-check elimination have it for arrays. Three things are known without an access:
//! * The frame of locals in memory lies inside the memory.
//! * A sum of an address and a constant below the end that is known for the address does not wrap, so an access there is
//!   one at an offset from the address.
//! * An access that traps does not go on, so neither loads nor stores need to be told apart.
//!
//! Takes time linear in the function, except for the dominator tree.

use std::collections::HashMap;

use slotvm_bytecode::Op;

use crate::graphs::dominators::DomTree;
use crate::ir::Function;
use crate::ir::analyses::Analyses;
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::irop::{IrOp, Opcode};

/// Statistics of the bounds that are known.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct BoundsReport {
    /// Loads and stores.
    pub n_accesses: usize,
    /// Those that are in bounds for sure.
    pub n_in_bounds: usize,
}

/// Marks the accesses of a function in SSA form that are in bounds for sure.
pub fn bounds(f: &mut Function, analyses: &mut Analyses) -> BoundsReport {
    let n_accesses = f.blocks().flat_map(|block| f.insts(block)).filter(is_access(f)).count();
    let mut report = BoundsReport { n_accesses, n_in_bounds: 0 };
    if n_accesses > 0 {
        let in_bounds = Walk::default().run(f, analyses.tree(f));
        report.n_in_bounds = in_bounds.len();
        for inst in in_bounds {
            f.mark_in_bounds(inst);
        }
    }
    report
}

fn is_access(f: &Function) -> impl Fn(&&Inst) -> bool {
    |&&inst| f.opcode(inst).is_access()
}

/// An address without its static offset: a base and perhaps an index with the logarithm of its scale.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
struct Address {
    base: Value,
    index: Option<(Value, u32)>,
}

/// The state of the walk over the dominator tree.
#[derive(Default)]
struct Walk {
    /// The distance from each address within which all bytes are in bounds.
    ends: HashMap<Address, u64>,
    /// The earlier contents of `ends`, in the blocks from the root to the one at hand.
    log: Vec<(Address, Option<u64>)>,
    constants: HashMap<Value, u32>,
    /// The start of each sum with constants, and the distance from there in 32 bits.
    sums: HashMap<Value, (Value, u32)>,
    in_bounds: Vec<Inst>,
}

impl Walk {
    fn run(mut self, f: &Function, tree: &DomTree) -> Vec<Inst> {
        // The blocks from the root to the one at hand, each with the length of the log at its start.
        let mut path: Vec<(Block, usize)> = Vec::new();
        for block in f.blocks() {
            while let Some(&(top, len)) = path.last()
                && !tree.dominates(top.0, block.0)
            {
                self.undo(len);
                path.pop();
            }
            path.push((block, self.log.len()));
            for &inst in f.insts(block) {
                self.visit(f, inst);
            }
        }
        self.in_bounds
    }

    fn undo(&mut self, len: usize) {
        for (address, end) in self.log.drain(len..).rev() {
            match end {
                Some(end) => self.ends.insert(address, end),
                None => self.ends.remove(&address),
            };
        }
    }

    fn visit(&mut self, f: &Function, inst: Inst) {
        match f.opcode(inst) {
            Opcode::Op(Op::I32Const) => {
                self.constants.insert(f.result(inst), f.imm(inst).low());
            }
            Opcode::Op(Op::I32Add) => self.visit_sum(f, inst),
            Opcode::Ir(IrOp::FramePush) => {
                let frame = Address { base: f.result(inst), index: None };
                self.learn(frame, f.imm(inst).low().into());
            }
            Opcode::Op(op) => {
                if let Some(bytes) = op.access_bytes() {
                    self.visit_access(f, inst, op, bytes);
                }
            }
            Opcode::Ir(_) => {}
        }
    }

    /// Sums of sums start where the first one does: all wrap alike.
    fn visit_sum(&mut self, f: &Function, inst: Inst) {
        let &[a, b] = f.operands(inst) else { unreachable!("a sum has two operands") };
        let of = |constant| self.constants.get(&constant).copied();
        if let Some((a, constant)) = of(b).map(|c| (a, c)).or_else(|| of(a).map(|c| (b, c))) {
            let (start, distance) = self.sums.get(&a).copied().unwrap_or((a, 0));
            self.sums.insert(f.result(inst), (start, distance.wrapping_add(constant)));
        }
    }

    fn visit_access(&mut self, f: &Function, inst: Inst, op: Op, bytes: u32) {
        let (operands, imm) = (f.operands(inst), f.imm(inst));
        let is_indexed = op.access().is_some_and(|access| access.indexed);
        let index = is_indexed.then(|| (operands[1], imm.scale_log2()));
        let address = Address { base: operands[0], index };
        let end = u64::from(imm.offset()) + u64::from(bytes);
        let start = self.start(address);
        let end_from_start = start.map(|(start, distance)| (start, distance + end));
        if self.end(address) >= end
            || end_from_start.is_some_and(|(start, end)| self.end(start) >= end)
        {
            self.in_bounds.push(inst);
            return;
        }
        self.learn(address, end);
        if let Some((start, end)) = end_from_start {
            self.learn(start, end);
        }
    }

    /// The start of an address whose base is a sum, and the distance from there, if it does not wrap.
    fn start(&self, address: Address) -> Option<(Address, u64)> {
        let &(base, distance) = self.sums.get(&address.base)?;
        let does_not_wrap = u64::from(distance) < self.end(Address { base, index: None });
        does_not_wrap.then_some((Address { base, ..address }, distance.into()))
    }

    fn end(&self, address: Address) -> u64 {
        self.ends.get(&address).copied().unwrap_or(0)
    }

    /// Remembers that all bytes up to a distance from an address are in bounds.
    fn learn(&mut self, address: Address, end: u64) {
        let known = self.ends.get(&address).copied();
        if known.is_none_or(|known| known < end) {
            self.ends.insert(address, end);
            self.log.push((address, known));
        }
    }
}

#[cfg(test)]
mod tests;
