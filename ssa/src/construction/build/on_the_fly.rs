//! SSA form straight from bytecode: slots are the variables of [`crate::construction::braun`].
//!
//! Blocks come in preorder of the dominator tree, so that a block is sealed right after the last of its
//! predecessors is filled: before it is filled itself, unless an edge leads back to it.
//!
//! Until all is built, operands may be phis, which are numbers beyond all values ([`PHI`]). Then the phis
//! that stay become block parameters, numbered after all other values. One pass over the operand pool
//! replaces these numbers by the parameters, or by the values that removed phis stand for.

use std::collections::HashMap;

use slotvm_bytecode::{Imm, Op, ValType};

use super::slots::Slots;
use super::{SsaOptions, simplify};
use crate::construction::braun::{Braun, BraunPhi, BraunReport, PHI, Values};
use crate::graphs::cfg::{Cfg, ControlFlow};
use crate::graphs::dominators::DomTree;
use crate::ir::entity::{Inst, Loc, Value};
use crate::ir::fold;
use crate::ir::irop::Opcode;
use crate::ir::{Function, LocData};

/// Memory of the build, to be reused from function to function.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    braun: Braun,
    /// The in-edges of each block whose source is not filled, by number in the dominator tree.
    n_unfilled: Vec<u32>,
    preds: Vec<u32>,
    constants: Constants,
}

/// The constants of a function: the known values, and the constants that all blocks can use.
#[derive(Debug, Default)]
struct Constants {
    /// The bits of the values that are known to be constants.
    known: HashMap<Value, u64>,
    /// The constants at the start of the entry, by type and bits, and their instructions in order.
    of_entry: HashMap<(ValType, u64), Value>,
    insts: Vec<Inst>,
}

/// Values in place of slots.
pub(super) struct OnTheFly<'a> {
    options: SsaOptions,
    graph: &'a Cfg,
    dom: &'a DomTree,
    scratch: &'a mut Scratch,
    /// The block that is being filled.
    block: u32,
}

impl<'a> OnTheFly<'a> {
    pub(super) fn new(
        graph: &'a Cfg,
        dom: &'a DomTree,
        options: SsaOptions,
        scratch: &'a mut Scratch,
    ) -> OnTheFly<'a> {
        let Scratch { braun, n_unfilled, constants, .. } = scratch;
        braun.start(options.braun);
        n_unfilled.clear();
        n_unfilled.resize(dom.preorder().len(), 0);
        for &block in dom.preorder() {
            for &succ in graph.succs(block) {
                let number = dom.number(succ).expect("what follows a reachable block is reachable");
                n_unfilled[number as usize] += 1;
            }
        }
        constants.known.clear();
        constants.of_entry.clear();
        constants.insts.clear();
        OnTheFly { options, graph, dom, scratch, block: 0 }
    }

    /// Seals a block whose predecessors are all filled. They are listed in the order of edge numbers,
    /// which is the order of phi operands.
    fn seal(&mut self, f: &mut Function, block: u32) {
        let Scratch { braun, preds, constants, .. } = &mut *self.scratch;
        let sources = self.graph.preds(self.dom.preorder()[block as usize]);
        preds.clear();
        preds.extend(sources.iter().filter_map(|&source| self.dom.number(source)));
        preds.sort_unstable();
        braun.seal_block(
            block,
            preds.iter().copied(),
            &mut ValuesOf { f, constants, folds: self.options.fold },
        );
    }

    /// Removes phis that are not needed, and turns the others into parameters. Returns `None` if the
    /// function would be too large.
    pub(super) fn finish(self, f: &mut Function, phi_operands_max: usize) -> Option<BraunReport> {
        let Scratch { braun, constants, .. } = self.scratch;
        let report = braun.finish(&mut ValuesOf { f, constants, folds: self.options.fold });
        let n_operands: usize = braun.phis().map(|phi| phi.operands.len()).sum();
        if braun.is_exhausted() || n_operands > phi_operands_max {
            return None;
        }
        insert_in_entry(f, &constants.insts);
        let params = make_params(f, braun);
        for value in f.operand_pool.iter_mut().chain(&mut f.edge_args) {
            if value.0 & PHI != 0 {
                let settled = braun.resolve(value.0);
                *value = match settled & PHI {
                    0 => Value(settled),
                    _ => params[(settled & !PHI) as usize],
                };
            }
        }
        Some(report)
    }
}

