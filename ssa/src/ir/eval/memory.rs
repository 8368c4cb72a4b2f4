//! Loads and stores: the bytes that each instruction accesses, and their relation to its value.
//!
//! Written from the specification, as [`super::numeric`] is: the definitions of other engines,
//! [`slotvm_bytecode::Access`] and [`slotvm_bytecode::VectorAccess`], are not used here. A test compares the
//! two.

use slotvm_bytecode::{Imm, Op, TrapCode};

use super::numeric::{Half, Sign, extend, extend_s, lanes, replace, splat};
use super::state::Contents;

/// The definition of a load or store.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Access {
    /// The bytes in memory.
    bytes: u32,
    part: Transfer,
    /// Whether the address is a base and a scaled index.
    is_indexed: bool,
}

/// The part of the value that the bytes are.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Transfer {
    /// A load of a number, zero-extended.
    Load,
    /// A load of a signed integer, extended to this number of bits.
    LoadSigned(u32),
    /// A load of lanes of this number of bits, extended to twice the width.
    LoadExtended(u32, Sign),
    /// A load of a number that all lanes get.
    LoadSplat,
    /// A load of one lane of a vector.
    LoadLane,
    /// A store of the lowest bytes of a value.
    Store,
    /// A store of one lane of a vector.
    StoreLane,
}

impl Access {
    /// The definition of an instruction, if it is a load or store.
    pub(super) fn of(op: Op) -> Option<Access> {
        use Op::*;
        use Sign::{Signed, Unsigned};
        use Transfer::*;
        let access = |bytes, part| Some(Access { bytes, part, is_indexed: false });
        let indexed = |plain| Access::of(plain).map(|plain| Access { is_indexed: true, ..plain });
        match op {
            I32Load8U | I64Load8U => access(1, Load),
            I32Load16U | I64Load16U => access(2, Load),
            I32Load | F32Load | I64Load32U => access(4, Load),
            I64Load | F64Load => access(8, Load),
            V128Load => access(16, Load),
            I32Load8S => access(1, LoadSigned(32)),
            I32Load16S => access(2, LoadSigned(32)),
            I64Load8S => access(1, LoadSigned(64)),
            I64Load16S => access(2, LoadSigned(64)),
            I64Load32S => access(4, LoadSigned(64)),
            I32Store8 | I64Store8 => access(1, Store),
            I32Store16 | I64Store16 => access(2, Store),
            I32Store | F32Store | I64Store32 => access(4, Store),
            I64Store | F64Store => access(8, Store),
            V128Store => access(16, Store),

            I32LoadIndexed => indexed(I32Load),
            I64LoadIndexed => indexed(I64Load),
            F32LoadIndexed => indexed(F32Load),
            F64LoadIndexed => indexed(F64Load),
            I32Load8SIndexed => indexed(I32Load8S),
            I32Load8UIndexed => indexed(I32Load8U),
            I32Load16SIndexed => indexed(I32Load16S),
            I32Load16UIndexed => indexed(I32Load16U),
            I64Load8SIndexed => indexed(I64Load8S),
            I64Load8UIndexed => indexed(I64Load8U),
            I64Load16SIndexed => indexed(I64Load16S),
            I64Load16UIndexed => indexed(I64Load16U),
            I64Load32SIndexed => indexed(I64Load32S),
            I64Load32UIndexed => indexed(I64Load32U),
            I32StoreIndexed => indexed(I32Store),
            I64StoreIndexed => indexed(I64Store),
            F32StoreIndexed => indexed(F32Store),
            F64StoreIndexed => indexed(F64Store),
            I32Store8Indexed => indexed(I32Store8),
            I32Store16Indexed => indexed(I32Store16),
            I64Store8Indexed => indexed(I64Store8),
            I64Store16Indexed => indexed(I64Store16),
            I64Store32Indexed => indexed(I64Store32),

            V128Load8x8S => access(8, LoadExtended(8, Signed)),
            V128Load8x8U => access(8, LoadExtended(8, Unsigned)),
            V128Load16x4S => access(8, LoadExtended(16, Signed)),
            V128Load16x4U => access(8, LoadExtended(16, Unsigned)),
            V128Load32x2S => access(8, LoadExtended(32, Signed)),
            V128Load32x2U => access(8, LoadExtended(32, Unsigned)),
            V128Load8Splat => access(1, LoadSplat),
            V128Load16Splat => access(2, LoadSplat),
            V128Load32Splat => access(4, LoadSplat),
            V128Load64Splat => access(8, LoadSplat),
            V128Load32Zero => access(4, Load),
            V128Load64Zero => access(8, Load),
            V128Load8Lane => access(1, LoadLane),
            V128Load16Lane => access(2, LoadLane),
            V128Load32Lane => access(4, LoadLane),
            V128Load64Lane => access(8, LoadLane),
            V128Store8Lane => access(1, StoreLane),
            V128Store16Lane => access(2, StoreLane),
            V128Store32Lane => access(4, StoreLane),
            V128Store64Lane => access(8, StoreLane),
            _ => None,
        }
    }
}

