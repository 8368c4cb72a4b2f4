//! Each instruction on integers with two results on edge values, against its definition: as a number, as a condition, and
//! with constants.

use std::fmt::Write;

use slotvm::Val;
use slotvm_bytecode::pairs::{eval, has_flag, is_pair};
use slotvm_bytecode::{Op, ValType};

use crate::engines::{Guest, Setup, candidates};

const EDGES: [i64; 16] = [
    0,
    1,
    -1,
    2,
    3,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    -0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x3333_3333_3333_3333,
    i64::MAX,
    i64::MAX - 1,
    i64::MIN,
    i64::MIN + 1,
];

fn edges(ty: ValType) -> Vec<u64> {
    let mut cells: Vec<u64> = EDGES.iter().map(|&edge| edge as u64).collect();
    if ty == ValType::I32 {
        cells.iter_mut().for_each(|cell| *cell &= 0xffff_ffff);
        cells.sort_unstable();
        cells.dedup();
    }
    cells
}

fn val(ty: ValType, cell: u64) -> Val {
    if ty == ValType::I32 { Val::I32(cell as i32) } else { Val::I64(cell as i64) }
}

fn ops() -> impl Iterator<Item = Op> {
    Op::ALL.iter().copied().filter(|&op| is_pair(op))
}

/// The operands of each case: all pairs of edge values, for four operands with others between.
fn cases(op: Op) -> Vec<[u64; 4]> {
    let params = op.signature().unwrap().params;
    let edges = edges(params[0]);
    let mut cases = Vec::new();
    for (i, &a) in edges.iter().enumerate() {
        for (j, &b) in edges.iter().enumerate() {
            match params.len() {
                2 => cases.push([a, b, 0, 0]),
                _ => {
                    let other = |k: usize| edges[k % edges.len()];
                    cases.extend([
                        [a, other(i + j), b, other(j)],
                        [a, b, other(3 * i), other(i * j)],
                    ]);
                }
            }
        }
    }
    cases
}

fn check(source: &str, calls: &[(String, Op, Vec<u64>, [u64; 2])]) {
    for candidate in &candidates(Setup::default()) {
        let mut guest = Guest::new(candidate, Setup::default(), source);
        for (name, op, args, [first, second]) in calls {
            let ty = op.signature().unwrap().params[0];
            let args: Vec<Val> = args.iter().map(|&cell| val(ty, cell)).collect();
            let outcome = guest.call(name, &args);
            let expected = format!("{first:#x} {second:#x}");
            assert_eq!(outcome, expected, "{name} {args:x?} in {}", candidate.name);
        }
    }
}

/// The text of a function of an operation on its parameters, of which the last may be a constant, that returns both results.
fn function(name: &str, op: Op, constant: Option<(usize, u64)>, is_condition: bool) -> String {
    let signature = op.signature().unwrap();
    let (ty, second) = (signature.params[0], signature.results[1]);
    let n_params = signature.params.len() - usize::from(constant.is_some());
    let list = vec![ty.name(); n_params].join(", ");
    let mut source =
        format!("export \"{name}\" func {name}\nfunc {name}({list}) -> ({ty}, {second}) {{\n");
    let mut param = 0;
    for i in 0..signature.params.len() {
        match constant {
            Some((place, cell)) if place == i => {
                let number = if ty == ValType::I32 { cell as i32 as i64 } else { cell as i64 };
                writeln!(source, "{ty}.const {number}").unwrap();
            }
            _ => {
                writeln!(source, "local.get {param}").unwrap();
                param += 1;
            }
        }
    }
    source += op.mnemonic();
    source += &match is_condition {
        true => format!(" br_if yes i32.const 0 return yes ({ty}): i32.const 1 return }}\n"),
        false => " return }\n".to_owned(),
    };
    source
}

#[test]
fn both_results_are_those_of_the_definition() {
    let (mut source, mut calls) = (String::new(), Vec::new());
    for op in ops() {
        let ways = if has_flag(op) { vec![false, true] } else { vec![false] };
        for is_condition in ways {
            let name = format!("{}.{is_condition}", op.mnemonic());
            source += &function(&name, op, None, is_condition);
            for case in cases(op) {
                let args = case[..op.signature().unwrap().params.len()].to_vec();
                calls.push((name.clone(), op, args, eval(op, case)));
            }
        }
    }
    assert!(calls.len() > 6_000, "{}", calls.len());
    check(&source, &calls);
}

/// The lowering has other code for constants of each sign, on each side.
#[test]
fn constants_as_operands_change_nothing() {
    let (mut source, mut calls) = (String::new(), Vec::new());
    for op in ops() {
        let signature = op.signature().unwrap();
        let edges = edges(signature.params[0]);
        for (k, &constant) in edges.iter().enumerate() {
            for place in 0..signature.params.len() {
                let is_condition = has_flag(op) && (k + place) % 3 != 0;
                let name = format!("{}.{place}.{k}", op.mnemonic());
                source += &function(&name, op, Some((place, constant)), is_condition);
                for &edge in &edges {
                    let mut args = vec![edge; signature.params.len() - 1];
                    if let Some(last) = args.get_mut(1) {
                        *last = edges[k];
                    }
                    let mut operands = args.clone();
                    operands.insert(place, constant);
                    operands.resize(4, 0);
                    let operands = operands.try_into().unwrap();
                    calls.push((name.clone(), op, args, eval(op, operands)));
                }
            }
        }
    }
    assert!(calls.len() > 6_000, "{}", calls.len());
    check(&source, &calls);
}
