//! The types of the opcodes without a fixed signature, once more and by hand: a table of what chapter 2 of
//! `docs/bytecode.md` says. Verifier, builder, construction of the IR and its verifier share what
//! [`slotvm_bytecode::typing`] says, so that a slip there would pass all of them, but not this.

use slotvm_bytecode::builder::{LabelId, ModuleBuilder};
use slotvm_bytecode::module::ConstExpr;
use slotvm_bytecode::{CodeReader, Imm, Inst, Module, Op, ValType, text, verify as verify_module};

use super::{Form, Property, verify};
use crate::construction::build::{BuildOptions, BuildScratch, build};
use crate::construction::promote::{Scratch, promote};
use crate::ir::irop::{Opcode, is_in_ir};
use ValType::{ExternRef, F32, F64, FuncRef, I32, I64, Ref};

/// A function that an instruction is typed in: its parameters are the operands, the deepest first.
#[derive(Clone, PartialEq, Eq)]
struct Row {
    inst: &'static str,
    operands: Vec<ValType>,
    /// Types on the stack after the instruction, or at its target; the function returns them.
    results: Vec<ValType>,
    /// The operand that may be of any type.
    any: Option<usize>,
}

/// A global `g` is an `f32`, a local `x` an `f64`, a table `t` of externrefs and `u` of funcrefs. `callee` and
/// `sig` take an `i64` and an `f32` and give an `f64` and an `i32`. A label `l` has an `i32` and an `f64`.
fn table() -> Vec<Row> {
    let mut rows = vec![];
    let mut row = |inst, operands: &[ValType], results: &[ValType], any| {
        rows.push(Row { inst, operands: operands.to_vec(), results: results.to_vec(), any });
    };
    row("drop", &[I32], &[], Some(0));
    row("swap", &[I32, I64], &[I64, I32], None);
    row("over", &[I32, I64], &[I32, I64, I32], None);
    row("rot", &[I32, I64, F32], &[I64, F32, I32], None);
    for ty in ValType::ALL {
        row("dup", &[ty], &[ty, ty], None);
        row("select", &[ty, ty, I32], &[ty], None);
    }
    row("local.get x", &[], &[F64], None);
    row("local.set x", &[F64], &[], None);
    row("local.tee x", &[F64], &[F64], None);
    row("local.addr x", &[], &[I32], None);
    row("global.get g", &[], &[F32], None);
    row("global.set g", &[F32], &[], None);
    row("ref.null funcref", &[], &[FuncRef], None);
    row("ref.null externref", &[], &[ExternRef], None);
    row("ref.null ref", &[], &[Ref], None);
    row("ref.is_null", &[FuncRef], &[I32], None);
    row("ref.is_null", &[ExternRef], &[I32], None);
    row("ref.is_null", &[Ref], &[I32], None);
    row("table.get t", &[I32], &[ExternRef], None);
    row("table.get u", &[I32], &[FuncRef], None);
    row("table.set t", &[I32, ExternRef], &[], None);
    row("table.set u", &[I32, FuncRef], &[], None);
    row("table.grow t", &[ExternRef, I32], &[I32], None);
    row("table.grow u", &[FuncRef, I32], &[I32], None);
    row("table.fill t", &[I32, ExternRef, I32], &[], None);
    row("table.fill u", &[I32, FuncRef, I32], &[], None);
    row("call callee", &[I64, F32], &[F64, I32], None);
    row("call_indirect (i64, f32) -> (f64, i32), u", &[I64, F32, I32], &[F64, I32], None);
    // From here on control does not continue, or continues at the label. What is below may be anything.
    row("unreachable", &[I64], &[F32], Some(0));
    row("trap 7", &[I64], &[F32], Some(0));
    row("return", &[I64, F64, I32], &[F64, I32], Some(0));
    row("return_call callee", &[I64, I64, F32], &[F64, I32], Some(0));
    let indirect = "return_call_indirect (i64, f32) -> (f64, i32), u";
    row(indirect, &[I64, I64, F32, I32], &[F64, I32], Some(0));
    row("br l", &[I32, F64], &[I32, F64], None);
    row("br_if l", &[I32, F64, I32], &[I32, F64], None);
    row("br_table [l] l", &[I32, F64, I32], &[I32, F64], None);
    row("br_keep l 1", &[I32, I64, F64], &[I32, F64], Some(1));
    rows
}

