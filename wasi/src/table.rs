//! The descriptor table of a program.

use std::fs::File;

use cap_std::fs::Dir;

use crate::errno::{Errno, Result};
use crate::limits::DESCRIPTORS_MAX;
use crate::listing::Listing;
use crate::stdio::{Input, Output};
use crate::types::{FileType, Rights};

/// An open descriptor.
pub(crate) struct Descriptor {
    pub(crate) kind: Kind,
    /// The permitted operations.
    pub(crate) rights: Rights,
    /// The rights that descriptors opened through it can have at most.
    pub(crate) inheriting: Rights,
}

/// The target of a descriptor.
pub(crate) enum Kind {
    Input(Input),
    Output(Output),
    File(File),
    Directory(Directory),
}

/// An open directory.
pub(crate) struct Directory {
    pub(crate) dir: Dir,
    /// The name by which the program knows it, if it was preopened.
    pub(crate) preopened_as: Option<String>,
    /// The position of `fd_readdir`.
    pub(crate) listing: Option<Listing>,
}

impl Descriptor {
    /// Fails with `notcapable` unless the descriptor has all these rights.
    pub(crate) fn need(&self, rights: Rights) -> Result<()> {
        if self.rights.contains(rights) { Ok(()) } else { Err(Errno::Notcapable) }
    }

    /// Returns the file if the descriptor has all these rights. Fails with `badf` if it is not a file.
    pub(crate) fn file(&self, rights: Rights) -> Result<&File> {
        let Kind::File(file) = &self.kind else { return Err(Errno::Badf) };
        self.need(rights)?;
        Ok(file)
    }

    /// Returns the file if the descriptor has all these rights. Streams and directories have no position;
    /// they fail with `spipe` and `badf`.
    pub(crate) fn seekable(&self, rights: Rights) -> Result<&File> {
        match self.kind {
            Kind::Input(_) | Kind::Output(_) => Err(Errno::Spipe),
            Kind::File(_) | Kind::Directory(_) => self.file(rights),
        }
    }

    /// Returns the directory if the descriptor has all these rights. Fails with `notdir` if it is not a
    /// directory.
    pub(crate) fn directory(&self, rights: Rights) -> Result<&Directory> {
        let Kind::Directory(directory) = &self.kind else { return Err(Errno::Notdir) };
        self.need(rights)?;
        Ok(directory)
    }

    /// Returns the type of its file.
    pub(crate) fn file_type(&self) -> Result<FileType> {
        Ok(match &self.kind {
            Kind::Input(input) => input.file_type(),
            Kind::Output(output) => output.file_type(),
            Kind::Directory(_) => FileType::Directory,
            Kind::File(file) => crate::types::FileStat::from(&file.metadata()?).file_type,
        })
    }
}

/// The descriptors of a program, by number.
#[derive(Default)]
pub(crate) struct Table {
    slots: Vec<Option<Descriptor>>,
}

impl Table {
    /// Returns the descriptor with a number; fails with `badf` if it is not open.
    pub(crate) fn get(&self, fd: u32) -> Result<&Descriptor> {
        let slot = self.slots.get(fd as usize).and_then(Option::as_ref);
        slot.ok_or(Errno::Badf)
    }

    pub(crate) fn get_mut(&mut self, fd: u32) -> Result<&mut Descriptor> {
        let slot = self.slots.get_mut(fd as usize).and_then(Option::as_mut);
        slot.ok_or(Errno::Badf)
    }

    /// Returns the least free number; fails with `mfile` if too many are open.
    fn free(&self) -> Result<usize> {
        let free = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        if free < DESCRIPTORS_MAX { Ok(free) } else { Err(Errno::Mfile) }
    }

    /// Fails if there is no free number.
    pub(crate) fn check_room(&self) -> Result<()> {
        self.free().map(|_| ())
    }

    /// Assigns the least free number to a descriptor.
    pub(crate) fn insert(&mut self, descriptor: Descriptor) -> Result<u32> {
        let free = self.free()?;
        if free == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[free] = Some(descriptor);
        Ok(free as u32)
    }

    /// Removes a descriptor.
    pub(crate) fn remove(&mut self, fd: u32) -> Result<Descriptor> {
        let slot = self.slots.get_mut(fd as usize).and_then(Option::take);
        slot.ok_or(Errno::Badf)
    }

    /// Moves a descriptor to the number of another one, which is closed.
    pub(crate) fn renumber(&mut self, from: u32, to: u32) -> Result<()> {
        self.get(from)?;
        self.get(to)?;
        if from != to {
            self.slots[to as usize] = self.slots[from as usize].take();
        }
        Ok(())
    }
}
