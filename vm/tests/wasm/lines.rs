//! Source places from DWARF.

use std::fs;
use std::path::Path;

use gimli::write::{Address, Dwarf, EndianVec, LineProgram, LineString, Sections, Unit};
use gimli::{Encoding, Format, LineEncoding, LittleEndian};
use slotvm_bytecode::module::{Func, SourcePlace};
use slotvm_bytecode::{Module, decode, encode, verify, wasm};
use wasm_encoder::{CustomSection, Section};
use wasmparser::{Parser, Payload};

use crate::{binary, load_lazily};

const WAT: &str = "(module
    (func nop (drop (i32.const 1)) (drop (i32.const 2)))
    (func (local i32) local.get 0 drop (unreachable)))";

/// Returns the offset of the code section's contents, and the offsets of the instructions of its functions.
fn code_offsets(bytes: &[u8]) -> (u64, Vec<Vec<u64>>) {
    let mut start = 0;
    let mut funcs = Vec::new();
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.expect("it is valid") {
            Payload::CodeSectionStart { unchecked_range, .. } => start = unchecked_range.start,
            Payload::CodeSectionEntry(body) => {
                let mut operators = body.get_operators_reader().expect("it is valid");
                let mut offsets = Vec::new();
                while !operators.eof() {
                    offsets.push(operators.original_position());
                    operators.read().expect("it is valid");
                }
                funcs.push(offsets);
            }
            _ => {}
        }
    }
    (start, funcs)
}

/// A sequence of a line program: address and line of each row, and the address of its end.
struct Sequence {
    rows: Vec<(u64, u64)>,
    end: u64,
}

/// Columns are lines with this added.
const COLUMN_OF_LINE_0: u64 = 1_000;

/// Returns the `.debug_…` sections of one unit with these sequences.
fn debug_sections(version: u16, sequences: &[Sequence]) -> Vec<(&'static str, Vec<u8>)> {
    let encoding = Encoding { format: Format::Dwarf32, version, address_size: 4 };
    let name = |name: &str| LineString::String(name.into());
    let mut program = LineProgram::new(
        encoding,
        LineEncoding::default(),
        name("/project"),
        None,
        name("main.c"),
        None,
    );
    let directory = program.default_directory();
    let file = program.add_file(name("main.c"), directory, None);
    for sequence in sequences {
        let start = sequence.rows[0].0;
        program.begin_sequence(Some(Address::Constant(start)));
        for &(address, line) in &sequence.rows {
            let row = program.row();
            (row.address_offset, row.file, row.line) = (address - start, file, line);
            row.column = line + COLUMN_OF_LINE_0;
            program.generate_row();
        }
        program.end_sequence(sequence.end - start);
    }
    let mut dwarf = Dwarf::new();
    dwarf.units.add(Unit::new(encoding, program));
    let mut sections = Sections::new(EndianVec::new(LittleEndian));
    dwarf.write(&mut sections).expect("it can be written");
    let mut written = Vec::new();
    let add = |id: gimli::SectionId, data: &EndianVec<LittleEndian>| -> gimli::write::Result<()> {
        if !data.slice().is_empty() {
            written.push((id.name(), data.slice().to_vec()));
        }
        Ok(())
    };
    sections.for_each(add).expect("nothing fails");
    written
}

fn with_sections(mut bytes: Vec<u8>, sections: &[(&str, Vec<u8>)]) -> Vec<u8> {
    for (name, data) in sections {
        let section = CustomSection { name: (*name).into(), data: data.into() };
        section.append_to(&mut bytes);
    }
    bytes
}

fn import(bytes: &[u8]) -> Module {
    let module = wasm::import(bytes).expect("debugging information cannot make a module invalid");
    verify(module.clone()).expect("verifies");
    module
}

/// Returns a row for every instruction of both functions, with lines counted from 10 and 20.
fn sequences(bytes: &[u8]) -> Vec<Sequence> {
    let (start, funcs) = code_offsets(bytes);
    let sequence = |(first, offsets): (u64, &Vec<u64>)| Sequence {
        rows: (first..).zip(offsets).map(|(line, offset)| (offset - start, line)).collect(),
        end: offsets[offsets.len() - 1] - start + 1,
    };
    [10, 20].into_iter().zip(&funcs).map(sequence).collect()
}

/// The lines of a function, which have their columns and the only file.
fn lines(func: &Func) -> Vec<(u32, u32)> {
    let line = |&(offset, place): &(u32, SourcePlace)| {
        let line = place.line;
        let column = line + COLUMN_OF_LINE_0 as u32;
        let expected = SourcePlace { file: 1, line, column };
        assert_eq!(place, if line == 0 { SourcePlace::NONE } else { expected });
        (offset, line)
    };
    func.lines.iter().map(line).collect()
}

