//! The forms in which the interpreter runs code: with handlers that call each other, with handlers that return to a
//! loop, one instruction after the other for an observer, and for frames whose cells 16 bits cannot name.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use slotvm_bytecode::module::{ConstExpr, ImportKind, Module};
use slotvm_bytecode::{CodeReader, Op, TrapCode, ValType, decode, numeric, verify};
use slotvm_runtime::{Error, Extern, HostFn, InterpreterCode, Store, StoreConfig};

use crate::support::{call, func, module};

/// A form.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Form {
    Usual,
    ByLoop,
    Traced,
}

pub(crate) const FORMS: [Form; 3] = [Form::Usual, Form::ByLoop, Form::Traced];

pub(crate) fn store(form: Form) -> Store {
    store_with(StoreConfig::default(), form)
}

fn store_with(config: StoreConfig, form: Form) -> Store {
    let mut store = Store::new(config, Box::new(()));
    match form {
        Form::Usual => {}
        Form::ByLoop => store.interpret_by_loop(),
        Form::Traced => store.set_trace(Some(Arc::new(|_| {}))),
    }
    store
}

/// Numbers as cells, with the text of the constants.
fn samples(ty: ValType) -> Vec<(u64, String)> {
    let ints = [0, 1, -1, 3, 33, 40_000, i64::MIN, i64::MAX, 0x1234_5678_9abc];
    let floats = [0.0, -0.0, 1.0, -2.5, 3e9, 1e30];
    match ty {
        ValType::I32 => {
            ints.iter().map(|&n| (u64::from(n as u32), format!("i32.const {}", n as i32))).collect()
        }
        ValType::I64 => ints.iter().map(|&n| (n as u64, format!("i64.const {n}"))).collect(),
        ValType::F32 => floats
            .iter()
            .map(|&x| (u64::from((x as f32).to_bits()), format!("f32.const {:?}", x as f32)))
            .collect(),
        _ => floats.iter().map(|&x| (f64::to_bits(x), format!("f64.const {x:?}"))).collect(),
    }
}

/// The text of an instruction that makes a number of a type again, so that the last instruction has made it.
fn remade(ty: ValType) -> &'static str {
    match ty {
        ValType::I32 => "i32.const 0 i32.xor",
        ValType::I64 => "i64.const 0 i64.xor",
        ValType::F32 => "f32.const 1.0 f32.mul",
        _ => "f64.const 1.0 f64.mul",
    }
}

/// Ways to give operands to an operation, and to take its result; `%` is the operation.
fn ways(params: &[ValType], result: ValType, a: &str, b: &str) -> Vec<String> {
    let made = remade(params[0]);
    let (x, y) = ("local.get 0", "local.get 1");
    let operands = match params.len() {
        1 => vec![x.to_owned(), a.to_owned(), format!("{x} {made}")],
        _ => vec![
            format!("{x} {y}"),
            format!("{x} {b}"),
            format!("{a} {y}"),
            format!("{a} {b}"),
            format!("{x} {made} {y}"),
            format!("{x} {made} {b}"),
            format!("{x} {y} {made}"),
            format!("{a} {y} {made}"),
            format!("{x} {made} {y} {made}"),
            format!("{x} {made} local.tee 0 {y}"),
            format!("{x} {made} dup drop {y}"),
        ],
    };
    let mut results = vec![
        "% return".to_owned(),
        "% local.set 2 local.get 2 return".to_owned(),
        "% local.tee 2 drop local.get 2 return".to_owned(),
        format!("% {} return", remade(result)),
        "% dup local.set 2 drop local.get 2 return".to_owned(),
    ];
    if result == ValType::I32 {
        results.push("% br_if yes i32.const 0 return yes: i32.const 1 return".to_owned());
        results.push("% i32.eqz br_if yes i32.const 1 return yes: i32.const 0 return".to_owned());
        results.push("% i32.eqz i32.eqz return".to_owned());
        results.push("% local.set 2 i32.const 1 i32.const 0 local.get 2 select return".to_owned());
    }
    operands.iter().flat_map(|o| results.iter().map(move |r| format!("{o} {r}"))).collect()
}

