use slotvm_bytecode::{FuncType, Imm};

use super::*;
use crate::construction::build::BuildOptions;
use crate::construction::promote::{Scratch, promote};
use crate::ir::LocData;
use crate::ir::entity::Loc;
use crate::tools::samples::{module, slot_forms};

/// The lines of a text without comments and the spaces around them.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(|line| line.split(';').next().unwrap_or_default().trim()).collect()
}

/// All functions of a module in both forms, and what is declared for them.
fn both_forms(source: &str) -> (String, String, String) {
    let module = module(source);
    let mut printer = Printer::new(&module);
    let mut texts = (String::new(), String::new());
    for mut f in slot_forms(&module, &BuildOptions::default()) {
        f.take_names(&module);
        texts.0 += &printer.define(&f);
        promote(&mut f, &mut Scratch::default());
        texts.1 += &printer.define(&f);
    }
    (texts.0, texts.1, printer.declarations())
}

const SUM: &str = "
func sum(n: i32) -> i32 {
  local total: i32
next:
  local.get total
  local.get n
  i32.add
  local.set total
  local.get n
  i32.const 1
  i32.sub
  local.tee n
  br_if next
  local.get total
  return
}
";

#[test]
fn slots_are_variables_of_the_entry_block() {
    let (slots, _, declarations) = both_forms(SUM);
    let expected = "define tailcc i32 @f0.sum(i32 %v0.n) {
        b0:
        %s0.n = alloca i32
        %s1.total = alloca i32
        store i32 0, ptr %s0.n
        store i32 0, ptr %s1.total
        store i32 %v0.n, ptr %s0.n
        br label %b1.next
        b1.next:
        %v1 = load i32, ptr %s1.total
        %v2 = load i32, ptr %s0.n
        %v3 = add i32 %v1, %v2
        store i32 %v3, ptr %s1.total
        %v4 = load i32, ptr %s0.n
        %v6 = sub i32 %v4, 1
        store i32 %v6, ptr %s0.n
        %i10.1 = icmp ne i32 %v6, 0
        br i1 %i10.1, label %b1.next, label %b2
        b2:
        %v7 = load i32, ptr %s1.total
        ret i32 %v7
        }";
    assert_eq!(lines(&slots), lines(expected), "{slots}");
    assert_eq!(declarations, "");
}

#[test]
fn values_have_their_names_in_both_forms() {
    let (_, ssa, _) = both_forms(SUM);
    let expected = "define tailcc i32 @f0.sum(i32 %v0.n) {
        b0:
        br label %b1.next
        b1.next:
        %v9.n = phi i32 [ %v0.n, %b0 ], [ %v6.n, %b1.next ]
        %v10.total = phi i32 [ 0, %b0 ], [ %v3.total, %b1.next ]
        %v3.total = add i32 %v10.total, %v9.n
        %v6.n = sub i32 %v9.n, 1
        %i10.1 = icmp ne i32 %v6.n, 0
        br i1 %i10.1, label %b1.next, label %b2
        b2:
        ret i32 %v3.total
        }";
    assert_eq!(lines(&ssa), lines(expected), "{ssa}");
}

#[test]
fn what_llvm_does_not_say_is_declared() {
    let (slots, _, declarations) = both_forms(
        "import \"env\" \"log\" func log(i64)
        memory mem 1
        global g: mut i64 = i64.const 0
        func two(a: i32, b: i32) -> (i32, i64) {
          local.get a
          local.get b
          i32.div_s
          local.get a
          i64.load 16
          return
        }
        func tail(a: i32) -> (i32, i64) {
          global.get g
          call log
          local.get a
          local.get a
          return_call two
        }",
    );
    let declared = [
        "declare tailcc void @f0.log(i64)",
        "declare i32 @slotvm.i32.div_s(i32, i32)",
        "declare i64 @slotvm.i64.load(i32, i64)",
        "declare i64 @slotvm.global.get.g0()",
    ];
    for line in declared {
        assert!(declarations.contains(line), "{line} is not in\n{declarations}");
    }
    assert_eq!(declarations.lines().count(), declared.len(), "{declarations}");
    for part in [
        "call i64 @slotvm.i64.load(i32 %v5, i64 16)",
        "insertvalue { i32, i64 } poison, i32 %v",
        "musttail call tailcc { i32, i64 } @f1.two(i32 %v",
        "call tailcc void @f0.log(i64 %v",
    ] {
        assert!(slots.contains(part), "{part} is not in\n{slots}");
    }
}

