//! Values as they are written in file tests, as cells, and as the engine's values.

use slotvm::{Val, ValType};

/// Values as 64-bit cells.
pub type Cells = Vec<u64>;

/// Reads values of these types.
///
/// # Errors
/// If there are more or fewer, or one is no value of its type.
pub fn parse_all(texts: &[String], types: &[ValType]) -> Result<Cells, String> {
    if texts.len() != types.len() {
        return Err(format!("{} values instead of {}", texts.len(), types.len()));
    }
    texts.iter().zip(types).map(|(text, &ty)| parse(text, ty)).collect()
}

/// Reads a value: an integer, signed or unsigned, decimal or hexadecimal; a float, `nan` being the
/// canonical one; `null`.
fn parse(text: &str, ty: ValType) -> Result<u64, String> {
    let bad = || format!("{text:?} is no {ty}");
    match ty {
        ValType::I32 => integer(text, 32).ok_or_else(bad),
        ValType::I64 => integer(text, 64).ok_or_else(bad),
        ValType::F32 if text == "nan" => Ok(0x7fc0_0000),
        ValType::F64 if text == "nan" => Ok(0x7ff8 << 48),
        ValType::F32 => text.parse::<f32>().map(|v| u64::from(v.to_bits())).map_err(|_| bad()),
        ValType::F64 => text.parse::<f64>().map(f64::to_bits).map_err(|_| bad()),
        _ if text == "null" => Ok(0),
        _ => Err(bad()),
    }
}

fn integer(text: &str, width: u32) -> Option<u64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let magnitude = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => digits.parse::<u64>().ok()?,
    };
    let value = if negative { -i128::from(magnitude) } else { i128::from(magnitude) };
    let fits = value >= -(1 << (width - 1)) && value < 1 << width;
    fits.then_some(value as u64 & (u64::MAX >> (64 - width)))
}

/// Writes values, separated by commas.
pub fn print_all(cells: &[u64], types: &[ValType]) -> String {
    let one = |(&cell, &ty): (&u64, &ValType)| match ty {
        ValType::I32 => (cell as i32).to_string(),
        ValType::I64 => (cell as i64).to_string(),
        ValType::F32 => f32::from_bits(cell as u32).to_string(),
        ValType::F64 => f64::from_bits(cell).to_string(),
        _ if cell == 0 => "null".into(),
        _ => ty.to_string(),
    };
    cells.iter().zip(types).map(one).collect::<Vec<_>>().join(", ")
}

/// Reads a value of the engine.
///
/// # Errors
/// If the text is no value of the type.
pub fn parse_val(text: &str, ty: ValType) -> Result<Val, String> {
    Ok(val(ty, parse(text, ty)?))
}

/// Writes a value of the engine.
pub fn print(value: &Val) -> String {
    print_all(&[cell(value)], &[value.ty()])
}

/// A cell as a value of the engine; references are null.
pub fn val(ty: ValType, cell: u64) -> Val {
    match ty {
        ValType::I32 => Val::I32(cell as i32),
        ValType::I64 => Val::I64(cell as i64),
        ValType::F32 => Val::F32(cell as u32),
        ValType::F64 => Val::F64(cell),
        ValType::FuncRef | ValType::ExternRef => Val::default_for(ty),
    }
}

/// A value of the engine as a cell; references, whose handles are an engine's own affair, as null or
/// not.
pub fn cell(value: &Val) -> u64 {
    match *value {
        Val::I32(value) => u64::from(value as u32),
        Val::I64(value) => value as u64,
        Val::F32(bits) => u64::from(bits),
        Val::F64(bits) => bits,
        Val::FuncRef(func) => u64::from(func.is_some()),
        Val::ExternRef(object) => u64::from(object.is_some()),
    }
}
