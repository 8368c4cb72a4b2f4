//! Budgets are based on the bytes of the input: WebAssembly that grows in translation has the budget of its
//! original size.

use std::fmt::Write;

use slotvm::{Config, Engine, Module, SlotMode, Tier};
use slotvm_filetests::campaign::cost::promised_bytes;

use crate::allocator::METER;

/// A function in which `n_branches` branches keep `n_kept` operands above one that they drop. The branches go
/// to the end of a block, or of the function.
fn keeping(n_kept: usize, n_branches: usize, in_block: bool) -> Vec<u8> {
    let results = " i32".repeat(n_kept);
    let mut text = format!("(module (func (export \"f\") (param i32) (result{results})\n");
    if in_block {
        let _ = writeln!(text, " block (result{results})");
    }
    text.push_str(" local.get 0\n");
    for i in 0..n_kept {
        let _ = writeln!(text, " i32.const {}", i % 64);
    }
    for _ in 0..n_branches {
        text.push_str(" local.get 0 br_if 0\n");
    }
    text.push_str(" return");
    if in_block {
        text.push_str(" end");
    }
    text.push_str("))");
    wat::parse_str(&text).expect("the text is a module")
}

/// Compiles a module. Returns it, or the error if it is refused, and the peak of memory in bytes.
fn compile(bytes: &[u8]) -> (Result<Module, slotvm::Error>, u64) {
    let mut config = Config::new();
    config.tier(Tier::Jit).parallel_compilation(false).verify_passes(false);
    let engine = Engine::new(&config).expect("there is native code");
    (METER.reset)();
    let module = Module::new(&engine, bytes);
    (module, (METER.peak)())
}

#[test]
fn branches_that_keep_operands_cost_by_the_bytes_given() {
    for (n_kept, n_branches) in [(300, 1_700), (1_000, 8_400), (1_000, 11_200), (20, 12_000)] {
        for in_block in [false, true] {
            let bytes = keeping(n_kept, n_branches, in_block);
            let n_bytes = bytes.len();
            let (module, peak) = compile(&bytes);
            let way = match &module {
                Ok(module) => module.functions()[0].work.effort.to_string(),
                Err(error) => panic!("{n_kept} kept {n_branches} times, {n_bytes} bytes: {error}"),
            };
            println!("{n_kept} kept {n_branches} times: {n_bytes} bytes, {peak} of memory, {way}");
            assert!(peak <= promised_bytes(n_bytes), "{peak} bytes of memory for {n_bytes}");
        }
    }
}

/// Functions without code compile in large modules, where each byte adds little to the budget. Nine parameters were
/// once too many, when only the two bytes of the body counted (Yosys has such a function).
#[test]
fn functions_without_code_are_compiled_in_large_modules() {
    let large = format!("(func {})", "nop ".repeat(4 << 20));
    let empty = format!("(func (export \"f\") (param {}))", "i64 ".repeat(9));
    let bytes = wat::parse_str(format!("(module {large} {empty})")).expect("the text is a module");
    for slots in SlotMode::ALL {
        let mut config = Config::new();
        config.tier(Tier::Jit).slots(slots).verify_passes(false);
        let engine = Engine::new(&config).expect("there is native code");
        let module = Module::new(&engine, &bytes);
        assert!(module.is_ok(), "{slots}: {:?}", module.err());
    }
}
