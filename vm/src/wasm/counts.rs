//! Check that a binary has enough bytes for the items that it announces.
//!
//! Before they read the first item, the validator and the builder reserve room for all items of a section,
//! and the validator for all types of a recursive group. So nothing is validated unless there is at least
//! one byte for each item.

use std::ops::Range;

use wasmparser::{BinaryReader, Parser, Payload, SubType};

use super::Error;

/// The first byte of a recursive group of types.
const GROUP: u8 = 0x4e;

/// The most types in recursive groups for which validation goes on, to find out what else the module needs.
/// Each takes 400 bytes of memory, and 2 bytes of the binary.
const GROUP_TYPES_MAX: u32 = 10_000;

/// Checks all sections that start with a count. Unreadable contents are left to the validator.
pub(super) fn check(bytes: &[u8]) -> Result<(), Error> {
    for payload in Parser::new(0).parse_all(bytes).map_while(Result::ok) {
        let (count, range) = match &payload {
            Payload::TypeSection(section) => (section.count(), section.range()),
            Payload::ImportSection(section) => (section.count(), section.range()),
            Payload::FunctionSection(section) => (section.count(), section.range()),
            Payload::TableSection(section) => (section.count(), section.range()),
            Payload::MemorySection(section) => (section.count(), section.range()),
            Payload::TagSection(section) => (section.count(), section.range()),
            Payload::GlobalSection(section) => (section.count(), section.range()),
            Payload::ExportSection(section) => (section.count(), section.range()),
            Payload::ElementSection(section) => (section.count(), section.range()),
            Payload::DataSection(section) => (section.count(), section.range()),
            // The data segments follow later, and need at least this many bytes.
            Payload::DataCountSection { count, range } => (*count, range.start..bytes.len() as u64),
            _ => continue,
        };
        let n_bytes = range.end.saturating_sub(range.start);
        check_count(count, n_bytes, range.start, "a section")?;
        if let Payload::TypeSection(_) = payload {
            check_groups(section_reader(bytes, range))?;
        }
    }
    Ok(())
}

fn check_count(count: u32, n_bytes: u64, offset: u64, of: &str) -> Result<(), Error> {
    if u64::from(count) <= n_bytes {
        return Ok(());
    }
    let message = format!("{count} items of {of} do not fit in {n_bytes} bytes");
    Err(Error::Invalid { offset, message })
}

fn section_reader(bytes: &[u8], range: Range<u64>) -> BinaryReader<'_> {
    BinaryReader::new(&bytes[range.start as usize..range.end as usize], range.start)
}

/// Checks the recursive groups of a type section.
fn check_groups(mut section: BinaryReader<'_>) -> Result<(), Error> {
    let count = section.read_var_u32().unwrap_or(0);
    let mut n_in_groups = 0;
    for _ in 0..count {
        let mut group = section.clone();
        let n_types = match group.read_u8() {
            Ok(GROUP) => {
                let Ok(n_types) = group.read_var_u32() else { return Ok(()) };
                let n_bytes = group.bytes_remaining() as u64;
                let offset = section.original_position();
                check_count(n_types, n_bytes, group.original_position(), "a recursive group")?;
                n_in_groups += n_types;
                if n_in_groups > GROUP_TYPES_MAX {
                    let message = format!("recursive groups of {n_in_groups} types");
                    let proposals = vec!["garbage collection"];
                    return Err(Error::Unsupported { proposals, offset, message });
                }
                section = group;
                n_types
            }
            _ => 1,
        };
        for _ in 0..n_types {
            if section.read::<SubType>().is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}