impl Contents<'_> {
    /// A load or store. `operands` are bits: an address, with an index if there is one, and then the value that is
    /// stored or whose lane is loaded.
    pub(super) fn access(
        &mut self,
        access: Access,
        imm: Imm,
        operands: &[u128],
    ) -> Result<Option<u128>, TrapCode> {
        let mut address = u64::from(operands[0] as u32) + u64::from(imm.offset());
        if access.is_indexed {
            address += u64::from(operands[1] as u32) << imm.scale_log2();
        }
        let bytes = self.bytes_at(address, access.bytes)?;
        let n = 8 * access.bytes;
        let lane = imm.access_lane();
        let value = || *operands.last().expect("an access has operands");
        Ok(match access.part {
            Transfer::Load => Some(number(bytes)),
            Transfer::LoadSigned(to) => Some(extend_s(n, to, number(bytes))),
            Transfer::LoadExtended(lane_bits, sign) => {
                Some(extend(lane_bits, Half::Low, sign, number(bytes)))
            }
            Transfer::LoadSplat => Some(splat(n, number(bytes))),
            Transfer::LoadLane => Some(replace(n, value(), lane.into(), number(bytes))),
            Transfer::Store => {
                write(bytes, value());
                None
            }
            Transfer::StoreLane => {
                write(bytes, lanes(n, value())[lane as usize]);
                None
            }
        })
    }

    fn bytes_at(&mut self, address: u64, n_bytes: u32) -> Result<&mut [u8], TrapCode> {
        let bytes = usize::try_from(address).ok().and_then(|address| {
            self.memory.get_mut(address..address.checked_add(n_bytes as usize)?)
        });
        bytes.ok_or(TrapCode::MemoryOutOfBounds)
    }
}

/// Up to 16 bytes as a little-endian number.
fn number(bytes: &[u8]) -> u128 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u128::from(byte))
}

/// Writes the lowest bytes of a number, little-endian.
fn write(bytes: &mut [u8], number: u128) {
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = (number >> (8 * i)) as u8;
    }
}

#[cfg(test)]
mod tests {
    use slotvm_bytecode::op::{ImmKind, VectorPart};
    use slotvm_bytecode::{ValType, vector};

    use super::*;
    use crate::ir::eval::{Imports, Machine, Options};
    use crate::tools::samples::module;
    use crate::tools::testing::Rng;

    #[test]
    fn both_tables_of_accesses_agree() {
        for &op in Op::ALL {
            let found = Access::of(op);
            let kind = op.imm_kind();
            let is_access = matches!(kind, ImmKind::Mem | ImmKind::Indexed | ImmKind::MemLane);
            assert_eq!(found.is_some(), is_access, "{op:?}");
            let Some(Access { bytes, part, is_indexed }) = found else { continue };
            assert_eq!(is_indexed, kind == ImmKind::Indexed, "{op:?}");
            assert_eq!(Some(bytes), op.access_bytes(), "{op:?}");
            let expected = match (op.access(), op.vector_access()) {
                (Some(access), _) if access.store => Transfer::Store,
                (Some(access), _) if access.signed => Transfer::LoadSigned(8 * access.ty.bytes()),
                (Some(_), _) => Transfer::Load,
                (_, Some(access)) => match access.part {
                    VectorPart::Extended { lane_bytes, signed } => {
                        let sign = if signed { Sign::Signed } else { Sign::Unsigned };
                        Transfer::LoadExtended(8 * lane_bytes, sign)
                    }
                    VectorPart::Splat => Transfer::LoadSplat,
                    VectorPart::LowLane => Transfer::Load,
                    VectorPart::Lane if access.store => Transfer::StoreLane,
                    VectorPart::Lane => Transfer::LoadLane,
                },
                (None, None) => unreachable!("{op:?} is an access"),
            };
            assert_eq!(part, expected, "{op:?}");
        }
    }

