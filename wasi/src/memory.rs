//! The memory of the program, as the functions see it.
//!
//! Every address and length comes from the program and may have any value. Accesses outside of the memory
//! fail with `fault`. Addresses need not be aligned. A program without a memory is treated as if it had an
//! empty one.

use std::io::IoSlice;
use std::ops::Range;

use crate::errno::{Errno, Result};
use crate::limits::{BUFFERS_MAX, PATH_BYTES_MAX, TRANSFER_BYTES_MAX};

/// The memory of the program.
pub(crate) struct GuestMemory<'a> {
    bytes: &'a mut [u8],
}

/// An address and a length in bytes or elements, as passed by the program.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Span {
    pub(crate) address: u32,
    pub(crate) len: u32,
}

impl Span {
    pub(crate) fn new(address: u32, len: u32) -> Span {
        Span { address, len }
    }
}

/// The size of an `iovec`.
const BUFFER_BYTES: u32 = 8;

/// A buffer inside the memory.
pub(crate) type Buffer = Range<usize>;

impl<'a> GuestMemory<'a> {
    pub(crate) fn new(bytes: &'a mut [u8]) -> GuestMemory<'a> {
        GuestMemory { bytes }
    }

    /// Returns the range of the bytes, if all of them are inside the memory.
    pub(crate) fn range(&self, address: u32, len: u32) -> Result<Range<usize>> {
        let start = address as usize;
        let end = start.checked_add(len as usize).ok_or(Errno::Fault)?;
        if end > self.bytes.len() { Err(Errno::Fault) } else { Ok(start..end) }
    }

    /// Fails unless the bytes are inside the memory. Functions with effects check the places of their
    /// results first.
    pub(crate) fn check(&self, address: u32, len: u32) -> Result<()> {
        self.range(address, len).map(|_| ())
    }

    pub(crate) fn slice(&self, address: u32, len: u32) -> Result<&[u8]> {
        let range = self.range(address, len)?;
        Ok(&self.bytes[range])
    }

    pub(crate) fn slice_mut(&mut self, address: u32, len: u32) -> Result<&mut [u8]> {
        let range = self.range(address, len)?;
        Ok(&mut self.bytes[range])
    }

    /// Returns the bytes of a buffer.
    pub(crate) fn buffer_mut(&mut self, buffer: &Buffer) -> &mut [u8] {
        &mut self.bytes[buffer.clone()]
    }

    fn array<const N: usize>(&self, address: u32) -> Result<[u8; N]> {
        let bytes = self.slice(address, N as u32)?;
        Ok(bytes.try_into().expect("the slice has this length"))
    }

    pub(crate) fn u8(&self, address: u32) -> Result<u8> {
        Ok(self.array::<1>(address)?[0])
    }

    pub(crate) fn u16(&self, address: u32) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array(address)?))
    }

    pub(crate) fn u32(&self, address: u32) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array(address)?))
    }

    pub(crate) fn u64(&self, address: u32) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array(address)?))
    }

    pub(crate) fn write(&mut self, address: u32, bytes: &[u8]) -> Result<()> {
        let len = u32::try_from(bytes.len()).map_err(|_| Errno::Overflow)?;
        self.slice_mut(address, len)?.copy_from_slice(bytes);
        Ok(())
    }

    pub(crate) fn write_u32(&mut self, address: u32, value: u32) -> Result<()> {
        self.write(address, &value.to_le_bytes())
    }

    pub(crate) fn write_u64(&mut self, address: u32, value: u64) -> Result<()> {
        self.write(address, &value.to_le_bytes())
    }

    /// Returns a path, which is UTF-8 text of at most [`PATH_BYTES_MAX`] bytes.
    pub(crate) fn path(&self, path: Span) -> Result<&str> {
        let range = self.range(path.address, path.len)?;
        if path.len > PATH_BYTES_MAX {
            return Err(Errno::Nametoolong);
        }
        std::str::from_utf8(&self.bytes[range]).map_err(|_| Errno::Ilseq)
    }

    /// Returns the buffers of an array of `iovec`, all of which must be inside the memory. They are cut to
    /// [`TRANSFER_BYTES_MAX`] bytes in total, and empty ones are left out. They may overlap.
    fn buffers(&self, Span { address: array, len: n }: Span) -> Result<Vec<Buffer>> {
        if n > BUFFERS_MAX {
            return Err(Errno::Inval);
        }
        self.check(array, n * BUFFER_BYTES)?;
        let mut buffers = Vec::with_capacity(n as usize);
        let mut left = TRANSFER_BYTES_MAX as usize;
        for i in 0..n {
            let at = array + i * BUFFER_BYTES;
            let buffer = self.range(self.u32(at)?, self.u32(at + 4)?)?;
            let len = buffer.len().min(left);
            left -= len;
            if len > 0 {
                buffers.push(buffer.start..buffer.start + len);
            }
        }
        Ok(buffers)
    }

    /// Returns the [`GuestMemory::buffers`] of a transfer, if there is a place for the number of bytes as well.
    pub(crate) fn transfer(&self, buffers: Span, n_out: u32) -> Result<Vec<Buffer>> {
        self.check(n_out, 4)?;
        self.buffers(buffers)
    }

    /// Returns the contents of buffers, for writing.
    pub(crate) fn gather(&self, buffers: &[Buffer]) -> Vec<IoSlice<'_>> {
        buffers.iter().map(|buffer| IoSlice::new(&self.bytes[buffer.clone()])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_outside_is_a_fault() {
        let mut bytes = [7; 16];
        let mut memory = GuestMemory::new(&mut bytes);
        assert_eq!(memory.range(0, 16), Ok(0..16));
        assert_eq!(memory.range(16, 0), Ok(16..16));
        for (address, len) in [(0, 17), (16, 1), (17, 0), (u32::MAX, 1), (1, u32::MAX)] {
            assert_eq!(memory.range(address, len), Err(Errno::Fault), "{address} {len}");
        }
        assert_eq!(memory.u64(8), Ok(0x0707_0707_0707_0707));
        assert_eq!(memory.u64(9), Err(Errno::Fault));
        assert_eq!(memory.write(15, &[1, 2]), Err(Errno::Fault));
        assert_eq!(memory.u8(15), Ok(7), "nothing has been written");
    }

    #[test]
    fn buffers_are_cut_where_a_transfer_ends() {
        let mut bytes = vec![0; (TRANSFER_BYTES_MAX + 64) as usize];
        let mut memory = GuestMemory::new(&mut bytes);
        // All of the memory, nothing, and all of it again.
        let len = TRANSFER_BYTES_MAX as u32 - 8;
        for (i, word) in [24, len, 0, 0, 32, len].into_iter().enumerate() {
            memory.write_u32(4 * i as u32, word).expect("it is inside");
        }
        let buffers = memory.buffers(Span::new(0, 3)).expect("all are inside");
        assert_eq!(buffers, [24..24 + len as usize, 32..40]);
        assert_eq!(memory.buffers(Span::new(0, BUFFERS_MAX + 1)), Err(Errno::Inval));
        assert_eq!(memory.buffers(Span::new(u32::MAX - 7, 1)), Err(Errno::Fault));
    }
}
