//! Addresses of a loop as linear forms, so that those of one round can be compared with those of the next.
//!
//! A form is a sum of few atoms, each times a constant, and a constant, modulo 2^32. An atom is a value that is no such
//! sum: a value from outside, a phi of the header, or a result in the loop. Results of equal pure operations are one
//! atom, since simple compilers compute an address anew for each access. Two values with one form are equal in each
//! round.
//!
//! Forms are made only of the operands of addresses, and of the arguments of the edge back. `version` asks by how much a value
//! changes; here the distance of two values counts, and the form that a value has in the next round.

use slotvm_bytecode::{Effect, Imm, Op, ValType};

use super::Body;
use crate::ir::Function;
use crate::ir::entity::{Inst, Value};
use crate::ir::irop::Opcode;

/// The maximum number of atoms of a form. A value that is a longer sum is an atom itself.
const TERMS_MAX: usize = 3;

/// The maximum number of operations of a loop among which equal ones are found.
const OPERATIONS_MAX: usize = 32;

/// A value that is no sum, by number in [`Forms`].
type Atom = u32;

/// A sum modulo 2^32: of atoms in ascending order, each times a number other than zero, and a constant.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Form {
    /// Those after the last one are zero.
    terms: [(Atom, i32); TERMS_MAX],
    pub(super) constant: i32,
}

impl Form {
    fn constant(constant: i32) -> Form {
        Form { constant, ..Form::default() }
    }

    fn of(atom: Atom) -> Form {
        let mut form = Form::default();
        form.terms[0] = (atom, 1);
        form
    }

    fn terms(&self) -> impl Iterator<Item = (Atom, i32)> {
        self.terms.into_iter().take_while(|&(_, factor)| factor != 0)
    }

    fn as_constant(&self) -> Option<i32> {
        (self.terms[0].1 == 0).then_some(self.constant)
    }

    /// Adds a form times a factor, unless the sum has too many atoms.
    fn plus(&self, other: &Form, factor: i32) -> Option<Form> {
        let constant = self.constant.wrapping_add(other.constant.wrapping_mul(factor));
        let mut sum = Form::constant(constant);
        let (mut a, mut b) = (self.terms().peekable(), other.terms().peekable());
        let mut n = 0;
        loop {
            let atom = match (a.peek(), b.peek()) {
                (Some(a), Some(b)) => a.0.min(b.0),
                (Some(one), None) | (None, Some(one)) => one.0,
                (None, None) => return Some(sum),
            };
            let from_a = a.next_if(|term| term.0 == atom).map_or(0, |term| term.1);
            let from_b = b.next_if(|term| term.0 == atom).map_or(0, |term| term.1);
            let factor = from_a.wrapping_add(from_b.wrapping_mul(factor));
            if factor != 0 {
                *sum.terms.get_mut(n)? = (atom, factor);
                n += 1;
            }
        }
    }

    fn times(&self, factor: i32) -> Form {
        Form::default().plus(self, factor).expect("a product has no more atoms")
    }

    /// The difference to a form of the same atoms.
    pub(super) fn distance(&self, to: &Form) -> Option<i32> {
        (self.terms == to.terms).then(|| to.constant.wrapping_sub(self.constant))
    }
}

/// The form of an atom in the next round.
#[derive(Copy, Clone)]
enum Next {
    /// The atom itself.
    Same,
    /// The argument of the edge back for this parameter of the header.
    Param(usize),
    Unknown,
}

/// A pure operation on forms; operands that there are not have the form 0.
type Operation = (Op, Imm, [Form; 3]);

/// The number of a value that has a form once its turn comes.
const NEEDED: u32 = u32::MAX;

/// The forms of the values of a loop.
pub(super) struct Forms {
    /// One more than the index of each value's form, `NEEDED`, or 0.
    number_of: Vec<u32>,
    /// The values whose number is not 0.
    numbered: Vec<Value>,
    forms: Vec<Form>,
    atoms: Vec<Next>,
    operations: Vec<(Operation, Atom)>,
    /// The forms of the arguments of the edge back that are `i32`s.
    next: Vec<Option<Form>>,
}

impl Forms {
    pub(super) fn new(f: &Function) -> Forms {
        Forms {
            number_of: vec![0; f.n_values()],
            numbered: Vec::new(),
            forms: Vec::new(),
            atoms: Vec::new(),
            operations: Vec::new(),
            next: Vec::new(),
        }
    }

