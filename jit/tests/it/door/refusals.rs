//! Inputs that C functions cannot be made of.

use super::*;
use slotvm::{Error, Tier};

fn error(source: &str) -> String {
    let compiler = Compiler::new(&Engine::new(Config::new().tier(Tier::BEST)).unwrap()).unwrap();
    compiler.compile_text(source).unwrap_err().to_string()
}

#[test]
fn modules_that_need_an_instance_are_refused() {
    for (source, what) in [
        ("global g: i64 = i64.const 1", "globals"),
        ("import \"env\" \"g\" global g: i64", "globals"),
        ("table t funcref 1", "tables"),
        ("memory m 1\n data d at i32.const 0 \"x\"", "data segments"),
        ("start f\n func f() { return }", "a start function"),
        ("memory m 1\n frame_stack 0 64", "a frame stack"),
    ] {
        let message = error(source);
        assert!(message.contains(&format!("a module with {what}")), "{source}: {message}");
    }
    let message = error("export \"f\" func f\n func f() -> funcref { ref.func f  return }");
    assert!(message.contains("\"f\" has `ref.func`"), "{message}");
    let message = error("func f(v: v128) -> i32 { local.get v  v128.any_true  return }");
    assert!(
        message.contains("\"f\" has type (v128) -> (i32); C functions have no SIMD types"),
        "{message}"
    );
}

#[test]
fn imports_must_be_defined_with_their_types() {
    extern "C" fn nothing(_: *mut Context) {}
    let source = "import \"env\" \"f\" func f(i64)";
    assert_eq!(error(source), "import \"env\" \"f\" is not defined");
    let engine = Engine::new(Config::new().tier(Tier::BEST)).unwrap();
    let mut compiler = Compiler::new(&engine).unwrap();
    // SAFETY: the function uses nothing.
    unsafe { compiler.define("env", "f", nothing as unsafe extern "C" fn(_)) };
    let message = compiler.compile_text(source).unwrap_err().to_string();
    assert_eq!(message, "import \"env\" \"f\" has type (i64) -> (), not () -> ()");
}

#[test]
fn functions_are_got_by_their_names_and_types() {
    let engine = Engine::new(Config::new().tier(Tier::BEST)).unwrap();
    let code = compile(
        &engine,
        "memory m 1
        export \"f\" func f
        export \"m\" memory m
        func f(a: i64) -> i64 { local.get a  return }",
    );
    get::<Unary>(&code, "f");
    let missing = |name: &str| code.get::<Unary>(name).unwrap_err().to_string();
    assert_eq!(missing("g"), "no exported C function \"g\"");
    assert_eq!(missing("m"), "no exported C function \"m\"");
    assert_eq!(
        code.get::<Binary>("f").unwrap_err().to_string(),
        "function \"f\" has type (i64) -> (i64), not (i64, i64) -> (i64)"
    );
}

#[test]
fn engines_whose_promises_would_not_be_kept_are_refused() {
    let refused = |config: &Config| Compiler::new(&Engine::new(config).unwrap()).unwrap_err();
    let errors = [
        refused(Config::new().tier(Tier::Interpreter)),
        refused(Config::new().tier(Tier::BEST).epoch_interruption(true)),
        refused(Config::new().tier(Tier::BEST).deterministic_stack(Some(1000))),
    ];
    assert!(errors.iter().all(|error| matches!(error, Error::Usage(_))), "{errors:?}");
}
