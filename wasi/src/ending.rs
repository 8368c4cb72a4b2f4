//! What follows the last name of a path: nothing, slashes, or a last name that is `.` or `..`.
//!
//! On the host, slashes after a name say that a directory is meant, or will be: a symbolic link is followed even by calls
//! that do not follow the last one, and what is no directory is an error. cap-std's calls that do not follow the last link
//! drop the slashes, and `.` with them. So these calls are told apart here, as Linux does (`fs/namei.c`). Between the look at
//! what is there and the call, others may change it. Then a call may do what it does without the slash, but never outside
//! of its directory.

use cap_std::fs::{Dir, Metadata};

use crate::errno::{Errno, Result};

/// A path below a directory.
pub(crate) struct Place<'a> {
    dir: &'a Dir,
    path: &'a str,
    pub(crate) ending: Ending,
}

/// What follows the last name.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Nothing.
    Nothing,
    /// One slash or more.
    Slash,
    /// The last name is `.`, with slashes after it or not.
    Dot,
    /// The last name is `..`, with slashes after it or not.
    DotDot,
}

impl<'a> Place<'a> {
    pub(crate) fn new(dir: &'a Dir, path: &'a str) -> Place<'a> {
        let named = path.trim_end_matches('/');
        let ending = match named.rsplit('/').next() {
            Some(".") => Ending::Dot,
            Some("..") => Ending::DotDot,
            // Nothing but slashes leads out, as every absolute path does.
            _ if named.len() == path.len() || named.is_empty() => Ending::Nothing,
            _ => Ending::Slash,
        };
        Place { dir, path, ending }
    }

    /// The path without slashes at its end.
    pub(crate) fn named(&self) -> &'a str {
        match self.ending {
            Ending::Nothing => self.path,
            _ => self.path.trim_end_matches('/'),
        }
    }

    /// What is there, through links.
    pub(crate) fn followed(&self) -> Result<Metadata> {
        Ok(self.dir.metadata(self.path)?)
    }

    /// What the name stands for, which may be a link.
    pub(crate) fn entry(&self) -> Result<Metadata> {
        Ok(self.dir.symlink_metadata(self.named())?)
    }

    /// What a call that does not follow the last link finds.
    pub(crate) fn found(&self) -> Result<Metadata> {
        if self.ending == Ending::Nothing { self.entry() } else { self.followed() }
    }

    /// Whether the last name is `.` or `..`. These are directories with another name, and calls that change names refuse
    /// them.
    ///
    /// # Errors
    /// Fails if they are in no directory.
    pub(crate) fn is_dots(&self) -> Result<bool> {
        let is_dots = matches!(self.ending, Ending::Dot | Ending::DotDot);
        if is_dots {
            self.followed()?;
        }
        Ok(is_dots)
    }

    /// Fails unless the directory is there that the last name is in.
    pub(crate) fn check_parent(&self) -> Result<()> {
        match self.named().rsplit_once('/') {
            _ if self.is_dots()? => Ok(()),
            Some((parent, _)) if !parent.is_empty() => {
                let is_dir = self.dir.metadata(parent)?.is_dir();
                if is_dir { Ok(()) } else { Err(Errno::Notdir) }
            }
            _ => Ok(()),
        }
    }

    /// The path where something is made that is no directory.
    ///
    /// # Errors
    /// Fails with `exist` if something is there, and with `noent` if the path says that it is a directory.
    pub(crate) fn for_new_entry(&self) -> Result<&'a str> {
        if self.is_dots()? {
            return Err(Errno::Exist);
        }
        match self.ending {
            Ending::Slash => self.entry().and(Err(Errno::Exist)),
            _ => Ok(self.path),
        }
    }
}
