//! Terminators.
//!
//! Of the two edges of a conditional branch the one that leaves more loops comes first: Cranelift's
//! elaboration walks the first one first and forgets a loop once it has left it, so that with the
//! other order nothing is hoisted out of the loop and the code layout is worse. An edge that goes back comes before both:
//! the layout then has its moves beside the branch.
//!
//! A `br_table` of few targets becomes comparisons.

use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{self, BlockArg, BlockCall, InstBuilder, JumpTableData, types};
use slotvm_bytecode::{Op, TrapCode};
use slotvm_ssa::ir::entity::{Block, Edge, Inst};

use super::Lowering;
use super::cold_sides::ColdSides;
use super::order::comes_first;
use crate::lower::abi::{cell_flags, clif_type, in_cells};

/// The maximum number of indexed targets of a `br_table` that becomes comparisons. Cranelift compares with the number
/// of targets, moves conditionally, loads from a table and jumps, which takes as long as about six predicted branches.
const COMPARED_TARGETS_MAX: usize = 6;

impl Lowering<'_, '_> {
    pub(super) fn lower_control(&mut self, block: Block, inst: Inst, op: Op) {
        match op {
            Op::Unreachable => self.trap(TrapCode::Unreachable),
            // The place tells the number.
            Op::Trap => self.trap(TrapCode::Custom),
            Op::Br => self.lower_br(block),
            Op::BrIf => self.lower_br_if(block, inst),
            Op::BrTable => self.lower_br_table(block, inst),
            Op::Return => self.lower_return(inst),
            Op::ReturnCall | Op::ReturnCallIndirect => self.lower_return_call(inst, op),
            _ => unreachable!("`{}` ends no block", op.mnemonic()),
        }
    }

    fn edge_target(&self, edge: Edge) -> (ir::Block, Vec<BlockArg>) {
        let args = self.func.edge_args(edge).iter().map(|&arg| self.value(arg).into()).collect();
        (self.blocks[self.func.edge_dst(edge).index()], args)
    }

    fn lower_br(&mut self, block: Block) {
        let edge = self.func.succ_edges(block).next().expect("`br` has a target");
        let (target, args) = self.edge_target(edge);
        self.builder.ins().jump(target, &args);
    }

    fn lower_br_if(&mut self, block: Block, inst: Inst) {
        let mut edges = self.func.succ_edges(block);
        let (taken, other) = match (edges.next(), edges.next()) {
            (Some(taken), Some(other)) => (taken, other),
            _ => unreachable!("`br_if` has two targets"),
        };
        let edge_aside = match self.func.branch_hint(inst) {
            Some(_) => self.edge_aside(block),
            None => None,
        };
        let operand = self.operand(inst, 0);
        let (condition, first, second) = if comes_first(self.func, self.loops, other, taken) {
            (self.inverted_condition(operand), other, taken)
        } else {
            (self.condition(operand), taken, other)
        };
        let aside = edge_aside.map(|edge| (edge, self.builder.create_block()));
        let side = |edge| match aside {
            Some((of, block)) if of == edge => (block, Vec::new()),
            _ => self.edge_target(edge),
        };
        let ((first, first_args), (second, second_args)) = (side(first), side(second));
        self.builder.ins().brif(condition, first, &first_args, second, &second_args);
        if let Some((edge, block)) = aside {
            self.builder.set_cold_block(block);
            self.builder.seal_block(block);
            self.builder.switch_to_block(block);
            let (target, args) = self.edge_target(edge);
            self.builder.ins().jump(target, &args);
        }
    }

    /// The rare edge of a branch with a hint, if it needs a block of its own. The first such branch of the function has its
    /// cold sides found: functions without hints pay nothing for them.
    fn edge_aside(&mut self, block: Block) -> Option<Edge> {
        let (func, loops) = (self.func, self.loops);
        if self.cold_sides.is_none() {
            let sides = ColdSides::find(func, loops);
            self.marking.restrict(func, loops, |it| !sides.has(Block(loops.header(it))));
            self.cold_sides = Some(sides);
        }
        self.cold_sides.as_ref()?.edge_aside(func, loops, block)
    }

    fn lower_br_table(&mut self, block: Block, inst: Inst) {
        let operand = self.operand(inst, 0);
        let edges: Vec<Edge> = self.func.succ_edges(block).collect();
        if edges.len() <= COMPARED_TARGETS_MAX + 1 {
            return self.lower_compares(operand, &edges);
        }
        let mut calls: Vec<BlockCall> = Vec::new();
        for edge in edges {
            let (target, args) = self.edge_target(edge);
            calls.push(self.builder.func.dfg.block_call(target, &args));
        }
        let default = calls.pop().expect("`br_table` has a default");
        let table = self.builder.create_jump_table(JumpTableData::new(default, &calls));
        self.builder.ins().br_table(operand, table);
    }