/// Functions `f0`, `f1` and so on, with operands and the result of an operation on them.
fn functions(op: Op) -> (String, Vec<[u64; 2]>) {
    let signature = op.signature().unwrap();
    let (params, result) = (signature.params, signature.results[0]);
    let list = params.iter().map(|ty| ty.name()).collect::<Vec<_>>().join(", ");
    let (mut source, mut operands) = (String::new(), Vec::new());
    for (i, a) in samples(params[0]).into_iter().enumerate() {
        let bs = params.get(1).map_or(vec![(0, String::new())], |&ty| samples(ty));
        // A third of the pairs.
        for b in bs.into_iter().skip(i % 3).step_by(3) {
            for way in ways(params, result, &a.1, &b.1) {
                let padding = if params.len() == 1 {
                    format!("local {}", params[0].name())
                } else {
                    String::new()
                };
                let body = way.replace('%', op.mnemonic());
                let n = operands.len();
                writeln!(
                    source,
                    "func f{n}({list}) -> {} {{ {padding}\nlocal {}\n{body} }}",
                    result.name(),
                    result.name()
                )
                .unwrap();
                operands.push([a.0, b.0]);
            }
        }
    }
    (source, operands)
}

fn is_nan(ty: ValType, bits: u64) -> bool {
    match ty {
        ValType::F32 => f32::from_bits(bits as u32).is_nan(),
        ValType::F64 => f64::from_bits(bits).is_nan(),
        _ => false,
    }
}

/// Results that only say whether they are zero are the same as these.
fn fits(found: u64, expected: u64, ty: ValType, body: &str) -> bool {
    let is_flag =
        body.contains("br_if") || body.contains("select") || body.contains("i32.eqz i32.eqz");
    match is_flag {
        true => found == u64::from(expected as u32 != 0),
        false => found == expected || is_nan(ty, found) && is_nan(ty, expected),
    }
}

#[test]
fn operations_give_the_same_wherever_their_operands_come_from() {
    let mut n_cases = 0;
    for &op in Op::ALL.iter().filter(|&&op| numeric::is_numeric(op)) {
        let (source, operands) = functions(op);
        let bodies: Vec<&str> = source.split("func ").skip(1).collect();
        let module = module(&source);
        for form in FORMS {
            let mut store = store(form);
            let instance = store.instantiate(module.clone(), &[]).unwrap();
            let n_params = op.signature().unwrap().params.len();
            for (i, (&[a, b], body)) in operands.iter().zip(&bodies).enumerate() {
                let func = store.instance_func(instance, i as u32);
                let found = call(&mut store, func, &[a, b][..n_params]);
                let ty = op.signature().unwrap().results[0];
                let is_right = match (&found, numeric::eval(op, a, b)) {
                    (Ok(cells), Ok(expected)) => fits(cells[0], expected, ty, body),
                    (Err(Error::Trap(trap)), Err(code)) => trap.code == code,
                    _ => false,
                };
                assert!(is_right, "{form:?}: {body}\n{a:#x} {b:#x}: {found:?}");
                n_cases += 1;
            }
        }
    }
    assert!(n_cases > 100_000, "{n_cases}");
}

/// Loops that do an operation 20,000 times.
fn loop_of(op: Op) -> String {
    let signature = op.signature().unwrap();
    let operand = |&ty: &ValType| match ty {
        ValType::I32 => "local.get 1 i32.const 1 i32.or ",
        ValType::I64 => "local.get 1 i64.extend_i32_u i64.const 1 i64.or ",
        ValType::F32 => "local.get 1 f32.convert_i32_u ",
        _ => "local.get 1 f64.convert_i32_u ",
    };
    let operands: String = signature.params.iter().map(operand).collect();
    format!(
        "func f(i32) -> i32 {{ local i32 again: {operands} {} drop \
         local.get 1 i32.const 1 i32.add local.tee 1 local.get 0 i32.lt_u br_if again \
         local.get 1 return }}",
        op.mnemonic()
    )
}

/// A handler of the usual form that leaves 8 bytes on the stack takes more than there is.
#[test]
fn handlers_leave_nothing_on_the_stack() {
    let run = || {
        for &op in Op::ALL.iter().filter(|&&op| numeric::is_numeric(op)) {
            let mut store = store(Form::Usual);
            let instance = store.instantiate(module(&loop_of(op)), &[]).unwrap();
            let func = func(&store, instance, "f");
            assert_eq!(call(&mut store, func, &[100_000]).unwrap(), [100_000], "{op:?}");
        }
    };
    thread::Builder::new().stack_size(512 << 10).spawn(run).unwrap().join().unwrap();
}

