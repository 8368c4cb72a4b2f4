//! Debugging information that expands from few bytes.

use wasm_encoder::{CustomSection, Section};

use crate::modules::leb;

/// Makes an input of about the given size in bytes.
type Make = fn(usize) -> Vec<u8>;

pub(crate) const CASES: &[(&str, Make)] = &[
    ("units that share a line program", units_of_one_program),
    ("units that share abbreviations", units_of_one_abbreviation_table),
    ("rows of a byte each", rows),
    ("directories without bytes", |n| tables(n, &[1, 1, 0x19], u64::MAX)),
    ("directories of no format", |n| tables(n, &[0], u64::MAX)),
    ("directories of a byte each", |n| tables(n, &[1, 1, 0x08], n as u64)),
    ("files that the program defines", defined_files),
    ("files without bytes", |n| tables(n, &[1, 1, 0x08, 1, b'/', 0, 0], u64::MAX)),
    ("files of a byte each", |n| tables(n, &[1, 1, 0x08, 1, b'/', 0, 1, 1, 0x08], n as u64)),
    ("files that all rows refer to", files_of_rows),
    ("files in one long directory", files_in_a_long_directory),
    ("files that share a long name", |n| files_of_strings(n, |_| 0)),
    ("files whose long names overlap", |n| files_of_strings(n, |i| i)),
    ("files whose names overlap", |n| files_of_strings(n, |i| 4_000 + i % 90)),
];

const WAT: &str = "(module (func (drop (i32.const 1)) (drop (i32.const 2))))";

/// Returns a module with these custom sections.
fn module(sections: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = wat::parse_str(WAT).unwrap();
    for (name, data) in sections {
        CustomSection { name: (*name).into(), data: data.into() }.append_to(&mut bytes);
    }
    bytes
}

/// Prefixes the contents with their length.
fn sized(contents: &[u8]) -> Vec<u8> {
    let mut bytes = (contents.len() as u32).to_le_bytes().to_vec();
    bytes.extend(contents);
    bytes
}

/// Returns a line table with these directory and file tables and this program.
fn line_table(version: u16, tables: &[u8], program: &[u8]) -> Vec<u8> {
    let mut header = vec![1, 1, 1, 0, 1, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1];
    header.extend(tables);
    let mut contents = version.to_le_bytes().to_vec();
    if version == 5 {
        contents.extend([4, 0]);
    }
    contents.extend(sized(&header));
    contents.extend(program);
    sized(&contents)
}

/// Returns a unit of version 4, of 16 bytes, that refers to line program 0.
fn unit() -> Vec<u8> {
    sized(&[4, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0])
}

/// An abbreviation table with one entry: a unit without children, whose attribute is its line program.
const ABBREVIATION: [u8; 6] = [1, 0x11, 0, 0x10, 0x17, 0];

fn units_of_one_program(n: usize) -> Vec<u8> {
    let abbreviations = [&ABBREVIATION[..], &[0, 0]].concat();
    module(&[
        (".debug_abbrev", abbreviations),
        (".debug_info", unit().repeat(n / 2 / 16)),
        (".debug_line", line_table(4, &[0, 0], &vec![14; n / 2])),
    ])
}

fn units_of_one_abbreviation_table(n: usize) -> Vec<u8> {
    let mut abbreviations = [&ABBREVIATION[..], &[0]].concat();
    for code in 0..n / 2 / 7 {
        abbreviations.extend([code as u8 | 0x80, (code >> 7) as u8 | 0x80, 1, 0x11, 0, 0, 0]);
    }
    module(&[
        (".debug_abbrev", abbreviations),
        (".debug_info", unit().repeat(n / 2 / 16)),
        (".debug_line", line_table(4, &[0, 0], &[14])),
    ])
}

fn rows(n: usize) -> Vec<u8> {
    let [abbreviations, info] = units_of_a_table();
    module(&[(".debug_line", line_table(4, &[0, 0], &vec![14; n])), abbreviations, info])
}

/// Returns the sections for a unit that refers to the only line table.
fn units_of_a_table() -> [(&'static str, Vec<u8>); 2] {
    let abbreviations = [&ABBREVIATION[..], &[0, 0]].concat();
    [(".debug_abbrev", abbreviations), (".debug_info", unit())]
}

/// Returns tables of version 5, given the header's bytes before the number of entries, which `n` zeros follow.
fn tables(n: usize, format: &[u8], count: u64) -> Vec<u8> {
    let mut table = [format, &leb(count as usize)].concat();
    table.resize(table.len() + n, 0);
    let [abbreviations, info] = units_of_a_table();
    module(&[(".debug_line", line_table(5, &table, &[14])), abbreviations, info])
}

fn defined_files(n: usize) -> Vec<u8> {
    let define = [0, 6, 3, b'f', 0, 0, 0, 0];
    let [abbreviations, info] = units_of_a_table();
    module(&[(".debug_line", line_table(4, &[0, 0], &define.repeat(n / 8))), abbreviations, info])
}

/// Returns a program with a row for each of the first files of a table.
fn row_of_each(n_files: usize) -> Vec<u8> {
    let set_address = [0, 5, 2, 1, 0, 0, 0];
    let rows = (0..n_files).flat_map(|file| [&[4][..], &leb(file), &[14]].concat());
    set_address.into_iter().chain(rows).collect()
}

/// Returns a table of version 4 with these directories and with files in the first of them.
fn files_in(directory: &[u8], n_files: usize) -> Vec<u8> {
    let mut table = [directory, &[0, 0]].concat();
    for file in 0..n_files {
        table.extend([format!("{file:x}").as_bytes(), &[0, 1, 0, 0]].concat());
    }
    table.push(0);
    module(&[(".debug_line", line_table(4, &table, &row_of_each(n_files)))])
}

fn files_of_rows(n: usize) -> Vec<u8> {
    files_in(b"d", n / 13)
}

fn files_in_a_long_directory(n: usize) -> Vec<u8> {
    files_in(&[b'd'; 4_000], n / 13)
}

/// Returns files of version 5 whose names are strings that begin at these offsets of a section of 4,096 bytes that is repeated.
fn files_of_strings(n: usize, offset: fn(usize) -> usize) -> Vec<u8> {
    let n_files = n / 2 / 8;
    let mut table = [&[1, 1, 0x08, 1, b'/', 0, 1, 1, 0x1f], &leb(n_files)[..]].concat();
    let strings = [vec![b's'; 4_090], vec![0; 6]].concat().repeat(n / 2 / 4_096);
    for file in 0..n_files {
        table.extend((offset(file) as u32).to_le_bytes());
    }
    let lines = line_table(5, &table, &row_of_each(n_files));
    module(&[(".debug_line", lines), (".debug_line_str", strings)])
}
