//! The two formats of floats: the meaning of bits, and the bits of the float nearest to a number.
//!
//! IEEE 754-2019, section 3.4. A finite float is `±magnitude * 2^exponent` with integers, so computations
//! on it are computations on integers.

/// The NaN that an operation returns if its result is NaN. The specification leaves sign and payload open.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::ir::eval) enum Nans {
    /// The first operand that is NaN, made quiet; without one the canonical NaN.
    Propagated,
    /// Always the canonical NaN.
    Canonical,
}

/// A binary format, and the choice of NaNs.
#[derive(Copy, Clone, Debug)]
pub(super) struct Format {
    fraction_bits: u32,
    exponent_bits: u32,
    nans: Nans,
}

/// The meaning of bits.
#[derive(Copy, Clone, Debug)]
pub(super) enum Float {
    Nan,
    Infinite { negative: bool },
    Finite(Finite),
}

/// The number `magnitude * 2^exponent` or its opposite. Zeros have a sign, too.
#[derive(Copy, Clone, Debug)]
pub(super) struct Finite {
    pub(super) negative: bool,
    /// Digits, at most 53.
    pub(super) magnitude: u128,
    pub(super) exponent: i32,
}

impl Finite {
    pub(super) fn is_zero(self) -> bool {
        self.magnitude == 0
    }
}

/// The part of a magnitude below its integer part.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    Zero,
    BelowHalf,
    Half,
    AboveHalf,
}

impl Rest {
    /// The integer nearest to the integer part with this rest; of two the even one.
    pub(super) fn nearest(self, integer: u128) -> u128 {
        match self {
            Rest::Zero | Rest::BelowHalf => integer,
            Rest::Half => integer + integer % 2,
            Rest::AboveHalf => integer + 1,
        }
    }
}

/// The integer part of `magnitude / 2^k`, and the rest. The magnitude has at most 127 digits.
pub(super) fn split(magnitude: u128, k: u32) -> (u128, Rest) {
    if magnitude == 0 {
        return (0, Rest::Zero);
    }
    if k >= 128 {
        return (0, Rest::BelowHalf);
    }
    let unit = 1_u128 << k;
    let rest = match magnitude % unit {
        0 => Rest::Zero,
        rest if rest < unit / 2 => Rest::BelowHalf,
        rest if rest == unit / 2 => Rest::Half,
        _ => Rest::AboveHalf,
    };
    (magnitude / unit, rest)
}

/// The number of binary digits.
pub(super) fn length(magnitude: u128) -> u32 {
    magnitude.checked_ilog2().map_or(0, |log2| log2 + 1)
}

impl Format {
    pub(super) fn single(nans: Nans) -> Format {
        Format { fraction_bits: 23, exponent_bits: 8, nans }
    }

    pub(super) fn double(nans: Nans) -> Format {
        Format { fraction_bits: 52, exponent_bits: 11, nans }
    }

    /// The width in bits.
    pub(super) fn bits(self) -> u32 {
        1 + self.exponent_bits + self.fraction_bits
    }

    /// The sign bit alone, which is -0.
    pub(super) fn sign(self) -> u128 {
        1 << (self.exponent_bits + self.fraction_bits)
    }

    /// The exponent of the last digit of subnormal numbers, the lowest that there is.
    fn exponent_min(self) -> i32 {
        let bias = (1 << (self.exponent_bits - 1)) - 1;
        1 - bias - self.fraction_bits as i32
    }

    pub(super) fn infinity(self, negative: bool) -> u128 {
        let infinity = self.sign() - (1 << self.fraction_bits);
        if negative { self.sign() + infinity } else { infinity }
    }

    pub(super) fn is_negative(self, bits: u128) -> bool {
        bits >= self.sign()
    }

    pub(super) fn is_nan(self, bits: u128) -> bool {
        bits % self.sign() > self.infinity(false)
    }

    /// The NaN that an operation returns on these operands.
    pub(super) fn nan(self, operands: &[u128]) -> u128 {
        let quiet = 1 << (self.fraction_bits - 1);
        let first = operands.iter().find(|&&operand| self.is_nan(operand));
        match (self.nans, first) {
            (Nans::Propagated, Some(nan)) => nan | quiet,
            _ => self.infinity(false) + quiet,
        }
    }

    /// The NaN of this format for a NaN of another one: its sign and the upper digits of its payload.
    pub(super) fn nan_of(self, other: Format, bits: u128) -> u128 {
        let payload = bits % (1 << other.fraction_bits);
        let payload = (payload << self.fraction_bits) >> other.fraction_bits;
        // With an empty payload the bits would be infinity; the quiet bit keeps them a NaN.
        let quiet = 1 << (self.fraction_bits - 1);
        self.nan(&[self.infinity(other.is_negative(bits)) + (payload | quiet)])
    }

    pub(super) fn decode(self, bits: u128) -> Float {
        let negative = self.is_negative(bits);
        let magnitude = bits % self.sign();
        if self.is_nan(bits) {
            return Float::Nan;
        }
        if magnitude == self.infinity(false) {
            return Float::Infinite { negative };
        }
        let unit = 1 << self.fraction_bits;
        let (fraction, biased) = (magnitude % unit, (magnitude / unit) as i32);
        Float::Finite(match biased {
            0 => Finite { negative, magnitude: fraction, exponent: self.exponent_min() },
            _ => Finite {
                negative,
                magnitude: unit + fraction,
                exponent: self.exponent_min() + biased - 1,
            },
        })
    }

    /// The bits of the float nearest to `magnitude * 2^exponent`, or to its opposite; of two the one whose last digit
    /// is even. The magnitude has at most 127 digits.
    pub(super) fn round(self, negative: bool, magnitude: u128, exponent: i32) -> u128 {
        let sign = if negative { self.sign() } else { 0 };
        if magnitude == 0 {
            return sign;
        }
        let digits = self.fraction_bits as i32 + 1;
        let last_digit = (exponent + length(magnitude) as i32 - digits).max(self.exponent_min());
        let dropped = last_digit - exponent;
        let rounded = if dropped > 0 {
            let (integer, rest) = split(magnitude, dropped.unsigned_abs());
            rest.nearest(integer)
        } else {
            magnitude << dropped.unsigned_abs()
        };
        // The leading digit of a normal number is not written, but counts one in the exponent, which is 0 for subnormal
        // numbers: so the sum is right for both, and if rounding has made one digit more.
        let steps = (last_digit - self.exponent_min()) as u128;
        let bits = (steps << self.fraction_bits) + rounded;
        sign + bits.min(self.infinity(false))
    }
}