    /// Goes to the edge with the number that the operand has, or else to the last one, by a comparison with each.
    fn lower_compares(&mut self, operand: ir::Value, edges: &[Edge]) {
        let (&default, indexed) = edges.split_last().expect("`br_table` has a default");
        let to_default = self.edge_target(default);
        let mut compared: Vec<(i64, Edge)> = (0..).zip(indexed.iter().copied()).collect();
        compared.retain(|&(_, edge)| self.edge_target(edge) != to_default);
        if compared.is_empty() {
            self.builder.ins().jump(to_default.0, &to_default.1);
            return;
        }
        let ty = self.builder.func.dfg.value_type(operand);
        for (i, &(number, edge)) in compared.iter().enumerate() {
            let others = &compared[i + 1..];
            let (other, other_args) = match others {
                [] => to_default.clone(),
                _ => (self.builder.create_block(), Vec::new()),
            };
            let leaves = |&other: &Edge| comes_first(self.func, self.loops, other, edge);
            let others_leave = leaves(&default) && others.iter().all(|(_, other)| leaves(other));
            let (target, args) = self.edge_target(edge);
            let number = self.builder.ins().iconst(ty, number);
            if others_leave {
                let differs = self.builder.ins().icmp(IntCC::NotEqual, operand, number);
                self.builder.ins().brif(differs, other, &other_args, target, &args);
            } else {
                let is_equal = self.builder.ins().icmp(IntCC::Equal, operand, number);
                self.builder.ins().brif(is_equal, target, &args, other, &other_args);
            }
            if !others.is_empty() {
                self.builder.seal_block(other);
                self.builder.switch_to_block(other);
            }
        }
    }

    fn lower_return(&mut self, inst: Inst) {
        let func = self.func;
        let results = func.operands(inst);
        let values: Vec<ir::Value> = results.iter().map(|&value| self.value(value)).collect();
        let Some(area) = self.return_area else {
            self.builder.ins().return_(&values);
            return;
        };
        let flags = self.result_flags();
        for (value, (offset, ty)) in values.into_iter().zip(in_cells(&func.ty.results)) {
            let cell = self.cell_of(value);
            self.builder.ins().store(cell_flags(ty, flags), cell, area, offset);
        }
        self.builder.ins().return_(&[]);
    }

    /// The bits of a value, zero-extended to a cell.
    pub(super) fn cell_of(&mut self, value: ir::Value) -> ir::Value {
        let ty = self.builder.func.dfg.value_type(value);
        let bits = if ty.is_float() {
            let flags = ir::MemFlagsData::new();
            self.builder.ins().bitcast(ty.as_int(), flags, value)
        } else {
            value
        };
        if ty.bits() == 32 { self.builder.ins().uextend(types::I64, bits) } else { bits }
    }

    /// A value that is not zero exactly if `operand` is not: the comparison that made `operand`, if
    /// one did.
    pub(super) fn condition(&self, operand: ir::Value) -> ir::Value {
        self.comparison(operand).map_or(operand, |(value, _)| value)
    }

    /// A value that is not zero exactly if `operand` is zero.
    pub(super) fn inverted_condition(&mut self, operand: ir::Value) -> ir::Value {
        let comparison = self.comparison(operand).map(|(_, inst)| inst);
        match comparison.map(|inst| self.builder.func.dfg.insts[inst]) {
            Some(ir::InstructionData::IntCompare { cond, args: [a, b], .. }) => {
                self.builder.ins().icmp(cond.complement(), a, b)
            }
            Some(ir::InstructionData::FloatCompare { cond, args: [a, b], .. }) => {
                self.builder.ins().fcmp(cond.complement(), a, b)
            }
            _ => {
                let ty = self.builder.func.dfg.value_type(operand);
                let zero = self.builder.ins().iconst(ty, 0);
                self.builder.ins().icmp(IntCC::Equal, operand, zero)
            }
        }
    }

    /// The comparison of this block whose result `operand` is, widened or not: its 8-bit result and itself.
    /// One of another block would make its operands live longer.
    fn comparison(&self, operand: ir::Value) -> Option<(ir::Value, ir::Inst)> {
        let func = &*self.builder.func;
        let inst = func.dfg.value_def(operand).inst()?;
        let arg = match func.dfg.insts[inst] {
            ir::InstructionData::Unary { opcode: ir::Opcode::Uextend, arg } => arg,
            _ => operand,
        };
        let inst = func.dfg.value_def(arg).inst()?;
        let compares = matches!(func.dfg.insts[inst].opcode(), ir::Opcode::Icmp | ir::Opcode::Fcmp);
        let here = func.layout.inst_block(inst) == self.builder.current_block();
        (compares && here).then_some((arg, inst))
    }

    /// The result of a comparison as the `i32` that bytecode makes of it.
    pub(super) fn widened(&mut self, comparison: ir::Value) -> ir::Value {
        self.builder.ins().uextend(clif_type(slotvm_bytecode::ValType::I32), comparison)
    }
}
