//! Reading of numbers, lists and strings, with their limits.

use super::error::{DecodeError, DecodeRule};
use crate::leb::{self, LebError};
use crate::section::{MAGIC, Section, VERSION};

type Result<T, E = DecodeError> = std::result::Result<T, E>;

/// A named limit.
#[derive(Copy, Clone)]
pub(super) struct Limit {
    pub(super) name: &'static str,
    pub(super) max: usize,
}

/// The limit with a name.
macro_rules! limit {
    ($name:ident) => {
        $crate::decode::reader::Limit {
            name: stringify!($name),
            max: $crate::limits::$name as usize,
        }
    };
}
pub(super) use limit;

/// A reader of one module.
pub(super) struct Reader<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) pos: usize,
    /// End of the contents being read.
    pub(super) end: usize,
    pub(super) section: Option<Section>,
}

/// Reads strictly ascending numbers, each as its distance from the least number that it can be.
#[derive(Default)]
pub(super) struct Ascending {
    least: u64,
}

impl Ascending {
    pub(super) fn read(&mut self, reader: &mut Reader<'_>) -> Result<u32> {
        let start = reader.pos;
        let number = self.least + u64::from(reader.u32()?);
        self.least = number + 1;
        u32::try_from(number)
            .or_else(|_| reader.fail_at(start, DecodeRule::Ascending, format!("{number}")))
    }
}

impl<'a> Reader<'a> {
    pub(super) fn fail<T>(&self, rule: DecodeRule, detail: impl Into<String>) -> Result<T> {
        self.fail_at(self.pos, rule, detail)
    }

    #[cold]
    pub(super) fn fail_at<T>(
        &self,
        offset: usize,
        rule: DecodeRule,
        detail: impl Into<String>,
    ) -> Result<T> {
        Err(DecodeError { offset, section: self.section, rule, detail: detail.into() })
    }

    pub(super) fn n_left(&self) -> usize {
        self.end - self.pos
    }

    pub(super) fn check_limit(&self, offset: usize, n: usize, limit: Limit) -> Result<()> {
        if n <= limit.max {
            return Ok(());
        }
        let detail = format!("{n} exceeds {} = {}", limit.name, limit.max);
        self.fail_at(offset, DecodeRule::Limit, detail)
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        let [byte] = *self.take(1)? else { unreachable!("`take(1)` returns one byte") };
        Ok(byte)
    }

    pub(super) fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        if n > self.n_left() {
            let detail = format!("expected {n} bytes, {} left", self.n_left());
            return self.fail(DecodeRule::End, detail);
        }
        let bytes = &self.bytes[self.pos..self.pos + n];
        self.pos += n;
        Ok(bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        self.integer(leb::read_u32)
    }

    pub(super) fn integer<T>(
        &mut self,
        read: impl FnOnce(&[u8], &mut usize) -> Result<T, LebError>,
    ) -> Result<T> {
        let start = self.pos;
        read(&self.bytes[..self.end], &mut self.pos).or_else(|error| {
            let rule = match error {
                LebError::End => DecodeRule::End,
                LebError::Overflow => DecodeRule::Range,
                LebError::NotShortest => DecodeRule::Shortest,
            };
            self.fail_at(start, rule, error.to_string())
        })
    }

    pub(super) fn header(&mut self) -> Result<()> {
        let magic = self.take(MAGIC.len())?;
        if magic != MAGIC {
            return self.fail_at(
                0,
                DecodeRule::Magic,
                format!("the module starts with {magic:02x?}"),
            );
        }
        let start = self.pos;
        let version = self.take(4)?;
        if version != VERSION.to_le_bytes() {
            let version = version.iter().rev().fold(0u32, |all, &byte| all << 8 | u32::from(byte));
            let detail = format!("unknown version {version}; expected {VERSION}");
            return self.fail_at(start, DecodeRule::Version, detail);
        }
        Ok(())
    }

    /// Reads the id of a section or part of the names, at least `least`.
    pub(super) fn section_id<T>(
        &mut self,
        least: u8,
        from_tag: impl Fn(u8) -> Option<T>,
    ) -> Result<T> {
        let start = self.pos;
        let tag = self.byte()?;
        let Some(section) = from_tag(tag) else {
            return self.fail_at(start, DecodeRule::SectionId, format!("unknown id {tag}"));
        };
        if tag < least {
            let detail = format!("id {tag} comes after id {}", least - 1);
            return self.fail_at(start, DecodeRule::SectionOrder, detail);
        }
        Ok(section)
    }

    /// Reads a length, then contents of exactly that length.
    pub(super) fn sized<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let start = self.pos;
        let length = self.u32()? as usize;
        if length > self.n_left() {
            let detail = format!("length {length}, but {} bytes left", self.n_left());
            return self.fail_at(start, DecodeRule::End, detail);
        }
        let end = std::mem::replace(&mut self.end, self.pos + length);
        let contents = read(self)?;
        if self.n_left() > 0 {
            return self.fail(DecodeRule::Length, format!("{} bytes too many", self.n_left()));
        }
        self.end = end;
        Ok(contents)
    }

    /// Reads a count of entries of at least `entry_bytes` each.
    pub(super) fn count(&mut self, limit: Limit, entry_bytes: usize) -> Result<usize> {
        let start = self.pos;
        let n = self.u32()? as usize;
        self.check_limit(start, n, limit)?;
        if n > self.n_left() / entry_bytes {
            let detail = format!("{n} entries, but {} bytes left", self.n_left());
            return self.fail_at(start, DecodeRule::Count, detail);
        }
        Ok(n)
    }

    pub(super) fn list<T>(
        &mut self,
        limit: Limit,
        entry_bytes: usize,
        mut read: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let n = self.count(limit, entry_bytes)?;
        let mut items = Vec::with_capacity(n);
        for _ in 0..n {
            items.push(read(self)?);
        }
        Ok(items)
    }

    /// Reads a list that may not be empty, since empty ones are left out.
    pub(super) fn full_list<T>(
        &mut self,
        limit: Limit,
        entry_bytes: usize,
        read: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let start = self.pos;
        let items = self.list(limit, entry_bytes, read)?;
        if items.is_empty() {
            return self.fail_at(start, DecodeRule::SectionEmpty, "empty list");
        }
        Ok(items)
    }

    pub(super) fn sized_bytes(&mut self, limit: Limit) -> Result<&'a [u8]> {
        let n = self.count(limit, 1)?;
        self.take(n)
    }

    pub(super) fn string(&mut self) -> Result<String> {
        let bytes = self.sized_bytes(limit!(NAME_BYTES_MAX))?;
        let start = self.pos - bytes.len();
        match std::str::from_utf8(bytes) {
            Ok(string) => Ok(string.to_owned()),
            Err(error) => {
                self.fail_at(start + error.valid_up_to(), DecodeRule::Utf8, error.to_string())
            }
        }
    }

    /// Reads a byte that `from_tag` accepts.
    pub(super) fn tag<T>(
        &mut self,
        what: &str,
        from_tag: impl FnOnce(u8) -> Option<T>,
    ) -> Result<T> {
        let start = self.pos;
        let tag = self.byte()?;
        match from_tag(tag) {
            Some(value) => Ok(value),
            None => self.fail_at(start, DecodeRule::Tag, format!("unknown {what} {tag}")),
        }
    }

    pub(super) fn flag(&mut self) -> Result<bool> {
        self.tag("flag", |tag| (tag <= 1).then_some(tag == 1))
    }
}
