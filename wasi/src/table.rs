//! The descriptors of a program: what each number stands for, and what may be done with it.

use std::fs::File;

use cap_std::fs::Dir;

use crate::errno::{Errno, Result};
use crate::limits::DESCRIPTORS_MAX;
use crate::readdir::Listing;
use crate::stdio::{Input, Output};
use crate::types::{FileType, Rights};

/// An open descriptor.
pub(crate) struct Descriptor {
    pub(crate) kind: Kind,
    /// What may be done with it.
    pub(crate) rights: Rights,
    /// What may be done with what is opened by way of it.
    pub(crate) inheriting: Rights,
}

/// What a descriptor stands for.
pub(crate) enum Kind {
    Input(Input),
    Output(Output),
    File(File),
    Directory(Directory),
}

/// An open directory.
pub(crate) struct Directory {
    pub(crate) dir: Dir,
    /// The name by which the program knows it, if it was opened before the program started.
    pub(crate) preopened_as: Option<String>,
    /// Where `fd_readdir` is.
    pub(crate) listing: Option<Listing>,
}

impl Descriptor {
    /// Fails with `notcapable` unless all of this may be done with it.
    pub(crate) fn need(&self, rights: Rights) -> Result<()> {
        if self.rights.contains(rights) { Ok(()) } else { Err(Errno::Notcapable) }
    }

    /// The file that it is, if all of this may be done with it; `badf` if it is none.
    pub(crate) fn file(&self, rights: Rights) -> Result<&File> {
        let Kind::File(file) = &self.kind else { return Err(Errno::Badf) };
        self.need(rights)?;
        Ok(file)
    }

    /// The file that it is, if all of this may be done with it; `spipe` if it is a stream and `badf` if it is
    /// a directory, which have no position.
    pub(crate) fn seekable(&self, rights: Rights) -> Result<&File> {
        match self.kind {
            Kind::Input(_) | Kind::Output(_) => Err(Errno::Spipe),
            Kind::File(_) | Kind::Directory(_) => self.file(rights),
        }
    }

    /// The directory that it is, if all of this may be done with it; `notdir` if it is none.
    pub(crate) fn directory(&self, rights: Rights) -> Result<&Directory> {
        let Kind::Directory(directory) = &self.kind else { return Err(Errno::Notdir) };
        self.need(rights)?;
        Ok(directory)
    }

    /// What kind of file it is.
    pub(crate) fn file_type(&self) -> Result<FileType> {
        Ok(match &self.kind {
            Kind::Input(input) => input.file_type(),
            Kind::Output(output) => output.file_type(),
            Kind::Directory(_) => FileType::Directory,
            Kind::File(file) => crate::types::FileStat::from(&file.metadata()?).file_type,
        })
    }
}

/// The descriptors of a program, by their numbers.
#[derive(Default)]
pub(crate) struct Table {
    slots: Vec<Option<Descriptor>>,
}

impl Table {
    /// The descriptor with a number; `badf` if there is none.
    pub(crate) fn get(&self, fd: u32) -> Result<&Descriptor> {
        let slot = self.slots.get(fd as usize).and_then(Option::as_ref);
        slot.ok_or(Errno::Badf)
    }

    pub(crate) fn get_mut(&mut self, fd: u32) -> Result<&mut Descriptor> {
        let slot = self.slots.get_mut(fd as usize).and_then(Option::as_mut);
        slot.ok_or(Errno::Badf)
    }

    /// The least number that is free; `mfile` if too many are taken.
    fn free(&self) -> Result<usize> {
        let free = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        if free < DESCRIPTORS_MAX { Ok(free) } else { Err(Errno::Mfile) }
    }

    /// Fails if there is no number for one more.
    pub(crate) fn check_room(&self) -> Result<()> {
        self.free().map(|_| ())
    }

    /// Gives a descriptor a number.
    pub(crate) fn insert(&mut self, descriptor: Descriptor) -> Result<u32> {
        let free = self.free()?;
        if free == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[free] = Some(descriptor);
        Ok(free as u32)
    }

    /// Takes a descriptor out.
    pub(crate) fn remove(&mut self, fd: u32) -> Result<Descriptor> {
        let slot = self.slots.get_mut(fd as usize).and_then(Option::take);
        slot.ok_or(Errno::Badf)
    }

    /// Gives a descriptor the number of another one, which is closed.
    pub(crate) fn renumber(&mut self, from: u32, to: u32) -> Result<()> {
        self.get(from)?;
        self.get(to)?;
        if from != to {
            self.slots[to as usize] = self.slots[from as usize].take();
        }
        Ok(())
    }
}
