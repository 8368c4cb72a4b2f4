//! Numbers in the text IR: what [`crate::print`] writes and [`crate::parse`] reads, exact to the bit.

use std::fmt::Write as _;

/// Writes the `f64` with these bits: decimal digits that read back as the same number, `inf`, or
/// `nan:0x` and the payload, with the sign before it.
pub(crate) fn write_f64(out: &mut String, bits: u64) {
    const FRACTION: u64 = (1 << 52) - 1;
    let value = f64::from_bits(bits);
    let magnitude =
        if value.is_finite() { format!("{:?}", value.abs()) } else { non_finite(bits & FRACTION) };
    write_signed(out, bits >> 63 != 0, &magnitude);
}

/// Writes the `f32` with these bits, as [`write_f64`] does.
pub(crate) fn write_f32(out: &mut String, bits: u32) {
    const FRACTION: u32 = (1 << 23) - 1;
    let value = f32::from_bits(bits);
    let magnitude = if value.is_finite() {
        format!("{:?}", value.abs())
    } else {
        non_finite(u64::from(bits & FRACTION))
    };
    write_signed(out, bits >> 31 != 0, &magnitude);
}

fn non_finite(fraction: u64) -> String {
    if fraction == 0 { "inf".to_owned() } else { format!("nan:{fraction:#x}") }
}

fn write_signed(out: &mut String, is_negative: bool, magnitude: &str) {
    if is_negative {
        out.push('-');
    }
    out.push_str(magnitude);
}

/// The bits of the `f64` that [`write_f64`] wrote.
pub(crate) fn parse_f64(text: &str) -> Option<u64> {
    let (sign, magnitude) = split_sign(text);
    let bits = match special(magnitude, 52)? {
        Some(fraction) => 0x7ff << 52 | fraction,
        None => magnitude.parse::<f64>().ok()?.to_bits(),
    };
    Some(bits | u64::from(sign) << 63)
}

/// The bits of the `f32` that [`write_f32`] wrote.
pub(crate) fn parse_f32(text: &str) -> Option<u32> {
    let (sign, magnitude) = split_sign(text);
    let bits = match special(magnitude, 23)? {
        Some(fraction) => 0xff << 23 | fraction as u32,
        None => magnitude.parse::<f32>().ok()?.to_bits(),
    };
    Some(bits | u32::from(sign) << 31)
}

fn split_sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(magnitude) => (true, magnitude),
        None => (false, text),
    }
}

/// The fraction bits of `inf` and `nan:0x…`; `Some(None)` for what must be digits, `None` for errors.
fn special(magnitude: &str, fraction_bits: u32) -> Option<Option<u64>> {
    if magnitude == "inf" {
        return Some(Some(0));
    }
    if let Some(payload) = magnitude.strip_prefix("nan:0x") {
        let fraction = u64::from_str_radix(payload, 16).ok()?;
        return (fraction != 0 && fraction >> fraction_bits == 0).then_some(Some(fraction));
    }
    // `parse` would take other spellings of these and a second sign.
    magnitude.starts_with(|c: char| c.is_ascii_digit()).then_some(None)
}

/// Writes a name: as it is if it reads as one, else quoted behind a `$`.
pub(crate) fn write_name(out: &mut String, name: &str) {
    if is_plain_name(name) {
        return out.push_str(name);
    }
    out.push_str("$\"");
    for c in name.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            ' '..='~' => out.push(c),
            _ => write!(out, "\\u{{{:x}}}", u32::from(c)).expect("writing to a string works"),
        }
    }
    out.push('"');
}

/// Whether a name needs no quotes.
pub(crate) fn is_plain_name(name: &str) -> bool {
    let is_start = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '$' | '.');
    name.starts_with(is_start) && name.chars().all(is_name_char)
}

/// Whether a name without quotes can have the character after its first one.
pub(crate) fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.' | '!' | '?' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_round_trip_to_the_bit() {
        for bits in [
            0,
            1 << 63,
            1,
            0x3ff8_0000_0000_0000,
            0x7ff0_0000_0000_0000,
            0xfff0_0000_0000_0000,
            0x7ff8_0000_0000_0000,
            0xfff0_0000_0000_0001,
            0x7fff_ffff_ffff_ffff,
            f64::MAX.to_bits(),
            f64::MIN_POSITIVE.to_bits(),
            0.1_f64.to_bits(),
        ] {
            let mut text = String::new();
            write_f64(&mut text, bits);
            assert_eq!(parse_f64(&text), Some(bits), "{text}");
        }
        for bits in [0, 1 << 31, 1, 0x7f80_0000, 0xff80_0000, 0x7fc0_0000, 0xffbf_ffff, 0x7f7f_ffff]
        {
            let mut text = String::new();
            write_f32(&mut text, bits);
            assert_eq!(parse_f32(&text), Some(bits), "{text}");
        }
    }

    #[test]
    fn other_spellings_are_refused() {
        for text in ["", "-", "--1.0", "+1", "nan", "infinity", "nan:0x0", "nan:0x", "-NaN", "1.0x"]
        {
            assert_eq!(parse_f64(text), None, "{text}");
        }
        assert_eq!(parse_f32("nan:0x800000"), None);
        assert_eq!(parse_f64("nan:0x10000000000000"), None);
    }

    #[test]
    fn names_are_quoted_where_they_must() {
        let written = |name: &str| {
            let mut out = String::new();
            write_name(&mut out, name);
            out
        };
        assert_eq!(written("is_prime?"), "is_prime?");
        assert_eq!(written("7up"), "$\"7up\"");
        assert_eq!(written("a \"b\"\\\n"), "$\"a \\\"b\\\"\\\\\\u{a}\"");
    }
}
