//! Conversions of values between the text of file tests, bits and the engine's values.

use slotvm::{Val, ValType};
use slotvm_bytecode::text::literal;

/// Values as bits.
pub type Cells = Vec<u128>;

/// Parses values of these types.
///
/// # Errors
/// Fails if the number of values differs, or one does not parse as its type.
pub fn parse_all(texts: &[String], types: &[ValType]) -> Result<Cells, String> {
    if texts.len() != types.len() {
        return Err(format!("expected {} values, found {}", types.len(), texts.len()));
    }
    texts.iter().zip(types).map(|(text, &ty)| parse(text, ty)).collect()
}

/// Parses a value: a literal of the text form, or `null`.
fn parse(text: &str, ty: ValType) -> Result<u128, String> {
    let cell = match ty {
        ValType::I32 => literal::parse_i32(text).map(|v| (v as u32).into()).map_err(String::from),
        ValType::I64 => literal::parse_i64(text).map(|v| (v as u64).into()).map_err(String::from),
        ValType::F32 => literal::parse_f32(text).map(u128::from),
        ValType::F64 => literal::parse_f64(text).map(u128::from),
        ValType::V128 => literal::parse_u128(text).map_err(String::from),
        _ if text == "null" => Ok(0),
        _ => Err("expected `null`".to_owned()),
    };
    cell.map_err(|message| format!("invalid {ty} `{text}`: {message}"))
}

/// Formats values, separated by commas.
pub fn print_all(cells: &[u128], types: &[ValType]) -> String {
    let mut out = String::new();
    for (i, (&cell, &ty)) in cells.iter().zip(types).enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        write(&mut out, cell, ty);
    }
    out
}

fn write(out: &mut String, cell: u128, ty: ValType) {
    match ty {
        ValType::I32 => out.push_str(&(cell as i32).to_string()),
        ValType::I64 => out.push_str(&(cell as i64).to_string()),
        ValType::F32 => literal::write_f32(out, cell as u32),
        ValType::F64 => literal::write_f64(out, cell as u64),
        ValType::V128 => out.push_str(&format!("{cell:#034x}")),
        _ if cell == 0 => out.push_str("null"),
        _ => out.push_str(ty.name()),
    }
}

/// Parses a value of the engine. A float may begin with its point.
///
/// # Errors
/// Fails if the text does not parse as the type.
pub fn parse_val(text: &str, ty: ValType) -> Result<Val, String> {
    let digits = text.trim_start_matches(['+', '-']);
    if matches!(ty, ValType::F32 | ValType::F64) && digits.starts_with('.') && digits.len() > 1 {
        let sign = &text[..text.len() - digits.len()];
        return Ok(val(ty, parse(&format!("{sign}0{digits}"), ty)?));
    }
    Ok(val(ty, parse(text, ty)?))
}

/// Formats a value of the engine.
pub fn print(value: &Val) -> String {
    print_all(&[cell(value)], &[value.ty()])
}

/// Converts bits to a value of the engine; references are null.
pub fn val(ty: ValType, cell: u128) -> Val {
    match ty {
        ValType::I32 => Val::I32(cell as i32),
        ValType::I64 => Val::I64(cell as i64),
        ValType::F32 => Val::F32(cell as u32),
        ValType::F64 => Val::F64(cell as u64),
        ValType::V128 => Val::V128(cell.into()),
        ValType::FuncRef | ValType::ExternRef | ValType::Ref => Val::default_for(ty),
    }
}

/// Converts a value of the engine to bits. A reference is 0 if null, else 1, since engines have different
/// handles.
pub fn cell(value: &Val) -> u128 {
    match *value {
        Val::I32(value) => (value as u32).into(),
        Val::I64(value) => (value as u64).into(),
        Val::F32(bits) => bits.into(),
        Val::F64(bits) => bits.into(),
        Val::V128(vector) => vector.as_u128(),
        Val::FuncRef(func) => func.is_some().into(),
        Val::ExternRef(object) => object.is_some().into(),
        Val::Ref(object) => object.is_some().into(),
    }
}
