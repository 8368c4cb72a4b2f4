//! WASI error numbers, and their mapping from errors of the host.

use std::fmt;
use std::io::{self, ErrorKind};

use rustix::io::Errno as Host;

/// The result of the functions of this crate.
pub(crate) type Result<T> = std::result::Result<T, Errno>;

macro_rules! errnos {
    ($($name:ident = $code:literal $text:literal $($doc:literal)? $(($($host:ident)|+))?;)*) => {
        /// The reason why a WASI function failed: an error number of the specification.
        ///
        /// It prints as its name in the specification, such as `notcapable`.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        #[non_exhaustive]
        pub enum Errno {
            $(
                #[doc = concat!("`", $text, "`", $(", ", $doc,)? ".")]
                $name = $code,
            )*
        }

        impl Errno {
            /// Returns its name in the specification.
            pub fn name(self) -> &'static str {
                match self {
                    $(Errno::$name => $text,)*
                }
            }

            /// Returns the error number for an error of the host.
            fn from_host(host: Host) -> Errno {
                match host {
                    $($($(Host::$host)|+ => Errno::$name,)?)*
                    _ => Errno::Io,
                }
            }
        }
    };
}

errnos! {
    TooBig = 1 "2big" (TOOBIG);
    Acces = 2 "acces" (ACCESS);
    Again = 6 "again" "the operation would block" (AGAIN);
    Badf = 8 "badf" "the descriptor is not open, or of another kind" (BADF);
    Busy = 10 "busy" (BUSY);
    Deadlk = 16 "deadlk" (DEADLK);
    Dquot = 19 "dquot" (DQUOT);
    Exist = 20 "exist" (EXIST);
    Fault = 21 "fault" "an address outside of the memory" (FAULT);
    Fbig = 22 "fbig" (FBIG);
    Ilseq = 25 "ilseq" "the text is not UTF-8" (ILSEQ);
    Intr = 27 "intr" (INTR);
    Inval = 28 "inval" "an invalid argument" (INVAL);
    Io = 29 "io" "another error of the host" (IO);
    Isdir = 31 "isdir" (ISDIR);
    Loop = 32 "loop" "too many symbolic links, or one that should not be followed" (LOOP);
    Mfile = 33 "mfile" "too many descriptors are open" (MFILE);
    Mlink = 34 "mlink" (MLINK);
    Nametoolong = 37 "nametoolong" (NAMETOOLONG);
    Nfile = 41 "nfile" (NFILE);
    Nobufs = 42 "nobufs" (NOBUFS);
    Nodev = 43 "nodev" (NODEV);
    Noent = 44 "noent" (NOENT);
    Nolck = 46 "nolck" (NOLCK);
    Nomem = 48 "nomem" (NOMEM);
    Nospc = 51 "nospc" (NOSPC);
    Nosys = 52 "nosys" (NOSYS);
    Notdir = 54 "notdir" (NOTDIR);
    Notempty = 55 "notempty" (NOTEMPTY);
    Notsock = 57 "notsock" (NOTSOCK);
    Notsup = 58 "notsup" (NOTSUP);
    Notty = 59 "notty" (NOTTY);
    Nxio = 60 "nxio" (NXIO);
    Overflow = 61 "overflow" (OVERFLOW);
    Perm = 63 "perm" "not permitted; also a path that leads out of its directory" (PERM);
    Pipe = 64 "pipe" "the other end of the pipe is closed" (PIPE);
    Range = 68 "range" (RANGE);
    Rofs = 69 "rofs" (ROFS);
    Spipe = 70 "spipe" "the descriptor has no position" (SPIPE);
    Stale = 72 "stale" (STALE);
    Timedout = 73 "timedout" (TIMEDOUT);
    Txtbsy = 74 "txtbsy" (TXTBSY);
    Xdev = 75 "xdev" (XDEV);
    Notcapable = 76 "notcapable" "the descriptor does not have the right";
}

impl Errno {
    /// Success, as the functions return it.
    pub(crate) const SUCCESS: u32 = 0;

    /// Returns the number, as the functions return it.
    pub fn code(self) -> u32 {
        self as u32
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::error::Error for Errno {}

impl From<Host> for Errno {
    fn from(host: Host) -> Errno {
        Errno::from_host(host)
    }
}

impl From<io::Error> for Errno {
    fn from(error: io::Error) -> Errno {
        if let Some(host) = Host::from_io_error(&error) {
            return Errno::from_host(host);
        }
        match error.kind() {
            ErrorKind::NotFound => Errno::Noent,
            // cap-std reports this for a path that leads out of its directory.
            ErrorKind::PermissionDenied => Errno::Perm,
            ErrorKind::AlreadyExists => Errno::Exist,
            ErrorKind::WouldBlock => Errno::Again,
            ErrorKind::InvalidInput => Errno::Inval,
            ErrorKind::BrokenPipe => Errno::Pipe,
            ErrorKind::StorageFull => Errno::Nospc,
            ErrorKind::Unsupported => Errno::Notsup,
            ErrorKind::Interrupted => Errno::Intr,
            _ => Errno::Io,
        }
    }
}