fn types(types: &[ValType]) -> String {
    types.iter().map(|ty| ty.name()).collect::<Vec<_>>().join(", ")
}

impl Row {
    fn goes_to_label(&self) -> bool {
        self.inst.starts_with("br")
    }

    /// Whether the instruction takes any operands, and control does not continue.
    fn only_traps(&self) -> bool {
        matches!(self.inst, "unreachable" | "trap 7")
    }

    /// Whether control continues to a `return` after the instruction.
    fn goes_on(&self) -> bool {
        !self.inst.starts_with("return") && !self.only_traps()
    }

    fn module(&self) -> Module {
        let gets: String = (0..self.operands.len()).map(|i| format!("local.get {i} ")).collect();
        let label = if self.goes_to_label() { "l(i32, f64):\n" } else { "" };
        let end = if self.goes_on() { "return" } else { "" };
        let (operands, results) = (types(&self.operands), types(&self.results));
        let results = if results.is_empty() { results } else { format!(" -> ({results})") };
        let source = format!(
            "memory m 1\ntable t externref 1\ntable u funcref 1\n\
             global g: mut f32 = f32.const 0\nframe_stack 1024 4096\n\
             func f({operands}){results} {{\n  local x: f64\n  {gets}\n  {}\n{label}  {end}\n}}\n\
             func callee(i64, f32) -> (f64, i32) {{ f64.const 0 i32.const 0 return }}\n",
            self.inst
        );
        text::parse(&source).unwrap_or_else(|error| panic!("{source}\n{error}"))
    }

    /// The instruction that the row is about.
    fn inst(&self) -> Inst {
        let module = self.module();
        let mut reader = CodeReader::new(&module.funcs[0].code, 0);
        let mut insts = std::iter::from_fn(|| reader.read().ok());
        insts.nth(self.operands.len()).expect("it decodes")
    }

    /// Whether the builder takes the function.
    fn builds(&self) -> bool {
        let Inst { op, imm } = self.inst();
        let mut m = ModuleBuilder::new();
        m.memory("", 1, None);
        m.table("t", ExternRef, 1, None);
        m.table("u", FuncRef, 1, None);
        m.global("g", F32, true, ConstExpr::f32(0.0));
        m.frame_stack(1024, 4096);
        // In the order of the text, so that types have the same numbers.
        let func = m.declare_func("f", &self.operands, &self.results);
        let callee = m.declare_func("callee", &[I64, F32], &[F64, I32]);
        let sig = m.func_type(&[I64, F32], &[F64, I32]);
        let mut f = m.define(callee);
        f.f64_const(0.0).i32_const(0).ret();
        f.finish().expect("no mistake");
        let mut f = m.define(func);
        f.local(F64);
        let l: LabelId = f.label_with_stack(&[I32, F64]);
        for i in 0..self.operands.len() {
            f.local_get(f.param(i as u32));
        }
        match op {
            Op::Br => f.br(l),
            Op::BrIf => f.br_if(l),
            Op::BrTable => f.br_table(&[l], l),
            Op::BrKeep => f.br_keep(l, imm.high()),
            Op::CallIndirect | Op::ReturnCallIndirect => f.inst(op, Imm::pair(sig.0, imm.high())),
            _ => f.inst(op, imm),
        };
        if self.goes_to_label() {
            f.bind(l);
        }
        if self.goes_on() {
            f.ret();
        }
        f.finish().is_ok()
    }

