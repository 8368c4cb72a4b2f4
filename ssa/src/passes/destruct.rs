//! Destruction: from SSA form back to slot form.
//!
//! Relies on SSA form as [`crate::ir`] and [`mod@crate::ir::verify`] describe it. Guarantees slot form without
//! phis in which every value is used in the block that defines it, except the address that
//! `frame.push` returns, which is the same wherever it is used. The slots are new ones. Each parameter of
//! the function that leaves the entry block has a slot that stands for it; the others stand for further locals.
//!
//! After Boissinot, Darte, Rastello, Dupont de Dinechin and Guillon, "Revisiting Out-of-SSA Translation
//! for Correctness, Code Quality, and Efficiency" (CGO 2009):
//! 1. The live ranges of the values that cross blocks or that phis connect are found (`live`).
//! 2. These values are sorted into congruence classes, so that few phis need copies (`classes`).
//! 3. Classes get slots; some share one (`share`).
//! 4. On each edge, the operands for phis of other classes are copied, as parallel copies that the code
//!    does in sequence (`copies`). The copies stand at the end of the edge's source if that has no
//!    other out-edge; at the start of its target if that has no other in-edge; otherwise the edge is
//!    *critical* and gets a block of its own.
//!
//! Copies stand on edges, so that a copy changes nothing where another edge leads. This is what makes
//! them right without the copies by which Boissinot et al. isolate each phi first: a phi is written on
//! the edges into its block only, where all that is live is live at the start of its block as well, or is
//! an operand that is read before. The lost-copy and the swap problem are interferences like others.
//!
//! Constants have no slots. They are made anew before each use, on edges too. A slot starts as zero, so a
//! zero that is the first value of a slot is not written in the entry block.
//!
//! The function of the [`tutorial`](crate::tools::tutorial), to SSA form and back:
//!
//! ```
//! use slotvm_bytecode::{text, verify};
//! use slotvm_ssa::construction::build::{BuildOptions, BuildScratch, build};
//! use slotvm_ssa::passes::destruct::destruct;
//! use slotvm_ssa::construction::promote::{Scratch, promote};
//!
//! let source = "
//! func fib(n: i32) -> i32 {
//!   local a: i32, b: i32, i: i32, c: i32, retval: i32
//!   i32.const 1  local.tee b  local.set i
//!   local.get n  br_if while
//!   br end
//! while:
//!   local.get i  local.get n  i32.ge_s  br_if done
//!   local.get b  local.set c
//!   local.get a  local.get b  i32.add  local.set b
//!   local.get c  local.set a
//!   local.get i  i32.const 1  i32.add  local.set i
//!   br while
//! done:
//!   local.get b  local.set retval
//! end:
//!   local.get retval  return
//! }";
//! let module = verify(text::parse(source).unwrap()).unwrap();
//! let mut f = build(&module, 0, &BuildOptions::default(), &mut BuildScratch::default());
//! let mut scratch = Scratch::default();
//! assert_eq!(promote(&mut f, &mut scratch).n_phis, 4);
//! assert!(!f.has_slot_accesses());
//!
//! let report = destruct(&mut f);
//! assert!(f.has_slot_accesses() && f.n_phis() == 0);
//! // a = b around the loop is the copy that remains: the old b lives on when the new one is there.
//! assert!(report.n_copies > 0);
//! // What comes out has as many phis as what went in.
//! assert_eq!(promote(&mut f, &mut scratch).n_phis, 4);
//! ```
//!
//! All steps are linear in the lists of `live`, except for sorting. [`DestructionReport::is_too_large`]
//! reports that these would be too long.

mod classes;
mod copies;
mod live;
mod share;

use slotvm_bytecode::{Imm, Op, ValType};

use self::classes::Classes;
use self::copies::{Source, Step, sequence};
use self::live::{AT_EDGE, Liveness, Point, Uses};
use self::share::Slots;
use crate::ir::edit::Editor;
use crate::ir::entity::{Block, Edge, Inst, Loc, Slot, Value};
use crate::ir::graph::dom_tree;
use crate::ir::irop::{IrOp, Opcode};
use crate::ir::{Function, SlotData, SlotOrigin};

/// Counts and decisions of a destruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DestructionReport {
    /// Whether values are live in so many blocks that the function was left in SSA form. All other
    /// fields are then empty.
    pub is_too_large: bool,
    /// Local of the bytecode whose value each slot holds, if promotion knew one.
    pub locals: Vec<Option<u32>>,
    /// The number of phi operands in the class of their phi, which need no copy.
    pub n_coalesced: usize,
    /// The number of copies on edges, constants included.
    pub n_copies: usize,
    /// The number of split edges.
    pub n_split_edges: usize,
}

