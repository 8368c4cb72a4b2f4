//! Functions of the host that compiled code calls by their addresses.

use super::*;
use slotvm::{Config, Error, FuncType, Linker, Module, Store, Tier, ValType};

/// # Safety
/// The context is the one of the code that calls, and has a counter.
unsafe extern "C" fn count(context: *mut Context, by: i64) -> i64 {
    // SAFETY: compiled code passes its context, whose user pointer the test has set to a counter.
    unsafe {
        let counter = (*context).user().cast::<i64>();
        *counter += by;
        *counter
    }
}

const COUNTING: &str = r#"
    import "env" "count" func count(i64) -> i64
    export "twice" func twice
    func twice(by: i64) -> i64 {
      local.get by  call count  drop
      local.get by  call count  i64.const 100  i64.add  return
    }"#;

#[test]
fn an_import_is_called_with_the_context() {
    for engine in engines() {
        let mut compiler = Compiler::new(&engine).unwrap();
        // SAFETY: the contexts that are used have counters.
        unsafe { compiler.define("env", "count", count as unsafe extern "C" fn(_, _) -> _) };
        let code = compiler.compile_text(COUNTING).unwrap();
        let twice: Unary = get(&code, "twice");
        let mut counter = 5_i64;
        let mut context = Context::new(&engine);
        context.set_user((&raw mut counter).cast());
        // SAFETY: the code lives, the context is this call's.
        assert_eq!(unsafe { twice(&mut context, 10) }, 125);
        context.check().unwrap();
        assert_eq!(counter, 25);
        assert!(code.pointer(0).is_none(), "an import has no C function here");
    }
}

/// # Safety
/// The context is the one of the code that calls.
unsafe extern "C" fn fail_for_odd(context: *mut Context, n: i64) -> i64 {
    // SAFETY: compiled code passes its context, which nothing else uses until the function returns.
    let context = unsafe { &mut *context };
    match n {
        1 => context.fail(Error::host("one is odd")),
        3 => context.fail(Error::Trap(slotvm::Trap::new(TrapCode::BadSignature, []))),
        _ => {}
    }
    n
}

#[test]
fn an_import_that_fails_ends_its_caller() {
    for engine in engines() {
        let mut compiler = Compiler::new(&engine).unwrap();
        // SAFETY: the function uses its context as it may.
        unsafe {
            compiler.define("env", "check", fail_for_odd as unsafe extern "C" fn(_, _) -> _);
        }
        let code = compiler.compile_text(
            r#"
            import "env" "check" func check(i64) -> i64
            memory m 0
            export "f" func f
            func f(n: i64) -> i64 {
              local.get n  call check  drop
              i32.const 0  i32.const 1  i32.store8 m 0
              local.get n  return
            }"#,
        );
        let code = code.unwrap();
        let f: Unary = get(&code, "f");
        let mut context = Context::new(&engine);
        let mut byte = 0_u8;
        let byte = &raw mut byte;
        // SAFETY: the code lives, and the byte is accessed by its pointer only.
        unsafe {
            context.set_memory(byte, 1);
            assert_eq!((f(&mut context, 1), context.status(), byte.read()), (0, 31, 0));
            let error = context.check().unwrap_err();
            assert_eq!((error.to_string().as_str(), context.status()), ("one is odd", 0));
            f(&mut context, 3);
            assert_eq!(context.status(), status_of(TrapCode::BadSignature));
            let Error::Trap(trap) = context.check().unwrap_err() else { panic!("a trap") };
            assert_eq!(trap.frames().len(), 1);
            assert_eq!((f(&mut context, 2), context.status(), byte.read()), (2, 0, 1));
        }
    }
}

/// Calls a compiled function back, with the context that it gets.
///
/// # Safety
/// The user pointer of the context is that of a function.
unsafe extern "C" fn call_back(context: *mut Context, n: i64) -> i64 {
    // SAFETY: compiled code passes its context, whose user pointer the test has set to a function.
    unsafe {
        let function = (*context).user().cast::<Unary>().read();
        let result = function(context, n);
        if n == 50 {
            // It deals with the error itself.
            assert_eq!((*context).check().unwrap_err().trap_code(), Some(TrapCode::Unreachable));
            return -50;
        }
        result
    }
}

