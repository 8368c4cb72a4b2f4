//! Values carried from one round of a loop to the next: a load of what the round before has stored or loaded.
//!
//! In a loop that stores `a[i]` and loads `a[i - 1]`, what is loaded is known in all rounds except the first. The load
//! becomes a phi of the header: in front of the loop it is loaded, and at its end it is the value stored. GCC calls this
//! predictive commoning, and LLVM has a part of it in `LoopLoadElimination`. In these steps:
//! 1. Loops that may gain are found: innermost ones of one entry and one edge back, without calls, with a load.
//! 2. `first` finds the loads that each first round executes before any other effect. Only these become phis. They are
//!    copied in front of the loop: a copy that traps does so where the first round would have, and with the same memory.
//! 3. `forms` writes addresses as sums, and finds what the address of a load in the next round is in this one. If a
//!    *source*, an access in each round, has that address, and nothing that may write there lies between it and the end
//!    of the round, or between the start of a round and the load, then its value is what the load returns.
//! 4. `apply` writes and reads slots, which are promoted, as those of places are.
//!
//! A load that goes away cannot trap, since the round before accessed the same bytes and a memory never shrinks.
//!
//! Two accesses do not overlap if their addresses differ by a constant that keeps them apart, whether or not 32 bits
//! wrap. Any others may overlap. Loops whose values fill the registers stay (`CARRIED_MAX`): a phi that is spilled costs
//! what the load did. A loop of one round does what is copied twice, which is little (`FIRST_ROUND_MAX`), and each
//! further round saves a load. Takes time linear in the function, except for accesses of one loop, of which there are
//! few, and for promotion.

mod apply;
mod first;
mod forms;

use slotvm_bytecode::{Effect, Op, ValType};

use self::first::FirstRound;
use self::forms::{Form, Forms};
use super::places::may_write;
use crate::ir::Function;
use crate::ir::entity::{Block, Edge, Inst, Value};
use crate::ir::irop::{IrOp, Opcode};

/// The maximum number of blocks of a loop that is looked at.
const ROUND_BLOCKS_MAX: usize = 32;
/// The maximum number of instructions of a loop that is looked at.
const ROUND_INSTS_MAX: usize = 400;
/// The maximum number of loads and stores of a loop that is looked at.
const ROUND_ACCESSES_MAX: usize = 32;
/// The maximum numbers of values that live around a loop after the pass, of integers, floats and vectors. Values within
/// the round need registers too.
const CARRIED_MAX: [usize; 3] = [10, 12, 12];

/// Statistics of the values that are carried.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RoundsReport {
    pub(super) n_loops: usize,
    pub(super) n_loads: usize,
}

/// Makes phis of loads in loops.
pub(super) fn forward_rounds(f: &mut Function) -> RoundsReport {
    let bodies = find_bodies(f);
    if bodies.is_empty() {
        return RoundsReport::default();
    }
    let mut forms = Forms::new(f);
    let plans: Vec<Plan> =
        bodies.into_iter().filter_map(|body| plan(f, &mut forms, body)).collect();
    if !plans.is_empty() {
        apply::apply(f, &plans);
    }
    let n_loads = plans.iter().flat_map(|plan| &plan.carried).map(|it| it.loads.len()).sum();
    RoundsReport { n_loops: plans.len(), n_loads }
}

/// An innermost loop of one entry and one edge back.
struct Body {
    /// In an order in which only the edge back leads back. The first one is the header.
    blocks: Vec<Block>,
    entry: Edge,
    latch: Edge,
}

/// A loop that has loads of what the round before knows.
struct Plan {
    body: Body,
    /// The instructions of the first round that are copied in front of the loop, in their order.
    first: Vec<Inst>,
    carried: Vec<Carried>,
}

/// A value that is carried.
struct Carried {
    /// The loads that become it. The first round does the first of them for certain.
    loads: Vec<Inst>,
    /// The value that the next round gets, unless that is the result of one of these loads.
    next: Option<Value>,
}

/// Finds the loops that may gain.
fn find_bodies(f: &Function) -> Vec<Body> {
    let mut bodies = Vec::new();
    let mut seen: Vec<u32> = Vec::new();
    for header in f.blocks() {
        let &[a, b] = f.pred_edges(header) else { continue };
        let (entry, latch) = match (f.edge_src(a) >= header, f.edge_src(b) >= header) {
            (false, true) => (a, b),
            (true, false) => (b, a),
            _ => continue,
        };
        if seen.is_empty() {
            seen.resize(f.n_blocks(), 0);
        }
        if let Some(blocks) = blocks_of(f, &mut seen, header, f.edge_src(latch))
            && may_gain(f, &blocks)
        {
            bodies.push(Body { blocks, entry, latch });
        }
    }
    bodies
}

