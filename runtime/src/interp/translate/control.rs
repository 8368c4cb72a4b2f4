//! Branches, calls and returns.

use slotvm_bytecode::{Imm, Op, inst, n_cells};

use super::Translator;
use super::operands::{Last, Operand, Value};
use super::values::{inverse, is_narrow, mirrored};
use crate::interp::handlers::table::{Dest, HandlerCode, In, RightIn};
use crate::steps::callees::{CallSite, Callees};
use crate::steps::code::CallReturn;
use crate::steps::instr::Instr;

impl Translator<'_> {
    pub(super) fn branch(&mut self, op: Op, imm: Imm) {
        match op {
            Op::Unreachable => self.emit(HandlerCode::Unreachable, 0, 0, 0),
            // The place of the trap tells the number.
            Op::Trap => self.emit(HandlerCode::CustomTrap, 0, 0, 0),
            Op::Br => {
                self.flush();
                self.emit(HandlerCode::Br, 0, 0, 0);
                self.branch_to(imm.low());
            }
            Op::BrIf => {
                let condition = self.pop();
                self.branch_if(condition);
                self.branch_to(imm.low());
            }
            Op::BrTable => self.branch_table(imm),
            Op::BrKeep => self.branch_keep(imm),
            _ => self.ret(),
        }
    }

    /// Lets the last branch, which goes by `c`, go to a label.
    fn branch_to(&mut self, label: u32) {
        let block = self.label_block(label);
        self.branches.push((self.branch, block, false));
    }

    /// The block at a label.
    fn label_block(&self, label: u32) -> u32 {
        let label = self.module.func(self.func).expect("defined here").labels[label as usize];
        self.body.block_at(label.offset) as u32
    }

    /// Fills in the distances of branches.
    pub(super) fn link(&mut self) {
        for (slot, block, is_data) in std::mem::take(&mut self.branches) {
            let target = self.starts[block as usize];
            let instr = &mut self.instrs[slot as usize];
            if is_data {
                // The data of a table's slot is the slot of the table until now.
                let table = instr.data() as u32;
                *instr = Instr::of_data(target.wrapping_sub(table).into());
            } else {
                instr.c = target.wrapping_sub(slot);
            }
        }
    }

    /// Appends a branch that is taken if a condition is not zero.
    fn branch_if(&mut self, condition: Operand) {
        if self.pair_branch(condition) {
            return;
        }
        if let Some(last) = self.maker(condition)
            && let Some((code, a, b)) = comparison(last)
        {
            self.take_back(last);
            if self.count_branch(code, a, b) {
                return;
            }
            self.flush();
            self.emit(code, a, b, 0);
            return;
        }
        let left = if self.try_acc(condition, false) { In::Acc } else { In::Cell };
        let a = self.source(condition);
        self.flush();
        self.emit(HandlerCode::BranchIf(Op::I32Ne, left, RightIn::Short, true), a, 0, 0);
    }

    /// Appends a branch by a comparison, together with the addition before it that counts a local. Returns whether
    /// there is one.
    fn count_branch(&mut self, code: HandlerCode, a: u16, b: u16) -> bool {
        let HandlerCode::BranchIf(op, left, right, taken) = code else { return false };
        let (op, right, b) = match (left, right) {
            (In::Acc, RightIn::Cell | RightIn::Short) => (Some(op), right, b),
            (In::Cell, RightIn::Acc) => (mirrored(op), RightIn::Cell, a),
            _ => return false,
        };
        let op = if taken { op } else { op.and_then(inverse) };
        let is_narrow = |op: &Op| inverse(*op).is_some() && is_narrow(*op);
        let (Some(op), Some(slot)) = (op.filter(is_narrow), self.instrs.len().checked_sub(1))
        else {
            return false;
        };
        let add = HandlerCode::Binary(Op::I32Add, In::Cell, RightIn::Short, Dest::Cell);
        let Instr { a: local, b: counted, c: step, .. } = self.instrs[slot];
        let is_count = self.accumulators.int.is_some_and(|acc| {
            acc.slot == slot && acc.code == add && acc.cell == local.into() && local == counted
        });
        if !is_count || !self.operands.is_flushed() {
            return false;
        }
        self.truncate(slot);
        self.emit(HandlerCode::CountBranch(op, right), local, b, 0);
        self.emit_data(step.into());
        true
    }

    fn branch_table(&mut self, imm: Imm) {
        let index = self.pop();
        let from = if self.try_acc(index, false) { In::Acc } else { In::Cell };
        let a = self.source(index);
        self.flush();
        let slot = self.instrs.len();
        self.emit(HandlerCode::BrTable(from), a, 0, imm.low());
        for label in inst::labels(self.code(), imm) {
            let block = self.label_block(label);
            self.branches.push((self.instrs.len() as u32, block, true));
            self.emit_data(slot as u64);
        }
    }

    fn branch_keep(&mut self, imm: Imm) {
        let label = self.module.func(self.func).expect("defined here").labels[imm.low() as usize];
        let mut below = label.shape;
        for _ in 0..imm.high() {
            (below, _) = self.module.shape_top(below).expect("the label has what it takes along");
        }
        let n_lowest = self.module.shape_cells(below);
        let n = self.module.shape_cells(label.shape) - n_lowest;
        let to = self.body.n_local_cells() + n_lowest;
        let from = self.operands.height() - n;
        if n == 1 && from != to {
            let Operand { value, .. } = self.pop();
            self.flush();
            self.write(to, value);
        } else {
            self.flush();
            self.move_cells(n, from, to);
        }
        self.emit(HandlerCode::Br, 0, 0, 0);
        self.branch_to(imm.low());
    }

    /// Moves cells that lie in a row.
    fn move_cells(&mut self, n: u32, from: u32, to: u32) {
        if n > 0 && from != to {
            self.far_end();
            self.emit_ab(HandlerCode::MoveCells, n, from);
            self.emit_data(to.into());
            self.far_begin();
        }
    }

    fn release(&mut self) {
        if self.options.stack_cells || self.body.frame_bytes > 0 {
            self.emit(HandlerCode::Release, 0, 0, 0);
        }
    }

    fn ret(&mut self) {
        let n = n_cells(&self.module.func_type(self.func).results) as u32;
        if n == 1 && !self.is_far {
            let Operand { value, .. } = self.pop();
            self.release();
            match value {
                Value::Cell(cell) => self.emit(HandlerCode::RetCell, 0, cell as u16, 0),
                Value::Const(value) if value as i32 as u64 == value => {
                    self.emit(HandlerCode::RetShort, 0, 0, value as u32);
                }
                value => {
                    self.write(0, value);
                    self.emit(HandlerCode::Ret, 0, 0, 0);
                }
            }
            return;
        }
        let from = self.operands.height() - n;
        self.flush_from(from);
        self.move_cells(n, from, 0);
        self.far_end();
        self.release();
        self.emit(HandlerCode::Ret, 0, 0, 0);
    }

    pub(super) fn call(&mut self, op: Op, imm: Imm) {
        let is_indirect = matches!(op, Op::CallIndirect | Op::ReturnCallIndirect);
        let ty = match is_indirect {
            true => &self.module.module().types[imm.low() as usize],
            false => self.module.func_type(imm.low()),
        };
        let (n_params, n_results) = (n_cells(&ty.params) as u32, n_cells(&ty.results) as u32);
        let args = self.operands.height() - n_params - u32::from(is_indirect);
        // References that wait lie where the embedder finds them.
        self.flush_from(if self.body.has_refs { 0 } else { args });
        self.far_end();
        let waits = matches!(op, Op::Call | Op::CallIndirect);
        if !waits {
            self.release();
        }
        if is_indirect {
            let code =
                if waits { HandlerCode::CallIndirect } else { HandlerCode::ReturnCallIndirect };
            self.emit_ab(code, args, imm.high());
            self.call_slot(waits, args + n_params, imm.low());
        } else if let Some(defined) = imm.low().checked_sub(self.module.n_imported_funcs()) {
            let code = if waits { HandlerCode::Call } else { HandlerCode::ReturnCall };
            self.emit_ab(code, args, defined);
        } else {
            let code = if waits { HandlerCode::CallImport } else { HandlerCode::ReturnCallImport };
            self.emit_ab(code, args, imm.low());
        }
        if waits {
            if let Some((_, calls)) = &mut self.places {
                let slot = self.instrs.len() as u32;
                calls.push(CallReturn { call: self.offset, slot, args });
            }
            self.far_begin();
            self.operands.set_height(args + n_results);
        }
    }
}

