//! Violations of each rule of the binary form.

use slotvm_bytecode::decode::DecodeRule;
use slotvm_bytecode::section::Section;
use slotvm_bytecode::{decode, limits};

const HEADER: &[u8] = b"\0svm\x01\0\0\0";

fn leb(mut n: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
    out
}

/// Returns a section, or part of the names, with its length.
fn section(id: u8, contents: &[u8]) -> Vec<u8> {
    [&[id], &*leb(contents.len()), contents].concat()
}

fn module(sections: &[Vec<u8>]) -> Vec<u8> {
    [HEADER, &sections.concat()].concat()
}

/// A rule, the section in which it is broken, the offset of the violation, and the bytes.
struct Case {
    rule: DecodeRule,
    section: Option<Section>,
    offset: usize,
    bytes: Vec<u8>,
}

fn case(rule: DecodeRule, section: Option<Section>, offset: usize, bytes: Vec<u8>) -> Case {
    Case { rule, section, offset, bytes }
}

/// Returns a case in the contents of a single section. The offset counts from the start of the contents,
/// which are less than 128 bytes.
fn in_section(rule: DecodeRule, id: Section, offset: usize, contents: &[u8]) -> Case {
    let start = HEADER.len() + 2;
    case(rule, Some(id), start + offset, module(&[section(id.tag(), contents)]))
}

/// Returns a case in the body of a single function with one type.
fn in_body(rule: DecodeRule, offset: usize, body: &[u8]) -> Case {
    let code = section(13, &[&[1], &*leb(body.len()), body].concat());
    let bytes = module(&[section(3, &[1, 0]), code]);
    let start = bytes.len() - body.len();
    case(rule, Some(Section::Code), start + offset, bytes)
}

/// Returns a case in the source lines of a single function; `lines` is the number of entries and the
/// entries.
fn in_lines(rule: DecodeRule, offset: usize, lines: &[u8]) -> Case {
    let code = section(13, &[1, 3, 0, 0, 0]);
    let bytes = module(&[section(3, &[1, 0]), code, section(15, &[&[1, 0], lines].concat())]);
    let start = bytes.len() - lines.len();
    case(rule, Some(Section::Lines), start + offset, bytes)
}

/// Returns a case in the branch hints of a single function, as [`in_lines`] does.
fn in_hints(rule: DecodeRule, offset: usize, hints: &[u8]) -> Case {
    let code = section(13, &[1, 3, 0, 0, 0]);
    let bytes = module(&[section(3, &[1, 0]), code, section(17, &[&[1, 0], hints].concat())]);
    let start = bytes.len() - hints.len();
    case(rule, Some(Section::Hints), start + offset, bytes)
}

/// Returns a case in the source places of a single function, after a section of its lines if there is one.
fn in_places(rule: DecodeRule, offset: usize, lines: Option<&[u8]>, places: &[u8]) -> Case {
    let mut sections = vec![section(3, &[1, 0]), section(13, &[1, 4, 0, 0, 0, 0])];
    sections.extend(lines.map(|lines| section(15, &[&[1, 0], lines].concat())));
    sections.push(section(16, &[&[1, 0], places].concat()));
    let bytes = module(&sections);
    let start = bytes.len() - places.len() - 2;
    case(rule, Some(Section::Places), start + offset, bytes)
}