/// The blocks of a loop, unless it is large, contains another one, or has another entry.
fn blocks_of(f: &Function, seen: &mut [u32], header: Block, latch: Block) -> Option<Vec<Block>> {
    let mark = header.0 + 1;
    let mut blocks = vec![header];
    seen[header.index()] = mark;
    let mut add = |blocks: &mut Vec<Block>, block: Block| {
        if std::mem::replace(&mut seen[block.index()], mark) != mark {
            blocks.push(block);
        }
    };
    add(&mut blocks, latch);
    let mut next = 1;
    while let Some(&block) = blocks.get(next) {
        next += 1;
        for &edge in f.pred_edges(block) {
            let pred = f.edge_src(edge);
            if pred < header || pred >= block {
                return None;
            }
            add(&mut blocks, pred);
        }
        if blocks.len() > ROUND_BLOCKS_MAX {
            return None;
        }
    }
    // Blocks are numbered so that only what closes a loop leads back.
    blocks.sort_unstable();
    Some(blocks)
}

/// Whether a loop has loads and nothing that may write anywhere.
fn may_gain(f: &Function, blocks: &[Block]) -> bool {
    let insts = || blocks.iter().flat_map(|&block| f.insts(block));
    let (mut n_insts, mut n_accesses, mut has_loads) = (0, 0, false);
    for &inst in insts() {
        let opcode = f.opcode(inst);
        n_insts += 1;
        if opcode.is_access() {
            n_accesses += 1;
            has_loads |= opcode.effect() == Effect::Read;
        } else if may_write(opcode) || opcode == Opcode::Ir(IrOp::FramePush) {
            return false;
        }
    }
    has_loads && n_insts <= ROUND_INSTS_MAX && n_accesses <= ROUND_ACCESSES_MAX
}

/// The address of an access.
#[derive(Copy, Clone, PartialEq, Eq)]
struct Address {
    base: Form,
    /// The index and the logarithm of its scale.
    index: Option<(Form, u32)>,
    offset: u32,
}

impl Address {
    fn next(&self, forms: &Forms) -> Option<Address> {
        let index = match self.index {
            Some((index, scale)) => Some((forms.next(&index)?, scale)),
            None => None,
        };
        Some(Address { base: forms.next(&self.base)?, index, offset: self.offset })
    }

    /// Whether the bytes of two accesses in one round differ for sure.
    fn is_apart(&self, bytes: u32, other: &Address, other_bytes: u32) -> bool {
        let (indices, scale) = match (self.index, other.index) {
            (None, None) => (Some(0), 0),
            (Some((a, scale)), Some((b, same))) if scale == same => (a.distance(&b), scale),
            _ => return false,
        };
        let (Some(base), Some(index)) = (self.base.distance(&other.base), indices) else {
            return false;
        };
        let offset = i64::from(other.offset) - i64::from(self.offset);
        // The sums of 32 bits may wrap, addresses do not.
        let wrapped = |distance: i32| {
            let up = i64::from(distance as u32);
            [up, if up == 0 { 0 } else { up - (1 << 32) }]
        };
        wrapped(base).into_iter().all(|base| {
            wrapped(index).into_iter().all(|index| {
                let distance = base + (index << scale) + offset;
                distance >= i64::from(bytes) || -distance >= i64::from(other_bytes)
            })
        })
    }
}

/// A load or store of a loop.
struct Access {
    inst: Inst,
    op: Op,
    bytes: u32,
    address: Address,
    /// Whether each round does it.
    is_certain: bool,
}

impl Access {
    fn is_store(&self) -> bool {
        self.op.effect() == Effect::Write
    }

    fn is_apart(&self, other: &Access) -> bool {
        self.address.is_apart(self.bytes, &other.address, other.bytes)
    }

    /// Whether the value that this access stores or loads is what a load from the same address returns.
    fn has_value_of(&self, load: &Access) -> bool {
        let (Some(of), Some(loaded)) = (self.op.access(), load.op.access()) else { return false };
        self.op == load.op
            || self.is_store() && of.is_full() && loaded.is_full() && of.ty == loaded.ty
    }

    /// The value that it stores or loads.
    fn value(&self, f: &Function) -> Value {
        match self.is_store() {
            true => *f.operands(self.inst).last().expect("a store has a value"),
            false => f.result(self.inst),
        }
    }
}