#[test]
fn an_import_may_call_back_with_the_same_context() {
    for engine in engines() {
        let mut compiler = Compiler::new(&engine).unwrap();
        // SAFETY: the contexts that are used have the function.
        unsafe { compiler.define("env", "back", call_back as unsafe extern "C" fn(_, _) -> _) };
        let code = compiler.compile_text(
            r#"
            import "env" "back" func back(i64) -> i64
            export "down" func down
            func down(n: i64) -> i64 {
              local.get n  i64.eqz  br_if done
              local.get n  i64.const 50  i64.gt_s  br_if stop
              local.get n  i64.const 40  i64.eq  br_if forever
              local.get n  i64.const 1  i64.sub  call back  i64.const 1  i64.add  return
            done: i64.const 0  return
            stop: unreachable
            forever: local.get n  call back  return
            }"#,
        );
        let code = code.unwrap();
        let down: Unary = get(&code, "down");
        let mut context = Context::new(&engine);
        let mut function = down;
        context.set_user((&raw mut function).cast());
        // SAFETY: the code lives, and nothing else uses the context.
        unsafe {
            assert_eq!(down(&mut context, 20), 20);
            context.check().unwrap();
            // Frames of the host and of the guest share one stack, which ends.
            assert_eq!(down(&mut context, 45), 0);
            let Error::Trap(trap) = context.check().unwrap_err() else { panic!("a trap") };
            assert_eq!(trap.code, TrapCode::StackOverflow);
            assert!(trap.frames().len() > 10);
            assert_eq!(down(&mut context, 20), 20);
        }
        assert_eq!(context.status(), 0);
    }
}

#[test]
fn a_compiled_function_can_be_an_import_and_its_traps_go_on() {
    let engine = Engine::new(Config::new().tier(Tier::BEST)).unwrap();
    let library = compile(
        &engine,
        r#"
        export "divide" func divide
        func divide(a: i64, b: i64) -> i64 { local.get a  local.get b  i64.div_s  return }"#,
    );
    let mut compiler = Compiler::new(&engine).unwrap();
    // SAFETY: the library lives longer than what imports it.
    unsafe { compiler.define("library", "divide", get::<Binary>(&library, "divide")) };
    let code = compiler.compile_text(
        r#"
        import "library" "divide" func divide(i64, i64) -> i64
        export "half" func half
        export "bad" func bad
        func half(n: i64) -> i64 { local.get n  i64.const 2  call divide  return }
        func bad(n: i64) -> i64 { local.get n  i64.const 0  call divide  return }"#,
    );
    let code = code.unwrap();
    let mut context = Context::new(&engine);
    // SAFETY: both codes live.
    unsafe {
        assert_eq!(get::<Unary>(&code, "half")(&mut context, 42), 21);
        context.check().unwrap();
        get::<Unary>(&code, "bad")(&mut context, 42);
    }
    let Error::Trap(trap) = context.check().unwrap_err() else { panic!("a trap") };
    assert_eq!(trap.code, TrapCode::IntegerDivisionByZero);
    let names: Vec<String> = trap.frames().iter().map(|frame| frame.func_name()).collect();
    assert_eq!(names, ["divide", "bad"]);
}

/// # Safety
/// The parameter is the number of results that there is room for.
unsafe extern "C" fn numbers(_: *mut Context, results: *mut u64, n: i64) {
    for i in 0..n {
        // SAFETY: the import's type has as many results as the test passes, and compiled code makes room for them.
        unsafe { results.add(i as usize).write((n - i) as u64) };
    }
}

#[test]
fn an_import_gives_several_results() {
    let engine = Engine::new(Config::new().tier(Tier::BEST)).unwrap();
    for n in [2, 6, 9] {
        let types = vec!["i64"; n].join(", ");
        let ty = FuncType::new([ValType::I64], vec![ValType::I64; n]);
        let mut compiler = Compiler::new(&engine).unwrap();
        // SAFETY: the function has the signature for the type.
        unsafe { compiler.define_pointer("env", "numbers", ty, numbers as *const u8) };
        let code = compiler.compile_text(&format!(
            r#"
            import "env" "numbers" func numbers(i64) -> ({types})
            export "digits" func digits
            func digits(n: i64) -> i64 {{
              local sum: i64
              local.get n  call numbers
              {} local.get sum  return }}"#,
            "local.get sum  i64.const 10  i64.mul  i64.add  local.set sum  ".repeat(n)
        ));
        let code = code.unwrap();
        let mut context = Context::new(&engine);
        // SAFETY: the code lives.
        let digits = unsafe { get::<Unary>(&code, "digits")(&mut context, n as i64) };
        let expected = (1..=n as i64).fold(0, |sum, digit| sum * 10 + digit);
        assert_eq!(digits, expected);
    }
}