fn cases() -> Vec<Case> {
    use DecodeRule::*;
    let too_many = |limit: usize| leb(limit + 1);
    vec![
        case(Magic, None, 0, b"\0asm\x01\0\0\0".to_vec()),
        case(Version, None, 4, b"\0svm\x02\0\0\0".to_vec()),
        case(Version, None, 4, b"\0svm\x01\0\0\x01".to_vec()),
        case(End, None, 0, b"\0sv".to_vec()),
        case(End, None, 4, b"\0svm\x01".to_vec()),
        case(End, Some(Section::Types), 9, module(&[vec![1]])),
        case(End, Some(Section::Types), 9, module(&[vec![1, 2, 0]])),
        in_section(End, Section::Start, 0, &[0x80]),
        in_section(End, Section::Types, 4, &[1, 2, 0x7f, 0x7f]),
        in_section(Range, Section::Start, 0, &[0xff, 0xff, 0xff, 0xff, 0x1f]),
        in_section(Shortest, Section::Start, 0, &[0x80, 0]),
        case(Shortest, Some(Section::Start), 9, module(&[vec![8, 0x81, 0, 0]])),
        // Counts above their limits, with or without enough bytes for the items.
        in_section(Limit, Section::Types, 0, &too_many(limits::TYPES_MAX)),
        in_section(Limit, Section::Types, 1, &[&[1], &*too_many(limits::PARAMS_MAX)].concat()),
        in_section(Limit, Section::Types, 2, &[&[1, 0], &*too_many(limits::RESULTS_MAX)].concat()),
        in_section(Limit, Section::Imports, 0, &too_many(limits::IMPORTS_MAX)),
        in_section(
            Limit,
            Section::Imports,
            1,
            &[&[1], &*too_many(limits::NAME_BYTES_MAX), &[0; 3]].concat(),
        ),
        in_section(Limit, Section::Funcs, 0, &too_many(limits::FUNCS_MAX)),
        in_section(Limit, Section::Tables, 0, &too_many(limits::TABLES_MAX)),
        in_section(Limit, Section::Memories, 0, &too_many(limits::MEMORIES_MAX)),
        in_section(
            Limit,
            Section::Memories,
            1,
            &[&[1, 0], &*too_many(limits::MEMORY_PAGES_MAX as usize)].concat(),
        ),
        in_section(
            Limit,
            Section::Memories,
            1,
            &[&[1, 1, 0], &*too_many(limits::MEMORY_PAGES_MAX as usize)].concat(),
        ),
        in_section(Limit, Section::Globals, 0, &too_many(limits::GLOBALS_MAX)),
        in_section(Limit, Section::Exports, 0, &too_many(limits::EXPORTS_MAX)),
        in_section(Limit, Section::Elems, 0, &too_many(limits::SEGMENTS_MAX)),
        in_section(
            Limit,
            Section::Elems,
            4,
            &[&[1, 0, 0x70, 0], &*too_many(limits::SEGMENT_ELEMS_MAX)].concat(),
        ),
        in_section(Limit, Section::Datas, 0, &too_many(limits::SEGMENTS_MAX)),
        in_section(Limit, Section::Shapes, 0, &too_many(limits::SHAPES_MAX)),
        in_body(Limit, 0, &too_many(limits::LOCALS_MAX)),
        in_body(Limit, 1, &[&[0], &*too_many(limits::LABELS_MAX)].concat()),
        // Four billion locals in one run, and too many in two.
        in_body(Limit, 1, &[1, 0xff, 0xff, 0xff, 0xff, 0xf, 0x7f, 0]),
        in_body(Limit, 3, &[2, 1, 0x7f, 0xe0, 0xd4, 3, 0x7e, 0]),
        // Counts below their limits, with too few bytes for the items.
        in_section(Count, Section::Types, 0, &[2, 0, 0, 0]),
        in_section(Count, Section::Shapes, 0, &[0x80, 0x80, 4, 0, 0x7f]),
        in_section(Count, Section::Exports, 1, &[1, 9, b'a', 0, 0]),
        in_body(Count, 1, &[0, 0x80, 0x80, 0x80, 1]),
        case(SectionId, None, 8, module(&[section(0, &[0])])),
        case(SectionId, None, 8, module(&[section(18, &[0])])),
        in_section(SectionId, Section::Names, 0, &section(11, &[1, 0, 1, b'a'])),
        case(SectionOrder, None, 11, module(&[section(8, &[0]), section(8, &[0])])),
        case(SectionOrder, None, 11, module(&[section(8, &[0]), section(1, &[1, 0, 0])])),
        in_section(
            SectionOrder,
            Section::Names,
            6,
            &[section(2, &[1, 0, 1, b'a']), section(1, &[1, 0, 1, b'a'])].concat(),
        ),
        in_section(SectionEmpty, Section::Types, 0, &[0]),
        in_section(SectionEmpty, Section::Code, 0, &[0]),
        in_section(SectionEmpty, Section::Lines, 0, &[0]),
        in_section(SectionEmpty, Section::Hints, 0, &[0]),
        in_hints(SectionEmpty, 0, &[0, 0, 0, 0]),
        in_section(SectionEmpty, Section::Names, 0, &[]),
        in_section(SectionEmpty, Section::Names, 2, &section(1, &[0])),
        in_section(SectionEmpty, Section::Names, 4, &section(7, &[1, 0, 0, 0, 0])),
        in_lines(SectionEmpty, 0, &[0, 0, 0, 0]),
        in_section(Length, Section::Start, 1, &[0, 0]),
        in_section(Length, Section::Types, 3, &[1, 0, 0, 9]),
        in_section(Length, Section::Names, 4, &section(0, &[1, b'a', b'b'])),
        in_section(TypeCode, Section::Types, 2, &[1, 1, 0x6e, 0]),
        in_section(TypeCode, Section::Types, 2, &[1, 1, 0x7a, 0]),
        in_section(Tag, Section::Tables, 2, &[1, 0x70, 2, 0]),
        in_section(Tag, Section::Globals, 2, &[1, 0x7f, 2, 0]),
        in_section(Tag, Section::Imports, 3, &[1, 0, 0, 6, 0]),
        in_section(Tag, Section::Exports, 2, &[1, 0, 4, 0]),
        in_section(Tag, Section::Elems, 1, &[1, 3, 0x70, 0, 0]),
        in_section(Tag, Section::Elems, 3, &[1, 0, 0x70, 2, 0]),
        in_section(Tag, Section::Datas, 1, &[1, 2, 0]),
        in_hints(Tag, 4, &[2, 0, 1, 0, 2]),
        in_section(Utf8, Section::Exports, 3, &[1, 2, b'a', 0xff, 0, 0]),
        in_body(Ascending, 8, &[0, 2, 0xff, 0xff, 0xff, 0xff, 0xf, 0, 0, 0, 0, 0]),
        in_section(
            Ascending,
            Section::Names,
            10,
            &section(1, &[2, 0xff, 0xff, 0xff, 0xff, 0xf, 1, b'a', 0, 1, b'b']),
        ),
        in_hints(Ascending, 3, &[2, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xf, 1]),
        in_body(LocalRuns, 1, &[1, 0, 0x7f, 0]),
        in_body(LocalRuns, 3, &[2, 1, 0x7f, 1, 0x7f, 0]),
        in_lines(LineRuns, 4, &[2, 0, 5, 0, 0]),
        in_lines(Range, 2, &[1, 0, 0x7f]),
        in_places(LineSection, 0, None, &[1, 0, 5, 0, 0]),
        in_places(LineSection, 0, Some(&[1, 0, 5]), &[1, 0, 5, 1, 0]),
        in_places(LineRuns, 8, None, &[2, 0, 5, 1, 1, 0, 0, 1, 1]),
        in_section(LineFunc, Section::Lines, 1, &[1, 3, 1, 0, 1]),
        in_section(HintFunc, Section::Hints, 1, &[1, 3, 1, 0, 1]),
        case(CodeCount, None, 12, module(&[section(3, &[1, 0])])),
        in_section(CodeCount, Section::Code, 0, &[1, 2, 0, 0]),
        case(
            CodeCount,
            Some(Section::Code),
            14,
            module(&[section(3, &[1, 0]), section(13, &[2, 2, 0, 0, 2, 0, 0])]),
        ),
    ]
}

