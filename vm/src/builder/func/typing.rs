//! How instructions change the operand stack, and the mistakes that show in it.

use std::sync::Arc;

use super::{Emit, FunctionBuilder, LabelId, LabelInfo};
use crate::builder::stacks::StackId;
use crate::builder::{BuildRule, FuncId, LocalId};
use crate::inst::Imm;
use crate::limits;
use crate::op::Op;
use crate::types::{FuncType, ValType};

impl FunctionBuilder<'_> {
    /// The operand stack, which there must be.
    #[inline]
    pub(super) fn live(&mut self, op: Op) -> Emit<StackId> {
        match self.stack {
            Some(stack) => Ok(stack),
            None => self.fail(Some(op), BuildRule::Unreachable),
        }
    }

    #[inline]
    fn push(&mut self, ty: ValType) {
        let stack = self.stack.expect("an instruction is only typed where it is reachable");
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

    fn pop_any(&mut self, op: Op) -> Emit<ValType> {
        self.pop_where(op, "an operand", |_| true)
    }

    /// The effect of an instruction that has no labels on the operand stack.
    pub(super) fn apply(&mut self, op: Op, imm: Imm) -> Emit {
        if let Some(signature) = op.signature() {
            self.pop_all(op, signature.params)?;
            self.push_all(signature.results);
            return self.check_fixed(op, imm);
        }
        match op {
            Op::Unreachable => self.stack = None,
            Op::Return => {
                let ty = Arc::clone(&self.ty);
                self.leave(op, &ty.results)?;
            }
            Op::Call => {
                let ty = self.callee(op, FuncId(imm.low()))?;
                self.pop_all(op, &ty.params)?;
                self.push_all(&ty.results);
            }
            Op::CallIndirect => {
                let ty = self.indirect_callee(op, imm)?;
                self.pop_all(op, &ty.params)?;
                self.push_all(&ty.results);
            }
            Op::ReturnCall => {
                let ty = self.callee(op, FuncId(imm.low()))?;
                self.tail_call(op, &ty)?;
            }
            Op::ReturnCallIndirect => {
                let ty = self.indirect_callee(op, imm)?;
                self.tail_call(op, &ty)?;
            }
            Op::Drop | Op::Dup | Op::Swap | Op::Over | Op::Rot | Op::Select => self.shuffle(op)?,
            Op::LocalGet | Op::LocalSet | Op::LocalTee | Op::LocalAddr => {
                let ty = self.local_ty(Some(op), LocalId(imm.low()))?;
                self.access_local(op, ty)?;
            }
            Op::GlobalGet | Op::GlobalSet => self.access_global(op, imm.low())?,
            Op::RefNull => match ValType::from_code(imm.low() as u8) {
                Some(ty) if ty.is_ref() => self.push(ty),
                _ => return self.fail(Some(op), BuildRule::Immediates),
            },
            Op::RefIsNull => {
                self.pop_where(op, "a reference", ValType::is_ref)?;
                self.push(ValType::I32);
            }
            Op::TableGet | Op::TableSet | Op::TableGrow | Op::TableFill => {
                let elem = self.table_elem(op, imm.low())?;
                self.access_table(op, elem)?;
            }
            _ => unreachable!("{op:?} is a branch or has a fixed signature"),
        }
        Ok(())
    }

    /// Indices of instructions with a fixed signature whose types matter.
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

    fn shuffle(&mut self, op: Op) -> Emit {
        match op {
            Op::Drop => drop(self.pop_any(op)?),
            Op::Dup => {
                let a = self.pop_any(op)?;
                self.push_all(&[a, a]);
            }
            Op::Swap => {
                let (b, a) = (self.pop_any(op)?, self.pop_any(op)?);
                self.push_all(&[b, a]);
            }
            Op::Over => {
                let (b, a) = (self.pop_any(op)?, self.pop_any(op)?);
                self.push_all(&[a, b, a]);
            }
            Op::Rot => {
                let (c, b, a) = (self.pop_any(op)?, self.pop_any(op)?, self.pop_any(op)?);
                self.push_all(&[b, c, a]);
            }
            _ => {
                self.pop(op, ValType::I32)?;
                let b = self.pop_any(op)?;
                self.pop(op, b)?;
                self.push(b);
            }
        }
        Ok(())
    }

    fn access_local(&mut self, op: Op, ty: ValType) -> Emit {
        match op {
            Op::LocalGet => self.push(ty),
            Op::LocalSet => self.pop(op, ty)?,
            Op::LocalTee => {
                self.pop(op, ty)?;
                self.push(ty);
            }
            _ => self.push(ValType::I32),
        }
        Ok(())
    }

    fn access_global(&mut self, op: Op, index: u32) -> Emit {
        let Some(&global) = self.module.globals.get(index as usize) else {
            return self.no_such(Some(op), "global", index);
        };
        if op == Op::GlobalGet {
            self.push(global.ty);
            return Ok(());
        }
        if !global.mutable {
            return self.fail(Some(op), BuildRule::Immutable(index));
        }
        self.pop(op, global.ty)
    }

    fn access_table(&mut self, op: Op, elem: ValType) -> Emit {
        let (params, results): (&[ValType], &[ValType]) = match op {
            Op::TableGet => (&[ValType::I32], &[elem]),
            Op::TableSet => (&[ValType::I32, elem], &[]),
            Op::TableGrow => (&[elem, ValType::I32], &[ValType::I32]),
            _ => (&[ValType::I32, elem, ValType::I32], &[]),
        };
        self.pop_all(op, params)?;
        self.push_all(results);
        Ok(())
    }

    /// Leaves the function with the topmost operands, which are of these types.
    fn leave(&mut self, op: Op, types: &[ValType]) -> Emit {
        self.live(op)?;
        self.pop_all(op, types)?;
        self.stack = None;
        Ok(())
    }

    fn tail_call(&mut self, op: Op, callee: &FuncType) -> Emit {
        if callee.results != self.ty.results {
            let list =
                |types: &[ValType]| types.iter().map(|ty| ty.name()).collect::<Vec<_>>().join(", ");
            let (expected, found) = (list(&self.ty.results), list(&callee.results));
            return self.fail(Some(op), BuildRule::TailResults { expected, found });
        }
        self.leave(op, &callee.params)
    }

    fn callee(&mut self, op: Op, func: FuncId) -> Emit<Arc<FuncType>> {
        match self.module.func_types.get(func.0 as usize) {
            Some(ty) => Ok(Arc::clone(&self.module.types[ty.0 as usize])),
            None => self.no_such(Some(op), "function", func.0),
        }
    }

    fn indirect_callee(&mut self, op: Op, imm: Imm) -> Emit<Arc<FuncType>> {
        let elem = self.table_elem(op, imm.high())?;
        self.same_elem(op, elem, ValType::FuncRef)?;
        self.pop(op, ValType::I32)?;
        match self.module.types.get(imm.low() as usize) {
            Some(ty) => Ok(Arc::clone(ty)),
            None => self.no_such(Some(op), "type", imm.low()),
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

    /// Control goes to a label with the operand stack as it is.
    pub(super) fn flow_to(&mut self, op: Option<Op>, label: LabelId) -> Emit<StackId> {
        let stack = self.stack.expect("callers have checked that control gets here");
        self.meet(op, label, stack)?;
        Ok(stack)
    }

    /// Control goes to a label with the topmost `n` operands, and drops some below them.
    pub(super) fn flow_keeping(&mut self, label: LabelId, n: u32) -> Emit {
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

    /// The label has this operand stack.
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
