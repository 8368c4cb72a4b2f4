//! Names of functions, locals and other items survive the import if they are valid.

use slotvm_bytecode::{Module, verify, wasm};
use wasm_encoder::{CustomSection, IndirectNameMap, NameMap, NameSection, Section};

use crate::{binary, import};

const PLAIN: &str = "(module
    (import \"env\" \"host\" (func (param i32)))
    (import \"env\" \"base\" (global i32))
    (memory 1) (table 1 funcref) (global i64 (i64.const 1))
    (data \"d\") (elem funcref)
    (func (param i32 i64) (local f32 f64)) (func) (func))";

/// Imports the module with a name section of these contents at its end.
fn with_section(contents: &[u8]) -> Module {
    let mut bytes = binary(PLAIN);
    let section = CustomSection { name: "name".into(), data: contents.into() };
    section.append_to(&mut bytes);
    let module = wasm::import(&bytes).expect("names cannot make a module invalid");
    verify(module.clone()).expect("verifies");
    module
}

/// Imports the module with a name section.
fn with_names(add: impl FnOnce(&mut NameSection)) -> Module {
    let mut names = NameSection::new();
    add(&mut names);
    with_section(&contents(&names))
}

/// Returns the contents of a name section after its name.
fn contents(names: &NameSection) -> Vec<u8> {
    let mut section = Vec::new();
    names.append_to(&mut section);
    let at = section.windows(5).position(|w| w == b"\x04name").expect("the section has its name");
    section.split_off(at + 5)
}

fn map(names: &[(u32, &str)]) -> NameMap {
    let mut map = NameMap::new();
    for (index, name) in names {
        map.append(*index, name);
    }
    map
}

fn shown(list: &[(u32, String)]) -> Vec<(u32, &str)> {
    list.iter().map(|(index, name)| (*index, name.as_str())).collect()
}

#[test]
fn all_kinds_of_names_survive() {
    let module = import(
        "(module $m
            (import \"env\" \"host\" (func $h (param i32)))
            (import \"env\" \"base\" (global $base i32))
            (memory $mem 1) (table $tab 1 funcref) (global $g i64 (i64.const 1))
            (data $d \"d\") (elem $e funcref)
            (func $f (param $x i32) (param i64) (local $y f32)))",
    );
    let names = &module.names;
    assert_eq!(names.module.as_deref(), Some("m"));
    assert_eq!(shown(&names.funcs), [(0, "h"), (1, "f")]);
    assert_eq!(shown(&names.globals), [(0, "base"), (1, "g")]);
    assert_eq!(shown(&names.memories), [(0, "mem")]);
    assert_eq!(shown(&names.tables), [(0, "tab")]);
    assert_eq!(shown(&names.datas), [(0, "d")]);
    assert_eq!(shown(&names.elems), [(0, "e")]);
    assert_eq!(names.locals.len(), 1);
    assert_eq!(names.locals[0].0, 1);
    assert_eq!(shown(&names.locals[0].1), [(0, "x"), (2, "y")]);
}

#[test]
fn without_names_imports_have_those_of_their_providers() {
    let module = import(PLAIN);
    assert_eq!(shown(&module.names.funcs), [(0, "host")]);
    assert_eq!(shown(&module.names.globals), [(0, "base")]);
    assert!(module.names.locals.is_empty());
}

#[test]
fn equal_names_get_numbers() {
    let module =
        with_names(|names| names.functions(&map(&[(0, "f"), (1, "f"), (2, "f.2"), (3, "f")])));
    assert_eq!(shown(&module.names.funcs), [(0, "f"), (1, "f.2"), (2, "f.2.2"), (3, "f.3")]);
    let module = with_names(|names| {
        let mut locals = IndirectNameMap::new();
        locals.append(1, &map(&[(0, "x"), (1, "x"), (3, "x")]));
        names.locals(&locals);
    });
    assert_eq!(shown(&module.names.locals[0].1), [(0, "x"), (1, "x.2"), (3, "x.3")]);
}

#[test]
fn names_of_what_does_not_exist_and_empty_ones_are_left_out() {
    let module = with_names(|names| {
        names.module("");
        names.functions(&map(&[(1, ""), (2, "f"), (4, "no"), (u32::MAX, "no")]));
        let mut locals = IndirectNameMap::new();
        // Imported functions have no locals.
        locals.append(0, &map(&[(0, "no")]));
        locals.append(1, &map(&[(2, "a"), (4, "no")]));
        locals.append(2, &map(&[(0, "no")]));
        locals.append(9, &map(&[(0, "no")]));
        names.locals(&locals);
        names.memories(&map(&[(0, "m"), (1, "no")]));
    });
    assert_eq!(module.names.module, None);
    assert_eq!(shown(&module.names.funcs), [(0, "host"), (2, "f")]);
    assert_eq!(shown(&module.names.memories), [(0, "m")]);
    assert_eq!(module.names.locals.len(), 1);
    assert_eq!(shown(&module.names.locals[0].1), [(2, "a")]);
}

#[test]
fn a_map_that_is_out_of_order_ends_there() {
    let module = with_names(|names| {
        names.functions(&map(&[(1, "a"), (3, "c"), (2, "b")]));
        names.globals(&map(&[(1, "g")]));
    });
    assert_eq!(shown(&module.names.funcs), [(0, "host"), (1, "a"), (3, "c")]);
    assert_eq!(shown(&module.names.globals), [(0, "base"), (1, "g")]);
}

#[test]
fn a_damaged_section_costs_only_the_names_behind_the_damage() {
    let mut names = NameSection::new();
    names.functions(&map(&[(1, "first"), (2, "second")]));
    names.globals(&map(&[(1, "global")]));
    let whole = contents(&names);
    assert_eq!(shown(&with_section(&whole).names.funcs).len(), 3);
    for len in 0..whole.len() {
        with_section(&whole[..len]);
    }
    for bit in 0..whole.len() * 8 {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        with_section(&flipped);
    }
    // A name that is not valid UTF-8.
    let mut bad = whole.clone();
    let at = bad.windows(6).position(|w| w == b"second").expect("the bytes are present");
    bad[at] = 0xff;
    assert_eq!(shown(&with_section(&bad).names.funcs), [(0, "host"), (1, "first")]);
}

#[test]
fn names_are_cut_at_no_length_that_the_verifier_refuses() {
    let long = "n".repeat(99_990);
    let module = with_names(|names| names.functions(&map(&[(1, &long), (2, &long)])));
    // A name that is too long for a number to be appended is left out.
    assert_eq!(shown(&module.names.funcs), [(0, "host")]);
    let long = "n".repeat(99_900);
    let module = with_names(|names| names.functions(&map(&[(1, &long), (2, &long)])));
    assert_eq!(module.names.funcs[2].1.len(), 99_902);
}

/// The validator repeats names in its messages, which must not contain control characters.
#[test]
fn errors_do_not_control_a_terminal() {
    use slotvm_bytecode::printable::Printable;
    let export = "(export \"\\1b[2J\\0a\\e2\\80\\ae\" (func 0))";
    let error = crate::refuse(&format!("(module (func) {export} {export})")).to_string();
    assert!(error.contains("duplicate export name"), "{error}");
    assert_eq!(error, Printable(&error).to_string());
}