/// The liveness of values is too large.
struct TooLarge;

/// Turns a function in SSA form into slot form, unless the report says that it is too large.
///
/// # Panics
/// Panics if the function accesses slots.
pub fn destruct(f: &mut Function) -> DestructionReport {
    assert!(!f.has_slot_accesses(), "the function is in SSA form");
    let Ok(homes) = Homes::find(f) else {
        return DestructionReport { is_too_large: true, ..DestructionReport::default() };
    };
    let locals = homes.locals(f);
    homes.name_slots(f);
    let editor = Editor::new(f);
    let mut writer = Writer { homes, editor, n_coalesced: 0, n_copies: 0, n_split_edges: 0 };
    writer.run();
    let Writer { homes, editor, n_coalesced, n_copies, n_split_edges } = writer;
    editor.finish();
    f.slots = homes.slots;
    DestructionReport { is_too_large: false, locals, n_coalesced, n_copies, n_split_edges }
}

/// The place where a value is kept.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Home {
    /// No slot: the value is used in its block only, or nowhere, or is the address of the frame.
    Value,
    /// Result of this instruction, made anew for each use.
    Constant(Inst),
    /// A slot.
    Slot(u32),
}

/// The homes of all values.
struct Homes {
    of_value: Vec<Home>,
    slots: Vec<SlotData>,
}

impl Homes {
    fn find(f: &Function) -> Result<Homes, TooLarge> {
        let mut of_value = vec![Home::Value; f.n_values()];
        let mut defs = find_defs(f, &mut of_value);
        let mut is_used = vec![false; f.n_values()];
        f.operands_in_use(|value| is_used[value.index()] = true);
        let uses = Uses::collect(f, |param| is_used[param.index()]);
        let mut values = Vec::new();
        for_each_def(f, |value, (block, position)| {
            let leaves = |&(at, used): &Point| at != block || used == AT_EDGE;
            let uses = uses.of(value);
            let is_phi = position == 0 && block != Function::ENTRY;
            let is_kept = is_phi && !uses.is_empty() || uses.iter().any(leaves);
            if is_kept && defs[value.index()].is_some() {
                values.push(value);
            } else {
                defs[value.index()] = None;
            }
        });
        let live = Liveness::compute(f, &defs, &uses)?;
        let tree = dom_tree(f);
        let classes = Classes::find(f, &tree, &defs, &live, &values);
        values.retain(|&value| {
            let (block, position) = defs[value.index()].expect("only these are in the list");
            let is_copied_elsewhere =
                || f.succ_edges(block).len() > 1 && uses.of(value).iter().any(|p| p.1 == AT_EDGE);
            position == 0
                || !classes.is_alone(value)
                || live.of(value).len() > 1
                || is_copied_elsewhere()
        });
        let slots = Slots::assign(f, &classes, &defs, &live, &values);
        for &value in &values {
            let class = classes.of(value).expect("all of these are in classes");
            let slot = slots.of(class).expect("their classes have slots");
            of_value[value.index()] = Home::Slot(slot);
        }
        Ok(Homes { of_value, slots: slots.slots })
    }

    fn of(&self, value: Value) -> Home {
        self.of_value[value.index()]
    }

    fn slot(&self, value: Value) -> Option<u32> {
        match self.of(value) {
            Home::Slot(slot) => Some(slot),
            _ => None,
        }
    }

    /// Names the new slots instead of the old ones, each after the first of its values that has a name.
    fn name_slots(&self, f: &mut Function) {
        let Some(mut names) = f.names.take() else { return };
        names.truncate_slots(0);
        for_each_def(f, |value, _| {
            if let Some(slot) = self.slot(value) {
                names.name_slot_after(Slot(slot), value);
            }
        });
        f.names = Some(names);
    }

    /// The local whose values each slot holds. Promotion leaves the writes that it removes in the
    /// table of instructions, with the values that they wrote.
    fn locals(&self, f: &Function) -> Vec<Option<u32>> {
        let mut locals = vec![None; self.slots.len()];
        for inst in (0..f.n_insts()).map(Inst::new) {
            if f.opcode(inst) == Opcode::Ir(IrOp::SlotSet)
                && let Some(slot) = self.slot(f.operands(inst)[0])
                && let SlotOrigin::Local(local) = f.slots[f.imm(inst).low() as usize].origin
            {
                locals[slot as usize].get_or_insert(local);
            }
        }
        locals
    }
}

