//! The tables of a function that is put together from the forms of a plan.
//!
//! Instructions, values, slots, locations and vectors of each node follow those of the nodes before it. So the id of
//! anything is that of its form, moved by the [base](Base) of the node. Leaves of one function share their slots, because
//! a leaf ends before the next one starts. So a frame with its slots in memory grows by those of one leaf.

use std::collections::HashMap;

use slotvm_bytecode::{Imm, ImmKind};

use super::plan::Plan;
use crate::ir::entity::{Block, Inst, Loc, Value};
use crate::ir::irop::Opcode;
use crate::ir::{Function, LocData, SlotData, SlotOrigin};

/// The first ids of a node.
#[derive(Copy, Clone)]
struct Base {
    inst: u32,
    value: u32,
    slot: u32,
    loc: u32,
    block: u32,
    /// The location of the call that the node is inlined at, if it is.
    outer: Option<Loc>,
    /// The code offset in the root of the call that leads to the node.
    offset: u32,
}

/// The first ids of all nodes.
pub(super) struct Tables {
    bases: Vec<Base>,
    /// The number of blocks of all nodes.
    pub(super) n_blocks: u32,
    /// The number of edges of all nodes.
    pub(super) n_edges: usize,
    /// The first slot of the leaf of each function.
    leaf_slots: HashMap<u32, u32>,
}

/// Makes a function that has the tables of all nodes, but no blocks.
pub(super) fn new_tables(plan: &Plan, mut out: Function) -> (Function, Tables) {
    let root = plan.form(0);
    out.func = root.func;
    out.entry = root.entry.clone();
    out.name.push_str(&root.name);
    out.label_names = root.label_names.clone();
    out.ty = root.ty.clone();
    out.exits = root.exits.clone();
    let forms = || (0..plan.nodes.len()).map(|node| plan.form(node));
    let n_edges = forms().map(Function::n_edges).sum();
    let n_blocks = forms().map(Function::n_blocks).sum();
    out.reserve(forms().map(Function::n_insts).sum(), n_blocks, n_edges);
    let bases = Vec::with_capacity(plan.nodes.len());
    let mut tables = Tables { bases, n_blocks: 0, n_edges, leaf_slots: HashMap::new() };
    for node in 0..plan.nodes.len() {
        let base = tables.next_base(plan, node, &out);
        append(&mut out, plan.form(node), node, base);
        tables.n_blocks += plan.form(node).n_blocks() as u32;
        tables.bases.push(base);
    }
    (out, tables)
}

impl Tables {
    /// The base of a node whose tables come next.
    fn next_base(&mut self, plan: &Plan, node: usize, out: &Function) -> Base {
        // What replaces a tail call is inlined where the function is that makes the call.
        let outer = plan.nodes[plan.returning(node)]
            .caller
            .map(|(caller, call)| Loc(plan.form(caller).loc(call).0 + self.bases[caller].loc));
        let offset = match plan.nodes[node].caller {
            None => 0,
            Some((0, call)) => plan.form(0).locs[plan.form(0).loc(call).index()].offset,
            Some((caller, _)) => self.bases[caller].offset,
        };
        let mut slot = out.slots.len() as u32;
        if plan.form_of(node).is_leaf {
            slot = *self.leaf_slots.entry(plan.form(node).func).or_insert(slot);
        }
        Base {
            inst: out.n_insts() as u32,
            value: out.n_values() as u32,
            slot,
            loc: out.locs.len() as u32,
            block: self.n_blocks,
            outer,
            offset,
        }
    }

    pub(super) fn inst(&self, node: usize, inst: Inst) -> Inst {
        Inst(inst.0 + self.bases[node].inst)
    }

    pub(super) fn value(&self, node: usize, value: Value) -> Value {
        Value(value.0 + self.bases[node].value)
    }

    pub(super) fn slot(&self, node: usize, slot: u32) -> u32 {
        slot + self.bases[node].slot
    }

    pub(super) fn block(&self, node: usize, block: Block) -> u32 {
        block.0 + self.bases[node].block
    }

    /// The location of the call that a node is inlined at, if it is.
    pub(super) fn outer(&self, node: usize) -> Option<Loc> {
        self.bases[node].outer
    }

    /// The code offset in the root of the call that leads to a node.
    pub(super) fn offset_of_call(&self, node: usize) -> u32 {
        self.bases[node].offset
    }

    /// The location of the first instruction of a node.
    pub(super) fn first_loc(&self, plan: &Plan, node: usize) -> Loc {
        let f = plan.form(node);
        Loc(f.loc(f.insts(Function::ENTRY)[0]).0 + self.bases[node].loc)
    }
}

/// Appends the tables of a node.
fn append(out: &mut Function, f: &Function, node: usize, base: Base) {
    let vectors = out.vectors.len() as u32;
    let pool = out.operand_pool.len() as u32;
    let slot = |(slot, data): (u32, &SlotData)| match node {
        0 => *data,
        _ => SlotData { origin: SlotOrigin::Inlined(slot), ..*data },
    };
    let loc = |data: &LocData| {
        let inlined_at = data.inlined_at.map(|at| Loc(at.0 + base.loc)).or(base.outer);
        LocData { inlined_at, ..*data }
    };
    let imm = |(&op, &imm): (&Opcode, &Imm)| match op {
        Opcode::Ir(op) if op.is_slot_access() => Imm::index(imm.low() + base.slot),
        Opcode::Op(op) if matches!(op.imm_kind(), ImmKind::V128 | ImmKind::Lanes) => {
            Imm::index(imm.low() + vectors)
        }
        _ => imm,
    };
    let value = |value: &Value| Value(value.0 + base.value);
    match (&f.names, node) {
        (names, 0) => out.names.clone_from(names),
        (Some(names), _) => {
            out.names.get_or_insert_default().append(names, base.slot, base.value);
        }
        (None, _) => {}
    }
    out.vectors.extend_from_slice(&f.vectors);
    if base.slot as usize == out.slots.len() {
        out.slots.extend((base.slot..).zip(&f.slots).map(slot));
    }
    out.locs.extend(f.locs.iter().map(loc));
    out.ops.extend_from_slice(&f.ops);
    out.imms.extend(f.ops.iter().zip(&f.imms).map(imm));
    out.operand_pool.extend(f.operand_pool.iter().map(value));
    out.operands.extend(f.operands.iter().map(|&(start, len)| (start + pool, len)));
    out.results.extend(f.results.iter().map(|&(first, n)| (value(&first), n)));
    out.value_types.extend_from_slice(&f.value_types);
    out.inst_locs.extend(f.inst_locs.iter().map(|loc| Loc(loc.0 + base.loc)));
}
