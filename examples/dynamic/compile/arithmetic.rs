//! Arithmetic and comparisons.
//!
//! A tree of operators has two codes: one for integers, which computes with 64 bits and looks at the size of the result at
//! the end only, and one for doubles. The first goes to the second where an operand is a double or the result is no integer
//! of 53 bits. Numbers are doubles to programs, so both compute the same, and nothing is computed twice that has effects.

use std::ops::Range;

use slotvm::builder::{LabelId, LocalId};
use slotvm::{Op, ValType::F64, ValType::I64, ValType::Ref};

use super::function::Code;
use crate::syntax::{Arithmetic, Comparison, Expr, ExprKind, Place};
use crate::value::{self, Value};

/// An operand of a tree, which is no number of the source.
struct Leaf {
    /// The bits, or the integer if it is known to be one.
    bits: LocalId,
    is_integer: bool,
    /// As the code for doubles has it.
    float: Option<LocalId>,
    place: Place,
}

/// An integer in code: a constant or a local, an `i64`, with the range in which it is.
struct Integer {
    local: Option<LocalId>,
    range: Range<i128>,
}

const I32_RANGE: Range<i128> = -(1 << 31)..1 << 31;
/// Integers of doubles, without gaps between them.
const EXACT_RANGE: Range<i128> = -(1 << 53)..(1 << 53) + 1;

fn is_inside(inner: &Range<i128>, outer: &Range<i128>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// Whether an expression is an inner node of a tree.
fn is_operator(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Arithmetic(..) | ExprKind::Negate(_) => true,
        ExprKind::Library(function, _) => function.name == "sqrt",
        _ => false,
    }
}

/// Whether a value is a number, or there is an error.
fn is_number(expr: &Expr) -> bool {
    is_operator(expr) || matches!(expr.kind, ExprKind::Number(_))
}

fn operands(expr: &Expr) -> &[Expr] {
    match &expr.kind {
        ExprKind::Arithmetic(_, operands) => &operands[..],
        ExprKind::Negate(operand) => std::slice::from_ref(operand),
        ExprKind::Library(_, args) => args,
        _ => &[],
    }
}

/// Whether integers may do.
fn is_integral(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Number(n) => Value::number(*n).tag() == value::INTEGER,
        ExprKind::Arithmetic(Arithmetic::Div, _) => false,
        ExprKind::Library(..) if is_operator(expr) => false,
        _ if is_operator(expr) => operands(expr).iter().all(is_integral),
        _ => true,
    }
}