/// Calls `on` with all definitions, in dominance order.
fn for_each_def(f: &Function, mut on: impl FnMut(Value, Point)) {
    for block in f.blocks() {
        f.params(block).iter().for_each(|&param| on(param, (block, 0)));
        for (&inst, position) in f.insts(block).iter().zip(1..) {
            f.results(inst).for_each(|value| on(value, (block, position)));
        }
    }
}

/// The definitions of the values that may have slots. The homes of constants are noted.
fn find_defs(f: &Function, homes: &mut [Home]) -> Vec<Option<Point>> {
    let mut defs = vec![None; f.n_values()];
    for_each_def(f, |value, point| defs[value.index()] = Some(point));
    for block in f.blocks() {
        for &inst in f.insts(block) {
            if is_constant(f.opcode(inst)) {
                homes[f.result(inst).index()] = Home::Constant(inst);
                defs[f.result(inst).index()] = None;
            } else if f.opcode(inst) == Opcode::Ir(IrOp::FramePush) {
                defs[f.result(inst).index()] = None;
            }
        }
    }
    defs
}

/// Whether an operation is a constant.
fn is_constant(opcode: Opcode) -> bool {
    use Op::{F32Const, F64Const, I32Const, I64Const, RefNull};
    matches!(opcode, Opcode::Op(I32Const | I64Const | F32Const | F64Const | RefNull))
}

/// Writes the slot form.
struct Writer<'f> {
    homes: Homes,
    editor: Editor<'f>,
    n_coalesced: usize,
    n_copies: usize,
    n_split_edges: usize,
}

