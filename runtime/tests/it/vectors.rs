//! Operations on vectors in all forms of the interpreter, with their operands in different places.

use std::fmt::Write;
use std::thread;

use slotvm_bytecode::vector::{self, is_vector_numeric};
use slotvm_bytecode::{Op, ValType};

use crate::forms::{FORMS, Form, store};
use crate::support::{call, func, module};

/// The immediate of an operation, as a number and as text.
fn immediate(op: Op) -> (u128, String) {
    let lanes: [u8; 16] = std::array::from_fn(|i| (i * 7 % 32) as u8);
    match op {
        Op::I8x16Shuffle => {
            let text = lanes.map(|lane| lane.to_string()).join(" ");
            (u128::from_le_bytes(lanes), text)
        }
        _ if op.mnemonic().contains("_lane") => (1, "1".to_owned()),
        _ => (0, String::new()),
    }
}

/// Values for operands. Those of operations on floats are no NaNs, and make none.
fn samples(op: Op, ty: ValType) -> Vec<u128> {
    let takes_floats = ["f32x4", "f64x2"].iter().any(|shape| op.mnemonic().contains(shape));
    match ty {
        ValType::V128 if takes_floats => vec![
            0x4049_0fdb_3fc0_0000_4080_0000_40a0_0000,
            0x4009_21fb_4044_2d18_3ff8_0000_4000_0001,
        ],
        ValType::V128 => vec![
            0x8899_aabb_ccdd_eeff_0011_2233_4455_6677,
            0x0001_7fff_8000_ffff_0403_0201_0f1f_807f,
            0,
        ],
        ValType::I32 => vec![3, 0xffff_fff5],
        ValType::I64 => vec![7, 0x8000_0000_0000_0001],
        ValType::F32 => vec![1.5f32.to_bits().into()],
        _ => vec![2.5f64.to_bits().into()],
    }
}

/// Code that pushes a parameter, after some other code has had it.
fn made(i: usize, ty: ValType, way: usize) -> String {
    let get = format!("local.get {i}");
    match (ty, way) {
        (_, 0) => get,
        (ValType::V128, 1) => format!("{get} v128.not v128.not"),
        (ValType::V128, 2) => format!("i32.const 32 {get} v128.store i32.const 32 v128.load"),
        (ValType::V128, 3) => format!("{get} v128.const i64x2 0 0 i32.const 7 select"),
        (ValType::V128, 4) => format!("v128.const i64x2 0 0 {get} i32.const 0 select"),
        (ValType::V128, _) => format!("{get} v128.const i64x2 0 0 v128.or dup drop"),
        (ValType::I32, _) => format!("{get} i32.const 0 i32.xor"),
        (ValType::I64, _) => format!("{get} i64.const 0 i64.xor"),
        (ValType::F32, _) => format!("{get} f32.const 1.0 f32.mul"),
        (..) => format!("{get} f64.const 1.0 f64.mul"),
    }
}

/// Ways to take the result of an operation `%`; the local for it is `#`. With the last ones, the function returns the
/// exclusive or of the first operand and the result.
fn results(param: ValType, result: ValType) -> Vec<(&'static str, bool)> {
    let mut results = vec![
        ("% return", false),
        ("% local.set # local.get # return", false),
        ("% local.tee # drop local.get # return", false),
    ];
    if (param, result) == (ValType::V128, ValType::V128) {
        results.extend([
            ("% v128.not v128.not return", false),
            ("% local.set 0 local.get 0 return", false),
            ("% local.tee 0 local.set # local.get 0 return", false),
            ("local.get 0 % local.set 0 local.get 0 v128.xor return", true),
            ("local.get 0 % local.tee 0 v128.xor return", true),
            ("% local.get 0 v128.xor return", true),
        ]);
    }
    results
}

fn cells(ty: ValType, value: u128) -> Vec<u64> {
    match ty {
        ValType::V128 => vec![value as u64, (value >> 64) as u64],
        _ => vec![value as u64],
    }
}

/// All combinations of values for operands.
fn combinations(op: Op) -> Vec<Vec<u128>> {
    op.signature().unwrap().params.iter().fold(vec![vec![]], |all, &ty| {
        let with = |value: u128| {
            all.iter().map(move |before| [&before[..], &[value]].concat()).collect::<Vec<_>>()
        };
        samples(op, ty).into_iter().flat_map(with).collect()
    })
}

