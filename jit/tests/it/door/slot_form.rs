//! Functions that are handed over in slot form.

use super::*;
use slotvm::{Bytecode, Config, Tier};
use slotvm_bytecode::text;
use slotvm_ssa::ir::parse::parse;

/// Declares what the functions in slot form are and call.
fn declarations() -> Bytecode {
    text::parse(
        r#"
        memory m 0
        export "sum" func sum
        export "bytecode" func bytecode
        func sum(n: i64) -> i64 { unreachable }
        func bytecode(n: i64) -> i64 { local.get n  call sum  i64.const 1  i64.add  return }"#,
    )
    .unwrap()
}

/// The sum of the numbers up to one, which counts down in a slot; and traps at the end for 13.
const SUM: &str = "
func f0 sum(v0: i64) -> i64 {
  slot s0: i64 = local 0
  slot s1: i64 = local 1
b0:
  slot.set s0, v0
  br b1
b1:
  v1 = slot.get s0
  v2 = i64.eqz v1
  br_if v2, b3, b2
b2:
  v3 = slot.get s1
  v4 = i64.add v3, v1
  slot.set s1, v4
  v5 = i64.const 1
  v6 = i64.sub v1, v5
  slot.set s0, v6
  br b1
b3:
  v7 = slot.get s1
  v8 = i64.const 13
  v9 = i64.sub v0, v8
  v10 = i64.div_s v7, v9
  v11 = i64.mul v10, v9
  return v7
}";

#[test]
fn slot_forms_take_the_place_of_bytecode() {
    for engine in engines() {
        let compiler = Compiler::new(&engine).unwrap();
        let code = compiler.compile_slot_form(declarations(), [parse(SUM).unwrap()]).unwrap();
        let mut context = Context::new(&engine);
        for (name, more) in [("sum", 0), ("bytecode", 1)] {
            let sum: Unary = get(&code, name);
            // SAFETY: the code lives.
            unsafe {
                assert_eq!(sum(&mut context, 100), 5050 + more, "{}", engine.slots());
                assert_eq!(context.status(), 0);
                sum(&mut context, 13);
                assert_eq!(context.status(), status_of(TrapCode::IntegerDivisionByZero));
            }
        }
    }
}

#[test]
fn they_are_verified_first() {
    let compiler = Compiler::new(&Engine::new(Config::new().tier(Tier::BEST)).unwrap()).unwrap();
    let error = |functions: &[&str]| {
        let functions = functions.iter().map(|text| parse(text).unwrap());
        compiler.compile_slot_form(declarations(), functions).unwrap_err().to_string()
    };
    let wrong_type = SUM.replace("v4 = i64.add v3, v1", "v4 = i64.add v3, v2");
    let message = error(&[&wrong_type]);
    assert!(message.contains("function 0, \"sum\": property 12 (operand-types)"), "{message}");
    let elsewhere = SUM.replace("func f0", "func f2");
    assert!(error(&[&elsewhere]).contains("defines no function 2"));
    let other_type = SUM.replace("(v0: i64) -> i64", "(v0: i64) -> i32");
    assert!(error(&[&other_type]).contains("defines no function 0 of the type (i64) -> (i32)"));
    assert_eq!(error(&[SUM, SUM]), "duplicate body for function 0");
}
