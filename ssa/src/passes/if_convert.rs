//! If-conversion: branches around few cheap instructions become `select`.
//!
//! A branch is converted if both of its edges lead to one block, the join, by way of *arms*: chains of blocks that no
//! other edge enters and that hold nothing but cheap pure instructions. The instructions of both arms move to the end
//! of the block with the branch, and each phi of the join that the arms give different values becomes a `select`. An
//! empty arm is an edge, so triangles and diamonds are one case. Inner branches come first, so that nested ones are
//! arms without branches already. Blocks that have become a chain are merged at the end.
//!
//! A mispredicted branch costs as much as some twenty instructions, but a branch that is predicted costs nothing,
//! and a `select` waits for its condition and both values. So the rules are those of LLVM's `SimplifyCFG`, in
//! numbers: arms cost at most [`ARMS_COST_MAX`], and at most [`SELECTS_MAX`] phis differ, of which the second costs
//! [`SECOND_SELECT_COST`]. Besides:
//! * Only integers and references are selected. Floats have no conditional move on x86-64.
//! * A condition that needs two flags (equality of floats) stays a branch.
//! * A branch stays if its condition depends on a load and a selected value becomes the address of one: a predicted
//!   branch lets the next load start early, as in an interpreter's dispatch, a search or a list (`chains`). LLVM's
//!   x86 back end undoes such conversions (`X86CmovConversion`).
//! * A branch stays if its condition takes the same turns again after few rounds of a loop, as `i % 4 == 0` does
//!   (`counters`).
//! * A branch with a hint stays: the hint says that it is predicted.
//! * A branch that leaves a loop or continues one on one side only has no join, so it stays.
//!
//! Arms with effects stay, charges of fuel above all, so nothing that a program can observe changes. Each block is
//! looked at once; a look follows at most [`ARM_BLOCKS_MAX`] blocks on each side.

mod chains;
mod counters;

use slotvm_bytecode::{Effect, Imm, Op, ValType};

use self::chains::Chains;
use self::counters::Counters;
use crate::ir::Function;
use crate::ir::edit::Editor;
use crate::ir::entity::{Block, Edge, Inst, Value};
use crate::ir::fold;
use crate::ir::irop::Opcode;
use crate::passes::simplify_cfg::{self, CfgReport};

/// The maximum cost of the instructions in both arms; most cost one, and constants nothing.
pub const ARMS_COST_MAX: u32 = 4;
/// The maximum number of values that are selected for one branch.
pub const SELECTS_MAX: usize = 2;
/// The cost of the second value: Cranelift compares again for it.
pub const SECOND_SELECT_COST: u32 = 3;
/// The maximum number of blocks in an arm.
pub const ARM_BLOCKS_MAX: usize = 4;
/// The maximum number of instructions in a block of an arm, free ones included.
const ARM_INSTS_MAX: usize = 16;

/// Statistics of if-conversion.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct IfConversionReport {
    /// Branches that were converted.
    pub n_branches: usize,
    /// Instructions that moved out of arms.
    pub n_moved: usize,
    /// Values that are selected.
    pub n_selects: usize,
    /// Branches that stay for the sake of the loads that they let start early.
    pub n_kept_for_loads: usize,
    /// Branches that stay since their conditions repeat after few rounds of a loop.
    pub n_kept_for_counters: usize,
}

/// Converts branches of a function in SSA form.
pub fn if_convert(f: &mut Function) -> IfConversionReport {
    let mut editor = Editor::new(f);
    let report = run(&mut editor);
    editor.finish();
    report
}

/// Converts branches of a function that is being edited.
pub(crate) fn run(editor: &mut Editor<'_>) -> IfConversionReport {
    let report = IfConversionReport::default();
    let (chains, counters) = (None, None);
    let mut converter =
        Converter { editor: &mut *editor, defs: Vec::new(), chains, counters, report };
    for i in (0..converter.editor.order().len()).rev() {
        let block = converter.editor.order()[i];
        if let Some(branch) = converter.branch(block) {
            converter.convert(block, &branch);
        }
    }
    let report = converter.report;
    if report.n_branches > 0 {
        simplify_cfg::merge(editor, &mut CfgReport::default());
    }
    report
}

/// A branch that can be converted.
struct Branch {
    join: Block,
    taken: Arm,
    other: Arm,
    /// The condition, and the operands for the join's parameters from both arms.
    condition: Value,
    args: Vec<(Value, Value)>,
}

/// The way from a branch to the join.
struct Arm {
    /// The edges that enter the blocks of the arm.
    edges: Vec<Edge>,
    /// The edge that enters the join.
    last: Edge,
    cost: u32,
}

struct Converter<'e, 'f> {
    editor: &'e mut Editor<'f>,
    /// The instruction that defines each value, if one does; empty until it is needed.
    defs: Vec<Option<Inst>>,
    chains: Option<Chains>,
    counters: Option<Counters>,
    report: IfConversionReport,
}

