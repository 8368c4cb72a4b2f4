use slotvm_bytecode::{text, verify};

use super::*;

fn module(source: &str) -> Arc<VerifiedModule> {
    let module = text::parse(source).unwrap_or_else(|error| panic!("{error}"));
    Arc::new(verify(module).unwrap_or_else(|error| panic!("{error}")))
}

/// Reduces a module while its text, which is that of the disassembler, has these parts.
fn reduced(source: &str, parts: &[&str]) -> (String, usize) {
    let print = |module: &VerifiedModule| text::print(module.module()).expect("it can be printed");
    let shows = |module: &Arc<VerifiedModule>| {
        let text = print(module);
        Ok(parts.iter().all(|part| text.contains(part)))
    };
    let exports = ["main".to_owned()].into();
    let mut reducer = Reducer::new(module(source), exports, shows);
    reducer.reduce().expect("no check fails");
    let (module, n_checks) = reducer.finish();
    assert!(n_checks < 500, "{n_checks}");
    (print(&module), n_insts(&module))
}

const SOURCE: &str = r#"
import "env" "print_i32" func print_i32(i32)
memory m 1
table t funcref 2
global g: mut i32 = i32.const 5
data text at i32.const 16 "text"
elem helpers t at i32.const 0 func helper
export "main" func main
export "helper" func helper
func helper(a: i32, b: i32) -> i32 {
  local.get a  local.get b  i32.add  global.get g  i32.mul  return
}
func unused() { return }
func main(n: i32) -> i32 {
  local i: i32
  local sum: i64
again:
  local.get i  local.get n  i32.ge_s  br_if end
  local.get i  i32.const 4  i32.mul  i32.const 7  i32.store 0
  local.get i  local.get n  call helper  call print_i32
  local.get sum  local.get i  i64.extend_i32_s  i64.add  local.set sum
  local.get i  i32.const 1  i32.add  local.set i
  br again
end:
  local.get sum  i64.const 3  i64.div_s  i32.wrap_i64
  return
}
"#;

#[test]
fn an_instruction_is_isolated() {
    let (text, n) = reduced(SOURCE, &["i64.div_s", "export \"main\""]);
    // Two constants, the division, what becomes of it, and the results.
    assert!(n <= 6, "{n} instructions\n{text}");
    for gone in ["helper", "print_i32", "memory", "table", "global", "br"] {
        assert!(!text.contains(gone), "{gone} is still in\n{text}");
    }
}

#[test]
fn instructions_of_two_functions_stay() {
    let (text, n) = reduced(SOURCE, &["i32.store", "global.get", "export \"main\""]);
    assert!(n <= 12, "{n} instructions\n{text}");
    assert!(!text.contains("i64.div_s") && !text.contains("unused"), "{text}");
}

#[test]
fn bodies_read_back_as_they_are_written() {
    let module = module(SOURCE);
    for func in module.n_imported_funcs()..module.n_funcs() {
        let body = Body::of(&module, func);
        let again = body.in_module(&module).expect("it is valid");
        assert_eq!(Body::of(&again, func).items, body.items);
        assert_eq!(again.func(func).expect("it is defined").code, module.func(func).unwrap().code);
    }
}

#[test]
fn branches_keep_their_hints() {
    let module = module(
        "func f(n: i32) { nop l: local.get n .unlikely br_if l local.get n br_if l return }",
    );
    let mut body = Body::of(&module, 0);
    body.items.remove(0);
    let smaller = body.in_module(&module).expect("it is valid");
    let hints = [(2, slotvm_bytecode::BranchHint::Unlikely)];
    assert_eq!(smaller.func(0).expect("it is defined").hints, hints);
}

/// Every opcode can be taken apart and put together.
#[test]
fn operands_are_known_for_every_instruction() {
    let source = include_str!("../../../../vm/tests/text/every_opcode.vasm");
    let module = module(source);
    for func in module.n_imported_funcs()..module.n_funcs() {
        let body = Body::of(&module, func);
        let operands = body.operands(&module);
        for place in 0..body.items.len() {
            let Item::Inst(inst) = &body.items[place] else { continue };
            if inst.ends_block() || !body.reachable()[place] {
                continue;
            }
            let smaller = body.without(place..place + 1, &operands, 0);
            assert!(smaller.in_module(&module).is_some(), "{:?} in function {func}", inst.op);
        }
    }
}