#[test]
fn instructions_have_their_lines() {
    let bytes = binary(WAT);
    for version in [2, 3, 4, 5] {
        let sections = debug_sections(version, &sequences(&bytes));
        let module = import(&with_sections(bytes.clone(), &sections));
        // WebAssembly's `nop` is left out; the end becomes a return.
        let expected = [(0, 11), (2, 12), (3, 13), (5, 14), (6, 15)];
        assert_eq!(lines(&module.funcs[0]), expected, "version {version}");
        assert_eq!(lines(&module.funcs[1]), [(0, 20), (2, 21), (3, 22)], "version {version}");
        // The directory of the unit is not in the line table before version 5.
        let file = if version == 5 { "/project/main.c" } else { "main.c" };
        assert_eq!(module.names.files, [(1, file.to_owned())], "version {version}");
    }
}

#[test]
fn the_order_of_sequences_does_not_matter() {
    let bytes = binary(WAT);
    let mut sequences = sequences(&bytes);
    sequences.reverse();
    let module = import(&with_sections(bytes, &debug_sections(4, &sequences)));
    assert_eq!(lines(&module.funcs[0])[0], (0, 11));
    assert_eq!(lines(&module.funcs[1]), [(0, 20), (2, 21), (3, 22)]);
}

#[test]
fn a_line_holds_until_the_next_row_and_no_further_than_its_sequence() {
    let bytes = binary(WAT);
    let (start, funcs) = code_offsets(&bytes);
    let first = funcs[0][1] - start;
    let one = Sequence { rows: vec![(first, 7)], end: funcs[0][3] - start };
    let module = import(&with_sections(bytes, &debug_sections(4, &[one])));
    // The first row is after the `nop`; after the end of the sequence there is no line.
    assert_eq!(lines(&module.funcs[0]), [(0, 7), (3, 0)]);
    assert_eq!(lines(&module.funcs[1]), []);
}

#[test]
fn tables_of_functions_that_the_linker_removed_are_left_out() {
    let bytes = binary(WAT);
    let mut sequences = sequences(&bytes);
    sequences.push(Sequence { rows: (0..40).map(|at| (at, 99)).collect(), end: 40 });
    let module = import(&with_sections(bytes, &debug_sections(4, &sequences)));
    let lines = module.funcs.iter().flat_map(|func| &func.lines);
    assert!(lines.clone().count() == 8 && lines.clone().all(|&(_, place)| place.line != 99));
}

#[test]
fn damaged_tables_cost_at_most_places() {
    let bytes = binary(WAT);
    for version in [4, 5] {
        damage(&bytes, &debug_sections(version, &sequences(&bytes)));
    }
}

fn damage(bytes: &[u8], whole: &[(&str, Vec<u8>)]) {
    for i in 0..whole.len() {
        for len in 0..whole[i].1.len() {
            let mut sections = whole.to_vec();
            sections[i].1.truncate(len);
            import(&with_sections(bytes.to_vec(), &sections));
        }
        for bit in 0..whole[i].1.len() * 8 {
            let mut sections = whole.to_vec();
            sections[i].1[bit / 8] ^= 1 << (bit % 8);
            import(&with_sections(bytes.to_vec(), &sections));
        }
    }
}

#[test]
fn lines_stand_in_the_text_form() {
    let bytes = binary(WAT);
    let sections = debug_sections(5, &sequences(&bytes));
    let module = import(&with_sections(bytes, &sections));
    let source = slotvm_bytecode::text::print(&module).expect("the code decodes");
    assert!(source.contains(".line 22:1022, 1"), "{source}");
    assert!(source.contains("name file 1 \"/project/main.c\""), "{source}");
    assert_eq!(slotvm_bytecode::text::parse(&source), Ok(module));
}

/// The modules of `places/build`, whose function `quotient` inlines a function of a header.
#[test]
fn modules_of_a_compiler_have_files_lines_and_columns() {
    for (version, folder) in [(4, ""), (5, "/src/")] {
        let path = format!("tests/wasm/places/places.dwarf{version}.wasm");
        let bytes = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
        let module = import(&bytes);
        let [source, header] = ["places.c", "inc/checks.h"].map(|file| format!("{folder}{file}"));
        assert_eq!(module.names.files, [(1, source), (2, header)], "version {version}");
        let func = module.funcs.iter().find(|func| !func.lines.is_empty()).expect("it has lines");
        let place = |file, line, column| SourcePlace { file, line, column };
        let places: Vec<SourcePlace> = func.lines.iter().map(|&(_, place)| place).collect();
        let expected = [
            place(1, 3, 0),
            place(2, 2, 15),
            place(2, 2, 7),
            place(2, 3, 5),
            place(1, 5, 12),
            place(1, 5, 3),
        ];
        assert_eq!(places, expected, "version {version}");

        assert_eq!(wasm::import_in_parallel(&bytes).as_ref(), Ok(&module));
        let lazy = load_lazily(&bytes).unwrap();
        assert!(lazy.is_lazy());
        // Backtraces read the files of modules that are not completed.
        assert_eq!(lazy.module().names.files, module.names.files);
        assert_eq!(lazy.completed().module(), &module);
        assert_eq!(decode(&encode(&module)).as_ref(), Ok(&module));
    }
}
