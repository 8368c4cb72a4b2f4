//! Integers with two results as LLVM IR: arithmetic of `i128`, and intrinsics that return a bit of overflow.

use std::fmt::Write;

use slotvm_bytecode::Op;

use super::{Body, line, type_name};

impl Body<'_, '_, '_> {
    pub(super) fn pair(&mut self, op: Op) {
        match op {
            Op::I64Add128 => self.sum("add"),
            Op::I64Sub128 => self.sum("sub"),
            Op::I64MulWideS => self.product("sext"),
            Op::I64MulWideU => self.product("zext"),
            Op::I32AddOverflowS | Op::I64AddOverflowS => self.with_overflow("sadd"),
            Op::I32AddOverflowU | Op::I64AddOverflowU => self.with_overflow("uadd"),
            Op::I32SubOverflowS | Op::I64SubOverflowS => self.with_overflow("ssub"),
            Op::I32SubOverflowU | Op::I64SubOverflowU => self.with_overflow("usub"),
            Op::I32MulOverflowS | Op::I64MulOverflowS => self.with_overflow("smul"),
            Op::I32MulOverflowU | Op::I64MulOverflowU => self.with_overflow("umul"),
            _ => unreachable!("`{}` does not have two results", op.mnemonic()),
        }
    }

    /// An operand of 64 bits, extended to 128.
    fn extended(&mut self, how: &str, i: usize) -> String {
        let (wide, operand) = (self.temporary(), self.value(self.f.operands(self.inst)[i]));
        line!(self, "{wide} = {how} i64 {operand} to i128");
        wide
    }

    /// The number whose words are an operand and the next one.
    fn joined(&mut self, i: usize) -> String {
        let (low, high) = (self.extended("zext", i), self.extended("zext", i + 1));
        let (shifted, joined) = (self.temporary(), self.temporary());
        line!(self, "{shifted} = shl i128 {high}, 64");
        line!(self, "{joined} = or i128 {shifted}, {low}");
        joined
    }

    fn sum(&mut self, name: &str) {
        let (a, b) = (self.joined(0), self.joined(2));
        self.split(name, &a, &b);
    }

    fn product(&mut self, how: &str) {
        let (a, b) = (self.extended(how, 0), self.extended(how, 1));
        self.split("mul", &a, &b);
    }

    /// An instruction on numbers of 128 bits, of whose result the words are the results.
    fn split(&mut self, name: &str, a: &str, b: &str) {
        let (all, upper) = (self.temporary(), self.temporary());
        let [low, high] = self.two_results();
        line!(self, "{all} = {name} i128 {a}, {b}");
        line!(self, "%{low} = trunc i128 {all} to i64");
        line!(self, "{upper} = lshr i128 {all}, 64");
        line!(self, "%{high} = trunc i128 {upper} to i64");
    }

    /// A call of an intrinsic that returns the wrapped result and a bit.
    fn with_overflow(&mut self, name: &str) {
        let &[a, b] = self.f.operands(self.inst) else { unreachable!("there are two operands") };
        let ty = self.f.value_type(a);
        let (name, operand) = (format!("llvm.{name}.with.overflow.{ty}"), type_name(ty));
        let both = format!("{{ {operand}, i1 }}");
        self.declare(&name, &both, &format!("{operand}, {operand}"));
        let (all, bit) = (self.temporary(), self.temporary());
        let (a, b) = (self.typed(a), self.typed(b));
        let [result, flag] = self.two_results();
        line!(self, "{all} = call {both} @{name}({a}, {b})");
        line!(self, "%{result} = extractvalue {both} {all}, 0");
        line!(self, "{bit} = extractvalue {both} {all}, 1");
        line!(self, "%{flag} = zext i1 {bit} to i32");
    }

    /// The names of both results.
    fn two_results(&self) -> [String; 2] {
        let mut results = self.f.results(self.inst);
        std::array::from_fn(|_| self.name(results.next().expect("there are two results")))
    }
}
