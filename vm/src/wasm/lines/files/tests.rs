//! Comparison of the names of files in random tables with those that gimli reads, and limits of names.

use gimli::{
    AttributeValue, DebugLine, DebugLineOffset, DebugLineStr, DebugStr, EndianSlice, LittleEndian,
};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;
use crate::leb;
use crate::wasm::lines::program::programs;

/// A field of an entry of version 5: its content type, its form and its bytes in each entry.
type Field = (u32, u32, Vec<Vec<u8>>);

/// The sections of a module with one line program.
#[derive(Debug, Default)]
struct Written {
    lines: Vec<u8>,
    line_strings: Vec<u8>,
    strings: Vec<u8>,
}

impl Written {
    fn sections(&self) -> Sections<'_> {
        let Written { lines, line_strings, strings } = self;
        Sections { lines, line_strings, strings }
    }
}

fn number(n: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    leb::write_u32(&mut bytes, n as u32);
    bytes
}

fn terminated(text: &str) -> Vec<u8> {
    [text.as_bytes(), b"\0"].concat()
}

/// Returns a line program without code, with these tables in its header.
fn line_program(version: u16, is_64_bit: bool, tables: &[u8]) -> Vec<u8> {
    let sized = |contents: &[u8]| match is_64_bit {
        true => [&(contents.len() as u64).to_le_bytes()[..], contents].concat(),
        false => [&(contents.len() as u32).to_le_bytes()[..], contents].concat(),
    };
    let mut header = vec![1];
    header.extend((version >= 4).then_some(1));
    header.extend([1, 0, 1, 1]);
    header.extend(tables);
    let mut contents = version.to_le_bytes().to_vec();
    if version == 5 {
        contents.extend([4, 0]);
    }
    contents.extend(sized(&header));
    let escape: &[u8] = if is_64_bit { &[0xff; 4] } else { &[] };
    [escape, &sized(&contents)].concat()
}

/// Writes paths in a form of version 5.
fn paths(form: u32, paths: &[&str], is_64_bit: bool, written: &mut Written) -> Field {
    let section = match form {
        0x0e => &mut written.strings,
        _ => &mut written.line_strings,
    };
    let write = |path: &&str| {
        if form == 0x08 {
            return terminated(path);
        }
        let offset = section.len() as u64;
        section.extend(terminated(path));
        offset.to_le_bytes()[..if is_64_bit { 8 } else { 4 }].to_vec()
    };
    (1, form, paths.iter().map(write).collect())
}

fn directories(form: u32, files: &[(&str, usize)]) -> Field {
    let write = |&(_, directory): &(_, usize)| match form {
        0x0f => number(directory),
        0x0b => vec![directory as u8],
        0x05 => (directory as u16).to_le_bytes().to_vec(),
        0x06 => (directory as u32).to_le_bytes().to_vec(),
        _ => (directory as u64).to_le_bytes().to_vec(),
    };
    (2, form, files.iter().map(write).collect())
}

/// A field that has no meaning for names, in a form of version 5.
fn other(form: u32, n_entries: usize) -> Field {
    let bytes = match form {
        0x1e => vec![7; 16],
        0x09 | 0x0a => vec![2, 1, 1],
        0x03 => vec![2, 0, 1, 1],
        0x04 => vec![2, 0, 0, 0, 1, 1],
        0x08 => b"source\0".to_vec(),
        _ => vec![3],
    };
    (0x2001, form, vec![bytes; n_entries])
}

fn described(fields: &[Field], n_entries: usize) -> Vec<u8> {
    let mut table = vec![fields.len() as u8];
    for (content, form, _) in fields {
        table.extend([number(*content as usize), number(*form as usize)].concat());
    }
    table.extend(number(n_entries));
    for entry in 0..n_entries {
        table.extend(fields.iter().flat_map(|(.., values)| &values[entry]));
    }
    table
}

/// The tables of versions 2 to 4.
fn fixed(directories: &[&str], files: &[(&str, usize)]) -> Vec<u8> {
    let mut tables: Vec<u8> =
        directories.iter().flat_map(|directory| terminated(directory)).collect();
    tables.push(0);
    for &(path, directory) in files {
        tables.extend([terminated(path), number(directory), number(200), vec![5]].concat());
    }
    tables.push(0);
    tables
}

