//! Loads and stores at addresses of the host.

use super::*;

/// State that a virtual machine might have.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
struct Object {
    next: *const Object,
    value: i64,
    ratio: f64,
    weight: f32,
    count: u32,
    short: i16,
    flag: u8,
    tag: i8,
}

fn object(value: i64) -> Object {
    Object {
        next: std::ptr::null(),
        value,
        ratio: 0.5,
        weight: 2.0,
        count: u32::MAX,
        short: -3,
        flag: 200,
        tag: -4,
    }
}

fn compile_with_addresses(engine: &Engine, source: &str) -> Code {
    let mut compiler = Compiler::new(engine).unwrap();
    // SAFETY: the tests pass addresses of live objects.
    unsafe { compiler.allow_host_addresses() };
    compiler.compile_text(source).unwrap()
}

#[test]
fn a_list_of_the_host_is_walked() {
    for engine in engines() {
        let code = compile_with_addresses(
            &engine,
            r#"
            import "host" "i64.load" func load(i64) -> i64
            export "sum" func sum
            func sum(list: i64) -> i64 {
              local sum: i64
            next:
              local.get list  i64.eqz  br_if done
              local.get list  i64.const 8  i64.add  call load  local.get sum  i64.add  local.set sum
              local.get list  call load  local.set list
              br next
            done:
              local.get sum  return
            }"#,
        );
        let mut objects: Vec<Object> = (1..=100).map(object).collect();
        let first = objects.as_mut_ptr();
        for i in 0..99 {
            // SAFETY: both objects are in the list.
            unsafe { (*first.add(i)).next = first.add(i + 1) };
        }
        let sum: Unary = get(&code, "sum");
        let mut context = Context::new(&engine);
        // SAFETY: the code lives; the list ends with null.
        unsafe {
            assert_eq!(sum(&mut context, first.expose_provenance() as i64), 5050);
            assert_eq!(sum(&mut context, 0), 0);
        }
        context.check().unwrap();
    }
}

/// A function that stores to the second of two addresses what it loads from the first.
fn copying(load: &str, store: &str, ty: &str, tail: bool) -> String {
    let end = if tail { "return_call store" } else { "call store  return" };
    format!(
        r#"
        import "host" "{ty}.{load}" func load(i64) -> {ty}
        import "host" "{ty}.{store}" func store(i64, {ty})
        export "copy" func copy
        export "direct" func direct
        func copy(from: i64, to: i64) {{
          local.get to  local.get from  call tail_load  {end} }}
        func tail_load(from: i64) -> {ty} {{ local.get from  return_call load }}
        func direct(from: i64, to: i64) {{
          local.get to  local.get from  call load  call store  return }}"#
    )
}

#[test]
fn all_widths_are_read_and_written() {
    let source: [u8; 8] = [0x81, 0x92, 0xa3, 0xb4, 0xc5, 0xd6, 0xe7, 0xf8];
    // What a load gives is stored in full, so that its extension is seen.
    let cases: &[(&str, &str, &str, usize, u8)] = &[
        ("i32", "load", "store", 4, 0),
        ("i64", "load", "store", 8, 0),
        ("f32", "load", "store", 4, 0),
        ("f64", "load", "store", 8, 0),
        ("i32", "load8_s", "store", 1, 0xff),
        ("i32", "load8_u", "store", 1, 0),
        ("i32", "load16_s", "store", 2, 0xff),
        ("i32", "load16_u", "store", 2, 0),
        ("i64", "load8_s", "store", 1, 0xff),
        ("i64", "load8_u", "store", 1, 0),
        ("i64", "load16_s", "store", 2, 0xff),
        ("i64", "load16_u", "store", 2, 0),
        ("i64", "load32_s", "store", 4, 0xff),
        ("i64", "load32_u", "store", 4, 0),
        ("i32", "load", "store8", 1, 0xee),
        ("i32", "load", "store16", 2, 0xee),
        ("i64", "load", "store8", 1, 0xee),
        ("i64", "load", "store16", 2, 0xee),
        ("i64", "load", "store32", 4, 0xee),
    ];
    let modes = [SlotMode::Ssa, SlotMode::Memory];
    for engine in modes.map(|slots| Engine::new(Config::new().slots(slots)).unwrap()) {
        for &(ty, load, store, n, rest) in cases {
            // The bytes of a value, or of what a narrow store writes; others stay as they are.
            let full = if ty.ends_with("64") { 8 } else { 4 };
            let mut expected = [0xee; 9];
            expected[1..=full].fill(rest);
            expected[1..=n].copy_from_slice(&source[..n]);
            for tail in [false, true] {
                let code = compile_with_addresses(&engine, &copying(load, store, ty, tail));
                for name in ["copy", "direct"] {
                    let mut target = [0xee; 9];
                    let to = target.as_mut_ptr().wrapping_add(1);
                    let copy: unsafe extern "C" fn(*mut Context, u64, u64) = get(&code, name);
                    let mut context = Context::new(&engine);
                    let from = source.as_ptr().expose_provenance() as u64;
                    // SAFETY: both have room for the widest access.
                    unsafe { copy(&mut context, from, to.expose_provenance() as u64) };
                    context.check().unwrap();
                    assert_eq!(target, expected, "{ty} {load} {store} {name} {tail}");
                }
            }
        }
    }
}

