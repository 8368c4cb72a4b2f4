use std::fmt::Write;

use slotvm_bytecode::{TrapCode, VerifiedModule};

use super::*;
use crate::construction::build::BuildOptions;
use crate::ir::eval::{HostCall, Imports, Machine, Options, Trap};
use crate::ir::verify::effects::Effects;
use crate::ir::verify::{Form, verify};
use crate::tools::samples::{module, slot_form};
use crate::tools::testing::Rng;

/// The last function of a module in SSA form before and after the pass, which is checked.
fn forwarded(module: &VerifiedModule) -> (Function, Function, ForwardReport) {
    let mut f = slot_form(module, module.n_funcs() - 1, &BuildOptions::default());
    promote(&mut f, &mut Scratch::default());
    let before = f.clone();
    let effects = Effects::of(&f);
    let report = forward(&mut f);
    verify(&f, Form::Ssa, module).unwrap_or_else(|violation| panic!("{violation}\n{f}"));
    effects.check(&f).unwrap_or_else(|violation| panic!("{violation}\n{f}"));
    assert_eq!(f.slots, before.slots);
    (before, f, report)
}

/// Runs a function as the only one of a module. Returns its end, and the memory. The host counts in the memory.
fn run(module: &VerifiedModule, f: &Function, arg: u128) -> (Result<Vec<u128>, Trap>, Vec<u8>) {
    let host = Box::new(|call: HostCall<'_>| {
        call.memory[0] = call.memory[0].wrapping_add(1);
        Ok::<_, TrapCode>(vec![])
    });
    let options = Options { polls: Some(500), ..Options::default() };
    let imports = Imports { host, globals: Vec::new() };
    let mut machine = Machine::new(module, vec![f.clone()], imports, options);
    machine.instantiate().expect("the module instantiates");
    let end = machine.call(module.n_funcs() - 1, &[arg]);
    (end, machine.memory().to_vec())
}

pub(super) fn check_same(source: &str) -> ForwardReport {
    check_same_for(source, &[0, 1, 5])
}

/// Checks that the last function does the same with each argument after the pass, traps and memory included.
pub(super) fn check_same_for(source: &str, args: &[u128]) -> ForwardReport {
    let module = module(source);
    let (before, after, report) = forwarded(&module);
    for &arg in args {
        assert_eq!(run(&module, &after, arg), run(&module, &before, arg), "{source}\n{after}");
    }
    report
}

/// A function whose loop runs `n` rounds of the body.
fn in_loop(body: &str, result: &str) -> String {
    format!(
        "import \"env\" \"host\" func host()
        memory m 1
        frame_stack 1024 1024
        func f(n: i32) -> i32 {{
          local a: i32, b: i32, p: i32
        again:
          {body}
          local.get n  i32.const 1  i32.sub  local.tee n
          i32.const 0  i32.gt_s  br_if again
          {result}  return
        }}"
    )
}

const COUNT: &str = "i32.const 8  i32.const 8  i32.load 0  local.get n  i32.add  i32.store 0";

#[test]
fn a_counter_in_memory_becomes_a_value() {
    // The load in the first round stays.
    let source = in_loop(COUNT, "i32.const 8  i32.load 0");
    let report = check_same(&source);
    assert_eq!((report.n_places, report.n_loads), (1, 1));
    let source = source.replace("again:", "i32.const 8  i32.const 0  i32.store 0\nagain:");
    let report = check_same(&source);
    assert_eq!((report.n_places, report.n_loads), (1, 2));
}

#[test]
fn a_frame_starts_as_zero() {
    let body = "local.addr a  drop  local.addr a  i32.const 0  i32.add  local.set p
        local.get p  local.get p  i32.load 0  local.get n  i32.add  i32.store 0";
    let source = in_loop(body, "local.get p  i32.load 0");
    let report = check_same(&source);
    assert_eq!(report.n_places, 1, "{report:?}");
    assert!(report.n_loads >= 2, "{report:?}");
}

/// Writes that may overlap a place leave its content unknown.
#[test]
fn writes_that_may_overlap_are_seen() {
    for other in [
        "call host",
        "i32.const 9  i32.const 7  i32.store8 0",
        "local.get n  i32.const 3  i32.store 4",
        "i32.const 8  i32.const 8  i32.const 1  memory.fill",
        "i32.const 0  local.get n  i32.const 5  i32.store_indexed 4",
        "i32.const 4  i64.const 5  i64.store 0",
    ] {
        let source = in_loop(&format!("{COUNT}  {other}"), "i32.const 8  i32.load 0");
        let source = source.replace("again:", "i32.const 8  i32.const 0  i32.store 0\nagain:");
        assert_eq!(check_same(&source).n_loads, 0, "{other}");
    }
    for other in
        ["i32.const 12  i32.const 7  i32.store8 0", "i32.const 4  i32.const 7  i32.store 0"]
    {
        let source = in_loop(&format!("{COUNT}  {other}"), "i32.const 8  i32.load 0");
        assert_eq!(check_same(&source).n_loads, 1, "{other}");
    }
}

/// The address changes from round to round, so an earlier load was from another place.
#[test]
fn a_place_is_unknown_when_its_address_changes() {
    let body = "local.get p  i32.const 4  i32.add  local.set p
        local.get p  local.get p  i32.load 0  i32.const 1  i32.add  i32.store 0
        local.get b  local.get p  i32.load 0  i32.add  local.set b";
    let report = check_same(&in_loop(body, "local.get b"));
    assert_eq!(report.n_loads, 1);
}

fn random_address(rng: &mut Rng) -> String {
    match rng.below(5) {
        0 => "local.get p".to_owned(),
        1 => "local.addr a  i32.const 0  i32.add".to_owned(),
        2 => "local.addr b  i32.const 0  i32.add".to_owned(),
        _ => format!("i32.const {}", [8, 12, 10, 1992][rng.below(4) as usize]),
    }
}

fn random_statement(rng: &mut Rng, text: &mut String) {
    let offset = rng.below(3) * 2;
    let (address, value) = (random_address(rng), random_address(rng));
    match rng.below(9) {
        0 | 1 => writeln!(text, "{address}  local.get sum  i32.store {offset}"),
        2 => writeln!(text, "{address}  i64.const {}  i64.store 0", rng.below(1000)),
        3 => writeln!(text, "{address}  local.get n  i32.store8 {offset}"),
        4 => writeln!(text, "call host"),
        5 => writeln!(text, "{value}  i32.const 2044  i32.and  local.set p"),
        _ => writeln!(text, "{address}  i32.load {offset}  local.get sum  i32.add  local.set sum"),
    }
    .unwrap();
}

#[test]
fn random_functions_do_the_same() {
    let mut rng = Rng(7);
    let mut n_loads = 0;
    for _ in 0..1_500 {
        let mut body = String::new();
        body.push_str("nop\n");
        for block in 0..3 {
            for _ in 0..rng.below(6) {
                random_statement(&mut rng, &mut body);
            }
            if rng.one_in(2) {
                writeln!(body, "local.get n  i32.const 1  i32.and  br_if l{block}").unwrap();
                random_statement(&mut rng, &mut body);
            }
            writeln!(body, "l{block}: nop").unwrap();
        }
        let source = in_loop(&body, "local.get sum");
        n_loads += check_same(&source.replace("p: i32\n", "p: i32, sum: i32\n")).n_loads;
    }
    assert!(n_loads > 200, "{n_loads}");
}
