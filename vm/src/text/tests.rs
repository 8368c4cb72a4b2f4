//! Tests of the text form as a whole.

use super::*;

/// Every kind of item.
const SAMPLE: &str = include_str!("sample.vasm");

#[test]
fn the_sample_is_assembled() {
    let module = parse(SAMPLE).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(module.imports.len(), 2);
    assert_eq!(module.funcs.len(), 4);
    assert_eq!(module.elems.len(), 4);
    assert_eq!(module.datas[0].bytes, b"hello\0more");
    assert_eq!(module.start, Some(2));
    assert_eq!(module.funcs[2].locals, [(5, crate::ValType::I64), (1, crate::ValType::I32)]);
}

#[test]
fn errors_have_a_place_and_a_suggestion() {
    let error = parse("func fib() {\n  drp\n  call fibb\n}\nfunc fob() {}").unwrap_err();
    assert_eq!((error.line(), error.column()), (2, 3));
    assert_eq!(error.message(), "unknown instruction `drp`");
    assert_eq!(error.diagnostics()[0].help(), Some("did you mean `drop`?"));
}

#[test]
fn the_sample_round_trips() {
    let module = parse(SAMPLE).unwrap_or_else(|error| panic!("{error}"));
    let text = print(&module).unwrap();
    let again = parse(&text).unwrap_or_else(|error| panic!("{text}\n{error}"));
    assert_eq!(again, module);
}
