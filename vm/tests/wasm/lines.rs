//! Source lines from DWARF.

use gimli::write::{Address, Dwarf, EndianVec, LineProgram, LineString, Sections, Unit};
use gimli::{Encoding, Format, LineEncoding, LittleEndian};
use slotvm_bytecode::module::{Func, SourcePlace};
use slotvm_bytecode::{Module, verify, wasm};
use wasm_encoder::{CustomSection, Section};
use wasmparser::{Parser, Payload};

use crate::binary;

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

/// The lines of a function, which have neither file nor column.
fn lines(func: &Func) -> Vec<(u32, u32)> {
    let line = |&(offset, place): &(u32, SourcePlace)| {
        assert_eq!(place, SourcePlace::line(place.line));
        (offset, place.line)
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
fn damaged_tables_cost_at_most_lines() {
    let bytes = binary(WAT);
    let whole = debug_sections(4, &sequences(&bytes));
    for i in 0..whole.len() {
        for len in 0..whole[i].1.len() {
            let mut sections = whole.clone();
            sections[i].1.truncate(len);
            import(&with_sections(bytes.clone(), &sections));
        }
        for bit in 0..whole[i].1.len() * 8 {
            let mut sections = whole.clone();
            sections[i].1[bit / 8] ^= 1 << (bit % 8);
            import(&with_sections(bytes.clone(), &sections));
        }
    }
}

#[test]
fn lines_stand_in_the_text_form() {
    let bytes = binary(WAT);
    let sections = debug_sections(5, &sequences(&bytes));
    let module = import(&with_sections(bytes, &sections));
    let source = slotvm_bytecode::text::print(&module).expect("the code decodes");
    assert!(source.contains(".line 22"), "{source}");
    assert_eq!(slotvm_bytecode::text::parse(&source), Ok(module));
}
