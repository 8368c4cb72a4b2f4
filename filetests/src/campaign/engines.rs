//! Fuzz target: binary modules that verify, in the interpreter and in two kinds of native code.

use slotvm::SlotMode;
use slotvm_bytecode::{ValType, decode};

use super::Verdict;
use crate::check::{check_some, verified};
use crate::choices::{Choices, random_bytes};
use crate::generate::Case;

/// Calls a function of the module in several engines, with arguments and limits that depend on the bytes.
///
/// # Errors
/// Returns the first difference.
pub fn check(bytes: &[u8]) -> Result<Verdict, String> {
    let Ok(module) = decode(bytes) else { return Ok(Verdict::Refused) };
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    if module.funcs.is_empty() {
        return Ok(Verdict::Loaded);
    }
    let at = hash as usize % module.funcs.len();
    let Some(ty) = module.types.get(module.funcs[at].ty as usize) else {
        return Ok(Verdict::Loaded);
    };
    let random = random_bytes(hash, 200);
    let mut choices = Choices::new(&random);
    let args = ty.params.iter().map(|&ty| argument(ty, &mut choices)).collect();
    let cut = if choices.percent(50) { choices.bits() as u16 } else { 0 };
    let func = module.n_imported_funcs() + at as u32;
    let bare = choices.pick(&SlotMode::ALL);
    let case = Case { cut, bare, ..Case::new(module, func, args) };
    let Ok(module) = verified(&case) else { return Ok(Verdict::Loaded) };
    // Any program sees addresses of objects, which differ, and makes references that the host's heap does not know.
    let has_refs = |func| module.body(func).is_some_and(|body| body.has_refs);
    if (0..module.n_funcs()).any(has_refs) {
        return Ok(Verdict::Loaded);
    }
    check_some(&case, &module, hash >> 32).map_err(|difference| difference.to_string())?;
    Ok(Verdict::Accepted)
}

fn argument(ty: ValType, choices: &mut Choices<'_>) -> u128 {
    let small = choices.percent(70);
    let bits = if small { choices.below(20) as u64 } else { choices.bits() };
    match ty {
        ValType::I32 => u128::from(bits as u32),
        ValType::I64 => bits.into(),
        ValType::F32 if small => (bits as f32 / 2.0).to_bits().into(),
        ValType::F32 => u128::from(bits as u32),
        ValType::F64 if small => (bits as f64 / 2.0).to_bits().into(),
        ValType::F64 => bits.into(),
        ValType::V128 => u128::from(bits) << 64 | u128::from(choices.bits()),
        ValType::FuncRef => 0,
        ValType::ExternRef => u128::from(bits & 1),
        // Odd numbers name no object of the host.
        ValType::Ref if small => 0,
        ValType::Ref => u128::from(bits | 1),
    }
}
