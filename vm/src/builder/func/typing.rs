//! Effects of instructions on the operand stack, and detection of type errors.

use std::sync::Arc;

use super::{Emit, Failed, FunctionBuilder, LabelId, LabelInfo};
use crate::builder::{BuildRule, FuncId, LocalId};
use crate::inst::Imm;
use crate::limits;
use crate::op::Op;
use crate::stacks::StackId;
use crate::types::{FuncType, ValType};
use crate::typing::{self, OperandStack};

impl FunctionBuilder<'_> {
    /// Returns the operand stack; fails in unreachable code.
    #[inline]
    pub(super) fn live(&mut self, op: Op) -> Emit<StackId> {
        match self.stack {
            Some(stack) => Ok(stack),
            None => self.fail(Some(op), BuildRule::Unreachable),
        }
    }

    #[inline]
    fn push(&mut self, ty: ValType) {
        let stack = self.stack.expect("only reachable instructions are typed");
        self.stack = Some(self.stacks.push(stack, ty));
    }

    fn push_all(&mut self, types: &[ValType]) {
        for &ty in types {
            self.push(ty);
        }
    }

    #[inline]
    fn pop_where(
        &mut self,
        op: Op,
        expected: &str,
        fits: impl FnOnce(ValType) -> bool,
    ) -> Emit<ValType> {
        let stack = self.live(op)?;
        match self.stacks.top(stack) {
            Some((below, ty)) if fits(ty) => {
                self.stack = Some(below);
                Ok(ty)
            }
            _ => {
                let stack = self.stacks.describe(stack);
                self.fail(Some(op), BuildRule::Operand { expected: expected.to_owned(), stack })
            }
        }
    }

    #[inline]
    pub(super) fn pop(&mut self, op: Op, ty: ValType) -> Emit {
        self.pop_where(op, ty.name(), |found| found == ty).map(drop)
    }

    fn pop_all(&mut self, op: Op, types: &[ValType]) -> Emit {
        types.iter().rev().try_for_each(|&ty| self.pop(op, ty))
    }

    /// Applies the effect of an instruction without labels.
    pub(super) fn apply(&mut self, op: Op, imm: Imm) -> Emit {
        if let Some(signature) = op.signature() {
            self.pop_all(op, signature.params)?;
            self.push_all(signature.results);
            return self.check_fixed(op, imm);
        }
        typing::apply(&mut Typed { f: self, op, labels: &[], default: None }, op, imm)
    }

    /// Applies the effect of a branch to a label; `n` is the number of operands of a `br_keep`.
    pub(super) fn apply_branch(&mut self, op: Op, label: LabelId, n: u32) -> Emit {
        typing::apply(
            &mut Typed { f: self, op, labels: &[], default: None },
            op,
            Imm::pair(label.0, n),
        )
    }

    /// Applies the effect of a `br_table` to these labels and the default.
    pub(super) fn apply_table(&mut self, labels: &[LabelId], default: LabelId) -> Emit {
        let op = Op::BrTable;
        typing::apply(&mut Typed { f: self, op, labels, default: Some(default) }, op, Imm::NONE)
    }

    /// Checks the indices of an instruction with a fixed signature, except memory indices.
    fn check_fixed(&mut self, op: Op, imm: Imm) -> Emit {
        match op {
            Op::RefFunc => self.callee(op, FuncId(imm.low())).map(drop),
            Op::TableSize => self.table_elem(op, imm.low()).map(drop),
            Op::TableCopy => {
                let destination = self.table_elem(op, imm.low())?;
                let source = self.table_elem(op, imm.high())?;
                self.same_elem(op, destination, source)
            }
            Op::TableInit => {
                let destination = self.table_elem(op, imm.high())?;
                let source = match self.module.module.elems.get(imm.low() as usize) {
                    Some(elem) => elem.ty,
                    None => return self.no_such(Some(op), "element segment", imm.low()),
                };
                self.same_elem(op, destination, source)
            }
            Op::ElemDrop if imm.low() as usize >= self.module.module.elems.len() => {
                self.no_such(Some(op), "element segment", imm.low())
            }
            Op::DataDrop | Op::MemoryInit
                if imm.low() as usize >= self.module.module.datas.len() =>
            {
                self.no_such(Some(op), "data segment", imm.low())
            }
            _ => Ok(()),
        }
    }

    fn same_elem(&mut self, op: Op, a: ValType, b: ValType) -> Emit {
        if a == b { Ok(()) } else { self.fail(Some(op), BuildRule::ElementTypes(a, b)) }
    }

    /// Leaves the function with the topmost operands, which are of these types.
    fn leave(&mut self, op: Op, types: &[ValType]) -> Emit {
        self.live(op)?;
        self.pop_all(op, types)
    }

    fn callee(&mut self, op: Op, func: FuncId) -> Emit<Arc<FuncType>> {
        match self.module.func_types.get(func.0 as usize) {
            Some(ty) => Ok(Arc::clone(&self.module.types[ty.0 as usize])),
            None => self.no_such(Some(op), "function", func.0),
        }
    }

    fn table_elem(&mut self, op: Op, table: u32) -> Emit<ValType> {
        match self.module.tables.get(table as usize) {
            Some(table) => Ok(table.elem),
            None => self.no_such(Some(op), "table", table),
        }
    }

    pub(super) fn local_ty(&mut self, op: Option<Op>, local: LocalId) -> Emit<ValType> {
        match self.locals.get(local.0 as usize) {
            Some(&ty) => Ok(ty),
            None => self.no_such(op, "local", local.0),
        }
    }

    pub(super) fn label_info(&mut self, op: Option<Op>, label: LabelId) -> Emit<&mut LabelInfo> {
        if label.0 as usize >= self.labels.len() {
            return self.no_such(op, "label", label.0);
        }
        Ok(&mut self.labels[label.0 as usize])
    }

    fn no_such<T>(&mut self, op: Option<Op>, what: &'static str, index: u32) -> Emit<T> {
        self.fail(op, BuildRule::NoSuch { what, index })
    }

    /// Branches or falls into a label with the current operand stack.
    pub(super) fn flow_to(&mut self, op: Option<Op>, label: LabelId) -> Emit<StackId> {
        let stack = self.stack.expect("callers have checked reachability");
        self.meet(op, label, stack)?;
        Ok(stack)
    }

    /// Branches to a label with the topmost `n` operands, and drops some below them.
    fn flow_keeping(&mut self, label: LabelId, n: u32) -> Emit {
        let op = Some(Op::BrKeep);
        let stack = self.live(Op::BrKeep)?;
        if n as usize > limits::KEPT_OPERANDS_MAX {
            return self.fail(op, BuildRule::Limit("KEPT_OPERANDS_MAX"));
        }
        let Some(expected) = self.label_info(op, label)?.stack else {
            return self.fail(op, BuildRule::UnknownStack(label.0));
        };
        let stacks = &self.stacks;
        if stacks.keeps(stack, n, expected) {
            return Ok(());
        }
        let (expected, stack) = (stacks.describe(expected), stacks.describe(stack));
        self.fail(op, BuildRule::Kept { n, label: label.0, expected, stack })
    }

    /// Sets the operand stack of a label, or checks it against the known one.
    pub(super) fn meet(&mut self, op: Option<Op>, label: LabelId, stack: StackId) -> Emit {
        let expected = *self.label_info(op, label)?.stack.get_or_insert(stack);
        if expected == stack {
            return Ok(());
        }
        let expected = self.stacks.describe(expected);
        let stack = self.stacks.describe(stack);
        self.fail(op, BuildRule::LabelStack { label: label.0, expected, stack })
    }
}