#[test]
fn a_struct_is_read_and_written() {
    let engine = Engine::default();
    let code = compile_with_addresses(
        &engine,
        r#"
        import "host" "f64.load" func load_f64(i64) -> f64
        import "host" "f32.load" func load_f32(i64) -> f32
        import "host" "i64.load16_s" func load16(i64) -> i64
        import "host" "i64.load8_u" func load8(i64) -> i64
        import "host" "i64.store" func store(i64, i64)
        import "host" "f64.store" func store_f64(i64, f64)
        import "host" "i64.store32" func store32(i64, i64)
        import "host" "i64.store8" func store8(i64, i64)
        export "update" func update
        func update(o: i64) {
          local.get o  i64.const 16  i64.add
          local.get o  i64.const 16  i64.add  call load_f64
          local.get o  i64.const 24  i64.add  call load_f32  f64.promote_f32
          f64.add  call store_f64
          local.get o  i64.const 8  i64.add
          local.get o  i64.const 32  i64.add  call load16
          local.get o  i64.const 34  i64.add  call load8  i64.mul  call store
          local.get o  i64.const 28  i64.add  i64.const 7  call store32
          local.get o  i64.const 35  i64.add  i64.const 9  call store8
          return
        }"#,
    );
    let update: unsafe extern "C" fn(*mut Context, i64) = get(&code, "update");
    let mut one = object(1);
    let address = (&raw mut one).expose_provenance();
    let mut context = Context::new(&engine);
    // SAFETY: the object is there.
    unsafe { update(&mut context, address as i64) };
    context.check().unwrap();
    assert_eq!(one, Object { value: -600, ratio: 2.5, count: 7, tag: 9, ..object(1) });
}

#[test]
fn they_must_be_allowed_and_have_their_types() {
    let engine = Engine::default();
    let error = |allowed: bool, name: &str, ty: &str| {
        let mut compiler = Compiler::new(&engine).unwrap();
        if allowed {
            // SAFETY: nothing is run.
            unsafe { compiler.allow_host_addresses() };
        }
        let source = format!("import \"host\" \"{name}\" func load{ty}");
        compiler.compile_text(&source).map(|_| ()).map_err(|error| error.to_string())
    };
    error(true, "i64.load", "(i64) -> i64").unwrap();
    error(true, "i32.store8", "(i64, i32)").unwrap();
    let undefined = |name: &str| format!("import \"host\" \"{name}\" is not defined");
    for (allowed, name, ty) in [
        (false, "i64.load", "(i64) -> i64"),
        (true, "i64.load_indexed", "(i64, i64) -> i64"),
        (true, "i64.add", "(i64, i64) -> i64"),
        (true, "load", "(i64) -> i64"),
    ] {
        assert_eq!(error(allowed, name, ty).unwrap_err(), undefined(name));
    }
    let message = error(true, "i64.load", "(i32) -> i64").unwrap_err();
    assert!(message.contains("has type (i32) -> (i64), not (i64) -> (i64)"), "{message}");
}
