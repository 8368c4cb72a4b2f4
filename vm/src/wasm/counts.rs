//! Whether a binary has bytes for as many items as it announces.
//!
//! The validator and the builder reserve room for the items of a section, and the validator for the types of a
//! recursive group, before they read the first. So nothing is validated before each item has a byte at least.

use std::ops::Range;

use wasmparser::{BinaryReader, Parser, Payload, SubType};

use super::Error;

/// The first byte of a recursive group of types.
const GROUP: u8 = 0x4e;

/// At most so many types of recursive groups are validated, to find out what else the module needs: each
/// takes 400 bytes of memory, and 2 bytes of the binary.
const GROUP_TYPES_MAX: u32 = 10_000;

/// Checks all sections that are announced with a count. What cannot be read is left to the validator.
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
            // There are to be bytes for as many data segments further on.
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
    let message = format!("{n_bytes} bytes are too few for {count} items of {of}");
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