impl<'p> Code<'_, '_, 'p> {
    /// Evaluates the leaves of a tree in their order, then takes their bits.
    fn leaves(&mut self, exprs: &[&'p Expr]) -> Vec<Leaf> {
        let mut values = Vec::new();
        exprs.iter().for_each(|expr| self.evaluate_leaves(expr, &mut values));
        let mut leaves = Vec::new();
        for &(counter, local, place) in &values {
            let bits = self.temporary(I64);
            match counter {
                Some(counter) => {
                    self.f.local_get(counter).op(Op::I64ExtendI32S);
                }
                None => self.bits(local),
            }
            self.f.local_set(bits);
            leaves.push(Leaf { bits, is_integer: counter.is_some(), float: None, place });
        }
        leaves
    }

    fn evaluate_leaves(
        &mut self,
        expr: &'p Expr,
        values: &mut Vec<(Option<LocalId>, LocalId, Place)>,
    ) {
        if is_operator(expr) {
            operands(expr).iter().for_each(|operand| self.evaluate_leaves(operand, values));
        } else if let Some(counter) = self.counter(expr) {
            values.push((Some(counter), counter, expr.place));
        } else if !matches!(expr.kind, ExprKind::Number(_)) {
            let value = self.in_local(expr);
            values.push((None, value, expr.place));
        }
    }

    /// Leaves the value of a tree.
    pub(crate) fn arithmetic(&mut self, expr: &'p Expr) {
        let mut leaves = self.leaves(&[expr]);
        self.place(expr.place);
        let (float, end) = (self.f.label(), self.f.label());
        if is_integral(expr) {
            self.unless_integers(&leaves, float);
            let result = self.integer_tree(expr, &mut leaves.iter(), float);
            self.number_of(&result);
            self.f.br(end);
            if self.f.operands_at(float).is_none() {
                self.f.bind(end);
                return;
            }
            self.f.bind(float);
        }
        self.floats(&mut leaves, None);
        self.float_tree(expr, &mut leaves.iter());
        self.f.op(Op::I64ReinterpretF64).op(Op::RefReinterpretI64);
        self.bind(end);
    }

    /// Leaves whether a comparison holds.
    pub(crate) fn compare(
        &mut self,
        place: Place,
        comparison: Comparison,
        operands: &'p [Expr; 2],
    ) {
        let (integer, float) = match comparison {
            Comparison::Less => (Op::I64LtS, Op::F64Lt),
            Comparison::LessOrEqual => (Op::I64LeS, Op::F64Le),
            Comparison::Greater => (Op::I64GtS, Op::F64Gt),
            Comparison::GreaterOrEqual => (Op::I64GeS, Op::F64Ge),
        };
        // Strings can be compared, but not computed with.
        let is_number = |operand: &Expr| is_number(operand) || self.counter(operand).is_some();
        let is_plain = !operands.iter().any(is_number);
        self.compare_trees(place, [integer, float], operands, is_plain.then_some(comparison));
    }

    /// Compares numbers, or what else a comparison takes.
    fn compare_trees(
        &mut self,
        place: Place,
        ops: [Op; 2],
        operands: &'p [Expr; 2],
        other: Option<Comparison>,
    ) {
        let [a, b] = operands;
        let mut leaves = self.leaves(&[a, b]);
        self.place(place);
        let (float, text, end) = (self.f.label(), self.f.label(), self.f.label());
        if is_integral(a) && is_integral(b) {
            self.unless_integers(&leaves, float);
            let mut rest = leaves.iter();
            let (x, y) =
                (self.integer_tree(a, &mut rest, float), self.integer_tree(b, &mut rest, float));
            self.get_integer(&x);
            self.get_integer(&y);
            self.f.op(ops[0]);
            self.f.br(end);
            self.bind(float);
        }
        if self.f.is_reachable() {
            self.floats(&mut leaves, other.map(|_| text));
            let mut rest = leaves.iter();
            self.float_tree(a, &mut rest);
            self.float_tree(b, &mut rest);
            self.f.op(ops[1]);
        }
        if let Some(comparison) = other {
            self.f.br(end).bind(text);
            let is_swapped = matches!(comparison, Comparison::Greater | Comparison::GreaterOrEqual);
            let order = if is_swapped { [1, 0] } else { [0, 1] };
            for i in order {
                self.f.local_get(leaves[i].bits);
            }
            let is_strict = matches!(comparison, Comparison::Less | Comparison::Greater);
            self.host_holds(if is_strict { "less" } else { "less_or_equal" });
        }
        self.bind(end);
    }

    /// Leaves whether two values are equal.
    pub(crate) fn equal(&mut self, place: Place, operands: &'p [Expr; 2]) {
        if operands.iter().all(is_number) {
            return self.compare_trees(place, [Op::I64Eq, Op::F64Eq], operands, None);
        }
        let (slow, end) = (self.f.label(), self.f.label());
        let values = [self.in_local(&operands[0]), self.in_local(&operands[1])];
        let bits = values.map(|local| self.bits_local(local));
        // Only a double may equal what has other bits, or differ from what has its own.
        let is_other =
            |e: &Expr| matches!(e.kind, ExprKind::Nil | ExprKind::Bool(_) | ExprKind::Text(_));
        if !operands.iter().any(is_other) {
            for (operand, local) in operands.iter().zip(bits) {
                if !matches!(operand.kind, ExprKind::Number(_)) || !is_integral(operand) {
                    self.f.local_get(local).i64_const(48).op(Op::I64ShrU);
                    self.f.i64_const(value::ATOM as i64).op(Op::I64LtU).br_if(slow);
                }
            }
        }
        self.f.local_get(bits[0]).local_get(bits[1]).op(Op::I64Eq);
        if self.f.operands_at(slow).is_some() {
            self.f.br(end).bind(slow).local_get(bits[0]).local_get(bits[1]);
            self.place(place);
            self.host_holds("equal");
            self.f.bind(end);
        }
    }

    /// Leaves the greatest integer that is not greater than a number.
    pub(crate) fn floor(&mut self, place: Place, expr: &'p Expr) {
        let value = self.in_local(expr);
        let (result, bits) = (self.temporary(Ref), self.bits_local(value));
        let (integer, slow, end) = (self.temporary(I64), self.f.label(), self.f.label());
        self.f.local_get(value).local_set(result);
        self.f.local_get(bits).i64_const(48).op(Op::I64ShrS).i64_const(-1).op(Op::I64Eq).br_if(end);
        self.f.local_get(bits).i64_const(48).op(Op::I64ShrU).i64_const(value::ATOM as i64);
        self.f.op(Op::I64GeU).br_if(slow);
        self.f.local_get(bits).op(Op::F64ReinterpretI64).op(Op::F64Floor).op(Op::I64TruncSatF64S);
        self.f.local_tee(integer).local_get(integer).op(Op::I64Extend32S).op(Op::I64Ne).br_if(slow);
        self.f.local_get(integer).op(Op::I32WrapI64);
        self.integer();
        self.f.local_set(result).br(end).bind(slow).local_get(bits);
        self.place(place);
        self.host("floor");
        self.f.op(Op::RefReinterpretI64).local_set(result).bind(end).local_get(result);
    }

    /// Branches if a leaf is no integer.
    fn unless_integers(&mut self, leaves: &[Leaf], label: LabelId) {
        let unknown: Vec<_> = leaves.iter().filter(|leaf| !leaf.is_integer).collect();
        for (i, leaf) in unknown.iter().enumerate() {
            self.f.local_get(leaf.bits);
            if i > 0 {
                self.f.op(Op::I64And);
            }
        }
        if !unknown.is_empty() {
            // The tag of integers is all ones, and it is the only one that is.
            self.f.i64_const(48).op(Op::I64ShrS).i64_const(-1).op(Op::I64Ne).br_if(label);
        }
    }

    fn get_integer(&mut self, integer: &Integer) {
        match integer.local {
            Some(local) => self.f.local_get(local),
            None => self.f.i64_const(integer.range.start as i64),
        };
    }

    /// Computes a tree with integers, or goes to the label.
    fn integer_tree<'l>(
        &mut self,
        expr: &'p Expr,
        leaves: &mut impl Iterator<Item = &'l Leaf>,
        float: LabelId,
    ) -> Integer {
        if let ExprKind::Number(n) = expr.kind {
            return Integer { local: None, range: n as i128..n as i128 + 1 };
        }
        let result = self.temporary(I64);
        let range = match &expr.kind {
            ExprKind::Negate(operand) => {
                let x = self.integer_tree(operand, leaves, float);
                // The opposite of 0 is -0, which is a double.
                self.get_integer(&x);
                self.f.op(Op::I64Eqz).br_if(float).i64_const(0);
                self.get_integer(&x);
                self.f.op(Op::I64Sub).local_set(result);
                let range = 1 - x.range.end..1 - x.range.start;
                range
            }
            ExprKind::Arithmetic(operator, operands) => {
                let x = self.integer_tree(&operands[0], leaves, float);
                let y = self.integer_tree(&operands[1], leaves, float);
                self.integer_operator(*operator, [&x, &y], result, float)
            }
            _ => {
                let leaf = leaves.next().expect("the leaves are those of the tree");
                self.f.local_get(leaf.bits);
                if !leaf.is_integer {
                    self.f.op(Op::I64Extend32S);
                }
                self.f.local_set(result);
                I32_RANGE
            }
        };
        if is_inside(&range, &EXACT_RANGE) {
            return Integer { local: Some(result), range };
        }
        self.f.local_get(result).local_get(result).op(Op::I64Extend32S).op(Op::I64Ne).br_if(float);
        Integer { local: Some(result), range: I32_RANGE }
    }

