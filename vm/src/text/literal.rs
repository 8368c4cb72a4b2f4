//! Literals of the text form: integers, floats, strings and names. Every bit pattern and every byte string
//! survives the round trip.
//!
//! The text IR and values on a command line use the same literals.

use std::fmt::Write as _;
use std::ops::Range;

use super::lexer;

/// Parses unsigned digits, decimal or `0x` hexadecimal, with `_` between them; at most `max`.
fn number(text: &str, max: u128, too_large: &'static str) -> Result<u128, &'static str> {
    let (radix, digits) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => (16, hex),
        None => (10, text),
    };
    let mut value = 0u128;
    if !digits.starts_with(|c: char| c.is_digit(radix)) {
        return Err("malformed integer");
    }
    for c in digits.chars().filter(|&c| c != '_') {
        let digit = c.to_digit(radix).ok_or("malformed integer")?;
        value = value
            .checked_mul(radix.into())
            .and_then(|value| value.checked_add(digit.into()))
            .filter(|&value| value <= max)
            .ok_or(too_large)?;
    }
    Ok(value)
}

fn magnitude(digits: &str) -> Result<u64, &'static str> {
    Ok(number(digits, u64::MAX.into(), "integer does not fit 64 bits")? as u64)
}

/// Parses a 128-bit integer without a sign, for vectors.
///
/// # Errors
/// Fails if it is malformed or does not fit.
pub fn parse_u128(text: &str) -> Result<u128, &'static str> {
    number(text, u128::MAX, "integer does not fit 128 bits")
}

/// Splits off a sign. Returns whether it is a minus, and the rest.
fn sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// Parses a 32-bit integer without a sign, for indices, counts and offsets.
///
/// # Errors
/// Fails if it is malformed or does not fit.
pub fn parse_u32(text: &str) -> Result<u32, &'static str> {
    u32::try_from(magnitude(text)?).map_err(|_| "integer does not fit 32 bits")
}

/// Parses a 32-bit constant, as a signed or unsigned number.
///
/// # Errors
/// Fails if it is malformed or does not fit.
pub fn parse_i32(text: &str) -> Result<i32, &'static str> {
    let (negative, digits) = sign(text);
    let value = i128::from(magnitude(digits)?);
    let value = if negative { -value } else { value };
    let fits = (i128::from(i32::MIN)..=i128::from(u32::MAX)).contains(&value);
    if fits { Ok(value as i32) } else { Err("integer does not fit `i32`") }
}

/// Parses a 64-bit constant, as a signed or unsigned number.
///
/// # Errors
/// Fails if it is malformed or does not fit.
pub fn parse_i64(text: &str) -> Result<i64, &'static str> {
    let (negative, digits) = sign(text);
    let value = i128::from(magnitude(digits)?);
    let value = if negative { -value } else { value };
    if value >= i128::from(i64::MIN) { Ok(value as i64) } else { Err("integer does not fit `i64`") }
}

/// The layout of an IEEE 754 binary format.
#[derive(Copy, Clone)]
struct FloatFormat {
    name: &'static str,
    /// Bits of the significand field.
    significand_bits: u32,
    /// Bits of the exponent field.
    exponent_bits: u32,
}

const F32: FloatFormat = FloatFormat { name: "f32", significand_bits: 23, exponent_bits: 8 };
const F64: FloatFormat = FloatFormat { name: "f64", significand_bits: 52, exponent_bits: 11 };

impl FloatFormat {
    const fn sign_bit(self) -> u64 {
        1 << (self.significand_bits + self.exponent_bits)
    }

    const fn significand_mask(self) -> u64 {
        (1 << self.significand_bits) - 1
    }

    const fn infinity(self) -> u64 {
        self.sign_bit() - (1 << self.significand_bits)
    }

    const fn quiet_bit(self) -> u64 {
        1 << (self.significand_bits - 1)
    }

    const fn bias(self) -> i64 {
        (1 << (self.exponent_bits - 1)) - 1
    }
}

/// Parses a 32-bit float to its bits.
///
/// # Errors
/// Fails if it is malformed or too large.
pub fn parse_f32(text: &str) -> Result<u32, String> {
    let bits = parse_float(text, F32, |text| {
        text.parse::<f32>().ok().map(|value| u64::from(value.to_bits()))
    })?;
    Ok(bits as u32)
}