/// Makes the parameters of blocks from the phis, those of a block in the order of slots, with their
/// operands, which may still be phi numbers. Returns the value of each phi.
fn make_params(f: &mut Function, braun: &Braun) -> Vec<Value> {
    let mut phis: Vec<BraunPhi<'_>> = braun.phis().collect();
    phis.sort_unstable_by_key(|phi| (phi.block, phi.variable));
    let n_phis = phis.iter().map(|phi| (phi.value & !PHI) as usize + 1).max().unwrap_or(0);
    let mut params = vec![Value::default(); n_phis];
    // Only the entry has parameters so far.
    let mut next = 0;
    for block in f.blocks().skip(1) {
        let first = f.block_params.len() as u32;
        while next < phis.len() && phis[next].block == block.0 {
            let phi = &phis[next];
            let value = f.make_value(f.slots[phi.variable as usize].ty);
            params[(phi.value & !PHI) as usize] = value;
            f.block_params.push(value);
            next += 1;
        }
        f.blocks[block.index()].params = (first, f.block_params.len() as u32);
    }
    let mut n_args = 0;
    for edge in &mut f.edges {
        edge.args = n_args;
        let (start, end) = f.blocks[edge.dst.index()].params;
        n_args += end - start;
    }
    f.edge_args.resize(n_args as usize, Value::default());
    let mut rest = &phis[..];
    for block in f.blocks().skip(1) {
        let (of_block, others) = rest.split_at(f.params(block).len());
        rest = others;
        if of_block.is_empty() {
            continue;
        }
        let start = f.pred_starts[block.index()] as usize;
        for (pred, edge) in
            f.pred_edges[start..].iter().take(of_block[0].operands.len()).enumerate()
        {
            let args = f.edges[edge.index()].args as usize;
            for (arg, phi) in f.edge_args[args..].iter_mut().zip(of_block) {
                *arg = Value(phi.operands[pred]);
            }
        }
    }
    params
}

/// Inserts constants at the start of the entry.
fn insert_in_entry(f: &mut Function, insts: &[Inst]) {
    if insts.is_empty() {
        return;
    }
    f.layout.splice(0..0, insts.iter().copied());
    let n_insts = insts.len() as u32;
    for block in &mut f.blocks {
        block.insts.0 += n_insts;
        block.insts.1 += n_insts;
    }
    f.blocks[Function::ENTRY.index()].insts.0 = 0;
}

/// The constants as [`Braun`] sees them. Its variables are slots.
struct ValuesOf<'a> {
    f: &'a mut Function,
    constants: &'a mut Constants,
    /// Whether equal constants are joined.
    folds: bool,
}

impl ValuesOf<'_> {
    /// A constant that all blocks can use.
    fn in_entry(&mut self, ty: ValType, bits: u64) -> Value {
        let ValuesOf { f, constants, .. } = self;
        let Constants { known, of_entry, insts } = constants;
        *of_entry.entry((ty, bits)).or_insert_with(|| {
            if f.locs.is_empty() {
                f.locs.push(LocData { func: f.func, offset: 0, inlined_at: None });
            }
            let (op, imm) = fold::constant(f, ty, bits);
            // The first location is that of the entry.
            let inst = f.make_inst(Opcode::Op(op), imm, &[], &[ty], Loc(0));
            insts.push(inst);
            known.insert(f.result(inst), bits);
            f.result(inst)
        })
    }
}