    /// Rows that differ in a type, lack the deepest operand or have one more result below.
    fn others(&self) -> Vec<Row> {
        let mut others = vec![];
        for ty in ValType::ALL {
            for i in 0..self.operands.len() {
                let mut other = self.clone();
                other.operands[i] = ty;
                others.push(other);
            }
            for i in 0..self.results.len() {
                let mut other = self.clone();
                other.results[i] = ty;
                others.push(other);
            }
        }
        if self.any.is_none() && !self.operands.is_empty() {
            others.push(Row { operands: self.operands[1..].to_vec(), ..self.clone() });
        }
        let results = [&[FuncRef], &self.results[..]].concat();
        others.push(Row { results, ..self.clone() });
        others
    }

    /// Whether an operand may be of this type as well.
    fn takes(&self, i: usize, ty: ValType, table: &[Row]) -> bool {
        let mut other = self.clone();
        other.operands[i] = ty;
        self.any == Some(i) || table.contains(&other)
    }
}

#[test]
fn every_special_opcode_is_in_the_table() {
    let table = table();
    for &op in Op::ALL.iter().filter(|op| op.signature().is_none()) {
        assert!(table.iter().any(|row| row.inst().op == op), "{op:?}");
    }
}

#[test]
fn verifier_and_builder_take_what_the_table_says_and_nothing_else() {
    let table = table();
    let mut n_refused = 0;
    for row in &table {
        let Row { inst, operands, results, any } = row;
        let about = format!("{inst} ({}) -> ({})", types(operands), types(results));
        let verified = verify_module(row.module());
        assert!(verified.is_ok(), "{about}: {}", verified.unwrap_err());
        assert!(row.builds(), "{about}");
        for other in row.others() {
            let differs = |i: usize| other.operands.get(i) != operands.get(i);
            let is_typed = table.contains(&other)
                || row.only_traps()
                || other.results == *results && any.is_some_and(differs);
            let about = format!("{about}, {} -> {}", types(&other.operands), types(&other.results));
            assert_eq!(verify_module(other.module()).is_ok(), is_typed, "{about}");
            assert_eq!(other.builds(), is_typed, "{about}");
            n_refused += usize::from(!is_typed);
        }
    }
    assert!(n_refused > 300, "{n_refused}");
}

#[test]
fn the_ir_has_the_types_of_the_table_and_its_verifier_takes_no_others() {
    let table = table();
    let mut n_refused = 0;
    for row in &table {
        let op = row.inst().op;
        let module = verify_module(row.module()).expect("it is typed");
        let mut f = build(&module, 0, &BuildOptions::default(), &mut BuildScratch::default());
        verify(&f, Form::Slots, &module).expect("slot form has the types");
        promote(&mut f, &mut Scratch::default());
        verify(&f, Form::Ssa, &module).expect("SSA form has the types");
        if !is_in_ir(op) {
            continue;
        }
        let inst = f.blocks().flat_map(|block| f.insts(block)).copied();
        let inst = inst.into_iter().find(|&inst| f.opcode(inst) == Opcode::Op(op));
        let inst = inst.expect("the IR has the instruction");
        for ty in ValType::ALL {
            // The operands are parameters of the function.
            for &operand in f.operands(inst) {
                let mut other = f.clone();
                other.value_types[operand.index()] = ty;
                other.ty.params[operand.index()] = ty;
                let checked = verify(&other, Form::Ssa, &module);
                if row.takes(operand.index(), ty, &table) || f.value_type(operand) == ty {
                    continue;
                }
                let property = checked.expect_err("the operand has a wrong type").property;
                let expected = [Property::OperandTypes, Property::ReturnTypes];
                assert!(expected.contains(&property), "{}: {property:?}", row.inst);
                n_refused += 1;
            }
            for result in f.results(inst) {
                let mut other = f.clone();
                other.value_types[result.index()] = ty;
                if f.value_type(result) != ty {
                    let violation = verify(&other, Form::Ssa, &module).expect_err("a wrong result");
                    assert_eq!(violation.property, Property::ResultTypes, "{}", row.inst);
                    n_refused += 1;
                }
            }
        }
    }
    assert!(n_refused > 100, "{n_refused}");
}