    /// Applies an operator, and returns the range of the result.
    fn integer_operator(
        &mut self,
        operator: Arithmetic,
        [x, y]: [&Integer; 2],
        result: LocalId,
        float: LabelId,
    ) -> Range<i128> {
        let (a, b) = (x.range.clone(), y.range.clone());
        let operands = |code: &mut Self| {
            code.get_integer(x);
            code.get_integer(y);
        };
        match operator {
            Arithmetic::Add => {
                operands(self);
                self.f.op(Op::I64Add).local_set(result);
                a.start + b.start..a.end + b.end - 1
            }
            Arithmetic::Sub => {
                operands(self);
                self.f.op(Op::I64Sub).local_set(result);
                a.start - b.end + 1..a.end - b.start
            }
            Arithmetic::Mul => {
                operands(self);
                self.f.op(Op::I64Mul).local_set(result);
                let may_be_minus_zero =
                    |x: &Range<i128>, y: &Range<i128>| x.contains(&0) && y.start < 0;
                if may_be_minus_zero(&a, &b) || may_be_minus_zero(&b, &a) {
                    let is_plain = self.f.label();
                    self.f.local_get(result).i64_const(0).op(Op::I64Ne).br_if(is_plain);
                    operands(self);
                    self.f.op(Op::I64Or).i64_const(0).op(Op::I64LtS).br_if(float).bind(is_plain);
                }
                let ends = [a.start, a.end - 1].map(|a| [a * b.start, a * (b.end - 1)]).concat();
                *ends.iter().min().expect("4")..*ends.iter().max().expect("4") + 1
            }
            Arithmetic::FloorDiv | Arithmetic::Rem => {
                self.floor_division(operator, [x, y], result, float)
            }
            Arithmetic::Div => unreachable!("a tree with a quotient is not one of integers"),
        }
    }

