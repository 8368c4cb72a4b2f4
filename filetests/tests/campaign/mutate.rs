//! Edits of bytes without knowledge of their meaning.

use slotvm_bytecode::leb;

use crate::rng::Rng;

/// Edits make inputs no longer than this.
const BYTES_MAX: usize = 1 << 20;

/// Numbers at which behaviour may change.
const EDGES: [u32; 20] = [
    0,
    1,
    2,
    7,
    63,
    64,
    100,
    127,
    128,
    255,
    1_000,
    16_383,
    16_384,
    65_535,
    65_536,
    1 << 20,
    10_000_000,
    0x7fff_ffff,
    0x8000_0000,
    u32::MAX,
];

/// Changes a few bytes. `other` is another input, of which a part may be taken.
pub(crate) fn bytes(rng: &mut Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    let at = rng.below(bytes.len());
    match rng.below(12) {
        0 | 1 if !bytes.is_empty() => bytes[at] ^= 1 << rng.below(8),
        2 | 3 if !bytes.is_empty() => bytes[at] = rng.bits() as u8,
        4 if !bytes.is_empty() => bytes[at] = *rng.pick(&[0, 1, 0x0b, 0x40, 0x7f, 0x80, 0xff]),
        5 if !bytes.is_empty() => bytes[at] = bytes[at].wrapping_add(*rng.pick(&[1, 255, 2, 16])),
        6 => number(rng, bytes, at),
        7 => drop(bytes.drain(rng.range(bytes.len()))),
        8 => {
            let part = bytes[rng.range(bytes.len())].to_vec();
            insert(bytes, at, &part);
        }
        9 => {
            let part = &other[rng.range(other.len())];
            insert(bytes, at, part);
        }
        10 => {
            let (part, place) = (rng.range(other.len()), rng.range(bytes.len()));
            bytes.splice(place, other[part].iter().copied());
        }
        _ => {
            let n = 1 + rng.below(8);
            let part: Vec<u8> = (0..n).map(|_| rng.bits() as u8).collect();
            insert(bytes, at, &part);
        }
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, part: &[u8]) {
    if bytes.len() + part.len() <= BYTES_MAX {
        let at = at.min(bytes.len());
        bytes.splice(at..at, part.iter().copied());
    }
}

/// Writes another number over one in LEB128, perhaps in a form that is too long.
fn number(rng: &mut Rng, bytes: &mut Vec<u8>, at: usize) {
    let len = bytes[at..].iter().take_while(|&&byte| byte >= 0x80).count() + 1;
    let end = (at + len).min(bytes.len());
    let mut value = *rng.pick(&EDGES);
    let mut pos = at;
    if rng.one_in(3)
        && let Ok(old) = leb::read_u32(bytes, &mut pos)
    {
        value = old.wrapping_add(*rng.pick(&[1, u32::MAX, 8, 0x80]));
    }
    let mut new = Vec::new();
    leb::write_u32(&mut new, value);
    if rng.one_in(16) {
        if let Some(last) = new.last_mut() {
            *last |= 0x80;
        }
        new.push(0);
    }
    bytes.splice(at..end, new);
}
