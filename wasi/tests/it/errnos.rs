//! The error numbers of the specification.

pub(crate) const SUCCESS: u32 = 0;
pub(crate) const AGAIN: u32 = 6;
pub(crate) const BADF: u32 = 8;
pub(crate) const EXIST: u32 = 20;
pub(crate) const FAULT: u32 = 21;
pub(crate) const ILSEQ: u32 = 25;
pub(crate) const INVAL: u32 = 28;
pub(crate) const ISDIR: u32 = 31;
pub(crate) const LOOP: u32 = 32;
pub(crate) const MFILE: u32 = 33;
pub(crate) const NAMETOOLONG: u32 = 37;
pub(crate) const NOENT: u32 = 44;
pub(crate) const NOSPC: u32 = 51;
pub(crate) const NOTDIR: u32 = 54;
pub(crate) const NOTEMPTY: u32 = 55;
pub(crate) const NOTSOCK: u32 = 57;
pub(crate) const NOTSUP: u32 = 58;
pub(crate) const PERM: u32 = 63;
pub(crate) const SPIPE: u32 = 70;
pub(crate) const NOTCAPABLE: u32 = 76;