impl Values for ValuesOf<'_> {
    /// Slots start as zero or null.
    fn undefined(&mut self, variable: u32) -> u32 {
        self.in_entry(self.f.slots[variable as usize].ty, 0).0
    }

    fn fold(&mut self, a: u32, b: u32) -> Option<u32> {
        if !self.folds {
            return None;
        }
        let known = &self.constants.known;
        let bits = *known.get(&Value(a))?;
        (known.get(&Value(b)) == Some(&bits))
            .then(|| self.in_entry(self.f.value_type(Value(a)), bits).0)
    }
}

impl Slots for OnTheFly<'_> {
    const SIMPLIFIES: bool = true;

    fn start_block(&mut self, f: &mut Function, block: u32) {
        self.block = block;
        if block == Function::ENTRY.0 {
            self.seal(f, block);
        }
    }

    /// Marks the block as filled, and seals the blocks that waited only for it.
    fn end_block(&mut self, f: &mut Function) {
        let succs = self.graph.succs(self.dom.preorder()[self.block as usize]);
        for &succ in succs {
            let number = self.dom.number(succ).expect("it follows a reachable block");
            let n_unfilled = &mut self.scratch.n_unfilled[number as usize];
            *n_unfilled -= 1;
            if *n_unfilled == 0 {
                self.seal(f, number);
            }
        }
    }

    fn read(&mut self, f: &mut Function, slot: u32, _: ValType, _: u32) -> Value {
        let Scratch { braun, constants, .. } = &mut *self.scratch;
        Value(braun.read_variable(
            slot,
            self.block,
            &mut ValuesOf { f, constants, folds: self.options.fold },
        ))
    }

    fn write(&mut self, _: &mut Function, slot: u32, value: Value, _: u32) {
        self.scratch.braun.write_variable(slot, self.block, value.0);
    }

    fn write_surviving(&mut self, f: &mut Function, slot: u32, value: Value, _: u32, offset: u32) {
        self.write(f, slot, value, offset);
    }

    fn end_surviving(&mut self, _: &mut Function) {}

    fn value_type(&self, f: &Function, value: Value) -> ValType {
        match value.0 & PHI {
            0 => f.value_type(value),
            _ => f.slots[self.scratch.braun.variable_of(value.0) as usize].ty,
        }
    }

    fn simplify(
        &mut self,
        f: &mut Function,
        op: Op,
        imm: Imm,
        operands: impl ExactSizeIterator<Item = Value> + Clone,
        offset: u32,
    ) -> Option<Value> {
        let SsaOptions { fold: folds, copies, .. } = self.options;
        if !(folds || copies) {
            return None;
        }
        let Scratch { braun, constants, .. } = &mut *self.scratch;
        if matches!(op, Op::I32Const | Op::I64Const | Op::F32Const | Op::F64Const) {
            // The next value is the constant's.
            constants.known.insert(Value::new(f.n_values()), imm.0);
            return None;
        }
        let mut args = [simplify::Operand::default(); 3];
        if operands.len() > args.len() {
            return None;
        }
        let n_operands = operands.len();
        for (arg, value) in args.iter_mut().zip(operands) {
            let value = braun.resolve(value.0);
            let bits = constants.known.get(&Value(value)).copied();
            *arg = simplify::Operand { value: Value(value), bits };
        }
        let args = &args[..n_operands];
        if copies && let Some(value) = simplify::copy(op, args) {
            return Some(value);
        }
        let (ty, bits) = folds.then(|| fold::fold(op, |i| args[i].bits)).flatten()?;
        let (op, imm) = fold::constant(f, ty, bits);
        let loc = super::loc_at(f, offset);
        let inst = f.make_inst(Opcode::Op(op), imm, &[], &[ty], loc);
        f.layout.push(inst);
        constants.known.insert(f.result(inst), bits);
        Some(f.result(inst))
    }
}