    /// Goes over to a loop, in which these are the operands of addresses.
    pub(super) fn analyse(&mut self, f: &Function, body: &Body, addresses: &[Value]) {
        self.numbered.drain(..).for_each(|value| self.number_of[value.index()] = 0);
        self.forms.clear();
        self.atoms.clear();
        self.operations.clear();
        let params = || f.params(body.blocks[0]).iter().zip(f.edge_args(body.latch));
        let is_number = |&param: &Value| f.value_type(param) == ValType::I32;
        addresses.iter().for_each(|&value| self.need(value));
        params().filter(|&(param, _)| is_number(param)).for_each(|(_, &next)| self.need(next));
        for &inst in body.blocks.iter().rev().flat_map(|&block| f.insts(block).iter().rev()) {
            if self.is_needed(f, inst) && as_operation(f, inst).is_some() {
                f.operands(inst).iter().for_each(|&operand| self.need(operand));
            }
        }
        for (i, &block) in body.blocks.iter().enumerate() {
            for (number, &param) in f.params(block).iter().enumerate() {
                if self.number_of[param.index()] == NEEDED {
                    let next = if i == 0 { Next::Param(number) } else { Next::Unknown };
                    let form = self.atom(next);
                    self.set(param, form);
                }
            }
            for &inst in f.insts(block) {
                if self.is_needed(f, inst) {
                    let form = self.of_inst(f, inst);
                    self.set(f.result(inst), form);
                }
            }
        }
        self.next.clear();
        for (param, &next) in params() {
            let next = is_number(param).then(|| self.form(f, next));
            self.next.push(next);
        }
    }

    fn need(&mut self, value: Value) {
        let number = &mut self.number_of[value.index()];
        if *number == 0 {
            *number = NEEDED;
            self.numbered.push(value);
        }
    }

    /// Whether an instruction defines one value, which is needed.
    fn is_needed(&self, f: &Function, inst: Inst) -> bool {
        f.results(inst).len() == 1 && self.number_of[f.result(inst).index()] == NEEDED
    }

    fn set(&mut self, value: Value, form: Form) {
        self.forms.push(form);
        self.number_of[value.index()] = self.forms.len() as u32;
    }

    fn atom(&mut self, next: Next) -> Form {
        self.atoms.push(next);
        Form::of(self.atoms.len() as Atom - 1)
    }

    /// The form of a needed value. One that the loop has not given a form is of outside, or one of several results.
    pub(super) fn form(&mut self, f: &Function, value: Value) -> Form {
        match self.number_of[value.index()] {
            0 => unreachable!("{value} is not needed"),
            NEEDED => {
                let constant = constant(f, value).map(Form::constant);
                let form = constant.unwrap_or_else(|| self.atom(Next::Same));
                self.set(value, form);
                form
            }
            number => self.forms[number as usize - 1],
        }
    }

    fn of_inst(&mut self, f: &Function, inst: Inst) -> Form {
        if f.opcode(inst) == Opcode::Op(Op::I32Const) {
            return Form::constant(f.imm(inst).low() as i32);
        }
        let Some(op) = as_operation(f, inst) else { return self.atom(Next::Unknown) };
        let mut operands = [Form::default(); 3];
        for (form, &operand) in operands.iter_mut().zip(f.operands(inst)) {
            *form = self.form(f, operand);
        }
        let [a, b, _] = operands;
        let sum = match op {
            Op::I32Add => a.plus(&b, 1),
            Op::I32Sub => a.plus(&b, -1),
            Op::I32Mul => match (a.as_constant(), b.as_constant()) {
                (Some(factor), _) => Some(b.times(factor)),
                (_, Some(factor)) => Some(a.times(factor)),
                _ => None,
            },
            Op::I32Shl => b.as_constant().map(|by| a.times(1_i32.wrapping_shl(by as u32))),
            _ => None,
        };
        sum.unwrap_or_else(|| self.operation((op, f.imm(inst), operands)))
    }

    /// The atom of an operation. Equal ones have the same.
    fn operation(&mut self, operation: Operation) -> Form {
        if let Some(&(_, atom)) = self.operations.iter().find(|(known, _)| *known == operation) {
            return Form::of(atom);
        }
        let is_same = |(atom, _): (Atom, i32)| matches!(self.atoms[atom as usize], Next::Same);
        let stays = operation.2.iter().all(|form| form.terms().all(is_same));
        let form = self.atom(if stays { Next::Same } else { Next::Unknown });
        if self.operations.len() < OPERATIONS_MAX {
            self.operations.push((operation, form.terms[0].0));
        }
        form
    }

    /// The form that a value of the next round has in this one, if it is known.
    pub(super) fn next(&self, form: &Form) -> Option<Form> {
        let mut next = Form::constant(form.constant);
        for (atom, factor) in form.terms() {
            let of_atom = match self.atoms[atom as usize] {
                Next::Same => Form::of(atom),
                Next::Param(number) => self.next[number]?,
                Next::Unknown => return None,
            };
            next = next.plus(&of_atom, factor)?;
        }
        Some(next)
    }
}

/// The operation of a pure instruction of few operands.
fn as_operation(f: &Function, inst: Inst) -> Option<Op> {
    match f.opcode(inst) {
        Opcode::Op(op) if op.effect() == Effect::Pure && f.operands(inst).len() <= 3 => Some(op),
        _ => None,
    }
}

/// The constant that a value is. Most passes number values as their instructions; where they are not, constants may be
/// overlooked.
fn constant(f: &Function, value: Value) -> Option<i32> {
    let inst = Inst::new(f.results.partition_point(|&(first, _)| first <= value).checked_sub(1)?);
    let is_it = f.results(inst).any(|result| result == value);
    (is_it && f.opcode(inst) == Opcode::Op(Op::I32Const)).then(|| f.imm(inst).low() as i32)
}