impl Converter<'_, '_> {
    /// The branch at the end of a block, if it is to be converted.
    fn branch(&mut self, block: Block) -> Option<Branch> {
        let &terminator = self.editor.insts(block).last()?;
        let f = self.editor.func();
        if f.opcode(terminator) != Opcode::Op(Op::BrIf) || f.branch_hint(terminator).is_some() {
            return None;
        }
        let mut edges = self.editor.out_edges(block);
        let (first, second) = (edges.next()?, edges.next()?);
        let (taken, other) = (self.arm(first), self.arm(second));
        let join = self.editor.dst(taken.last);
        let costs_little = taken.cost + other.cost <= ARMS_COST_MAX;
        if join != self.editor.dst(other.last) || join == block || !costs_little {
            return None;
        }
        let condition = self.editor.func().operands(terminator)[0];
        let condition = self.editor.resolve(condition);
        self.find_defs();
        if self.needs_two_flags(condition) {
            return None;
        }
        let (args, n_selects) = self.args(&taken, &other)?;
        let of_selects = if n_selects > 1 { SECOND_SELECT_COST } else { 0 };
        if taken.cost + other.cost + of_selects > ARMS_COST_MAX {
            return None;
        }
        let branch = Branch { join, taken, other, condition, args };
        if self.starts_loads(&branch) {
            self.report.n_kept_for_loads += 1;
            return None;
        }
        if self.repeats_soon(condition) {
            self.report.n_kept_for_counters += 1;
            return None;
        }
        Some(branch)
    }

    /// Follows an edge through blocks that can be an arm.
    fn arm(&mut self, edge: Edge) -> Arm {
        let mut arm = Arm { edges: Vec::new(), last: edge, cost: 0 };
        while arm.edges.len() < ARM_BLOCKS_MAX {
            let block = self.editor.dst(arm.last);
            let Some(onward) = self.editor.only_out_edge(block) else { break };
            if self.editor.n_in_edges(block) != 1 {
                break;
            }
            let Some(cost) = self.cost(block).filter(|cost| arm.cost + cost <= ARMS_COST_MAX)
            else {
                break;
            };
            arm.cost += cost;
            arm.edges.push(arm.last);
            arm.last = onward;
        }
        arm
    }

    /// The cost of the instructions of a block before its terminator, unless they are not cheap.
    fn cost(&self, block: Block) -> Option<u32> {
        let (_, insts) = self.editor.insts(block).split_last()?;
        if insts.len() > ARM_INSTS_MAX {
            return None;
        }
        insts.iter().map(|&inst| cost(self.editor.func().opcode(inst))).sum()
    }

    fn find_defs(&mut self) {
        if !self.defs.is_empty() {
            return;
        }
        let f = self.editor.func();
        self.defs.resize(f.n_values(), None);
        for &block in self.editor.order() {
            for &inst in self.editor.insts(block) {
                f.results(inst).for_each(|result| self.defs[result.index()] = Some(inst));
            }
        }
    }

    fn def(&self, value: Value) -> Option<Inst> {
        self.defs.get(value.index()).copied().flatten()
    }

    fn needs_two_flags(&self, condition: Value) -> bool {
        let op = self.def(condition).map(|inst| self.editor.func().opcode(inst));
        matches!(op, Some(Opcode::Op(Op::F32Eq | Op::F32Ne | Op::F64Eq | Op::F64Ne)))
    }

    /// The operands for the join's parameters from both arms, and the number of those that differ, unless too many do
    /// or cannot be selected.
    fn args(&mut self, taken: &Arm, other: &Arm) -> Option<(Vec<(Value, Value)>, usize)> {
        let n_params = self.editor.args(taken.last).len();
        let mut args = Vec::with_capacity(n_params);
        let mut n_selects = 0;
        for i in 0..n_params {
            let a = self.value_after(taken, self.editor.args(taken.last)[i]);
            let b = self.value_after(other, self.editor.args(other.last)[i]);
            if a != b && !self.is_same_constant(a, b) {
                n_selects += 1;
                if n_selects > SELECTS_MAX || !can_be_selected(self.editor.func().value_type(a)) {
                    return None;
                }
                args.push((a, b));
            } else {
                args.push((a, a));
            }
        }
        Some((args, n_selects))
    }

    /// The value of an operand at the end of an arm: parameters in the arm are operands of the edges before.
    fn value_after(&mut self, arm: &Arm, operand: Value) -> Value {
        let mut value = self.editor.resolve(operand);
        for &edge in arm.edges.iter().rev() {
            let params = self.editor.params(self.editor.dst(edge));
            if let Some(i) = params.iter().position(|&param| param == value) {
                value = self.editor.args(edge)[i];
                value = self.editor.resolve(value);
            }
        }
        value
    }

    fn is_same_constant(&self, a: Value, b: Value) -> bool {
        let (Some(a), Some(b)) = (self.def(a), self.def(b)) else { return false };
        let f = self.editor.func();
        let is_constant = matches!(f.opcode(a), Opcode::Op(Op::I32Const | Op::I64Const));
        is_constant && f.opcode(a) == f.opcode(b) && f.imm(a) == f.imm(b)
    }

