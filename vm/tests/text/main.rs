//! The text form: it can represent every module with decodable code, and its errors have places.

#[path = "../binary/arbitrary.rs"]
mod arbitrary;
mod errors;
mod printable;
mod syntax;

use std::collections::BTreeSet;

use proptest::prelude::*;
use slotvm_bytecode::text::{self, PrintOptions};
use slotvm_bytecode::{CodeReader, Module, Op, decode, encode, verify};

/// Every opcode and every kind of item.
const EVERY_OPCODE: &str = include_str!("every_opcode.vasm");

/// Assembles a valid text.
fn parse(source: &str) -> Module {
    text::parse(source).unwrap_or_else(|error| panic!("{error}\n{source}"))
}

/// Checks the property of every module with decodable code: it survives conversion to text and back, and so
/// does its binary form.
fn check_round_trip(module: &Module) {
    let bytes = encode(module);
    assert_eq!(decode(&bytes).as_ref(), Ok(module), "only modules that have a binary form matter");
    for offsets in [false, true] {
        let source = text::print_with(module, PrintOptions { offsets }).expect("the code decodes");
        let again = parse(&source);
        assert_eq!(&again, module, "{source}");
        assert_eq!(encode(&again), bytes);
    }
}

/// Returns the module with its types and shapes in the order of first use. Returns `None` if locals after
/// parameters of an unknown type have names.
fn with_tables_of_first_use(module: &Module) -> Option<Module> {
    let source = text::print(module).expect("the code decodes");
    let is_table_line = |line: &str| line.starts_with("type ") || line.starts_with("shape ");
    let lines = source.lines().filter(|line| !is_table_line(line));
    text::parse(&lines.collect::<Vec<_>>().join("\n")).ok()
}

#[test]
fn the_sample_has_every_opcode_verifies_and_round_trips() {
    let module = parse(EVERY_OPCODE);
    let mut ops = BTreeSet::new();
    for func in &module.funcs {
        let mut reader = CodeReader::new(&func.code, 0);
        while !reader.is_at_end() {
            ops.insert(reader.read().expect("the assembler writes code").op);
        }
    }
    let missing: Vec<_> = Op::ALL.iter().filter(|op| !ops.contains(op)).collect();
    assert!(missing.is_empty(), "the sample lacks {missing:?}");
    check_round_trip(&module);
    verify(module).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn the_printed_sample_is_as_readable_as_the_source() {
    let printed = text::print(&parse(EVERY_OPCODE)).expect("the code decodes");
    for line in [
        "import \"env\" \"pair\" func $\"a pair\"(i64) -> (i64, f64)",
        "global counter: mut i64 = i64.const 5",
        "elem callbacks dispatch at i32.const 1 func square, cube, square",
        "func main(n: i64) -> i64 {",
        "  local i: i64, f64, 3 i32, code: i32, $\"ref\": funcref",
        "  br_table [zero, one, zero] other",
        "done(i64):",
        "  call_indirect (i64) -> i64, dispatch",
        "  .line 20",
        "  f64.const -nan:0x8000000000123",
        "  i64.load_indexed 4 8",
    ] {
        assert!(printed.lines().any(|printed| printed == line), "no line `{line}` in\n{printed}");
    }
}

proptest! {
    #[test]
    fn any_printable_module_round_trips(module in printable::module()) {
        check_round_trip(&module);
        if let Some(module) = with_tables_of_first_use(&module) {
            check_round_trip(&module);
        }
    }

    #[test]
    fn whatever_decodes_is_printed_exactly_or_refused(module in arbitrary::module()) {
        if let Ok(source) = text::print(&module) {
            prop_assert_eq!(parse(&source), module);
        }
    }

    #[test]
    fn damaged_texts_never_panic(
        cuts in proptest::collection::vec(
            (any::<prop::sample::Index>(), 0..12usize, any::<prop::sample::Index>(), 0..12usize),
            1..6,
        ),
    ) {
        let mut chars: Vec<char> = EVERY_OPCODE.chars().collect();
        for (to, removed, from, copied) in cuts {
            let from = from.index(chars.len());
            let copy = chars[from..chars.len().min(from + copied)].to_vec();
            let to = to.index(chars.len());
            chars.splice(to..chars.len().min(to + removed), copy);
        }
        survives(&chars.into_iter().collect::<String>());
    }

    #[test]
    fn random_texts_never_panic(source in ".{0,60}\\PC{0,60}") {
        survives(&source);
        survives(&format!("func f() {{\n{source}\n}}"));
    }

    #[test]
    fn random_words_never_panic(
        words in proptest::collection::vec(prop::sample::select(WORDS), 0..60),
    ) {
        survives(&words.join(" "));
        survives(&format!("func f(a: i64) {{ {} }}", words.join("\n")));
    }
}

/// Fragments from which texts are made.
const WORDS: &[&str] = &[
    "module",
    "type",
    "shape",
    "import",
    "memory",
    "table",
    "global",
    "frame_stack",
    "data",
    "elem",
    "export",
    "start",
    "func",
    "name",
    "local",
    "label",
    "mut",
    "at",
    "declared",
    ".line",
    "i64",
    "funcref",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "=",
    "#",
    "->",
    "0",
    "1",
    "2",
    "-1",
    "4294967295",
    "1.5",
    "nan",
    "a",
    "b",
    "$\"c d\"",
    "\"s\"",
    "'x'",
    "br",
    "br_table",
    "br_keep",
    "call",
    "call_indirect",
    "i64.const",
    "f32.const",
    "i32.load",
    "i32.load_indexed",
    "memory.copy",
    "table.init",
    "ref.null",
    "local.get",
    "drop",
];

/// Any text yields a module, or an error that can be displayed.
fn survives(source: &str) {
    match text::parse(source) {
        Ok(module) => {
            let printed = text::print(&module).expect("the assembler writes code");
            assert_eq!(parse(&printed), module);
        }
        Err(error) => {
            assert!(error.line() >= 1 && error.column() >= 1);
            assert!(error.line() <= source.split('\n').count());
            assert!(error.to_string().contains(&format!(":{}:", error.line())), "{error}");
        }
    }
}