impl Translator<'_> {
    /// Emits the slot of data of an indirect call: the functions that it has called, the cell of its index, and its type.
    fn call_slot(&mut self, waits: bool, index: u32, ty: u32) {
        let is_noted = waits && self.options.counts && !self.is_traced;
        if is_noted {
            self.sites.push(CallSite { offset: self.offset, slot: self.instrs.len() as u32 });
        }
        let callees = if is_noted { Callees::NONE } else { Callees::OTHERS };
        self.emit_slot(Instr::of_data_and(callees.word(), index, ty));
    }
}

/// The branch that takes the place of the instruction that has made its condition, with the operands that it compares.
fn comparison(last: Last) -> Option<(HandlerCode, u16, u16)> {
    let short = |c: u32| i16::try_from(c as i32).ok().map(|c| c as u16);
    let (op, left, right, b) = match last.code {
        HandlerCode::Unary(Op::I32Eqz, left, _) => (Op::I32Eq, left, RightIn::Short, 0),
        HandlerCode::Unary(Op::I64Eqz, left, _) => (Op::I64Eq, left, RightIn::Short, 0),
        HandlerCode::Binary(op, left, right @ (RightIn::Cell | RightIn::Acc), _) => {
            (op, left, right, last.c as u16)
        }
        HandlerCode::Binary(op, left, RightIn::Short, _) if !is_float(op) => {
            (op, left, RightIn::Short, short(last.c)?)
        }
        _ => return None,
    };
    let is_exact = inverse(op).is_some();
    if !is_exact && op != Op::I32And && !is_float_comparison(op) {
        return None;
    }
    Some((HandlerCode::BranchIf(op, left, right, !last.is_negated), last.b, b))
}

fn is_float(op: Op) -> bool {
    use slotvm_bytecode::ValType::{F32, F64};
    op.signature().is_some_and(|signature| matches!(signature.params, [F32 | F64, ..]))
}

fn is_float_comparison(op: Op) -> bool {
    use slotvm_bytecode::ValType::I32;
    op.signature().is_some_and(|s| is_float(op) && s.params.len() == 2 && s.results == [I32])
}
