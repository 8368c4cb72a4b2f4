//! Values of constant expressions: what globals start as, offsets of segments, and their elements.

use slotvm_bytecode::module::{ConstExpr, ElemItems};
use slotvm_bytecode::{CodeReader, ImmKind, Op, VerifiedModule, inst, numeric};

/// The element segments of a module, as cells.
pub(crate) fn evaluate_elems(
    module: &VerifiedModule,
    globals: &[u128],
    func_handle: impl Fn(u32) -> u64 + Copy,
) -> Vec<Box<[u64]>> {
    let elems = module.module().elems.iter();
    elems
        .map(|elem| match &elem.items {
            ElemItems::Funcs(funcs) => funcs.iter().map(|&func| func_handle(func)).collect(),
            ElemItems::Exprs(exprs) => {
                exprs.iter().map(|expr| evaluate(expr, globals, func_handle) as u64).collect()
            }
        })
        .collect()
}

/// The value of a constant expression; that of a vector takes all bits, others those of a cell.
pub(crate) fn evaluate(
    expr: &ConstExpr,
    globals: &[u128],
    func_handle: impl Fn(u32) -> u64,
) -> u128 {
    evaluate_with(expr, |global| globals[global as usize], func_handle)
}

/// [`evaluate`], with globals that need not lie in a list.
pub(crate) fn evaluate_with(
    expr: &ConstExpr,
    global: impl Fn(u32) -> u128,
    func_handle: impl Fn(u32) -> u64,
) -> u128 {
    let mut stack = Vec::new();
    let mut reader = CodeReader::new(&expr.code, 0);
    while !reader.is_at_end() {
        let inst = reader.read().expect("verified expressions decode");
        let value = match (inst.op, inst.op.imm_kind()) {
            (Op::GlobalGet, _) => global(inst.imm.low()),
            (Op::RefFunc, _) => func_handle(inst.imm.low()).into(),
            (Op::RefNull, _) => 0,
            (_, ImmKind::I32 | ImmKind::I64 | ImmKind::F32 | ImmKind::F64) => inst.imm.0.into(),
            (Op::V128Const, _) => inst::vector(&expr.code, inst.imm),
            (op, _) => {
                let (b, a) = (stack.pop(), stack.pop());
                let (a, b): (u128, u128) = (a.expect("two operands"), b.expect("two operands"));
                let result = numeric::eval(op, a as u64, b as u64);
                result.expect("constant arithmetic does not trap").into()
            }
        };
        stack.push(value);
    }
    stack.pop().expect("verified expressions leave a value")
}
