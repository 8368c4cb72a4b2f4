//! Chunks: pieces of code that are placed, and kept, together.
//!
//! Small functions share pages of memory and one hash. Pieces start such that their anchors are aligned
//! ([`crate::code::memory`]), as if each had been placed alone.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use slotvm_bytecode::TrapCode;

use crate::code::machine_code::Anchor;
use crate::code::machine_code::MachineCode;
use crate::code::memory::padding;
use crate::code::pctable::{CallSite, Place, PlaceId, RootSite, TrapReason, TrapSite};

/// The bytes of code that a chunk is closed at.
const CHUNK_BYTES: usize = 16 << 10;
/// The alignment of chunks in memory, which is that of anchors at most.
const ALIGNMENT: u64 = Anchor::LINE_BYTES as u64;
/// The byte that fills the space between pieces: a trap on x86-64, and no instruction on aarch64.
const FILLING: u8 = if cfg!(target_arch = "x86_64") { 0xcc } else { 0 };

/// Pieces of code, as one.
#[derive(Default)]
pub(crate) struct Chunk {
    /// The code of all of them.
    pub(crate) code: MachineCode,
    /// The range of each in it.
    pub(crate) pieces: Vec<Range<u32>>,
}

/// Packs pieces into chunks, in their order.
#[derive(Default)]
pub(crate) struct Packing {
    /// The chunk that takes the next piece, unless it is full.
    open: Option<Chunk>,
}

impl Packing {
    /// Adds a piece. Returns the chunk of those before it, if that was full.
    ///
    /// # Panics
    /// Panics if the piece has relocations.
    pub(crate) fn add(&mut self, piece: &MachineCode) -> Option<Chunk> {
        let full = self.open.take_if(|open| open.code.bytes.len() >= CHUNK_BYTES);
        self.open.get_or_insert_with(Chunk::new).add(piece);
        full
    }

    /// The last chunk, if there were any pieces.
    pub(crate) fn end(self) -> Option<Chunk> {
        self.open
    }
}

impl Chunk {
    /// A chunk of one piece.
    ///
    /// # Panics
    /// Panics if the piece has relocations.
    pub(crate) fn of(piece: &MachineCode) -> Chunk {
        let mut chunk = Chunk::new();
        chunk.add(piece);
        chunk
    }

    fn new() -> Chunk {
        let anchor = Anchor { offset: 0, boundary: ALIGNMENT as u32 };
        let code = MachineCode { alignment: ALIGNMENT, anchor, ..MachineCode::default() };
        Chunk { code, pieces: Vec::new() }
    }

    fn add(&mut self, piece: &MachineCode) {
        assert!(piece.is_kept_as_it_is(), "a piece has no relocations");
        assert!(piece.alignment.max(piece.anchor.boundary.into()) <= ALIGNMENT);
        let all = &mut self.code;
        let padding = padding(all.bytes.len(), piece);
        all.bytes.resize(all.bytes.len() + padding, FILLING);
        let start = all.bytes.len() as u32;
        all.bytes.extend(&piece.bytes);
        let first_place = all.places.len() as u32;
        all.traps.extend(piece.traps.iter().map(|site| site.moved(start, first_place)));
        all.calls.extend(piece.calls.iter().map(|site| site.moved(start, first_place)));
        all.roots.extend(piece.roots.iter().map(|site| site.moved(start)));
        all.places.extend(piece.places.iter().map(|place| place.moved(first_place)));
        self.pieces.push(start..all.bytes.len() as u32);
    }

    /// The chunk as bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let MachineCode { bytes, traps, calls, places, roots, .. } = &self.code;
        let reason = |reason| match reason {
            TrapReason::HostError => 0,
            TrapReason::Guest(code) => code.number(),
        };
        let tables = Tables {
            pieces: self.pieces.iter().map(|piece| (piece.start, piece.end)).collect(),
            traps: traps.iter().map(|s| (s.offset, reason(s.reason), s.place.0)).collect(),
            calls: calls.iter().map(|s| (s.offset, s.place.0)).collect(),
            places: places.iter().map(|p| (p.func, p.offset, p.inlined_at.0)).collect(),
            roots: roots.iter().map(|s| (s.offset, s.list, s.n_cells, s.below)).collect(),
        };
        let mut encoded = postcard::to_stdvec(&tables).expect("lists of numbers have a form");
        encoded.extend(bytes);
        encoded
    }

    /// The chunk that was encoded so; none if no chunk was.
    pub(crate) fn decode(encoded: &[u8]) -> Option<Chunk> {
        let (tables, bytes) = postcard::take_from_bytes::<Tables>(encoded).ok()?;
        let len = u32::try_from(bytes.len()).ok()?;
        let reason = |number| match number {
            0 => Some(TrapReason::HostError),
            number => TrapCode::from_number(number).map(TrapReason::Guest),
        };
        let trap = |&(offset, number, place): &(u32, u8, u32)| {
            Some(TrapSite { offset, reason: reason(number)?, place: PlaceId(place) })
        };
        let piece = |&(start, end): &(u32, u32)| (start < end && end <= len).then_some(start..end);
        let call = |&(offset, place): &(u32, u32)| CallSite { offset, place: PlaceId(place) };
        let place = |&(func, offset, inlined_at): &(u32, u32, u32)| Place {
            func,
            offset,
            inlined_at: PlaceId(inlined_at),
        };
        let root = |&(offset, list, n_cells, below): &(u32, u32, u32, u32)| RootSite {
            offset,
            list,
            n_cells,
            below,
        };
        let mut chunk = Chunk::new();
        chunk.code.roots = tables.roots.iter().map(root).collect();
        chunk.pieces = tables.pieces.iter().map(piece).collect::<Option<_>>()?;
        chunk.code.traps = tables.traps.iter().map(trap).collect::<Option<_>>()?;
        chunk.code.calls = tables.calls.iter().map(call).collect();
        chunk.code.places = tables.places.iter().map(place).collect();
        chunk.code.bytes = bytes.to_vec();
        Some(chunk)
    }
}

