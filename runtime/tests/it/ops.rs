//! Every instruction, on its own.

use std::sync::{Arc, Mutex};

use slotvm_bytecode::{Op, ValType, numeric};
use slotvm_runtime::{Error, StoreConfig};

use crate::support::{Program, i32};

/// Cells that are interesting for a type.
fn samples(ty: ValType) -> Vec<u64> {
    let f32s = [0.0, -0.0, 1.0, -1.5, 0.5, 3e9, -1e30, f32::INFINITY, f32::MIN_POSITIVE, f32::NAN];
    let f64s = [0.0, -0.0, 1.0, -2.5, 0.5, 3e9, 1e300, f64::NEG_INFINITY, 1.8e19, f64::NAN];
    match ty {
        ValType::I32 => [0, 1, -1, 7, 31, 32, i32::MIN, i32::MAX, 0x1234_5678].map(i32).to_vec(),
        ValType::I64 => {
            vec![0, 1, u64::MAX, 7, 63, 64, 1 << 63, (1 << 63) - 1, 0x1234_5678_9abc_def0]
        }
        ValType::F32 => f32s.map(|x: f32| x.to_bits().into()).to_vec(),
        ValType::F64 => f64s.map(f64::to_bits).to_vec(),
        ValType::FuncRef | ValType::ExternRef | ValType::Ref => vec![0],
        ValType::V128 => unreachable!("these are operations on single numbers"),
    }
}

#[test]
fn numeric_instructions_do_what_their_semantics_say() {
    let mut n_cases = 0;
    for canonical_nans in [false, true] {
        for &op in Op::ALL.iter().filter(|&&op| numeric::is_numeric(op)) {
            let signature = op.signature().unwrap();
            let (params, result) = (signature.params, signature.results[0]);
            let list = params.iter().map(|ty| ty.name()).collect::<Vec<_>>().join(", ");
            let gets = (0..params.len()).map(|i| format!("local.get {i} ")).collect::<String>();
            let source =
                format!("func f({list}) -> {result} {{ {gets} {} return }}", op.mnemonic());
            let config = StoreConfig { canonical_nans, ..StoreConfig::default() };
            let mut program = Program::with(config, &source);
            let bs = params.get(1).map_or(vec![0], |&ty| samples(ty));
            for a in samples(params[0]) {
                for &b in &bs {
                    let mut expected = numeric::eval(op, a, b);
                    if canonical_nans {
                        expected = expected.map(|bits| numeric::canonical_nan(op, bits));
                    }
                    let found = match program.call("f", &[a, b][..params.len()]) {
                        Ok(cells) => Ok(cells[0]),
                        Err(Error::Trap(trap)) => Err(trap.code),
                        Err(error) => panic!("{error}"),
                    };
                    assert_eq!(found, expected, "{op:?} {a:#x} {b:#x}");
                    n_cases += 1;
                }
            }
        }
    }
    assert!(n_cases > 10_000);
}

#[test]
fn canonical_nans() {
    let source = "func f(a: f64, b: f64) -> f64 { local.get a local.get b f64.mul return }
         func neg(a: f64) -> f64 { local.get a f64.neg return }";
    let config = StoreConfig { canonical_nans: true, ..StoreConfig::default() };
    let mut program = Program::with(config, source);
    let odd = 0xfff8_0000_0000_1234;
    assert_eq!(program.call("f", &[odd, 0]).unwrap(), [0x7ff8_0000_0000_0000]);
    assert_eq!(program.call("neg", &[odd]).unwrap(), [0x7ff8_0000_0000_1234]);
}

#[test]
fn loads_and_stores_move_the_bytes_that_they_say() {
    let scalar = Op::ALL.iter().filter(|op| !op.is_vector());
    let accesses: Vec<_> = scalar.filter_map(|op| Some((*op, op.access()?))).collect();
    assert_eq!(accesses.len(), 46);
    for (op, access) in accesses {
        let (name, ty, bytes) = (op.mnemonic(), access.ty, access.bytes as usize);
        let address = if access.indexed { "local.get 0 local.get 1" } else { "local.get 0" };
        let imm = if access.indexed { "4 3" } else { "3" };
        let source = match access.store {
            true => format!(
                "memory 0 1 func f(i32, i32, {ty}) {{ {address} local.get 2 {name} {imm} return }}"
            ),
            false => {
                format!("memory 0 1 func f(i32, i32) -> {ty} {{ {address} {name} {imm} return }}")
            }
        };
        let mut program = Program::new(&source);
        let memory = program.store.instance_memory(program.instance).unwrap();
        let place = if access.indexed { 100 + 5 * 4 + 3 } else { 100 + 3 };
        let pattern = [0x81, 0x92, 0xa3, 0xb4, 0xc5, 0xd6, 0xe7, 0xf8];
        let data = program.store.memory_data_mut(memory);
        if access.store {
            data.fill(0x55);
            let value =
                u64::from_le_bytes(pattern) & if ty.bytes() == 4 { 0xffff_ffff } else { !0 };
            program.call("f", &[100, 5, value]).unwrap();
            let mut expected = vec![0x55; 65536];
            expected[place..place + bytes].copy_from_slice(&pattern[..bytes]);
            assert!(program.store.memory(memory).data() == expected, "{op:?}");
        } else {
            data[place..place + 8].copy_from_slice(&pattern);
            // All of the bytes have their top bit set.
            let mut expected = [if access.signed { 0xff } else { 0 }; 8];
            expected[..bytes].copy_from_slice(&pattern[..bytes]);
            let mut expected = u64::from_le_bytes(expected);
            if ty.bytes() == 4 {
                expected &= 0xffff_ffff;
            }
            assert_eq!(program.call("f", &[100, 5]).unwrap(), [expected], "{op:?}");
        }
    }
}

