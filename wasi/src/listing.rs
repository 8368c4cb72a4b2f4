//! The entries of a directory that is being listed.
//!
//! A cookie is the number of an entry, in the order in which the system lists them. To continue a listing,
//! a program passes the cookie after the last complete entry that it received. So the entries of the last
//! call are kept, and all others are read once. Only cookie 0, or a cookie before the kept entries, reads
//! the directory again.

use std::collections::VecDeque;

use std::os::fd::AsFd;

use rustix::fs::Dir;

use crate::errno::Result;
use crate::types::FileType;

/// The size of an entry before its name.
const HEADER_BYTES: usize = 24;

/// A directory that is being listed.
pub(crate) struct Listing {
    entries: Dir,
    /// The inode number of the directory itself.
    ino: u64,
    /// The number of the first entry that is kept.
    pub(crate) first: u64,
    /// Entries that have been read and may be requested again.
    kept: VecDeque<Entry>,
}

struct Entry {
    ino: u64,
    file_type: FileType,
    name: Vec<u8>,
}

impl Listing {
    pub(crate) fn begin(directory: impl AsFd) -> Result<Listing> {
        let entries = Dir::read_from(directory)?;
        let ino = entries.stat()?.st_ino;
        Ok(Listing { entries, ino, first: 0, kept: VecDeque::new() })
    }

    /// Reads another entry. Returns `false` at the end.
    fn read(&mut self) -> Result<bool> {
        let Some(entry) = self.entries.read() else { return Ok(false) };
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        // The parent of an opened directory is hidden from the program, so `..` has the inode number of the
        // directory itself, even in subdirectories. If it were zero, some C libraries would call
        // `path_filestat_get`, and give up the listing when that may not leave the directory.
        let ino = if name == b".." { self.ino } else { entry.ino() };
        self.kept.push_back(Entry {
            ino,
            file_type: entry.file_type().into(),
            name: name.to_owned(),
        });
        Ok(true)
    }

    /// Drops the entries before a cookie.
    pub(crate) fn skip_to(&mut self, cookie: u64) -> Result<()> {
        while self.first < cookie && (!self.kept.is_empty() || self.read()?) {
            self.kept.pop_front();
            self.first += 1;
        }
        Ok(())
    }

    /// Returns the entry at an index, counted from the first kept one.
    fn entry(&mut self, index: usize) -> Result<Option<&Entry>> {
        if index == self.kept.len() && !self.read()? {
            return Ok(None);
        }
        Ok(self.kept.get(index))
    }

    /// Fills a buffer with entries, the last of which may be truncated. Returns the number of bytes.
    pub(crate) fn write(&mut self, into: &mut [u8]) -> Result<usize> {
        let (mut used, mut index) = (0, 0);
        let first = self.first;
        while used < into.len() {
            let Some(entry) = self.entry(index)? else { break };
            index += 1;
            used += entry.write(first + index as u64, &mut into[used..]);
        }
        Ok(used)
    }
}

impl Entry {
    /// Writes as much as fits, with the cookie of the next entry. Returns the number of bytes.
    fn write(&self, next: u64, into: &mut [u8]) -> usize {
        let mut header = [0; HEADER_BYTES];
        header[0..8].copy_from_slice(&next.to_le_bytes());
        header[8..16].copy_from_slice(&self.ino.to_le_bytes());
        header[16..20].copy_from_slice(&(self.name.len() as u32).to_le_bytes());
        header[20] = self.file_type as u8;
        let bytes = header.iter().chain(&self.name);
        into.iter_mut().zip(bytes).map(|(place, &byte)| *place = byte).count()
    }
}
