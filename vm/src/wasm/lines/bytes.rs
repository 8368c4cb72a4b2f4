//! Numbers and strings as DWARF encodes them, section 7 of the standard.

use std::ffi::CStr;

/// Bytes that are read from the front. Reads past the end return `None`.
#[derive(Copy, Clone, Debug)]
pub(super) struct Bytes<'b>(pub(super) &'b [u8]);

impl<'b> Bytes<'b> {
    pub(super) fn take(&mut self, n: u64) -> Option<Bytes<'b>> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(n).ok()?)?;
        self.0 = rest;
        Some(Bytes(taken))
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    /// Reads a little-endian integer of up to eight bytes.
    pub(super) fn number(&mut self, n_bytes: u64) -> Option<u64> {
        let bytes = self.take(n_bytes)?.0;
        Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    pub(super) fn peek_u32(mut self) -> Option<u32> {
        Some(self.number(4)? as u32)
    }

    /// Reads an unsigned LEB128. Bits beyond the 64th are an error.
    pub(super) fn unsigned(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// Reads a signed LEB128. Bits beyond the 64th must repeat the sign.
    pub(super) fn signed(&mut self) -> Option<i64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte != 0 && byte != 0x7f {
                return None;
            }
            number |= i64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                let n_unused = 64_u32.saturating_sub(shift + 7);
                return Some(number << n_unused >> n_unused);
            }
        }
        None
    }
    /// Reads a string and the NUL after it, and returns the string.
    pub(super) fn string(&mut self) -> Option<&'b [u8]> {
        let string = CStr::from_bytes_until_nul(self.0).ok()?.to_bytes();
        self.0 = &self.0[string.len() + 1..];
        Some(string)
    }
}