#[test]
fn stack_shuffles() {
    let mut program = Program::new(
        "func drop(a: i64, b: i64) -> i64 { local.get a local.get b drop return }
         func dup(a: i64) -> (i64, i64) { local.get a dup return }
         func swap(a: i64, b: i32) -> (i32, i64) { local.get a local.get b swap return }
         func over(a: i64, b: i32) -> (i64, i32, i64) { local.get a local.get b over return }
         func rot(a: i64, b: i32, c: f32) -> (i32, f32, i64) {
           local.get a local.get b local.get c rot return }
         func select(a: f64, b: f64, c: i32) -> f64 {
           local.get a local.get b local.get c select return }
         func nop(a: i64) -> i64 { nop local.get a nop return }",
    );
    assert_eq!(program.call("drop", &[1, 2]).unwrap(), [1]);
    assert_eq!(program.call("dup", &[1]).unwrap(), [1, 1]);
    assert_eq!(program.call("swap", &[1, 2]).unwrap(), [2, 1]);
    assert_eq!(program.call("over", &[1, 2]).unwrap(), [1, 2, 1]);
    assert_eq!(program.call("rot", &[1, 2, 3]).unwrap(), [2, 3, 1]);
    assert_eq!(program.call("select", &[1, 2, 5]).unwrap(), [1]);
    assert_eq!(program.call("select", &[1, 2, 0]).unwrap(), [2]);
    assert_eq!(program.call("nop", &[1]).unwrap(), [1]);
}

#[test]
fn constants_locals_and_references() {
    let mut program = Program::new(
        "func constants() -> (i32, i64, f32, f64) {
           i32.const -1 i64.const -1 f32.const -0.0 f64.const nan:0x123 return }
         func tee(a: i64) -> (i64, i64) { local b: i64
           local.get a i64.const 1 i64.add local.tee b local.get b return }
         func null() -> (i32, i32, externref) {
           ref.null funcref ref.is_null ref.func null ref.is_null ref.null externref return }
         elem e declared func null",
    );
    assert_eq!(
        program.call("constants", &[]).unwrap(),
        [0xffff_ffff, u64::MAX, 0x8000_0000, 0x7ff0_0000_0000_0123]
    );
    assert_eq!(program.call("tee", &[4]).unwrap(), [5, 5]);
    assert_eq!(program.call("null", &[]).unwrap(), [1, 0, 0]);
}

#[test]
fn branches() {
    let mut program = Program::new(
        "func if(c: i32) -> i64 { local.get c br_if yes i64.const 1 return yes: i64.const 2 return }
         func table(i: i32) -> i64 {
           i64.const 7 local.get i br_table [a, b, a] c
         a(i64): i64.const 1 i64.add return
         b(i64): i64.const 2 i64.add br a
         c(i64): i64.const 9 i64.add return }
         func into_a_loop(n: i64, inside: i32) -> i64 { local sum: i64
           local.get inside br_if middle
         top: local.get sum i64.const 100 i64.add local.set sum
         middle: local.get sum local.get n i64.add local.set sum
           local.get n i64.const 1 i64.sub local.tee n i64.const 0 i64.gt_s br_if top
           local.get sum return }",
    );
    assert_eq!(program.call("if", &[0]).unwrap(), [1]);
    assert_eq!(program.call("if", &[8]).unwrap(), [2]);
    let results = [0, 1, 2, 3, 4, i32(-1)].map(|i| program.call("table", &[i]).unwrap()[0]);
    assert_eq!(results, [8, 10, 8, 16, 16, 16]);
    assert_eq!(program.call("into_a_loop", &[3, 0]).unwrap(), [306]);
    assert_eq!(program.call("into_a_loop", &[3, 1]).unwrap(), [206]);
}

#[test]
fn a_trace_shows_each_instruction_with_its_operands() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let log = lines.clone();
    // Charges for fuel are no instructions.
    let mut program = Program::with(
        crate::support::fuel(1000),
        "func f(a: i64) -> i64 { local.get a i64.const 5 call g return }
         func g(a: i64, b: i64) -> i64 { local c: i64
           local.get a local.get b i64.sub i64.eqz br_if zero i64.const 3 return
         zero: i64.const 4 return }",
    );
    program.store.set_trace(Some(Arc::new(move |event| {
        let (depth, mnemonic) = (event.depth, event.inst.op.mnemonic());
        let (name, offset) = (event.module.func_name(event.func), event.offset);
        let line = format!("{depth} {name} {offset} {mnemonic} {:?}", event.stack);
        log.lock().unwrap().push(line);
    })));
    assert_eq!(program.call("f", &[7]).unwrap(), [3]);
    program.store.set_trace(None);
    assert_eq!(program.call("f", &[5]).unwrap(), [4]);
    assert_eq!(
        *lines.lock().unwrap(),
        [
            "0 f 0 local.get []",
            "0 f 2 i64.const [7]",
            "0 f 4 call [7, 5]",
            "1 g 0 local.get []",
            "1 g 2 local.get [7]",
            "1 g 4 i64.sub [7, 5]",
            "1 g 5 i64.eqz [2]",
            "1 g 6 br_if [0]",
            "1 g 8 i64.const []",
            "1 g 10 return [3]",
            "0 f 6 return [3]",
        ]
    );
}
