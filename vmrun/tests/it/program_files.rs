//! The files of the programs: the binary beside each source is current, text and binary form are the same
//! module, and damaged binaries are refused or are other modules that are safe to run.

use std::sync::Arc;

use slotvm::{Engine, SlotMode, Tier, Val, ValType};
use slotvm_bytecode::{Module, VerifiedModule, decode, encode, text, verify};

use crate::programs::{self, Program, Running};

fn binary(program: &Program) -> Vec<u8> {
    let path = program.path.with_extension("bc");
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn parse(program: &Program, source: &str) -> Module {
    text::parse(source).unwrap_or_else(|error| panic!("{}: {error}", program.name))
}

#[test]
fn binaries_are_current() {
    let stale: Vec<String> = programs::all()
        .iter()
        .filter(|program| binary(program) != encode(&program.module()))
        .map(|program| format!("vmrun asm programs/{}.vasm", program.name))
        .collect();
    assert!(stale.is_empty(), "these are stale; run\n{}", stale.join("\n"));
}

#[test]
fn binary_to_text_to_binary_is_the_identity() {
    for program in programs::all() {
        let bytes = binary(&program);
        let module = decode(&bytes).unwrap_or_else(|error| panic!("{}: {error}", program.name));
        let printed = text::print(&module).expect("a program can be printed");
        let again = parse(&program, &printed);
        assert!(encode(&again) == bytes, "{} is another module after printing", program.name);
        let second = text::print(&again).expect("a program can be printed");
        assert_eq!(printed, second, "{}", program.name);
    }
}

/// Checks that bytes fail to decode, or decode to a module with no other encoding, which may or may not
/// verify.
fn load(bytes: &[u8]) -> Option<Arc<VerifiedModule>> {
    let module = decode(bytes).ok()?;
    assert_eq!(encode(&module), bytes, "a module has one encoding only");
    verify::verify(module).ok().map(Arc::new)
}

#[test]
fn truncated_binaries_are_errors_or_modules() {
    for program in programs::all() {
        let bytes = binary(&program);
        for len in 0..bytes.len() {
            load(&bytes[..len]);
        }
        assert!(load(&bytes).is_some(), "{} verifies", program.name);
    }
}

/// Runs `main` for a while, if there is one. Any outcome except a panic is fine.
fn run_briefly(engine: &Engine, module: Arc<VerifiedModule>) {
    let Ok(running) = programs::instantiate(engine, &module, Some(20_000)) else { return };
    let Running { mut store, instance, .. } = running;
    let Some(main) = instance.get_func(&store, "main") else { return };
    let ty = main.ty(&store);
    let params: Vec<Val> = ty
        .params
        .iter()
        .map(|&ty| if ty == ValType::I32 { Val::I32(6) } else { Val::default_for(ty) })
        .collect();
    let mut results: Vec<Val> = ty.results.iter().map(|&ty| Val::default_for(ty)).collect();
    let _outcome = main.call(&mut store, &params, &mut results);
}

#[test]
fn flipped_bits_give_errors_or_modules_that_run_or_trap() {
    let engine = programs::engine(Tier::Interpreter, SlotMode::default(), true);
    for name in ["fib_rec", "address_taken", "tail_calls"] {
        let all = programs::all();
        let program = all.iter().find(|program| program.name == name).expect("it exists");
        let mut bytes = binary(program);
        let mut n_valid = 0;
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            if let Some(module) = load(&bytes) {
                n_valid += 1;
                run_briefly(&engine, module);
            }
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(n_valid > 0, "no flipped bit of {name} leaves a valid module");
    }
}