fn path() -> impl Strategy<Value = String> {
    "(/|C:/|)[a-c]{1,2}(/[a-cö]{1,2}){0,2}"
}

prop_compose! {
    fn sections()(
        (version, is_64_bit) in (2..=5_u16, any::<bool>()),
        directory_paths in prop::collection::vec(path(), 1..5),
        file_paths in prop::collection::vec((path(), 0..8_usize), 1..8),
        path_forms in [select(vec![0x08, 0x0e, 0x1f]), select(vec![0x08, 0x0e, 0x1f])],
        directory_form in select(vec![0x0f, 0x0b, 0x05, 0x06, 0x07]),
        other_form in prop::option::of(select(vec![0x1e, 0x09, 0x0a, 0x03, 0x04, 0x08, 0x0f, 0x0b])),
        at in any::<Index>(),
    ) -> Written {
        let directory_paths: Vec<&str> = directory_paths.iter().map(String::as_str).collect();
        let files: Vec<(&str, usize)> =
            file_paths.iter().map(|(path, directory)| (path.as_str(), *directory)).collect();
        let mut written = Written::default();
        let tables = if version < 5 {
            fixed(&directory_paths, &files)
        } else {
            let of_directories = paths(path_forms[0], &directory_paths, is_64_bit, &mut written);
            let file_paths: Vec<&str> = files.iter().map(|&(path, _)| path).collect();
            let mut fields = vec![
                paths(path_forms[1], &file_paths, is_64_bit, &mut written),
                directories(directory_form, &files),
            ];
            if let Some(form) = other_form {
                fields.insert(at.index(3), other(form, files.len()));
            }
            let n_directories = directory_paths.len();
            [described(&[of_directories], n_directories), described(&fields, files.len())].concat()
        };
        written.lines = line_program(version, is_64_bit, &tables);
        written
    }
}

/// The names of the files with the first numbers, by gimli, joined to their directories.
fn names_by_gimli(written: &Written, n: u64) -> Vec<Option<String>> {
    let (line_strings, strings) = (
        DebugLineStr::from(EndianSlice::new(&written.line_strings, LittleEndian)),
        DebugStr::from(EndianSlice::new(&written.strings, LittleEndian)),
    );
    let program = DebugLine::new(&written.lines, LittleEndian)
        .program(DebugLineOffset(0), 4, None, None)
        .unwrap();
    let header = program.header();
    let text = |value: AttributeValue<EndianSlice<'_, LittleEndian>>| {
        let text = match value {
            AttributeValue::String(text) => text,
            AttributeValue::DebugLineStrRef(at) => line_strings.get_str(at).unwrap(),
            AttributeValue::DebugStrRef(at) => strings.get_str(at).unwrap(),
            other => unreachable!("no path is {other:?}"),
        };
        text.to_string_lossy().into_owned()
    };
    let is_absolute = |path: &str| path.starts_with('/') || path.starts_with("C:/");
    let name = |file| {
        let file = header.file(file)?;
        let path = text(file.path_name());
        let Some(directory) = file.directory(header).map(text).filter(|_| !is_absolute(&path))
        else {
            return Some(path);
        };
        let of_unit = header.directory(0).map(text);
        let of_unit = of_unit.filter(|_| file.directory_index() != 0 && !is_absolute(&directory));
        let parts = [of_unit, Some(directory), Some(path)];
        Some(parts.into_iter().flatten().collect::<Vec<String>>().join("/"))
    };
    (0..n).map(name).collect()
}

/// The names of the files with the first numbers.
fn names(written: &Written, n: u64) -> Vec<Option<String>> {
    let mut names = FileNames::new(written.sections());
    let mut numbers = Vec::new();
    for program in programs(&written.lines) {
        let mut table = FileTable::read(program.tables());
        numbers.extend((0..n).map(|file| names.number(&mut table, file)));
    }
    let list = names.into_list();
    assert!(list.iter().zip(1..).all(|(&(number, _), expected)| number == expected));
    let name = |number: u32| Some(list[number.checked_sub(1)? as usize].1.clone());
    numbers.into_iter().map(name).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn names_are_those_of_gimli(written in sections()) {
        prop_assert_eq!(names(&written, 10), names_by_gimli(&written, 10));
    }
}

