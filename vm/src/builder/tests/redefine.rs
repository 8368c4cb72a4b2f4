//! Functions that are defined again.

use super::*;

#[test]
fn functions_of_a_module_get_other_code() {
    let source = "memory m 1
        global g: mut i32 = i32.const 0
        func f(n: i32) -> i32 { local old: i64  local.get n  br end  end(i32): return }
        func g(n: i32) -> i32 { local old: i64  i32.const 1 i64.const 2 br end  end(i32, i64): drop return }";
    let original = crate::text::parse(source).unwrap_or_else(|error| panic!("{error}"));
    let verified = crate::verify(original.clone()).expect("it verifies");
    let same = ModuleBuilder::of(&verified).finish().expect("nothing was changed");
    assert_eq!(same, original);

    let mut builder = ModuleBuilder::of(&verified);
    let f = FuncId(0);
    // An unfinished function has no effect.
    builder.redefine(FuncId(1)).i32_const(5);
    let mut code = builder.redefine(f);
    let new = code.named_local("new", I32);
    let label = code.named_label("there");
    code.local_get(code.param(0)).local_tee(new).br_if(label);
    code.bind_with_stack(label, &[]).i32_const(7).ret();
    code.finish().expect("it is well-typed");
    let module = builder.finish().expect("all is well-typed");
    assert_eq!(module.names.local(0, 1), Some("new"));
    assert_eq!(module.names.local(0, 0), None, "the names of the old code are gone");
    assert_eq!(module.names.label(0, 0), Some("there"));
    assert_eq!(module.names.local(1, 1), Some("old"));
    let second = |module: &Module| (module.funcs[1].code.clone(), module.funcs[1].locals.clone());
    assert_eq!(second(&module), second(&original));
    assert_eq!(module.names.func(0), Some("f"));
    crate::verify(module).expect("shapes are those that are needed");

    let mut builder = ModuleBuilder::new();
    let new = builder.declare_func("new", &[], &[]);
    builder.redefine(new).ret();
    assert!(builder.redefine(new).finish().is_err(), "it has no code yet");
}
