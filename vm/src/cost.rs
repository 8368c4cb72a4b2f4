//! Execution costs: fuel, cells of the deterministic call stack, and polls of bulk operations.
//!
//! Every engine charges by these and by nothing else, so that all stop at the same place.
//! [`Block::cost`](crate::verified::Block::cost) is the fuel of a basic block, counted by the verifier.
//! [`Body::call_cells`] is the number of cells of a call.

use crate::op::Op;
use crate::verified::Body;

/// Cells that a call takes from the deterministic call stack in addition to the callee's frame.
const CALL_CELLS: u32 = 4;

/// Bytes per unit of fuel in a bulk operation on a memory, as a binary logarithm.
const MEMORY_BYTES_PER_FUEL_LOG2: u32 = 6;

/// Elements per unit of fuel in a bulk operation on a table, as a binary logarithm.
const TABLE_ELEMS_PER_FUEL_LOG2: u32 = 3;

/// Maximum number of bytes that a bulk operation on a memory writes between polls.
pub const PIECE_BYTES_MAX: u32 = 1 << 20;

/// Maximum number of elements that a bulk operation on a table writes between polls; the same number of
/// bytes.
pub const PIECE_ELEMS_MAX: u32 = PIECE_BYTES_MAX / 8;

/// The shift from length to additional fuel of a bulk operation. The length is the topmost operand; for
/// `table.grow` it is the number of new elements. The additional fuel, beyond the instruction's share of the
/// block, is the length shifted right by this. `None` for all other instructions.
#[inline]
pub const fn bulk_fuel_shift(op: Op) -> Option<u32> {
    match op {
        Op::MemoryFill | Op::MemoryCopy | Op::MemoryInit => Some(MEMORY_BYTES_PER_FUEL_LOG2),
        Op::TableFill | Op::TableCopy | Op::TableInit | Op::TableGrow => {
            Some(TABLE_ELEMS_PER_FUEL_LOG2)
        }
        _ => None,
    }
}

/// The additional fuel of a bulk operation of this length, beyond its share of the block.
#[inline]
pub const fn bulk_fuel(op: Op, length: u32) -> u32 {
    match bulk_fuel_shift(op) {
        Some(shift) => length >> shift,
        None => 0,
    }
}

impl Body {
    /// Number of cells that a call of the function takes from the deterministic call stack.
    pub fn call_cells(&self) -> u32 {
        self.n_cells() + CALL_CELLS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tables of chapters 5.1 and 5.2 of `docs/bytecode.md`.
    #[test]
    fn costs_are_those_that_the_specification_says() {
        let divisors = [
            (Op::MemoryFill, 64),
            (Op::MemoryCopy, 64),
            (Op::MemoryInit, 64),
            (Op::TableFill, 8),
            (Op::TableCopy, 8),
            (Op::TableInit, 8),
            (Op::TableGrow, 8),
        ];
        for (op, divisor) in divisors {
            for length in [0, divisor - 1, divisor, 10 * divisor + 1, u32::MAX] {
                assert_eq!(bulk_fuel(op, length), length / divisor, "{op:?}");
            }
        }
        let is_bulk = |op: Op| divisors.iter().any(|&(bulk, _)| bulk == op);
        for &op in Op::ALL {
            assert_eq!(bulk_fuel_shift(op).is_some(), is_bulk(op), "{op:?}");
            assert!(is_bulk(op) || bulk_fuel(op, u32::MAX) == 0, "{op:?}");
        }
        assert_eq!(Body { stack_max: 3, ..Body::default() }.call_cells(), 3 + 4);
        assert_eq!((PIECE_BYTES_MAX, PIECE_ELEMS_MAX), (1_048_576, 131_072));
    }
}