/// Parses a 64-bit float to its bits.
///
/// # Errors
/// Fails if it is malformed or too large.
pub fn parse_f64(text: &str) -> Result<u64, String> {
    parse_float(text, F64, |text| text.parse::<f64>().ok().map(f64::to_bits))
}

fn parse_float(
    text: &str,
    format: FloatFormat,
    decimal: impl Fn(&str) -> Option<u64>,
) -> Result<u64, String> {
    let (negative, rest) = sign(text);
    let sign = if negative { format.sign_bit() } else { 0 };
    let malformed = || "malformed float".to_string();
    let bits = if rest == "inf" {
        return Ok(sign | format.infinity());
    } else if rest == "nan" {
        return Ok(sign | format.infinity() | format.quiet_bit());
    } else if let Some(payload) = rest.strip_prefix("nan:") {
        let payload = magnitude(payload)?;
        if payload == 0 || payload > format.significand_mask() {
            let max = format.significand_mask();
            return Err(format!("invalid NaN payload; expected 1 to {max:#x}"));
        }
        return Ok(sign | format.infinity() | payload);
    } else if let Some(hex) = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X")) {
        hex_float(hex, format).ok_or_else(malformed)?
    } else {
        // The standard parser rounds correctly, but also accepts words, which are excluded here.
        let is_number = rest.starts_with(|c: char| c.is_ascii_digit())
            && rest
                .bytes()
                .all(|b| matches!(b, b'0'..=b'9' | b'_' | b'.' | b'e' | b'E' | b'+' | b'-'));
        let digits = rest.replace('_', "");
        decimal(&digits).filter(|_| is_number).ok_or_else(malformed)?
    };
    if bits >= format.infinity() {
        return Err(format!("the number is too large for `{}`", format.name));
    }
    Ok(sign | bits)
}

/// Parses a hexadecimal float without sign and `0x`, rounded to nearest, ties to even. Returns infinity if it
/// is too large, `None` if it is malformed.
fn hex_float(text: &str, format: FloatFormat) -> Option<u64> {
    let (digits, exponent) = match text.split_once(['p', 'P']) {
        Some((digits, exponent)) => (digits, decimal_exponent(exponent)?),
        None => (text, 0),
    };
    if !digits.starts_with(|c: char| c.is_ascii_hexdigit()) {
        return None;
    }
    let mut value = 0u64;
    let mut exponent = exponent;
    let mut sticky = false;
    let mut after_point = false;
    for c in digits.chars().filter(|&c| c != '_') {
        if c == '.' && !after_point {
            after_point = true;
            continue;
        }
        let digit = u64::from(c.to_digit(16)?);
        // Digits past 60 bits only affect rounding.
        if value >> 60 == 0 {
            value = value << 4 | digit;
            exponent -= if after_point { 4 } else { 0 };
        } else {
            sticky |= digit != 0;
            exponent += if after_point { 0 } else { 4 };
        }
    }
    Some(round_to_format(value, exponent, sticky, format))
}

/// Parses a signed decimal exponent, clamped beyond the range of any float.
fn decimal_exponent(text: &str) -> Option<i64> {
    let (negative, digits) = sign(text);
    if digits.is_empty() {
        return None;
    }
    let mut value = 0i64;
    for c in digits.chars() {
        value = (value * 10 + i64::from(c.to_digit(10)?)).min(1 << 40);
    }
    Some(if negative { -value } else { value })
}

/// Returns the bits of `value * 2^exponent`, plus a small amount if `sticky`, which needs a `value` of 60
/// bits.
fn round_to_format(value: u64, exponent: i64, sticky: bool, format: FloatFormat) -> u64 {
    if value == 0 {
        return 0;
    }
    let length = i64::from(64 - value.leading_zeros());
    let precision = i64::from(format.significand_bits) + 1;
    let leading = exponent + length - 1;
    let smallest = 1 - format.bias();
    if leading > format.bias() {
        return format.infinity();
    }
    let drop = length - precision + (smallest - leading).max(0);
    let significand = if drop <= 0 {
        value << -drop
    } else if drop > 65 {
        0
    } else {
        let wide = u128::from(value);
        let kept = wide >> drop;
        let dropped = wide & ((1 << drop) - 1);
        let half = 1u128 << (drop - 1);
        let up = dropped > half || dropped == half && (sticky || kept & 1 == 1);
        kept as u64 + u64::from(up)
    };
    // A carry out of the significand correctly increments the exponent.
    let field = (leading.max(smallest) + format.bias()) as u64 - 1;
    (field << format.significand_bits) + significand
}