#[test]
fn each_rule_is_refused_by_name_and_place() {
    let mut wrong = Vec::new();
    for Case { rule, section, offset, bytes } in cases() {
        let error = match decode(&bytes) {
            Err(error) => error,
            Ok(_) => panic!("accepted, but breaks {rule}: {bytes:02x?}"),
        };
        let found = (error.rule(), error.section(), error.offset());
        if found != (rule, section, offset) {
            wrong.push(format!("{error}, expected {rule} at {offset:#x}: {bytes:02x?}"));
        }
        assert!(error.to_string().contains(error.rule().name()), "{error}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_rule_has_a_case() {
    let cases = cases();
    for &rule in DecodeRule::ALL {
        assert!(cases.iter().any(|case| case.rule == rule), "{rule} has no case");
    }
}

#[test]
fn errors_name_the_limit_that_is_exceeded() {
    let bytes = module(&[section(3, &leb(limits::FUNCS_MAX + 1))]);
    assert_eq!(
        decode(&bytes).expect_err("too many functions").to_string(),
        "byte 0xa, functions section: 1000001 exceeds FUNCS_MAX = 1000000 \
         (rule limit: No count or size exceeds its limit.)"
    );
}

/// Each case differs in one place from a module that decodes.
#[test]
fn the_frames_of_the_cases_are_sound() {
    for sections in [
        vec![section(8, &[0])],
        vec![section(1, &[1, 0, 0])],
        vec![section(14, &section(7, &[1, 0, 1, 0, 1, b'a']))],
        vec![
            section(3, &[1, 0]),
            section(13, &[1, 3, 0, 0, 0]),
            section(15, &[1, 0, 2, 0, 5, 0, 1]),
            section(17, &[1, 0, 2, 0, 1, 0, 0]),
        ],
        vec![section(3, &[1, 0]), section(13, &[1, 6, 2, 1, 0x7f, 1, 0x7e, 0])],
    ] {
        decode(&module(&sections)).expect("nothing is broken here");
    }
}
