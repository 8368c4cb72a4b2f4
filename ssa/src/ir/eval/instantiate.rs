//! First values of globals and tables.

use slotvm_bytecode::inst::vector;
use slotvm_bytecode::module::{ConstExpr, Elem, ElemItems};
use slotvm_bytecode::{CodeReader, Op};

use super::numeric::{self, Nans};

/// The elements of a segment, as cells.
pub(super) fn elem_values(elem: &Elem, globals: &[u128]) -> Vec<u64> {
    match &elem.items {
        ElemItems::Funcs(funcs) => funcs.iter().map(|&func| func_ref(func)).collect(),
        ElemItems::Exprs(exprs) => {
            exprs.iter().map(|expr| const_value(expr, globals) as u64).collect()
        }
    }
}

/// The reference to a function.
pub(super) fn func_ref(func: u32) -> u64 {
    u64::from(func) + 1
}

/// The value of a constant expression of a verified module, as bits.
pub(super) fn const_value(expr: &ConstExpr, globals: &[u128]) -> u128 {
    let mut reader = CodeReader::new(&expr.code, 0);
    let mut stack = Vec::new();
    while !reader.is_at_end() {
        let inst = reader.read().expect("verified code decodes");
        let value = match inst.op {
            Op::GlobalGet => globals[inst.imm.low() as usize],
            Op::RefFunc => func_ref(inst.imm.low()).into(),
            Op::RefNull => 0,
            Op::I32Const | Op::I64Const | Op::F32Const | Op::F64Const => inst.imm.0.into(),
            Op::V128Const => vector(&expr.code, inst.imm),
            op => {
                let b: u128 = stack.pop().expect("verified code does not underflow");
                let a: u128 = stack.pop().expect("verified code does not underflow");
                let result = numeric::eval(op, 0, &[a, b], Nans::Propagated);
                let result = result.expect("constant arithmetic does not trap");
                result.expect("what is left is arithmetic")
            }
        };
        stack.push(value);
    }
    stack.pop().expect("a constant expression leaves a value")
}