/// Moves the memory of its context to the buffer that the user pointer is to.
///
/// # Safety
/// It is one of 8 bytes.
unsafe extern "C" fn move_memory(context: *mut Context) {
    // SAFETY: compiled code passes its context, whose user pointer the test has set to a buffer of 8 bytes.
    unsafe {
        let buffer = (*context).user().cast();
        (*context).set_memory(buffer, 8);
    }
}

#[test]
fn an_import_may_move_the_memory() {
    for engine in engines() {
        let mut compiler = Compiler::new(&engine).unwrap();
        // SAFETY: the contexts that are used have a buffer.
        unsafe { compiler.define("env", "move", move_memory as unsafe extern "C" fn(_)) };
        let code = compiler.compile_text(
            r#"
            import "env" "move" func move()
            memory m 0
            export "f" func f
            func f(n: i64) -> i64 {
              i32.const 0  i64.load m 0
              call move
              i32.const 0  i64.load m 0  i64.add  return
            }"#,
        );
        let code = code.unwrap();
        let (mut before, mut after) = (40_u64, 2_u64);
        let mut context = Context::new(&engine);
        context.set_user((&raw mut after).cast());
        // SAFETY: the code lives, the buffers do.
        unsafe {
            context.set_memory((&raw mut before).cast(), 8);
            assert_eq!(get::<Unary>(&code, "f")(&mut context, 0), 42);
        }
        context.check().unwrap();
    }
}

/// Runs a program in a store, where it traps.
///
/// # Safety
/// The user pointer is to an engine.
unsafe extern "C" fn run_store(context: *mut Context, n: i64) -> i64 {
    // SAFETY: compiled code passes its context, whose user pointer the test has set to an engine.
    let engine = unsafe { &*(*context).user().cast::<Engine>() };
    let source = r#"
        memory m 1
        export "f" func f
        func f(n: i64) -> i64 { local.get n  i32.wrap_i64  i64.load m 0  return }"#;
    let mut store = Store::new(engine, ());
    let module = Module::from_text(engine, source).unwrap();
    let instance = Linker::new(engine).instantiate(&mut store, &module).unwrap();
    let f = instance.get_typed_func::<i64, i64>(&store, "f").unwrap();
    let error = f.call(&mut store, 1 << 16).unwrap_err();
    assert_eq!(error.trap_code(), Some(TrapCode::MemoryOutOfBounds));
    f.call(&mut store, n).unwrap()
}

#[test]
fn stores_and_c_functions_call_each_other() {
    for engine in engines() {
        let mut compiler = Compiler::new(&engine).unwrap();
        // SAFETY: the contexts that are used have the engine.
        unsafe { compiler.define("env", "count", run_store as unsafe extern "C" fn(_, _) -> _) };
        let code = Arc::new(compiler.compile_text(COUNTING).unwrap());
        let mut linker = Linker::new(&engine);
        let (inner, shared) = (code.clone(), engine.clone());
        let twice = linker.func_wrap("env", "twice", move |by: i64| {
            let mut context = Context::new(&shared);
            context.set_user((&raw const shared).cast_mut().cast());
            // SAFETY: the closure keeps the code.
            let result = unsafe { get::<Unary>(&inner, "twice")(&mut context, by) };
            context.check().map(|()| result)
        });
        twice.unwrap();
        let module = Module::from_text(
            &engine,
            r#"
            import "env" "twice" func twice(i64) -> i64
            export "f" func f
            func f(n: i64) -> i64 {
              local.get n  call twice  drop
              local.get n  local.get n  i64.div_s  return
            }"#,
        )
        .unwrap();
        let mut store = Store::new(&engine, ());
        let instance = linker.instantiate(&mut store, &module).unwrap();
        let f = instance.get_typed_func::<i64, i64>(&store, "f").unwrap();
        assert_eq!(f.call(&mut store, 8).unwrap(), 1);
        let error = f.call(&mut store, 0).unwrap_err();
        assert_eq!(error.trap_code(), Some(TrapCode::IntegerDivisionByZero));
    }
}