/// The tables of a chunk. Its code follows them.
#[derive(Serialize, Deserialize)]
struct Tables {
    /// Start and end.
    pieces: Vec<(u32, u32)>,
    /// Offset, number of the trap code (0 for an error of the host), place.
    traps: Vec<(u32, u8, u32)>,
    /// Return offset, place.
    calls: Vec<(u32, u32)>,
    /// Function, code offset, place of the call that it was inlined at.
    places: Vec<(u32, u32, u32)>,
    /// Return offset of a call at which references wait, their list, the number of root cells, and the bytes by which these
    /// lie below the frame pointer.
    roots: Vec<(u32, u32, u32, u32)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(n: u32) -> MachineCode {
        let bytes = (0..n % 700 + 1).map(|i| (i * n) as u8).collect();
        let place = |offset, inlined_at| Place { func: n, offset, inlined_at };
        MachineCode {
            bytes,
            alignment: 1 << (n % 6),
            anchor: Anchor { offset: n % 7, boundary: 16 << (n % 3) },
            traps: vec![TrapSite {
                offset: 0,
                reason: match n % 2 {
                    0 => TrapReason::HostError,
                    _ => TrapReason::Guest(TrapCode::ALL[n as usize % TrapCode::ALL.len()]),
                },
                place: PlaceId(1),
            }],
            calls: vec![
                CallSite { offset: 0, place: PlaceId(0) },
                CallSite { offset: n % 700, place: PlaceId::NONE },
            ],
            places: vec![place(n + 1, PlaceId::NONE), place(n + 2, PlaceId(0))],
            ..MachineCode::default()
        }
    }

    fn pack(pieces: &[MachineCode]) -> Vec<Chunk> {
        let mut packing = Packing::default();
        let mut chunks: Vec<Chunk> = pieces.iter().filter_map(|piece| packing.add(piece)).collect();
        chunks.extend(packing.end());
        chunks
    }

    #[test]
    fn chunks_have_what_their_pieces_have() {
        let pieces: Vec<MachineCode> = (0..500).map(piece).collect();
        let chunks = pack(&pieces);
        assert!(chunks.len() > 2);
        let mut n = 0;
        for chunk in &chunks {
            let decoded = Chunk::decode(&chunk.encode()).unwrap();
            assert_eq!(decoded.pieces, chunk.pieces);
            let (a, b) = (&decoded.code, &chunk.code);
            assert_eq!((&a.bytes, &a.traps, &a.calls), (&b.bytes, &b.traps, &b.calls));
            assert_eq!((&a.places, a.alignment, a.anchor), (&b.places, b.alignment, b.anchor));
            for (k, range) in chunk.pieces.iter().enumerate() {
                let piece = &pieces[n];
                let bytes = &a.bytes[range.start as usize..range.end as usize];
                assert_eq!(bytes, piece.bytes);
                assert_eq!(padding(range.start as usize, piece), 0);
                let trap = a.traps[k];
                assert_eq!((trap.offset, trap.reason), (range.start, piece.traps[0].reason));
                let place = a.places[trap.place.0 as usize];
                assert_eq!((place.func, place.offset), (n as u32, n as u32 + 2));
                let outer = a.places[place.inlined_at.0 as usize];
                assert_eq!((outer.offset, outer.inlined_at), (n as u32 + 1, PlaceId::NONE));
                let calls = &a.calls[2 * k..2 * k + 2];
                assert_eq!(calls[0].offset, range.start);
                assert_eq!(calls[1].place, PlaceId::NONE);
                n += 1;
            }
        }
        assert_eq!(n, pieces.len());
    }

    #[test]
    fn what_is_no_chunk_is_none() {
        let encoded = pack(&[piece(5), piece(300)])[0].encode();
        let mut n_refused = 0;
        for len in 0..encoded.len() {
            n_refused += u32::from(Chunk::decode(&encoded[..len]).is_none());
        }
        for at in 0..encoded.len().min(60) {
            let mut changed = encoded.clone();
            changed[at] ^= 0x81;
            // Whatever it is, it has its pieces in its code.
            if let Some(chunk) = Chunk::decode(&changed) {
                let len = chunk.code.bytes.len() as u32;
                assert!(
                    chunk.pieces.iter().all(|piece| piece.start < piece.end && piece.end <= len)
                );
            }
        }
        assert!(n_refused > 50);
    }
}