impl Writer<'_> {
    /// Writes the instructions of all blocks, with copies on edges, and removes the phis.
    fn run(&mut self) {
        let blocks = self.editor.order().to_vec();
        for &block in &blocks {
            let mut insts = Vec::new();
            if block == Function::ENTRY {
                self.write_params(&mut insts);
            }
            if let &[edge] = self.editor.in_edges(block)
                && self.editor.out_edges(self.editor.src(edge)).len() > 1
            {
                let loc = self.editor.func().loc(self.editor.insts(block)[0]);
                self.copy(edge, loc, &mut insts);
            }
            self.insts(block, &mut insts);
            if block == Function::ENTRY {
                self.forget_zeros(&mut insts);
            }
            self.editor.set_insts(block, &insts);
        }
        let edges: Vec<Edge> =
            blocks.iter().flat_map(|&block| self.editor.out_edges(block)).collect();
        let critical: Vec<(Edge, Loc, Vec<Inst>)> =
            edges.into_iter().filter_map(|edge| self.copies_of_critical(edge)).collect();
        for &block in blocks.iter().filter(|&&block| block != Function::ENTRY) {
            let none = vec![false; self.editor.params(block).len()];
            self.editor.retain_params(block, &none);
        }
        self.n_split_edges = critical.len();
        for (edge, loc, copies) in critical {
            let block = self.editor.split_edge(edge, loc);
            self.editor.insert(block, 0, &copies);
        }
    }

    /// Writes the parameters of the function to their slots.
    fn write_params(&mut self, insts: &mut Vec<Inst>) {
        let loc = self.editor.func().loc(self.editor.insts(Function::ENTRY)[0]);
        for i in 0..self.editor.func().ty.params.len() as u32 {
            if let Some(slot) = self.homes.slot(Value(i)) {
                self.set(slot, Value(i), loc, insts);
            }
        }
    }

    /// Writes the instructions of a block, and the copies at its end.
    fn insts(&mut self, block: Block, insts: &mut Vec<Inst>) {
        let old = self.editor.insts(block).to_vec();
        for inst in old {
            let (loc, opcode) = (self.editor.func().loc(inst), self.editor.func().opcode(inst));
            if opcode.is_terminator() && self.editor.out_edges(block).len() == 1 {
                let edge = self.editor.out_edges(block).next().expect("there is one");
                self.copy(edge, loc, insts);
            }
            if is_constant(opcode) {
                continue;
            }
            for i in 0..self.editor.func().operands(inst).len() {
                let operand = self.editor.func().operands(inst)[i];
                let read = match self.homes.of(operand) {
                    Home::Value => continue,
                    Home::Constant(constant) => self.constant(constant, loc, insts),
                    Home::Slot(slot) => self.get(slot, loc, insts),
                };
                self.editor.set_operand(inst, i, read);
            }
            insts.push(inst);
            for result in self.editor.func().results(inst) {
                if let Some(slot) = self.homes.slot(result) {
                    self.set(slot, result, loc, insts);
                }
            }
        }
    }

    /// The copies of a critical edge, if there are any.
    fn copies_of_critical(&mut self, edge: Edge) -> Option<(Edge, Loc, Vec<Inst>)> {
        let (src, dst) = (self.editor.src(edge), self.editor.dst(edge));
        let is_critical =
            self.editor.out_edges(src).len() > 1 && self.editor.in_edges(dst).len() > 1;
        if !is_critical || self.editor.params(dst).is_empty() {
            return None;
        }
        let terminator = *self.editor.insts(src).last().expect("a block has a terminator");
        let loc = self.editor.func().loc(terminator);
        let mut copies = Vec::new();
        self.copy(edge, loc, &mut copies);
        (!copies.is_empty()).then_some((edge, loc, copies))
    }

    /// Writes the copies of an edge.
    fn copy(&mut self, edge: Edge, loc: Loc, insts: &mut Vec<Inst>) {
        let mut copies = Vec::new();
        let args = self.editor.args(edge).iter();
        for (&arg, &param) in args.zip(self.editor.params(self.editor.dst(edge))) {
            // Parameters that nothing uses have no slot.
            let Some(to) = self.homes.slot(param) else { continue };
            match self.homes.of(arg) {
                Home::Slot(from) if from == to => self.n_coalesced += 1,
                Home::Slot(from) => copies.push((to, Source::Slot(from))),
                Home::Value | Home::Constant(_) => copies.push((to, Source::Value(arg))),
            }
        }
        self.n_copies += copies.len();
        let mut saved = Value::default();
        for step in sequence(&copies) {
            match step {
                Step::Save(slot) => saved = self.get(slot, loc, insts),
                Step::Copy(to, from) => {
                    let value = match from {
                        Source::Slot(slot) => self.get(slot, loc, insts),
                        Source::Saved => saved,
                        Source::Value(value) => match self.homes.of(value) {
                            Home::Constant(constant) => self.constant(constant, loc, insts),
                            _ => value,
                        },
                    };
                    self.set(to, value, loc, insts);
                }
            }
        }
    }

    /// Removes the writes of zeros to slots that hold them from the start: in the entry block, where
    /// nothing was written before.
    fn forget_zeros(&mut self, insts: &mut Vec<Inst>) {
        let mut is_accessed = vec![false; self.homes.slots.len()];
        let mut zero = None;
        let f = self.editor.func();
        let mut kept = Vec::with_capacity(insts.len());
        for &inst in &*insts {
            let opcode = f.opcode(inst);
            if let Opcode::Ir(IrOp::SlotGet | IrOp::SlotSet) = opcode {
                let slot = f.imm(inst).low() as usize;
                let was_accessed = std::mem::replace(&mut is_accessed[slot], true);
                if !was_accessed && zero.is_some() && f.operands(inst).first().copied() == zero {
                    // The constant stands right before it, and has no other use.
                    kept.pop();
                    zero = None;
                    continue;
                }
            }
            let is_zero =
                is_constant(opcode) && (f.imm(inst).0 == 0 || opcode == Opcode::Op(Op::RefNull));
            zero = is_zero.then(|| f.result(inst));
            kept.push(inst);
        }
        *insts = kept;
    }

    fn get(&mut self, slot: u32, loc: Loc, insts: &mut Vec<Inst>) -> Value {
        let ty = self.homes.slots[slot as usize].ty;
        self.emit(Opcode::Ir(IrOp::SlotGet), Imm::index(slot), &[], &[ty], loc, insts)
    }

    fn set(&mut self, slot: u32, value: Value, loc: Loc, insts: &mut Vec<Inst>) {
        let op = Opcode::Ir(IrOp::SlotSet);
        insts.push(self.editor.make_inst(op, Imm::index(slot), &[value], &[], loc));
    }

    fn constant(&mut self, constant: Inst, loc: Loc, insts: &mut Vec<Inst>) -> Value {
        let (op, imm) = (self.editor.func().opcode(constant), self.editor.func().imm(constant));
        let ty = self.editor.func().value_type(self.editor.func().result(constant));
        self.emit(op, imm, &[], &[ty], loc, insts)
    }

    fn emit(
        &mut self,
        op: Opcode,
        imm: Imm,
        operands: &[Value],
        results: &[ValType],
        loc: Loc,
        insts: &mut Vec<Inst>,
    ) -> Value {
        let inst = self.editor.make_inst(op, imm, operands, results, loc);
        insts.push(inst);
        self.editor.func().result(inst)
    }
}

#[cfg(test)]
mod tests;