    /// Whether a value is 1 if a condition holds and 0 if not, and so is the condition itself.
    fn is_condition(&self, a: Value, b: Value, condition: Value) -> bool {
        let f = self.editor.func();
        let is = |value, constant| {
            self.def(value).is_some_and(|inst| {
                f.opcode(inst) == Opcode::Op(Op::I32Const) && f.imm(inst).0 == constant
            })
        };
        let op = self.def(condition).map(|inst| f.opcode(inst));
        let is_boolean = matches!(op, Some(Opcode::Op(op)) if fold::is_comparison(op));
        is_boolean && is(a, 1) && is(b, 0)
    }

    /// Whether a predicted branch would let loads start before its condition is known.
    fn starts_loads(&mut self, branch: &Branch) -> bool {
        let chains = self.chains.get_or_insert_with(|| Chains::scan(self.editor));
        let params = self.editor.params(branch.join).iter().zip(&branch.args);
        let mut selected = params.filter(|(_, (a, b))| a != b);
        chains.is_from_load(branch.condition)
            && selected.any(|(&param, _)| chains.is_to_address(param))
    }

    /// Whether a condition repeats after few rounds of a loop.
    fn repeats_soon(&mut self, condition: Value) -> bool {
        let Converter { editor, defs, counters, .. } = self;
        let counters = counters.get_or_insert_with(|| Counters::scan(editor, defs));
        counters.repeat(editor, defs, condition)
    }

    /// Moves the arms of a branch into its block, which then goes on to the join.
    fn convert(&mut self, block: Block, branch: &Branch) {
        let mut insts = self.editor.insts(block).to_vec();
        let terminator = insts.pop().expect("a block has a terminator");
        let mut emptied = Vec::new();
        for &edge in branch.taken.edges.iter().chain(&branch.other.edges) {
            self.move_insts(edge, &mut insts);
            emptied.push(self.editor.dst(edge));
        }
        let loc = self.editor.func().loc(terminator);
        let mut args = Vec::with_capacity(branch.args.len());
        for &(a, b) in &branch.args {
            if a == b {
                args.push(a);
                continue;
            }
            if self.is_condition(a, b, branch.condition) {
                args.push(branch.condition);
                continue;
            }
            let ty = self.editor.func().value_type(a);
            let operands = [a, b, branch.condition];
            let select = Opcode::Op(Op::Select);
            let select = self.editor.make_inst(select, Imm::NONE, &operands, &[ty], loc);
            insts.push(select);
            args.push(self.editor.func().result(select));
            self.report.n_selects += 1;
        }
        insts.push(terminator);
        self.editor.set_insts(block, &insts);
        let first = self.editor.out_edges(block).next().expect("a branch has two edges");
        self.editor.keep_edge(block, first);
        self.editor.redirect_edge(first, branch.join, &args);
        emptied.into_iter().for_each(|block| self.editor.remove_block(block));
        self.report.n_branches += 1;
    }

    /// Appends the instructions of the block that an edge enters, which no other edge does.
    fn move_insts(&mut self, edge: Edge, insts: &mut Vec<Inst>) {
        let block = self.editor.dst(edge);
        for i in 0..self.editor.params(block).len() {
            let (param, arg) = (self.editor.params(block)[i], self.editor.args(edge)[i]);
            self.editor.replace_value(param, arg);
        }
        let (_, moved) = self.editor.insts(block).split_last().expect("a block has a terminator");
        insts.extend_from_slice(moved);
        self.report.n_moved += moved.len();
    }
}

/// Whether values of a type can be selected by a conditional move.
fn can_be_selected(ty: ValType) -> bool {
    matches!(ty, ValType::I32 | ValType::I64) || ty.is_ref()
}

/// The cost of an operation, about the cycles until its result is there, or none if it is not cheap.
fn cost(op: Opcode) -> Option<u32> {
    use Op::*;
    let Opcode::Op(op) = op else { return None };
    if op.effect() != Effect::Pure {
        return None;
    }
    match op {
        I32Const | I64Const | RefNull => Some(0),
        I32WrapI64 | I64ExtendI32S | I64ExtendI32U | I32Extend8S | I32Extend16S | I64Extend8S
        | I64Extend16S | I64Extend32S => Some(1),
        I32Add | I32Sub | I32And | I32Or | I32Xor | I32Shl | I32ShrS | I32ShrU | I32Rotl
        | I32Rotr => Some(1),
        I64Add | I64Sub | I64And | I64Or | I64Xor | I64Shl | I64ShrS | I64ShrU | I64Rotl
        | I64Rotr => Some(1),
        I32Eqz | I32Eq | I32Ne | I32LtS | I32LtU | I32GtS | I32GtU | I32LeS | I32LeU | I32GeS
        | I32GeU | RefIsNull => Some(1),
        I64Eqz | I64Eq | I64Ne | I64LtS | I64LtU | I64GtS | I64GtU | I64LeS | I64LeU | I64GeS
        | I64GeU => Some(1),
        Select => Some(1),
        I32Mul | I64Mul => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
