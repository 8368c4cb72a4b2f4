//! Branch hints from `metadata.code.branch_hint`.

use slotvm_bytecode::module::BranchHint::{self, Likely, Unlikely};
use slotvm_bytecode::wasm;
use wasm_encoder::{CustomSection, Encode, Section};
use wasmparser::{Operator, Parser, Payload};

use crate::{binary, flat, import, load_lazily};

/// Two functions: one with hints at all three of its branches, one without any.
const WAT: &str = r#"(module
    (import "m" "f" (func $imported))
    (func (export "f") (param i32) (local i64 f32)
        block
            local.get 0
            (@metadata.code.branch_hint "\00") br_if 0
            local.get 0
            (@metadata.code.branch_hint "\01") if call $imported else nop end
            local.get 0
            (@metadata.code.branch_hint "\00") if call $imported end
        end)
    (func (param i32) block local.get 0 br_if 0 call $imported end))"#;

#[test]
fn branches_have_their_hints_and_an_if_the_opposite() {
    let module = import(WAT);
    let hints: Vec<BranchHint> = module.funcs[0].hints.iter().map(|&(_, hint)| hint).collect();
    assert_eq!(hints, [Unlikely, Unlikely, Likely]);
    let flat = flat(&module);
    let conditions = [
        "local.get 0; .unlikely; br_if ",
        "i32.eqz; .unlikely; br_if ",
        "i32.eqz; .likely; br_if ",
    ];
    let counts = conditions.map(|condition| flat.matches(condition).count());
    assert_eq!(counts, [1; 3], "{flat}");
    assert!(module.funcs[1].hints.is_empty());
}

#[test]
fn a_branch_that_drops_operands_keeps_its_hint() {
    let module = import(
        r#"(module (func (param i32) (result i64)
            block (result i64)
                f32.const 1
                i64.const 2
                local.get 0
                (@metadata.code.branch_hint "\01") br_if 0
                drop drop
                i64.const 3
            end))"#,
    );
    assert_eq!(module.funcs[0].hints.len(), 1);
    assert_eq!(module.funcs[0].hints[0].1, Likely);
}

/// A module of one imported function and of two functions with a branch each, and the offset of each branch in its body.
fn plain() -> (Vec<u8>, Vec<u32>) {
    let bytes = binary(
        r#"(module (import "m" "f" (func))
            (func (param i32) (local i64) block local.get 0 br_if 0 call 0 end)
            (func (param i32) block local.get 0 br_if 0 call 0 end))"#,
    );
    let mut branches = Vec::new();
    for payload in Parser::new(0).parse_all(&bytes) {
        let Payload::CodeSectionEntry(body) = payload.unwrap() else { continue };
        for operator in body.get_operators_reader().unwrap().into_iter_with_offsets() {
            let (operator, offset) = operator.unwrap();
            if let Operator::BrIf { .. } = operator {
                branches.push((offset - body.range().start) as u32);
            }
        }
    }
    (bytes, branches)
}

/// The contents of a section with these hints, by function.
fn contents(funcs: &[(u32, &[(u32, u8)])]) -> Vec<u8> {
    let mut out = Vec::new();
    (funcs.len() as u32).encode(&mut out);
    for (func, hints) in funcs {
        func.encode(&mut out);
        (hints.len() as u32).encode(&mut out);
        for (offset, taken) in *hints {
            offset.encode(&mut out);
            out.extend([1, *taken]);
        }
    }
    out
}

/// Inserts custom sections before the section with an id, or appends them.
fn with_sections(bytes: &[u8], before: Option<u8>, sections: &[&[u8]]) -> Vec<u8> {
    let mut at = 8;
    while before.is_some_and(|id| bytes[at] != id) {
        // The sections of these modules are shorter than 128 bytes.
        at += 2 + usize::from(bytes[at + 1]);
    }
    let mut inserted = Vec::new();
    for data in sections {
        let name = "metadata.code.branch_hint".into();
        CustomSection { name, data: (*data).into() }.append_to(&mut inserted);
    }
    match before {
        Some(_) => [&bytes[..at], &inserted, &bytes[at..]].concat(),
        None => [bytes, &inserted].concat(),
    }
}

