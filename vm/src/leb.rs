//! LEB128 integers, in their shortest form only: one number has one encoding.

/// Error for bytes that are not a LEB128 integer.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LebError {
    /// The input ends inside the integer.
    #[error("unexpected end of input")]
    End,
    /// The integer does not fit its type.
    #[error("integer does not fit its type")]
    Overflow,
    /// A shorter encoding exists.
    #[error("integer is not in its shortest form")]
    NotShortest,
}

/// Reads an unsigned 32-bit integer at `pos` and moves `pos` past it.
///
/// # Errors
/// Fails if the bytes there are not such an integer; `pos` is then unspecified.
#[inline]
pub fn read_u32(bytes: &[u8], pos: &mut usize) -> Result<u32, LebError> {
    match bytes.get(*pos) {
        Some(&byte) if byte < 0x80 => {
            *pos += 1;
            Ok(u32::from(byte))
        }
        _ => read_u32_long(bytes, pos),
    }
}

fn read_u32_long(bytes: &[u8], pos: &mut usize) -> Result<u32, LebError> {
    let mut value = 0u64;
    for shift in (0..35).step_by(7) {
        let byte = *bytes.get(*pos).ok_or(LebError::End)?;
        *pos += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            if byte == 0 && shift > 0 {
                return Err(LebError::NotShortest);
            }
            return u32::try_from(value).map_err(|_| LebError::Overflow);
        }
    }
    Err(LebError::Overflow)
}

/// Reads a signed 64-bit integer at `pos` and moves `pos` past it.
///
/// # Errors
/// Fails if the bytes there are not such an integer; `pos` is then unspecified.
#[inline]
pub fn read_i64(bytes: &[u8], pos: &mut usize) -> Result<i64, LebError> {
    match bytes.get(*pos) {
        Some(&byte) if byte < 0x80 => {
            *pos += 1;
            // Bit 6 is the sign.
            Ok(i64::from((byte << 1) as i8 >> 1))
        }
        _ => read_i64_long(bytes, pos),
    }
}

fn read_i64_long(bytes: &[u8], pos: &mut usize) -> Result<i64, LebError> {
    let mut value = 0i128;
    let mut previous = 0u8;
    for shift in (0..70).step_by(7) {
        let byte = *bytes.get(*pos).ok_or(LebError::End)?;
        *pos += 1;
        value |= i128::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            // A last byte that only repeats the sign of the previous byte is redundant.
            let sign = previous & 0x40 != 0;
            if shift > 0 && byte == if sign { 0x7f } else { 0 } {
                return Err(LebError::NotShortest);
            }
            let unused = 128 - 7 - shift;
            return i64::try_from(value << unused >> unused).map_err(|_| LebError::Overflow);
        }
        previous = byte;
    }
    Err(LebError::Overflow)
}

/// Reads a signed 32-bit integer at `pos` and moves `pos` past it.
///
/// # Errors
/// Fails if the bytes there are not such an integer; `pos` is then unspecified.
#[inline]
pub fn read_i32(bytes: &[u8], pos: &mut usize) -> Result<i32, LebError> {
    i32::try_from(read_i64(bytes, pos)?).map_err(|_| LebError::Overflow)
}

/// Appends an unsigned integer.
#[inline]
pub fn write_u32(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed integer.
pub fn write_i64(out: &mut Vec<u8>, mut value: i64) {
    loop {
        let byte = value as u8 & 0x7f;
        value >>= 7;
        if value == if byte & 0x40 == 0 { 0 } else { -1 } {
            return out.push(byte);
        }
        out.push(byte | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_round_trips_at_every_length() {
        for bit in 0..64 {
            for value in [1i64 << bit, (1i64 << bit).wrapping_sub(1), -1i64 << bit, !(-1i64 << bit)]
            {
                let mut out = Vec::new();
                write_i64(&mut out, value);
                let mut pos = 0;
                assert_eq!(read_i64(&out, &mut pos), Ok(value));
                assert_eq!(pos, out.len());
            }
        }
    }

    #[test]
    fn unsigned_round_trips_at_every_length() {
        for bit in 0..32 {
            for value in [1u32 << bit, (1u32 << bit) - 1, u32::MAX >> bit] {
                let mut out = Vec::new();
                write_u32(&mut out, value);
                let mut pos = 0;
                assert_eq!(read_u32(&out, &mut pos), Ok(value));
                assert_eq!(pos, out.len());
            }
        }
    }

    #[test]
    fn longer_forms_are_refused() {
        assert_eq!(read_u32(&[0x80, 0x00], &mut 0), Err(LebError::NotShortest));
        assert_eq!(read_i64(&[0xff, 0x7f], &mut 0), Err(LebError::NotShortest));
        assert_eq!(read_i64(&[0x80, 0x00], &mut 0), Err(LebError::NotShortest));
        assert_eq!(read_i64(&[0xc0, 0x00], &mut 0), Ok(64));
        assert_eq!(read_u32(&[0xff, 0xff, 0xff, 0xff, 0x1f], &mut 0), Err(LebError::Overflow));
        assert_eq!(read_u32(&[0xff], &mut 0), Err(LebError::End));
    }
}
