//! Integers with two results, wherever their operands come from and their results go.

use std::fmt::Write;

use slotvm_bytecode::pairs::{self, has_flag, is_pair};
use slotvm_bytecode::{Op, ValType};

use crate::forms::{FORMS, store};
use crate::support::{call, module};

/// Numbers as cells, with the text of the constants.
fn samples(ty: ValType) -> Vec<(u64, String)> {
    let numbers = [0, 1, -1, 3, 40_000, i64::MIN, i64::MAX, 0x7fff_ffff, 0x8000_0000, 1 << 33];
    let narrow = |n: i64| (u64::from(n as u32), format!("i32.const {}", n as i32));
    let wide = |n: i64| (n as u64, format!("i64.const {n}"));
    match ty {
        ValType::I32 => numbers.map(narrow).into(),
        _ => numbers.map(wide).into(),
    }
}

/// Ways to give an operation its operands: locals, constants, what was just made, and all of these.
fn ways_to_give(ty: ValType, constants: &[String]) -> Vec<String> {
    let made = |i: usize| format!("local.get {i} {ty}.const 0 {ty}.xor");
    let n = constants.len();
    let list =
        |operand: &dyn Fn(usize) -> String| (0..n).map(operand).collect::<Vec<_>>().join(" ");
    let local = |i: usize| format!("local.get {i}");
    vec![
        list(&local),
        list(&|i| constants[i].clone()),
        list(&|i| if i + 1 == n { constants[i].clone() } else { local(i) }),
        list(&|i| if i == 0 { constants[i].clone() } else { local(i) }),
        list(&made),
        list(&|i| if i + 1 == n { made(i) } else { local(i) }),
        list(&|i| if i == 0 { made(i) } else { constants[i].clone() }),
    ]
}

/// Ways to take the results, so that both are returned in the end; `r` and `f` are locals of their types.
fn ways_to_take(op: Op, ty: ValType) -> Vec<String> {
    let name = op.mnemonic();
    let mut ways = vec![
        format!("{name} return"),
        format!("{name} local.set f local.set r local.get r local.get f return"),
        format!("{name} local.tee f drop local.tee r local.get f return"),
        format!("{name} local.set f local.set 0 local.get 0 local.get f return"),
        format!("{name} swap local.set r local.set f local.get r local.get f return"),
    ];
    if has_flag(op) {
        let ends = "i32.const 0 return yes (#): i32.const 1 return".replace('#', ty.name());
        ways.push(format!("{name} br_if yes {ends}"));
        ways.push(format!("{name} i32.eqz i32.eqz br_if yes {ends}"));
        ways.push(format!("{name} local.tee f br_if yes {ends}"));
        ways.push(format!(
            "{name} i32.eqz br_if no i32.const 1 return no ({ty}): i32.const 0 return"
        ));
    }
    ways
}

/// With operands below that are in no cell yet, one of which is an operand.
fn above_others(op: Op, ty: ValType, operands: &str) -> String {
    let name = op.mnemonic();
    format!(
        "local.get 1 i32.const 5 {operands} {name} br_if yes
         local.set r drop local.set 0 local.get r i32.const 0 return
         yes ({ty}, i32, {ty}): local.set r drop drop local.get r i32.const 1 return"
    )
}

/// A body of a function, with the operands that it is called with.
type Case = (Vec<u64>, String);

/// So many of the ways for each pair of numbers.
fn cases(op: Op, n_ways: usize) -> Vec<Case> {
    let params = op.signature().unwrap().params;
    let (ty, numbers) = (params[0], samples(params[0]));
    let mut cases = Vec::new();
    for (i, first) in numbers.iter().enumerate() {
        for (j, last) in numbers.iter().enumerate() {
            let used = match params.len() {
                2 => vec![first, last],
                _ => vec![first, &numbers[(i + j) % numbers.len()], last, &numbers[j / 2]],
            };
            let texts: Vec<String> = used.iter().map(|(_, text)| text.clone()).collect();
            let cells: Vec<u64> = used.iter().map(|(cell, _)| *cell).collect();
            let mut bodies = Vec::new();
            for operands in ways_to_give(ty, &texts) {
                let taken = ways_to_take(op, ty).into_iter();
                bodies.extend(taken.map(|taken| format!("{operands} {taken}")));
                if has_flag(op) {
                    bodies.push(above_others(op, ty, &operands));
                }
            }
            // Others for each pair.
            let first_way = 7 * cases.len() / n_ways;
            for k in 0..n_ways {
                let way = first_way + k * bodies.len() / n_ways;
                cases.push((cells.clone(), bodies[way % bodies.len()].clone()));
            }
        }
    }
    cases
}

/// Checks functions of these bodies, each with so many locals that nothing uses.
fn check(op: Op, cases: &[Case], unused: u32) {
    let signature = op.signature().unwrap();
    let (ty, second) = (signature.params[0], signature.results[1]);
    let list = signature.params.iter().map(|ty| ty.name()).collect::<Vec<_>>().join(", ");
    let padding = if unused > 0 { format!("local {unused} v128") } else { String::new() };
    let mut source = String::new();
    for (i, (_, body)) in cases.iter().enumerate() {
        writeln!(
            source,
            "func f{i}({list}) -> ({ty}, {second}) {{
             local r: {ty}, f: {second}
             {padding}
             {body} }}"
        )
        .unwrap();
    }
    let module = module(&source);
    for form in FORMS {
        let mut store = store(form);
        let instance = store.instantiate(module.clone(), &[]).unwrap();
        for (i, (cells, body)) in (0..).zip(cases) {
            let func = store.instance_func(instance, i);
            let found = call(&mut store, func, cells).unwrap();
            let mut operands = [0; 4];
            operands[..cells.len()].copy_from_slice(cells);
            assert_eq!(found, pairs::eval(op, operands), "{form:?}: {body}\n{cells:#x?}");
        }
    }
}

#[test]
fn both_results_are_right_wherever_they_go() {
    for &op in Op::ALL.iter().filter(|&&op| is_pair(op)) {
        check(op, &cases(op, 8), 0);
    }
}

/// The same where 16 bits cannot name the cells.
#[test]
fn both_results_are_right_in_very_large_frames() {
    for &op in Op::ALL.iter().filter(|&&op| is_pair(op)) {
        // A module has no more than two million locals.
        cases(op, 1).chunks(50).for_each(|cases| check(op, cases, 33_000));
    }
}