/// The plan of a loop, if it has loads of what the round before knows.
fn plan(f: &Function, forms: &mut Forms, body: Body) -> Option<Plan> {
    let first_round = FirstRound::find(f, &body);
    if !first_round.has_loads(f) {
        return None;
    }
    let accesses = accesses(f, forms, &body);
    // Whether a load reads what was there at the start of the round.
    let reads_old = |i: usize| {
        let load = &accesses[i];
        !load.is_store() && accesses[..i].iter().all(|it| !it.is_store() || it.is_apart(load))
    };
    let mut carried = Vec::new();
    let mut room: Option<[usize; 3]> = None;
    for (i, load) in accesses.iter().enumerate() {
        let is_same = |it: &Access| (it.op, it.address) == (load.op, load.address);
        if !first_round.has(load.inst) || accesses[..i].iter().any(is_same) || !reads_old(i) {
            continue;
        }
        let Some(from) = source(forms, &accesses, load) else { continue };
        let room = room.get_or_insert_with(|| self::room(f, &body));
        let room = &mut room[class_of(f.value_type(f.result(load.inst)))];
        if *room > 0 {
            *room -= 1;
            // One of the loads that become slots, whose value is that of the round before, too.
            let source = &accesses[from];
            let stays = is_same(source) && reads_old(from);
            let same = (i..accesses.len()).filter(|&i| is_same(&accesses[i]) && reads_old(i));
            let loads = same.map(|i| accesses[i].inst).collect();
            carried.push(Carried { loads, next: (!stays).then(|| source.value(f)) });
        }
    }
    let first = first_round.up_to(f, &body, carried.iter().map(|it| it.loads[0]))?;
    Some(Plan { body, first, carried })
}

/// The last access of each round whose value a load returns in the next one, by number.
fn source(forms: &Forms, accesses: &[Access], load: &Access) -> Option<usize> {
    let next = load.address.next(forms)?;
    let is_source = |(i, of): &(usize, &Access)| {
        of.is_certain
            && of.address == next
            && of.has_value_of(load)
            && accesses[i + 1..].iter().all(|it| !it.is_store() || it.is_apart(of))
    };
    accesses.iter().enumerate().rev().find(is_source).map(|(number, _)| number)
}

fn accesses(f: &Function, forms: &mut Forms, body: &Body) -> Vec<Access> {
    let is_access = |&&inst: &&Inst| f.opcode(inst).is_access();
    let insts = || body.blocks.iter().flat_map(|&block| f.insts(block).iter().filter(is_access));
    let is_indexed = |op: Op| op.access().is_some_and(|access| access.indexed);
    let n_operands = |inst: Inst| match f.opcode(inst) {
        Opcode::Op(op) if is_indexed(op) => 2,
        _ => 1,
    };
    let addresses: Vec<Value> =
        insts().flat_map(|&inst| &f.operands(inst)[..n_operands(inst)]).copied().collect();
    forms.analyse(f, body, &addresses);
    let mut accesses = Vec::new();
    let certain = certain_blocks(f, body);
    for (&block, is_certain) in body.blocks.iter().zip(certain) {
        for &inst in f.insts(block) {
            let Opcode::Op(op) = f.opcode(inst) else { continue };
            let Some(bytes) = op.access_bytes() else { continue };
            let (operands, imm) = (f.operands(inst), f.imm(inst));
            let index = is_indexed(op).then(|| (forms.form(f, operands[1]), imm.scale_log2()));
            let address = Address { base: forms.form(f, operands[0]), index, offset: imm.offset() };
            accesses.push(Access { inst, op, bytes, address, is_certain });
        }
    }
    accesses
}

/// Whether each block of a loop is on all paths from the header to the edge back: no edge passes it by.
fn certain_blocks(f: &Function, body: &Body) -> Vec<bool> {
    let mut farthest = body.blocks[0];
    let certain = body.blocks.iter().map(|&block| {
        let is_certain = farthest <= block;
        for edge in f.succ_edges(block) {
            let succ = f.edge_dst(edge);
            if body.blocks.binary_search(&succ).is_ok() {
                farthest = farthest.max(succ);
            }
        }
        is_certain
    });
    certain.collect()
}

/// The number of values that may live around a loop besides those that do.
fn room(f: &Function, body: &Body) -> [usize; 3] {
    let mut outside: Vec<Value> = Vec::new();
    let mut inside: Vec<Value> = Vec::new();
    for &block in &body.blocks {
        inside.extend_from_slice(f.params(block));
        for &inst in f.insts(block) {
            inside.extend(f.results(inst));
            outside.extend_from_slice(f.operands(inst));
        }
        f.succ_edges(block).for_each(|edge| outside.extend_from_slice(f.edge_args(edge)));
    }
    for values in [&mut inside, &mut outside] {
        values.sort_unstable();
        values.dedup();
    }
    outside.retain(|value| inside.binary_search(value).is_err());
    let mut room = CARRIED_MAX;
    for &value in outside.iter().chain(f.params(body.blocks[0])) {
        let room = &mut room[class_of(f.value_type(value))];
        *room = room.saturating_sub(1);
    }
    room
}

/// The index in [`CARRIED_MAX`] of the registers that a value needs.
fn class_of(ty: ValType) -> usize {
    match ty {
        ValType::F32 | ValType::F64 => 1,
        ValType::V128 => 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