    fn floor_division(
        &mut self,
        operator: Arithmetic,
        [x, y]: [&Integer; 2],
        result: LocalId,
        float: LabelId,
    ) -> Range<i128> {
        let is_rem = operator == Arithmetic::Rem;
        if y.local.is_none() && y.range.start > 0 && (y.range.start as u64).is_power_of_two() {
            // Masks and shifts round down.
            let shift = y.range.start.trailing_zeros();
            self.get_integer(x);
            if is_rem {
                self.f.i64_const(y.range.start as i64 - 1).op(Op::I64And).local_set(result);
                return 0..y.range.start;
            }
            self.f.i64_const(shift.into()).op(Op::I64ShrS).local_set(result);
            return x.range.start >> shift..((x.range.end - 1) >> shift) + 1;
        }
        if y.range.start <= 0 {
            self.get_integer(y);
            self.f.i64_const(0).op(Op::I64LeS).br_if(float);
        }
        let is_short = is_inside(&x.range, &I32_RANGE) && is_inside(&y.range, &I32_RANGE);
        for operand in [x, y] {
            self.get_integer(operand);
            if is_short {
                self.f.op(Op::I32WrapI64);
            }
        }
        self.f.op(match (is_rem, is_short) {
            (true, true) => Op::I32RemS,
            (true, false) => Op::I64RemS,
            (false, true) => Op::I32DivS,
            (false, false) => Op::I64DivS,
        });
        if is_short {
            self.f.op(Op::I64ExtendI32S);
        }
        self.f.local_set(result);
        if x.range.start < 0 && is_rem {
            // A negative rest is one divisor too small.
            self.f.local_get(result).local_get(result).i64_const(63).op(Op::I64ShrS);
            self.get_integer(y);
            self.f.op(Op::I64And).op(Op::I64Add).local_set(result);
        } else if x.range.start < 0 {
            // A quotient with a negative rest is 1 too great.
            self.get_integer(x);
            self.f.local_get(result);
            self.get_integer(y);
            self.f.op(Op::I64Mul).op(Op::I64Sub).i64_const(63).op(Op::I64ShrS);
            self.f.local_get(result).op(Op::I64Add).local_set(result);
        }
        if is_rem { 0..y.range.end - 1 } else { x.range.start.min(0)..x.range.end.max(1) }
    }