#[test]
fn edges_with_operands_of_their_own_go_through_a_block() {
    let mut f = Function {
        ty: FuncType::new([ValType::I32, ValType::I32], [ValType::I32]),
        locs: vec![LocData::default()],
        ..Function::default()
    };
    let push = |f: &mut Function, op, operands: &[Value]| {
        let inst = f.make_inst(Opcode::Op(op), Imm::NONE, operands, &[], Loc(0));
        f.layout.push(inst);
    };
    f.start_block(None, 0);
    let [a, b] = [f.append_param(ValType::I32), f.append_param(ValType::I32)];
    push(&mut f, Op::BrTable, &[a]);
    for operand in [a, b, a] {
        f.append_edge(Block(1));
        f.edge_args.push(operand);
    }
    f.end_block();
    f.start_block(None, 0);
    let phi = f.append_param(ValType::I32);
    push(&mut f, Op::Return, &[phi]);
    f.end_block();
    f.compute_preds();

    let module = module("func f(a: i32, b: i32) -> i32 {\n local.get a return\n}");
    let text = Printer::new(&module).define(&f);
    let expected = "define tailcc i32 @f0.f(i32 %v0, i32 %v1) {
        b0:
        switch i32 %v0, label %b1 [
        i32 0, label %b1
        i32 1, label %e1
        ]
        e1:
        br label %b1
        b1:
        %v2 = phi i32 [ %v0, %b0 ], [ %v1, %e1 ], [ %v0, %b0 ]
        ret i32 %v2
        }";
    assert_eq!(lines(&text), lines(expected), "{text}");
}

#[test]
fn constants_keep_their_bits() {
    for (ty, bits, text) in [
        (ValType::I32, 0xffff_ffff, "-1"),
        (ValType::I64, 1 << 63, "-9223372036854775808"),
        (ValType::F32, 0x3dcc_cccd, "0x3fb99999a0000000"),
        (ValType::F32, 1, "0x36a0000000000000"),
        (ValType::F32, 0x8000_0000, "0x8000000000000000"),
        (ValType::F32, 0x7f80_0001, "bitcast (i32 2139095041 to float)"),
        (ValType::F64, 0x7ff0_0000_0000_0001, "0x7ff0000000000001"),
        (ValType::ExternRef, 0, "null"),
    ] {
        assert_eq!(number(ty, bits), text);
    }
}

#[test]
fn two_results_are_words_of_128_bits_or_a_number_and_a_bit() {
    let (_, ssa, declarations) = both_forms(
        "func product(a: i64, b: i64) -> (i64, i64) { local.get a local.get b i64.mul_wide_s return }
         func sum(a: i32, b: i32) -> (i32, i32) { local.get a local.get b i32.add_overflow_u return }",
    );
    let expected = [
        "= sext i64 %v0.a to i128",
        "= mul i128 ",
        "= trunc i128 ",
        "= lshr i128 ",
        "= call { i32, i1 } @llvm.uadd.with.overflow.i32(i32 %v0.a, i32 %v1.b)",
        "= extractvalue { i32, i1 } ",
        "= zext i1 ",
    ];
    for part in expected {
        assert!(lines(&ssa).iter().any(|line| line.contains(part)), "{part} in {ssa}");
    }
    let declared = "declare { i32, i1 } @llvm.uadd.with.overflow.i32(i32, i32)";
    assert!(lines(&declarations).contains(&declared), "{declarations}");
}
