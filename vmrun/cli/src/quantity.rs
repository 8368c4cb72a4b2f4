//! Values of options with a unit: durations and sizes.

use std::time::Duration;

/// Units of time, in seconds. The first is that of a bare number.
const TIMES: &[(&str, f64)] = &[
    ("s", 1.0),
    ("ms", 1e-3),
    ("us", 1e-6),
    ("ns", 1e-9),
    ("m", 60.0),
    ("min", 60.0),
    ("h", 3600.0),
];

/// Units of size, in bytes. Memory comes in powers of two.
const SIZES: &[(&str, f64)] = &[
    ("", 1.0),
    ("B", 1.0),
    ("K", KIB),
    ("KiB", KIB),
    ("M", KIB * KIB),
    ("MiB", KIB * KIB),
    ("G", KIB * KIB * KIB),
    ("GiB", KIB * KIB * KIB),
];
const KIB: f64 = 1024.0;

/// A duration such as `500ms`, `2s`, `1.5m` or, in seconds, `2`.
///
/// # Errors
/// Fails if the text is no duration, or the duration is zero or endless.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let expected = "expected a number above zero, of seconds or with a unit: ns, us, ms, s, m or h";
    let seconds = parse(text, TIMES).filter(|&seconds| seconds > 0.0).ok_or(expected)?;
    let duration = Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())?;
    if duration.is_zero() { Err(expected.to_owned()) } else { Ok(duration) }
}

/// A number of bytes such as `64M`, `1GiB` or `65536`.
///
/// # Errors
/// Fails if the text is no size.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let bytes = parse(text, SIZES).ok_or("expected a number of bytes, or one with K, M or G")?;
    if bytes >= u64::MAX as f64 {
        Err("the size is too large".to_owned())
    } else {
        Ok(bytes as u64)
    }
}

/// A decimal number times its unit, whose letters may be small or capital.
fn parse(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    let is_meant = |name: &str| match unit.is_empty() {
        true => name == units[0].0,
        false => name.eq_ignore_ascii_case(unit),
    };
    units.iter().find(|(name, _)| is_meant(name)).map(|(_, factor)| number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_units() {
        for (text, ms) in
            [("500ms", 500), ("2s", 2000), ("2", 2000), ("1m", 60_000), ("1.5h", 5_400_000)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in [
            "",
            "s",
            "0s",
            "-1s",
            "1x",
            "1 s",
            "1e9s",
            "inf",
            "0.0000000001ns",
            "1.2.3s",
            "99999999999999999999h",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
        for (text, bytes) in
            [("0", 0), ("65536", 65536), ("64k", 65536), ("1.5M", 3 << 19), ("2GiB", 2 << 30)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "M", "-1", "1T", "64MB ", "99999999999999999999G"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