#[test]
fn operations_give_the_same_wherever_their_operands_lie() {
    let mut n_cases = 0;
    for &op in Op::ALL.iter().filter(|&&op| is_vector_numeric(op)) {
        let signature = op.signature().unwrap();
        let (params, result) = (signature.params, signature.results[0]);
        let (imm, imm_text) = immediate(op);
        let operation = format!("{} {imm_text}", op.mnemonic());
        let list = params.iter().map(|ty| ty.name()).collect::<Vec<_>>().join(", ");
        let (mut source, mut exclusive) = ("memory m 1\n".to_owned(), Vec::new());
        for ways in [[0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 2], [2, 3, 4], [3, 2, 1], [5, 4, 0]] {
            let operands: Vec<String> =
                params.iter().enumerate().map(|(i, &ty)| made(i, ty, ways[i])).collect();
            let operation = format!("{} {operation}", operands.join(" "));
            for (way, is_exclusive) in results(params[0], result) {
                let body = way.replace('%', &operation).replace('#', &params.len().to_string());
                let (n, ty) = (exclusive.len(), result.name());
                writeln!(source, "func f{n}({list}) -> {ty} {{ local {ty} {body} }}").unwrap();
                exclusive.push(is_exclusive);
            }
        }
        let module = module(&source);
        for form in FORMS {
            let mut store = store(form);
            let instance = store.instantiate(module.clone(), &[]).unwrap();
            for operands in combinations(op) {
                let mut padded = [0; 3];
                padded[..operands.len()].copy_from_slice(&operands);
                let value = vector::eval(op, imm, padded);
                let args: Vec<u64> =
                    params.iter().zip(&operands).flat_map(|(&ty, &v)| cells(ty, v)).collect();
                for (i, &is_exclusive) in exclusive.iter().enumerate() {
                    let func = store.instance_func(instance, i as u32);
                    let found = call(&mut store, func, &args).unwrap();
                    let expected = if is_exclusive { value ^ operands[0] } else { value };
                    let line = source.lines().nth(i + 1).unwrap();
                    assert_eq!(found, cells(result, expected), "{form:?}: {line}\n{operands:x?}");
                    n_cases += 1;
                }
            }
        }
    }
    assert!(n_cases > 100_000, "{n_cases}");
}

/// As `forms::handlers_leave_nothing_on_the_stack`, for vectors.
#[test]
fn handlers_of_vectors_leave_nothing_on_the_stack() {
    let loop_of = |code: &str| {
        format!(
            "memory m 1 func f(i32) -> i32 {{ local i32, v128 again: {code} \
             local.get 1 i32.const 1 i32.add local.tee 1 local.get 0 i32.lt_u br_if again \
             local.get 1 return }}"
        )
    };
    let mut codes = vec![
        "i32.const 16 v128.load 1 local.set 2".to_owned(),
        "local.get 1 i32.const 2 i32.shl v128.load local.set 2".to_owned(),
        "local.get 1 i32.const 255 i32.and local.get 2 v128.store".to_owned(),
        "local.get 2 local.get 2 v128.not local.get 1 select local.set 2".to_owned(),
        "v128.const i64x2 1 2 local.set 2".to_owned(),
        "local.get 2 v128.not local.tee 2 local.set 2".to_owned(),
    ];
    for &op in Op::ALL.iter().filter(|&&op| is_vector_numeric(op)) {
        let operand = |&ty: &ValType| match ty {
            ValType::V128 => "local.get 2 ",
            ValType::I32 => "local.get 1 ",
            ValType::I64 => "local.get 1 i64.extend_i32_u ",
            ValType::F32 => "local.get 1 f32.convert_i32_u ",
            _ => "local.get 1 f64.convert_i32_u ",
        };
        let signature = op.signature().unwrap();
        let operands: String = signature.params.iter().map(operand).collect();
        let taken = if signature.results[0] == ValType::V128 { "local.set 2" } else { "drop" };
        codes.push(format!("{operands} {} {} {taken}", op.mnemonic(), immediate(op).1));
    }
    let run = move || {
        for code in &codes {
            let mut store = store(Form::Usual);
            let instance = store.instantiate(module(&loop_of(code)), &[]).unwrap();
            let func = func(&store, instance, "f");
            let n = if code.contains("shl") { 16_000 } else { 100_000 };
            assert_eq!(call(&mut store, func, &[n]).unwrap(), [n], "{code}");
        }
    };
    thread::Builder::new().stack_size(256 << 10).spawn(run).unwrap().join().unwrap();
}