    /// The value that the definition of other engines has for a load.
    fn other_loaded(op: Op, bytes: &[u8], lane: u32, value: u128) -> u128 {
        let mut low = [0; 16];
        low[..bytes.len()].copy_from_slice(bytes);
        let number = u128::from_le_bytes(low);
        if let Some(access) = op.vector_access() {
            return vector::loaded(access, number as u64, lane, value);
        }
        let access = op.access().expect("a load");
        let extended = match (access.signed, access.bytes) {
            (true, 1) => i64::from(number as i8) as u64,
            (true, 2) => i64::from(number as i16) as u64,
            (true, 4) => i64::from(number as i32) as u64,
            _ => return number,
        };
        if access.ty == ValType::I32 { (extended as u32).into() } else { extended.into() }
    }

    #[test]
    fn loads_and_stores_do_what_other_engines_do() {
        let module = module("memory m 1");
        let mut machine = Machine::new(&module, vec![], Imports::default(), Options::default());
        let mut rng = Rng(3);
        machine.state.memory.fill_with(|| rng.next() as u8);
        let memory_bytes = machine.state.memory.len();
        for &op in Op::ALL {
            let Some(access) = Access::of(op) else { continue };
            let n = access.bytes as usize;
            for round in 0..64 {
                // An address and a scaled index below 2^15, or the last place where the access fits, or the next one.
                let index = if access.is_indexed { rng.below(1 << 8) as usize } else { 0 };
                let (scale, offset) = (rng.below(4), rng.below(1 << 8) as usize);
                let at = match round {
                    0 => memory_bytes - n,
                    1 => memory_bytes - n + 1,
                    _ => rng.below(1 << 14) as usize + offset + (index << scale),
                };
                let base = (at - offset - (index << scale)) as u128;
                let lane = match op.imm_kind() {
                    ImmKind::MemLane => rng.below(op.n_lanes().expect("it has a lane")),
                    _ => 0,
                };
                let imm = match op.imm_kind() {
                    ImmKind::Indexed => Imm::indexed(offset as u32, scale),
                    _ => Imm::mem_lane(offset as u32, lane),
                };
                let value = u128::from(rng.next()) << 64 | u128::from(rng.next());
                let mut operands = vec![base];
                operands.extend(access.is_indexed.then_some(index as u128));
                let takes_value = op.signature().expect("it is fixed").params.len();
                operands.extend((operands.len() < takes_value).then_some(value));

                let mut expected = machine.state.memory.clone();
                let found = machine.state.access(access, imm, &operands);
                let Some(place) = expected.get_mut(at..at + n) else {
                    assert_eq!(found, Err(TrapCode::MemoryOutOfBounds), "{op:?}");
                    continue;
                };
                let is_store = matches!(access.part, Transfer::Store | Transfer::StoreLane);
                if is_store {
                    let stored = match op.vector_access() {
                        Some(access) => vector::stored(access, lane, value).into(),
                        None => value,
                    };
                    place.copy_from_slice(&stored.to_le_bytes()[..n]);
                    assert_eq!(found, Ok(None), "{op:?}");
                } else {
                    let loaded = other_loaded(op, place, lane, value);
                    assert_eq!(found, Ok(Some(loaded)), "{op:?}");
                }
                assert!(machine.state.memory == expected, "{op:?} changes these bytes only");
            }
        }
    }
}
