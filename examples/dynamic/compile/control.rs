//! Statements, and conditions.

use slotvm::builder::{LabelId, LocalId};
use slotvm::{Op, ValType::I32};

use super::function::{Code, Storage};
use crate::syntax::{Expr, ExprKind, Logic, Statement, Variable};
use crate::value::{self, Value};

impl<'p> Code<'_, '_, 'p> {
    pub(crate) fn statements(&mut self, statements: &'p [Statement]) {
        for statement in statements {
            // What follows `return` or `break` is not reached.
            if self.f.is_reachable() {
                self.statement(statement);
            }
        }
    }

    fn statement(&mut self, statement: &'p Statement) {
        self.n_used = [0; 4];
        match statement {
            Statement::Expr(expr) => {
                self.value(expr);
                self.f.op(Op::Drop);
            }
            Statement::Let(Variable::Local(local), value) => {
                self.value(value);
                self.declare(*local);
            }
            Statement::Let(variable, value) | Statement::Assign(variable, value) => {
                self.assign(variable, value);
            }
            Statement::Fn(local, function) => {
                self.constant(Value::NIL);
                self.declare(*local);
                self.assign(&Variable::Local(*local), function);
            }
            Statement::AssignField(object, name, value) => self.set_field(object, name, value),
            Statement::AssignIndex(container, index, value) => {
                self.set_index(container, index, value)
            }
            Statement::If(branches, otherwise) => {
                let end = self.f.label();
                for (condition, body) in branches {
                    let next = self.f.label();
                    self.branch(condition, false, next);
                    self.statements(body);
                    if self.f.is_reachable() {
                        self.f.br(end);
                    }
                    self.bind(next);
                }
                self.statements(otherwise);
                self.bind(end);
            }
            Statement::While(condition, body) => {
                let (next, end) = (self.f.label(), self.f.label());
                self.f.bind(next);
                self.branch(condition, false, end);
                self.loops.push((next, end));
                self.statements(body);
                self.loops.pop();
                if self.f.is_reachable() {
                    self.f.br(next);
                }
                self.bind(end);
            }
            Statement::For(local, from, to, body) => self.count(*local, from, to, body),
            Statement::Return(value) => {
                match value {
                    Some(value) => self.value(value),
                    None => self.constant(Value::NIL),
                }
                self.f.ret();
            }
            Statement::Break | Statement::Continue => {
                let &(next, end) = self.loops.last().expect("the parser has seen the loop");
                self.f.br(if matches!(statement, Statement::Break) { end } else { next });
            }
        }
    }

    fn count(&mut self, local: usize, from: &'p Expr, to: &'p Expr, body: &'p [Statement]) {
        // No temporaries, since the body uses these.
        let (counter, limit) = (self.f.local(I32), self.f.local(I32));
        for (bound, expr) in [(counter, from), (limit, to)] {
            self.bound(expr);
            self.f.local_set(bound);
        }
        let (head, next, end) = (self.f.label(), self.f.label(), self.f.label());
        self.f.bind(head).local_get(counter).local_get(limit).op(Op::I32GeS).br_if(end);
        let variable = &self.function.locals[local];
        if variable.is_assigned || variable.is_captured {
            self.f.local_get(counter);
            self.integer();
            self.declare(local);
        } else {
            self.locals[local] = Some(Storage::Integer(counter));
        }
        self.loops.push((next, end));
        self.statements(body);
        self.loops.pop();
        self.bind(next);
        if self.f.is_reachable() {
            self.f.local_get(counter).i32_const(1).op(Op::I32Add).local_set(counter).br(head);
        }
        self.f.bind(end);
    }

    /// Leaves a bound of a loop, an `i32`.
    fn bound(&mut self, expr: &'p Expr) {
        if let Some(counter) = self.counter(expr) {
            self.f.local_get(counter);
            return;
        }
        let (call, end) = (self.f.label(), self.f.label());
        let value = self.in_local(expr);
        self.unless_tag(value, value::INTEGER, call);
        self.address(value);
        self.f.br(end).bind(call);
        self.bits(value);
        self.place(expr.place);
        self.host("bound");
        self.f.op(Op::I32WrapI64);
        self.f.bind(end);
    }

    /// The `i32` of a variable that counts a loop.
    pub(crate) fn counter(&self, expr: &Expr) -> Option<LocalId> {
        match expr.kind {
            ExprKind::Variable(Variable::Local(local)) => match self.locals[local] {
                Some(Storage::Integer(counter)) => Some(counter),
                _ => None,
            },
            _ => None,
        }
    }

    /// Branches if an expression is true, or if it is not.
    fn branch(&mut self, expr: &'p Expr, when: bool, label: LabelId) {
        match &expr.kind {
            ExprKind::Not(operand) => self.branch(operand, !when, label),
            // One of the operands decides alone if it is what the whole is to be for the branch.
            ExprKind::Logic(logic, operands) if (*logic == Logic::Or) == when => {
                self.branch(&operands[0], when, label);
                self.branch(&operands[1], when, label);
            }
            ExprKind::Logic(_, operands) => {
                let end = self.f.label();
                self.branch(&operands[0], !when, end);
                self.branch(&operands[1], when, label);
                self.bind(end);
            }
            ExprKind::Bool(b) => {
                self.f.i32_const((*b == when).into()).br_if(label);
            }
            _ => {
                self.condition(expr);
                if !when {
                    self.f.op(Op::I32Eqz);
                }
                self.f.br_if(label);
            }
        }
    }

    /// Leaves whether an expression is true, an `i32`.
    pub(crate) fn condition(&mut self, expr: &'p Expr) {
        match &expr.kind {
            ExprKind::Compare(comparison, operands) => {
                self.compare(expr.place, *comparison, operands)
            }
            ExprKind::Equal { negated, operands } => {
                self.equal(expr.place, operands);
                if *negated {
                    self.f.op(Op::I32Eqz);
                }
            }
            ExprKind::Not(operand) => {
                self.condition(operand);
                self.f.op(Op::I32Eqz);
            }
            _ => {
                let value = self.in_local(expr);
                self.is_false(value);
                self.f.op(Op::I32Eqz);
            }
        }
    }
}