/// Appends a 32-bit float as a literal that [`parse_f32`] parses to the same bits.
pub fn write_f32(out: &mut String, bits: u32) {
    write_float(out, u64::from(bits), F32, |out| {
        write!(out, "{:?}", f32::from_bits(bits & !(1 << 31)))
    });
}

/// Appends a 64-bit float as a literal that [`parse_f64`] parses to the same bits.
pub fn write_f64(out: &mut String, bits: u64) {
    write_float(out, bits, F64, |out| write!(out, "{:?}", f64::from_bits(bits & !(1 << 63))));
}

fn write_float(
    out: &mut String,
    bits: u64,
    format: FloatFormat,
    decimal: impl Fn(&mut String) -> std::fmt::Result,
) {
    if bits & format.sign_bit() != 0 {
        out.push('-');
    }
    let magnitude = bits & (format.sign_bit() - 1);
    let payload = magnitude & format.significand_mask();
    // Writing to a string cannot fail.
    let _ = if magnitude < format.infinity() {
        decimal(out)
    } else if payload == 0 {
        out.write_str("inf")
    } else if payload == format.quiet_bit() {
        out.write_str("nan")
    } else {
        write!(out, "nan:{payload:#x}")
    };
}

/// Error for a malformed string or character literal: the byte range between the quotes, and the message.
pub type EscapeError = (Range<usize>, &'static str);

/// A character of a literal, with escapes decoded.
enum Unescaped {
    Char(char),
    Byte(u8),
}

/// Decodes the bytes of a literal, given the text between its quotes.
///
/// # Errors
/// Fails if an escape sequence is malformed.
pub fn unescape(text: &str) -> Result<Vec<u8>, EscapeError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut pos = 0;
    while pos < text.len() {
        match unescape_one(text, &mut pos)? {
            Unescaped::Byte(byte) => bytes.push(byte),
            Unescaped::Char(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Ok(bytes)
}

/// Decodes a character literal to its number, given the text between its quotes.
///
/// # Errors
/// Fails if it is not one character.
pub fn unescape_char(text: &str) -> Result<u32, EscapeError> {
    let all = 0..text.len();
    if text.is_empty() {
        return Err((all, "expected one character in a character literal"));
    }
    let mut pos = 0;
    let number = match unescape_one(text, &mut pos)? {
        Unescaped::Char(c) => u32::from(c),
        Unescaped::Byte(byte) => u32::from(byte),
    };
    if pos < text.len() {
        return Err((all, "expected one character in a character literal"));
    }
    Ok(number)
}

fn unescape_one(text: &str, pos: &mut usize) -> Result<Unescaped, EscapeError> {
    let start = *pos;
    let mut chars = text[start..].chars();
    let first = chars.next().expect("there is text left");
    if first != '\\' {
        *pos += first.len_utf8();
        return Ok(Unescaped::Char(first));
    }
    let Some(escape) = chars.next() else {
        return Err((start..text.len(), "incomplete escape"));
    };
    *pos += 1 + escape.len_utf8();
    let rest = chars.as_str();
    Ok(match escape {
        'n' => Unescaped::Char('\n'),
        't' => Unescaped::Char('\t'),
        'r' => Unescaped::Char('\r'),
        '\\' | '"' | '\'' => Unescaped::Char(escape),
        '0' => match rest.bytes().next() {
            // `\00` is WebAssembly's spelling of `\0`.
            Some(b'0') => {
                *pos += 1;
                Unescaped::Byte(0)
            }
            Some(b) if b.is_ascii_hexdigit() => {
                return Err((start..*pos + 1, "ambiguous `\\0` before a digit; write `\\x00`"));
            }
            _ => Unescaped::Byte(0),
        },
        'x' => {
            let digits = rest.get(..2).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
            let Some(digits) = digits else {
                return Err((start..*pos, "expected two hexadecimal digits after `\\x`"));
            };
            *pos += 2;
            Unescaped::Byte(u8::from_str_radix(digits, 16).expect("two hexadecimal digits"))
        }
        'u' => {
            let number = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
            let c = number.and_then(|(digits, _)| scalar_value(digits));
            let (Some((digits, _)), Some(c)) = (number, c) else {
                return Err((
                    start..*pos,
                    "expected `{`, the hexadecimal number of a character and `}` after `\\u`",
                ));
            };
            *pos += digits.len() + 2;
            Unescaped::Char(c)
        }
        _ => return Err((start..*pos, "unknown escape")),
    })
}

fn scalar_value(digits: &str) -> Option<char> {
    let plain = (1..=6).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let number = u32::from_str_radix(digits, 16).ok().filter(|_| plain)?;
    char::from_u32(number)
}

/// Appends bytes as a string literal.
pub fn write_bytes(out: &mut String, bytes: &[u8]) {
    out.push('"');
    for (i, &byte) in bytes.iter().enumerate() {
        match byte {
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            b'\r' => out.push_str("\\r"),
            0 if !bytes.get(i + 1).is_some_and(u8::is_ascii_hexdigit) => out.push_str("\\0"),
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
    out.push('"');
}

/// Appends a name, quoted unless it is a word.
pub fn write_name(out: &mut String, name: &str) {
    if is_word(name) { out.push_str(name) } else { write_quoted_name(out, name) }
}

/// Appends a quoted name, for places where the bare name would have another meaning.
pub(super) fn write_quoted_name(out: &mut String, name: &str) {
    out.push('$');
    write_text(out, name);
}

/// Whether a name is a word, which needs quotes only if the word is reserved.
pub(super) fn is_word(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.first().is_some_and(|&byte| lexer::is_word_start(byte))
        && bytes.iter().all(|&byte| lexer::is_word_byte(byte))
}

/// Whether an unquoted name can contain the character after its first.
pub fn is_name_char(c: char) -> bool {
    c.is_ascii() && lexer::is_word_byte(c as u8)
}

/// Appends text as a string literal, with unprintable characters escaped.
pub fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '"' | '\\' => out.extend(['\\', c]),
            ' '..='~' => out.push(c),
            _ if c.is_ascii() || c.escape_debug().len() > 1 => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_the_range_of_their_type() {
        assert_eq!(parse_u32("0xffff_ffff"), Ok(u32::MAX));
        assert!(parse_u32("4294967296").is_err());
        assert!(parse_u32("-1").is_err());
        assert_eq!(parse_i32("-2147483648"), Ok(i32::MIN));
        assert_eq!(parse_i32("4294967295"), Ok(-1));
        assert!(parse_i32("-2147483649").is_err());
        assert!(parse_i32("4294967296").is_err());
        assert_eq!(parse_i64("-0x8000000000000000"), Ok(i64::MIN));
        assert_eq!(parse_i64("18446744073709551615"), Ok(-1));
        assert!(parse_i64("-9223372036854775809").is_err());
        assert!(parse_i64("18446744073709551616").is_err());
        for malformed in ["", "-", "0x", "1x", "_1", "0x_1", "1.0", "--1", "1e3"] {
            assert_eq!(parse_i64(malformed), Err("malformed integer"), "{malformed}");
        }
    }

    #[test]
    fn decimal_floats_round_correctly() {
        assert_eq!(parse_f64("0.1"), Ok(0.1f64.to_bits()));
        assert_eq!(parse_f32("0.1"), Ok(0.1f32.to_bits()));
        // Rounding to f64 first would give the neighbour.
        assert_eq!(parse_f32("1.00000017881393432617187499"), Ok(0x3f80_0001));
        assert_eq!(parse_f64("-1_000.5e-1_0"), Ok((-1000.5e-10f64).to_bits()));
        assert_eq!(parse_f64("-0"), Ok(1 << 63));
        for bad in ["", ".", "e5", "1e", "1..2", "infinity", "NaN", "1e999", "nan:0x0", "1-2"] {
            assert!(parse_f64(bad).is_err(), "{bad}");
        }
        assert!(parse_f32("3.5e38").is_err());
    }

    #[test]
    fn hexadecimal_floats_are_exact_or_rounded_to_even() {
        let f64_of = |text| parse_f64(text).map(f64::from_bits);
        assert_eq!(f64_of("0x1.8p3"), Ok(12.0));
        assert_eq!(f64_of("-0x10"), Ok(-16.0));
        assert_eq!(parse_f64("0x1p-1074"), Ok(1));
        assert_eq!(parse_f64("0x1p-1075"), Ok(0));
        assert_eq!(parse_f64("0x1.0000000000001p-1075"), Ok(1));
        assert_eq!(parse_f64("0x1.fffffffffffffp1023"), Ok(f64::MAX.to_bits()));
        assert!(parse_f64("0x1.fffffffffffff8p1023").is_err());
        assert_eq!(parse_f64("0x0.fffffffffffff8p-1022"), Ok(f64::MIN_POSITIVE.to_bits()));
        assert_eq!(f64_of("0x1.00000000000008p0"), Ok(1.0));
        assert_eq!(f64_of("0x1.00000000000018p0"), Ok(1.0 + 2.0 * f64::EPSILON));
        assert_eq!(f64_of("0x1.00000000000008000000000001p0"), Ok(1.0 + f64::EPSILON));
        assert_eq!(f64_of("0x10000000000000000000000p-88"), Ok(1.0));
        assert_eq!(f64_of("0x0p99999999999999999999"), Ok(0.0));
        assert_eq!(f64_of("0x1p-99999999999999999999"), Ok(0.0));
        assert_eq!(parse_f32("0x1.fffffep127"), Ok(f32::MAX.to_bits()));
        assert_eq!(parse_f32("0x1.000001p0"), Ok(1.0f32.to_bits()));
        for bad in ["0x", "0xp3", "0x1p", "0x1.2.3", "0x1pp", "0x1p0x1", "0xg"] {
            assert!(parse_f64(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn floats_round_trip_at_the_edges() {
        let edges64 = [0, 1, 0x000f_ffff_ffff_ffff, 0x7fef_ffff_ffff_ffff, 0x7ff0_0000_0000_0000];
        let nans64 = [0x7ff0_0000_0000_0001, 0x7ff8_0000_0000_0000, 0x7fff_ffff_ffff_ffff];
        for bits in edges64.into_iter().chain(nans64) {
            for bits in [bits, bits | 1 << 63] {
                let mut text = String::new();
                write_f64(&mut text, bits);
                assert_eq!(parse_f64(&text), Ok(bits), "{text}");
            }
        }
        for bits in [0, 1, 0x007f_ffff, 0x7f7f_ffff, 0x7f80_0000, 0x7f80_0001, 0x7fc0_0000] {
            for bits in [bits, bits | 1 << 31] {
                let mut text = String::new();
                write_f32(&mut text, bits);
                assert_eq!(parse_f32(&text), Ok(bits), "{text}");
            }
        }
    }

    #[test]
    fn strings_round_trip_and_escapes_are_checked() {
        let all: Vec<u8> = (0..=255).chain([0, b'0', 0, b'g', 0]).collect();
        let mut text = String::new();
        write_bytes(&mut text, &all);
        assert_eq!(unescape(&text[1..text.len() - 1]), Ok(all));
        let mut text = String::new();
        let odd = "é\u{0}\u{7f}\u{200b}\u{301}\"\\\n𝄞";
        write_text(&mut text, odd);
        assert_eq!(unescape(&text[1..text.len() - 1]), Ok(odd.as_bytes().to_vec()));

        assert_eq!(unescape("a\\00b"), Ok(b"a\0b".to_vec()));
        assert_eq!(unescape("\\u{1F600}"), Ok("😀".as_bytes().to_vec()));
        for bad in
            ["\\", "\\q", "\\x1", "\\x1g", "\\xé", "\\u", "\\u{}", "\\u{d800}", "\\u{1", "\\0f"]
        {
            assert!(unescape(bad).is_err(), "{bad}");
        }
        assert_eq!(unescape_char("a"), Ok(97));
        assert_eq!(unescape_char("\\n"), Ok(10));
        assert!(unescape_char("").is_err());
        assert!(unescape_char("ab").is_err());
    }
}