/// The builder's [`OperandStack`] for one instruction without a fixed signature.
struct Typed<'f, 'm, 't> {
    f: &'f mut FunctionBuilder<'m>,
    op: Op,
    /// The labels of a `br_table`.
    labels: &'t [LabelId],
    default: Option<LabelId>,
}

impl OperandStack for Typed<'_, '_, '_> {
    type Operand = ValType;
    type Type = Arc<FuncType>;
    type Error = Failed;

    #[inline]
    fn pop(&mut self, ty: ValType) -> Emit {
        self.f.pop(self.op, ty)
    }

    #[inline]
    fn pop_any(&mut self) -> Emit<ValType> {
        self.f.pop_where(self.op, "an operand", |_| true)
    }

    fn pop_ref(&mut self) -> Emit {
        self.f.pop_where(self.op, "a reference", ValType::is_ref).map(drop)
    }

    #[inline]
    fn type_of(&self, operand: ValType) -> ValType {
        operand
    }

    #[inline]
    fn push(&mut self, ty: ValType) -> Emit {
        self.f.push(ty);
        Ok(())
    }

    #[inline]
    fn local(&mut self, local: u32) -> Emit<ValType> {
        self.f.local_ty(Some(self.op), LocalId(local))
    }

    fn global(&mut self, global: u32) -> Emit<ValType> {
        match self.f.module.globals.get(global as usize) {
            Some(global) => Ok(global.ty),
            None => self.f.no_such(Some(self.op), "global", global),
        }
    }

    fn mutable_global(&mut self, global: u32) -> Emit<ValType> {
        match self.f.module.globals.get(global as usize) {
            Some(global) if global.mutable => Ok(global.ty),
            Some(_) => self.f.fail(Some(self.op), BuildRule::Immutable(global)),
            None => self.f.no_such(Some(self.op), "global", global),
        }
    }

    fn elements(&mut self, table: u32) -> Emit<ValType> {
        self.f.table_elem(self.op, table)
    }

    fn callable(&mut self, table: u32) -> Emit {
        let elem = self.f.table_elem(self.op, table)?;
        self.f.same_elem(self.op, elem, ValType::FuncRef)
    }

    fn ref_type(&mut self, imm: Imm) -> Emit<ValType> {
        match ValType::from_code(imm.low() as u8) {
            Some(ty) if ty.is_ref() => Ok(ty),
            _ => self.f.fail(Some(self.op), BuildRule::Immediates),
        }
    }

    fn func_type(&mut self, func: u32) -> Emit<Arc<FuncType>> {
        self.f.callee(self.op, FuncId(func))
    }

    fn type_at(&mut self, index: u32) -> Emit<Arc<FuncType>> {
        match self.f.module.types.get(index as usize) {
            Some(ty) => Ok(Arc::clone(ty)),
            None => self.f.no_such(Some(self.op), "type", index),
        }
    }

    fn branch(&mut self, label: u32) -> Emit {
        self.f.live(self.op)?;
        self.f.flow_to(Some(self.op), LabelId(label)).map(drop)
    }

    fn branch_keeping(&mut self, label: u32, n: u32) -> Emit {
        self.f.flow_keeping(LabelId(label), n)
    }

    fn branch_table(&mut self, _: Imm) -> Emit {
        let (labels, default) = (self.labels, self.default);
        labels.iter().chain(&default).try_for_each(|label| self.branch(label.0))
    }

    fn leave(&mut self) -> Emit {
        let ty = Arc::clone(&self.f.ty);
        self.f.leave(self.op, &ty.results)
    }

    fn tail_call(&mut self, callee: &FuncType) -> Emit {
        if callee.results != self.f.ty.results {
            let list =
                |types: &[ValType]| types.iter().map(|ty| ty.name()).collect::<Vec<_>>().join(", ");
            let (expected, found) = (list(&self.f.ty.results), list(&callee.results));
            return self.f.fail(Some(self.op), BuildRule::TailResults { expected, found });
        }
        self.f.leave(self.op, &callee.params)
    }

    fn stop(&mut self) {
        self.f.stack = None;
    }
}