    /// Leaves the value of an integer.
    fn number_of(&mut self, integer: &Integer) {
        self.get_integer(integer);
        if is_inside(&integer.range, &I32_RANGE) {
            self.f.op(Op::I32WrapI64);
            return self.integer();
        }
        let (long, end) = (self.f.label(), self.f.label());
        self.f.op(Op::I64Extend32S);
        self.get_integer(integer);
        self.f.op(Op::I64Ne).br_if(long);
        self.get_integer(integer);
        self.f.op(Op::I32WrapI64);
        self.integer();
        self.f.br(end).bind(long);
        self.get_integer(integer);
        self.f.op(Op::F64ConvertI64S).op(Op::I64ReinterpretF64).op(Op::RefReinterpretI64).bind(end);
    }

    /// Makes doubles of the leaves. One that is no number is an error, or goes to the label.
    fn floats(&mut self, leaves: &mut [Leaf], otherwise: Option<LabelId>) {
        for leaf in leaves {
            let float = self.temporary(F64);
            leaf.float = Some(float);
            if leaf.is_integer {
                self.f.local_get(leaf.bits).op(Op::F64ConvertI64S).local_set(float);
                continue;
            }
            let (integer, other, end) = (self.f.label(), self.f.label(), self.f.label());
            self.f.local_get(leaf.bits).i64_const(48).op(Op::I64ShrU);
            self.f.i64_const(value::ATOM as i64).op(Op::I64GeU).br_if(other);
            self.f.local_get(leaf.bits).op(Op::F64ReinterpretI64).local_set(float).br(end);
            self.f.bind(other).local_get(leaf.bits).i64_const(48).op(Op::I64ShrS).i64_const(-1);
            match otherwise {
                Some(label) => {
                    self.f.op(Op::I64Ne).br_if(label);
                }
                None => {
                    self.f.op(Op::I64Eq).br_if(integer).local_get(leaf.bits);
                    self.place(leaf.place);
                    self.host("no_number");
                    self.f.unreachable();
                }
            }
            self.f.bind(integer).local_get(leaf.bits).op(Op::I32WrapI64).op(Op::F64ConvertI32S);
            self.f.local_set(float).bind(end);
        }
    }

    /// Leaves what a tree is with doubles.
    fn float_tree<'l>(&mut self, expr: &'p Expr, leaves: &mut impl Iterator<Item = &'l Leaf>) {
        match &expr.kind {
            ExprKind::Number(n) => {
                self.f.f64_const(*n);
            }
            ExprKind::Negate(operand) => {
                self.float_tree(operand, leaves);
                self.f.op(Op::F64Neg);
            }
            ExprKind::Library(_, args) if is_operator(expr) => {
                self.float_tree(&args[0], leaves);
                self.f.op(Op::F64Sqrt);
            }
            ExprKind::Arithmetic(operator, operands) => {
                self.float_tree(&operands[0], leaves);
                self.float_tree(&operands[1], leaves);
                match operator {
                    Arithmetic::Add => self.f.op(Op::F64Add),
                    Arithmetic::Sub => self.f.op(Op::F64Sub),
                    Arithmetic::Mul => self.f.op(Op::F64Mul),
                    Arithmetic::Div => self.f.op(Op::F64Div),
                    Arithmetic::FloorDiv => self.f.op(Op::F64Div).op(Op::F64Floor),
                    Arithmetic::Rem => {
                        let (x, y) = (self.temporary(F64), self.temporary(F64));
                        self.f.local_set(y).local_tee(x).local_get(x).local_get(y).op(Op::F64Div);
                        self.f.op(Op::F64Floor).local_get(y).op(Op::F64Mul).op(Op::F64Sub);
                        &mut self.f
                    }
                };
            }
            _ => {
                let leaf = leaves.next().expect("the leaves are those of the tree");
                self.f.local_get(leaf.float.expect("it is a double now"));
            }
        }
    }
}
