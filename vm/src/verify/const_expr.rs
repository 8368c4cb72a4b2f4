//! Typing of constant expressions.

use super::error::{Place, Rule, VerifyError};
use super::{IndexSpaces, check_limit};
use crate::inst::CodeReader;
use crate::limits;
use crate::module::ConstExpr;
use crate::op::Op;
use crate::types::ValType;

/// Checks that an expression leaves one value of type `ty` and reads only globals below `n_globals`.
pub(super) fn check(
    place: &Place,
    spaces: &IndexSpaces,
    n_globals: usize,
    expr: &ConstExpr,
    ty: ValType,
) -> Result<(), VerifyError> {
    let fail = |detail: String| Err(place.clone().error(Rule::ConstExpr, detail));
    let mut reader = CodeReader::new(&expr.code, 0);
    let mut stack: Vec<ValType> = Vec::new();
    let mut n_insts = 0;
    while !reader.is_at_end() {
        n_insts += 1;
        let max = limits::CONST_EXPR_INSTS_MAX;
        check_limit(place.clone(), n_insts, max, "CONST_EXPR_INSTS_MAX")?;
        let inst = match reader.read() {
            Ok(inst) => inst,
            Err(error) => return fail(error.to_string()),
        };
        match inst.op {
            Op::I32Const => stack.push(ValType::I32),
            Op::I64Const => stack.push(ValType::I64),
            Op::F32Const => stack.push(ValType::F32),
            Op::F64Const => stack.push(ValType::F64),
            Op::V128Const => stack.push(ValType::V128),
            Op::RefNull => stack.push(inst.imm.as_ref_type()),
            Op::RefFunc if (inst.imm.low() as usize) < spaces.funcs.len() => {
                stack.push(ValType::FuncRef);
            }
            Op::RefFunc => return fail(format!("unknown function {}", inst.imm.low())),
            Op::GlobalGet => match spaces.globals[..n_globals].get(inst.imm.low() as usize) {
                // Where the result lies may be no place that the embedder visits.
                Some(global) if global.ty == ValType::Ref => {
                    return fail(format!("global {} is of type ref", inst.imm.low()));
                }
                Some(global) if !global.mutable => stack.push(global.ty),
                Some(_) => return fail(format!("global {} is mutable", inst.imm.low())),
                None => {
                    return fail(format!(
                        "global {} does not exist or comes later",
                        inst.imm.low()
                    ));
                }
            },
            Op::I32Add | Op::I32Sub | Op::I32Mul | Op::I64Add | Op::I64Sub | Op::I64Mul => {
                let ty = inst.op.signature().expect("arithmetic has a fixed signature").results[0];
                let b = stack.pop();
                if b != Some(ty) || stack.last() != Some(&ty) {
                    return fail(format!("{} expects two {ty} operands", inst.op.mnemonic()));
                }
            }
            op => return fail(format!("{} is not allowed here", op.mnemonic())),
        }
    }
    if stack != [ty] {
        return fail(format!("expected one {ty}, found {stack:?}"));
    }
    Ok(())
}
