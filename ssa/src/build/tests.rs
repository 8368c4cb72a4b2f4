use slotvm_bytecode::module::{Func, Label, Shape, ShapeId};
use slotvm_bytecode::{FuncType, Module, inst};

use super::*;
use crate::verify::{Form, verify};

/// A module of one function, whose labels stand where the code has `Nop`s.
fn module(ty: FuncType, locals: &[ValType], code: &[(Op, u64)]) -> VerifiedModule {
    let mut func = Func { locals: locals.iter().map(|&ty| (1, ty)).collect(), ..Func::default() };
    for &(op, imm) in code {
        if op == Op::Nop {
            let offset = func.code.len() as u32;
            func.labels.push(Label { offset, shape: ShapeId(imm as u32) });
        }
        inst::write_inst(&mut func.code, op, Imm(imm));
    }
    let shapes = vec![
        Shape { parent: ShapeId(0), ty: ValType::I64 },
        Shape { parent: ShapeId(1), ty: ValType::I64 },
    ];
    let module = Module { types: vec![ty], funcs: vec![func], shapes, ..Module::default() };
    slotvm_bytecode::verify::verify(module).expect("the module is valid")
}

fn built(module: &VerifiedModule) -> String {
    let f = build(module, 0, &BuildOptions::default(), &mut BuildScratch::default());
    verify(&f, Form::Slots, module).expect("slot form verifies");
    f.to_string()
}

#[test]
fn a_loop_with_an_operand_on_the_stack() {
    let ty = FuncType::new([ValType::I64], [ValType::I64]);
    let code = [
        (Op::I64Const, 0),
        (Op::I64Const, 7),
        (Op::Nop, 2),
        (Op::Swap, 0),
        (Op::LocalGet, 0),
        (Op::I64Add, 0),
        (Op::Swap, 0),
        (Op::LocalGet, 0),
        (Op::I64Eqz, 0),
        (Op::BrIf, 0),
        (Op::Drop, 0),
        (Op::Return, 0),
    ];
    let text = built(&module(ty, &[], &code));
    assert_eq!(text, include_str!("tests/loop.ssa"));
}
