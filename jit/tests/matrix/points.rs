//! Arguments of the functions.

use crate::accesses::Access;

/// The parameters of a call, and what it accesses.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Point {
    /// Operand that the address or index is made of.
    pub(crate) x: u32,
    /// The base of an indexed access.
    pub(crate) base: u32,
    /// The first byte.
    pub(crate) start: u64,
    /// The byte after the last one.
    pub(crate) end: u64,
}

impl Point {
    /// A value to store, which differs from point to point.
    pub(crate) fn value(&self) -> i64 {
        (u64::from(self.x) ^ u64::from(self.base).rotate_left(32))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(17) as i64
    }

    /// The call in which the address or index is this one, or one near it.
    fn new(access: &Access, wanted: u32, base: u32) -> Point {
        let x = access.shape.parameter_for(wanted);
        let index = u64::from(access.shape.of(x)) << access.scale_log2;
        let start = index + u64::from(base) + u64::from(access.offset);
        Point { x, base, start, end: start + u64::from(access.bytes()) }
    }
}

/// Operands near the edges of 32 bits and of their signed half.
const EDGES: [u32; 6] = [0, 1, (1 << 31) - 1, 1 << 31, u32::MAX - 7, u32::MAX];

/// Returns the places of accesses in a memory of some bytes: with operands at the edges, at the end of the memory,
/// one byte beyond it, with the last byte inside, and right after it.
pub(crate) fn points(access: &Access, memory_bytes: u64) -> Vec<Point> {
    let bytes = u64::from(access.bytes());
    let starts = [
        memory_bytes.checked_sub(bytes),
        (memory_bytes + 1).checked_sub(bytes),
        memory_bytes.checked_sub(1),
        Some(memory_bytes),
    ];
    // What is left for the operands.
    let rests = starts.iter().flatten().filter_map(|start| start.checked_sub(access.offset.into()));
    let rests: Vec<u64> = rests.collect();
    let mut points = Vec::new();
    if access.is_indexed() {
        for base in EDGES {
            points.extend([0, 1, 1 << 31, u32::MAX].map(|index| Point::new(access, index, base)));
        }
        for rest in rests {
            points.extend(EDGES.into_iter().filter_map(|index| {
                // The index that the shape makes of it.
                let Point { x, .. } = Point::new(access, index, 0);
                let scaled = u64::from(access.shape.of(x)) << access.scale_log2;
                let base = u32::try_from(rest.checked_sub(scaled)?).ok()?;
                Some(Point::new(access, index, base))
            }));
            points.extend([0, 1 << 31, u32::MAX].into_iter().filter_map(|base: u32| {
                let scaled = rest.checked_sub(base.into())?;
                let index = u32::try_from(scaled >> access.scale_log2).ok()?;
                Some(Point::new(access, index, base))
            }));
        }
    } else {
        points.extend(EDGES.map(|address| Point::new(access, address, 0)));
        let addresses = rests.into_iter().filter_map(|rest| u32::try_from(rest).ok());
        points.extend(addresses.map(|address| Point::new(access, address, 0)));
    }
    points.sort_unstable();
    points.dedup();
    points
}