#[test]
fn stores_of_all_kinds_share_code_on_all_threads() {
    let source = "func f(i64) -> i64 { local.get 0 i64.eqz br_if end \
                  local.get 0 local.get 0 i64.const 1 i64.sub call f i64.add return \
                  end: i64.const 0 return }";
    let (module, code) = (module(source), InterpreterCode::default());
    let configs = [
        StoreConfig::default(),
        StoreConfig { fuel: Some(1 << 20), ..StoreConfig::default() },
        StoreConfig { stack_cells: Some(1 << 20), ..StoreConfig::default() },
    ];
    thread::scope(|scope| {
        for (config, form) in configs.iter().flat_map(|c| FORMS.map(|form| (c, form))) {
            let (module, code) = (module.clone(), &code);
            scope.spawn(move || {
                for _ in 0..100 {
                    let mut store = store_with(config.clone(), form);
                    let instance = store.instantiate_with(module.clone(), &[], code).unwrap();
                    let func = func(&store, instance, "f");
                    assert_eq!(call(&mut store, func, &[100]).unwrap(), [5050], "{form:?}");
                    // Ten instructions for each call but the last one, which has five.
                    let taken = store.fuel().map(|left| (1 << 20) - left);
                    assert!(taken.is_none_or(|fuel| fuel == 100 * 10 + 5), "{taken:?}");
                }
            });
        }
    });
    // Code that was given with another module is not taken for this one's.
    let other = self::module("func f(i64) -> i64 { local.get 0 return }");
    let mut store = store(Form::Usual);
    let instance = store.instantiate_with(other, &[], &code).unwrap();
    let func = func(&store, instance, "f");
    assert_eq!(call(&mut store, func, &[7]).unwrap(), [7]);
}

/// A program of the repository, with locals added to each function.
fn program(name: &str, more_locals: u32) -> Module {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs").join(name);
    let mut module = decode(&fs::read(path).unwrap()).unwrap();
    if more_locals > 0 {
        for func in &mut module.funcs {
            func.locals.push((more_locals, ValType::V128));
        }
    }
    module
}

/// The constant of a global that has one.
fn constant(expr: &ConstExpr) -> u64 {
    CodeReader::new(&expr.code, 0).read().unwrap().imm.0
}

/// What `main` returns for a size, and what it prints on the way.
fn run(module: Module, size: u64, form: Form) -> (Result<Vec<u64>, TrapCode>, Vec<u64>) {
    let module = Arc::new(verify(module).unwrap());
    let mut store = store(form);
    let log = Arc::new(Mutex::new(Vec::new()));
    let mut imports = Vec::new();
    for import in &module.module().imports {
        let ImportKind::Func(ty, _) = import.kind else { panic!("an import that is no function") };
        let (ty, log) = (module.module().types[ty as usize].clone(), log.clone());
        let f = HostFn::new(move |call| {
            log.lock().unwrap().extend_from_slice(call.cells);
            Ok(())
        });
        imports.push(Extern::Func(store.new_host_func(ty, f).unwrap()));
    }
    let instance = store.instantiate(module, &imports).unwrap();
    let Some(Extern::Func(main)) = store.export(instance, "main") else { panic!("no main") };
    let args = if store.func_type(main).params.is_empty() { vec![] } else { vec![size] };
    let result = call(&mut store, main, &args).map_err(|error| match error {
        Error::Trap(trap) => trap.code,
        error => panic!("{error}"),
    });
    let log = log.lock().unwrap().clone();
    (result, log)
}

#[test]
fn programs_do_the_same_in_every_form() {
    // Those that call little, since frames are zeroed.
    let calm = [
        "sieve",
        "nbody",
        "crc32",
        "collatz",
        "mandelbrot",
        "levenshtein",
        "chacha20",
        "divmod",
        "address_taken",
        "bulk_memory",
        "vtable",
        "swap_loop",
        "stack_only",
        "irreducible",
        "lost_copy",
        "hash_table",
        "fib_iter",
        "matmul",
        "regex",
        "bytecode_vm",
    ];
    for name in calm {
        let file = format!("{name}.bc");
        let size = program(&file, 0).globals.first().map_or(0, |g| constant(&g.init)) / 100 + 1;
        let usual = run(program(&file, 0), size, Form::Usual);
        for form in FORMS {
            assert_eq!(run(program(&file, 0), size, form), usual, "{name} {form:?}");
            assert_eq!(run(program(&file, 33_000), size, form), usual, "{name} {form:?}, far");
        }
    }
}