/// Tables of version 5 with one directory and files whose names are strings of `.debug_line_str`.
fn with_line_strings(directory: &str, offsets: &[u32], line_strings: Vec<u8>) -> Written {
    let of_directory = (1, 0x08, vec![terminated(directory)]);
    let values = offsets.iter().map(|offset| offset.to_le_bytes().to_vec()).collect();
    let tables =
        [described(&[of_directory], 1), described(&[(1, 0x1f, values)], offsets.len())].concat();
    Written { lines: line_program(5, false, &tables), line_strings, strings: Vec::new() }
}

#[test]
fn equal_names_share_a_number() {
    let written = with_line_strings("/src", &[0, 4, 2, 0], b"a.c\0a.c\0".to_vec());
    let mut names = FileNames::new(written.sections());
    let program = programs(&written.lines).next().unwrap();
    let numbers: Vec<u32> = {
        let mut table = FileTable::read(program.tables());
        [3, 1, 2, 0, 4, u64::MAX].map(|file| names.number(&mut table, file)).into()
    };
    assert_eq!(numbers, [1, 1, 2, 1, 0, 0]);
    assert_eq!(names.into_list(), [(1, "/src/a.c".to_owned()), (2, "/src/c".to_owned())]);
}

#[test]
fn files_without_a_proper_name_are_unknown() {
    let long = vec![b'x'; SOURCE_FILE_NAME_BYTES_MAX - 2];
    let line_strings = [&long[..], b"\0\0\xff.c\0no end"].concat();
    let n = long.len() as u32;
    // Too long with its directory, just short enough, empty, not UTF-8, without an end, outside of the section.
    let offsets = [0, 1, n + 1, n + 2, n + 6, u32::MAX];
    let written = with_line_strings("/s", &offsets, line_strings);
    let names = names(&written, 6);
    let lengths: Vec<usize> =
        names.iter().map(|name| name.as_ref().map_or(0, String::len)).collect();
    assert_eq!(lengths, [0, SOURCE_FILE_NAME_BYTES_MAX, 0, 8, 0, 0]);
    assert_eq!(names[3].as_deref(), Some("/s/\u{fffd}.c"));
}

#[test]
fn all_names_together_are_limited() {
    let line_strings = [vec![b'x'; 4_000], vec![0]].concat();
    let offsets: Vec<u32> = (0..4_000).collect();
    let written = with_line_strings("/s", &offsets, line_strings);
    let n_max = SOURCE_FILES_BYTES_MAX + written.lines.len() + written.line_strings.len();
    let n_known: usize = names(&written, 4_000).iter().flatten().map(String::len).sum();
    assert!(n_known <= n_max && n_known > n_max - 5_000, "{n_known} of {n_max}");
}

#[test]
fn reading_names_is_limited() {
    let line_strings = [vec![b'x'; 4_000], vec![0]].concat();
    let written = with_line_strings("/s", &[0; 1_000], line_strings);
    let n_bytes = written.lines.len() + written.line_strings.len();
    let n_known = names(&written, 1_000).iter().flatten().count();
    let n_expected = (SOURCE_FILES_BYTES_MAX + n_bytes) * READ_PER_BYTE_MAX / 4_004;
    assert!(n_known.abs_diff(n_expected) < 3, "{n_known}, not {n_expected}");
}

#[test]
fn a_table_that_cannot_be_read_has_no_files() {
    let good = described(&[(1, 0x08, vec![b"/s\0".to_vec()])], 1);
    let tables: [&[u8]; 5] = [
        // Entries without fields; of an unknown form; too many; with a path that does not end; none.
        &[0, 0xff, 0xff, 0xff, 0xff, 0x0f],
        &[1, 1, 0x19, 2, b'a', 0],
        &[1, 1, 0x08, 3, b'a', 0, b'b', 0],
        &[1, 1, 0x08, 1, b'a'],
        &[],
    ];
    for bad in tables {
        let lines = line_program(5, false, &[&good[..], bad].concat());
        let written = Written { lines, ..Written::default() };
        assert_eq!(names(&written, 2), [None, None], "{bad:?}");
    }
}