const CODE: Option<u8> = Some(10);

/// The hints of the two functions, the same if functions are made later, and in several threads.
fn hints(bytes: &[u8]) -> Vec<Vec<BranchHint>> {
    let module = wasm::import(bytes).expect("hints cannot make a module invalid");
    assert_eq!(load_lazily(bytes).unwrap().completed().module(), &module);
    assert_eq!(wasm::import_in_parallel(bytes).as_ref(), Ok(&module));
    module.funcs.iter().map(|func| func.hints.iter().map(|&(_, hint)| hint).collect()).collect()
}

#[test]
fn offsets_count_from_the_start_of_the_body() {
    let (bytes, branches) = plain();
    let both = contents(&[(1, &[(branches[0], 0)]), (2, &[(branches[1], 1)])]);
    assert_eq!(hints(&with_sections(&bytes, CODE, &[&both])), [[Unlikely], [Likely]]);
    let second = contents(&[(2, &[(branches[1], 0)])]);
    assert_eq!(hints(&with_sections(&bytes, CODE, &[&second])), [vec![], vec![Unlikely]]);
    // Of two sections the first one counts, and none after the code.
    assert_eq!(hints(&with_sections(&bytes, CODE, &[&second, &both])), [vec![], vec![Unlikely]]);
    assert_eq!(hints(&with_sections(&bytes, None, &[&both])), [vec![], vec![]]);
}

#[test]
fn a_hint_elsewhere_is_left_out_alone() {
    let (bytes, branches) = plain();
    let at = branches[0];
    let section = contents(&[(1, &[(at - 1, 0), (at, 1), (at + 1, 0)]), (2, &[(branches[1], 0)])]);
    assert_eq!(hints(&with_sections(&bytes, CODE, &[&section])), [[Likely], [Unlikely]]);
    let unreachable = binary(
        r#"(module (func block unreachable i32.const 0
            (@metadata.code.branch_hint "\00") br_if 0 end))"#,
    );
    assert_eq!(hints(&unreachable), [vec![]]);
}

#[test]
fn malformed_sections_are_left_out() {
    let (bytes, branches) = plain();
    let [first, second] = branches[..] else { unreachable!("there are two") };
    let good = contents(&[(1, &[(first, 0)]), (2, &[(second, 1)])]);
    assert_eq!(hints(&with_sections(&bytes, CODE, &[&good])), [[Unlikely], [Likely]]);
    let mut malformed = vec![
        // Functions or offsets out of order, or twice.
        contents(&[(2, &[(second, 1)]), (1, &[(first, 0)])]),
        contents(&[(1, &[(first, 0)]), (1, &[(first, 0)])]),
        contents(&[(1, &[(first, 0), (first, 0)])]),
        contents(&[(1, &[(first, 0), (first - 1, 0)])]),
        // An imported function, and one that does not exist.
        contents(&[(0, &[(0, 0)]), (1, &[(first, 0)])]),
        contents(&[(1, &[(first, 0)]), (3, &[(second, 0)])]),
        // Beyond the end of the body, and of everything.
        contents(&[(1, &[(first, 0), (100, 0)])]),
        contents(&[(1, &[(first, 0), (u32::MAX, 0)])]),
        // Another value, and another length of a value.
        contents(&[(1, &[(first, 0)]), (2, &[(second, 2)])]),
        good.iter().map(|&byte| if byte == 1 { 2 } else { byte }).collect(),
        // Bytes behind the last entry, and more functions or hints than there are bytes for.
        [&good[..], &[0]].concat(),
        vec![0xff, 0xff, 0xff, 0xff, 0x0f],
        vec![1, 1, 0xff, 0xff, 0xff, 0xff, 0x0f],
    ];
    // Cut off anywhere.
    malformed.extend((0..good.len()).map(|n| good[..n].to_vec()));
    for section in malformed {
        let bytes = with_sections(&bytes, CODE, &[&section]);
        assert_eq!(hints(&bytes), [vec![], vec![]], "{section:02x?}");
    }
}
