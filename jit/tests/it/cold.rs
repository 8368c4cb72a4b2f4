//! Imports that are rarely called: they do what others do, and code beside their calls is as if these were not there.

use slotvm::{Engine, Error, Linker, TrapCode};

use crate::support::{for_all, frames, instance_with, marked, module};

/// Values of all types live across cold calls, which get and return such values.
const SOURCE: &str = r#"
    import "env" "mix" cold func mix(i32, i64, f32, f64) -> (i64, f64, i32)
    import "env" "note" cold func note(i32)
    import "env" "many" cold func many(i64, i64, i64, i64, i64, i64, i64, i64, i64) -> i64
    import "env" "vector" cold func vector(v128) -> v128
    memory m 1
    export "run" func run
    export "tail" func tail
    export "vectors" func vectors
    func run(n: i32, seed: i64) -> (i64, f64, i32, f32) {
        local a: i64
        local b: f64
        local c: i32
        local d: f32
        local sum: i64
      again:
        local.get n  i32.const 3  i32.and  i32.eqz  br_if rare
        local.get seed  i64.const 6364136223846793005  i64.mul  i64.const 1442695040888963407  i64.add  local.set seed
        local.get d  f32.const 0.5  f32.add  local.set d
        local.get n  local.get a  i64.store
        local.get sum  local.get n  i64.load  i64.add  local.set sum
        br next
      rare:
        local.get n  call note
        local.get n  local.get seed  local.get d  local.get b  call mix
        local.set c  local.set b  local.set a
        local.get a  i64.const 1  i64.const 2  i64.const 3  i64.const 4
        i64.const 5  i64.const 6  i64.const 7  i64.const 8  call many
        local.get sum  i64.add  local.set sum
      next:
        local.get n  i32.const 1  i32.sub  local.tee n  br_if again
        local.get sum  local.get a  i64.add  local.get b  local.get c  local.get d
        return
    }
    func tail(x: i32) { local.get x  return_call note }
    func vectors(x: i64) -> i64 {
        local v: v128
        local.get x  i64x2.splat  local.set v
        local.get v  call vector
        local.get v  i64x2.add  i64x2.extract_lane 1
        return
    }"#;

fn linker(engine: &Engine) -> Linker<Vec<i32>> {
    let mut linker = Linker::new(engine);
    linker
        .func_wrap("env", "mix", |a: i32, b: i64, c: f32, d: f64| {
            (b ^ i64::from(a), d + f64::from(c) + 1.0, a.wrapping_mul(7))
        })
        .unwrap();
    linker
        .func_wrap("env", "note", |mut caller: slotvm::Caller<'_, Vec<i32>>, a: i32| {
            caller.data_mut().push(a);
        })
        .unwrap();
    type I = i64;
    linker
        .func_wrap("env", "many", |a: I, b: I, c: I, d: I, e: I, f: I, g: I, h: I, i: I| {
            a.wrapping_sub(b + c + d + e + f + g + h + i)
        })
        .unwrap();
    linker
        .func_wrap("env", "vector", |v: slotvm::V128| {
            slotvm::V128::from(v.as_u128().rotate_left(64) + (1 << 64))
        })
        .unwrap();
    linker
}

/// The same as `run`, in Rust.
fn expected(n: i32, mut seed: i64) -> (i64, f64, i32, f32) {
    let (mut a, mut b, mut c, mut d, mut sum) = (0_i64, 0.0, 0, 0.0_f32, 0_i64);
    for n in (1..=n).rev() {
        if n & 3 == 0 {
            (a, b, c) = (seed ^ i64::from(n), b + f64::from(d) + 1.0, n.wrapping_mul(7));
            sum = sum.wrapping_add(a.wrapping_sub(36));
        } else {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            d += 0.5;
            sum = sum.wrapping_add(a);
        }
    }
    (sum.wrapping_add(a), b, c, d)
}

#[test]
fn they_do_what_others_do() {
    for_all(|engine| {
        let (mut store, instance) = instance_with(engine, SOURCE, &linker(engine), Vec::new());
        type Results = (i64, f64, i32, f32);
        let run = instance.get_typed_func::<(i32, i64), Results>(&store, "run").unwrap();
        let tail = instance.get_typed_func::<i32, ()>(&store, "tail").unwrap();
        for (n, seed) in [(3, 1), (9, -5), (40, 77), (41, i64::MIN)] {
            assert_eq!(run.call(&mut store, (n, seed)).unwrap(), expected(n, seed));
            tail.call(&mut store, -n).unwrap();
            let mut noted: Vec<i32> = (1..=n).rev().filter(|n| n & 3 == 0).collect();
            noted.push(-n);
            assert_eq!(std::mem::take(store.data_mut()), noted);
        }
        let vectors = instance.get_typed_func::<i64, i64>(&store, "vectors").unwrap();
        for x in [1, -2, 1 << 40] {
            assert_eq!(vectors.call(&mut store, x).unwrap(), 2 * x + 1);
        }
    });
}

#[test]
fn errors_and_traps_have_their_places() {
    let inner = r#"
        export "quotient" func quotient
        func quotient(a: i64, b: i64) -> i64 {
            local.get a  local.get b  i64.div_s ; inner
            return
        }"#;
    let outer = r#"
        import "env" "quotient" cold func quotient(i64, i64) -> i64
        import "env" "fail" cold func fail()
        export "divide" func divide
        export "fail" func failing
        func divide(b: i64) -> i64 {
            i64.const 42  local.get b
            call quotient ; divide
            return
        }
        func failing() {
            call fail
            return
        }"#;
    #[derive(Debug, thiserror::Error)]
    #[error("it fails")]
    struct Failed;

    for_all(|engine| {
        let (mut store, provider) = instance_with(engine, inner, &Linker::new(engine), ());
        let mut linker = Linker::new(engine);
        linker.instance(&store, "env", provider).unwrap();
        linker.func_wrap("env", "fail", || Err::<(), _>(Error::host(Failed))).unwrap();
        let instance = linker.instantiate(&mut store, &module(engine, outer)).unwrap();
        let divide = instance.get_typed_func::<i64, i64>(&store, "divide").unwrap();
        let fail = instance.get_typed_func::<(), ()>(&store, "fail").unwrap();
        for _ in 0..4 {
            assert_eq!(divide.call(&mut store, 5).unwrap(), 8);
            let error = divide.call(&mut store, 0).unwrap_err();
            assert_eq!(error.trap_code(), Some(TrapCode::IntegerDivisionByZero));
            let lines = [marked(inner, "inner")[0], marked(outer, "divide")[0]];
            let names = ["quotient", "divide"].map(str::to_owned);
            assert_eq!(frames(&error), names.into_iter().zip(lines).collect::<Vec<_>>());
            match fail.call(&mut store, ()).unwrap_err() {
                Error::Host(error) => assert!(error.is::<Failed>()),
                other => panic!("{other}"),
            }
        }
    });
}

/// Two instances call each other until the stack is used up: each frame is one of a cold call.
#[test]
fn deep_recursion_by_cold_calls_has_a_backtrace() {
    let source = r#"
        import "env" "other" cold func other(i64) -> i64
        export "down" func down
        func down(x: i64) -> i64 { local.get x  i64.const 1  i64.add  call other  return }"#;
    let relay = r#"
        import "env" "t" table t funcref 1
        export "relay" func relay
        func relay(x: i64) -> i64 { local.get x  i32.const 0  call_indirect (i64) -> i64, t  return }"#;
    let holder = "table t funcref 1  export \"t\" table t";
    for_all(|engine| {
        let (mut store, holder) = instance_with(engine, holder, &Linker::new(engine), ());
        let mut linker = Linker::new(engine);
        linker.instance(&store, "env", holder).unwrap();
        let relay = linker.instantiate(&mut store, &module(engine, relay)).unwrap();
        let other = relay.get_func(&store, "relay").unwrap();
        linker.define(&store, "env", "other", other).unwrap();
        let instance = linker.instantiate(&mut store, &module(engine, source)).unwrap();
        let down = instance.get_func(&store, "down").unwrap();
        let table = holder.get_table(&store, "t").unwrap();
        table.set(&mut store, 0, slotvm::Val::FuncRef(Some(down))).unwrap();
        let down = instance.get_typed_func::<i64, i64>(&store, "down").unwrap();
        for _ in 0..3 {
            let error = down.call(&mut store, 0).unwrap_err();
            let Error::Trap(trap) = &error else { panic!("{error}") };
            assert_eq!(trap.code, TrapCode::StackOverflow);
            assert_eq!(trap.frames().len(), 100);
            for two in trap.frames().windows(2) {
                assert_ne!(two[0].func_name(), two[1].func_name());
            }
        }
    });
}

/// The number of instructions of a loop, and of what follows it, without the block that rarely runs. The loop has more values
/// than there are registers that C functions preserve.
#[cfg(feature = "jit")]
fn n_often(engine: &Engine, import: &str, rare: &str) -> usize {
    let locals = |each: &dyn Fn(char) -> String| ('a'..='h').map(each).collect::<String>();
    let source = format!(
        "import \"env\" \"slow\" {import} func slow(i64) -> i64
        memory m 1
        func f(n: i64) -> i64 {{
            {}
          again:
            {}
            local.get n  i64.const 1023  i64.and  i64.eqz  br_if rare
          next:
            local.get n  i64.const 1  i64.sub  local.tee n  i64.eqz  i32.eqz  br_if again
            i64.const 0 {} return
          rare:
            {rare}  br next
        }}",
        locals(&|x| format!("local {x}: i64\n")),
        locals(&|x| {
            format!("local.get {x}  local.get n  i64.add  i64.const 3  i64.rotl  local.set {x}\n")
        }),
        locals(&|x| format!("local.get {x}  i64.xor ")),
    );
    let asm = module(engine, &source).asm(1).unwrap().unwrap();
    // The first block is the entry, after the prologue.
    let blocks: Vec<&str> = asm.split("\nblock").skip(2).collect();
    let is_rare =
        |block: &&&str| ["call", "bl ", "blr ", "sqrt"].iter().any(|op| block.contains(op));
    assert_eq!(blocks.iter().filter(is_rare).count(), 1, "{asm}");
    // The first line of a block is its number.
    let n_insts = |block: &&str| block.lines().filter(|line| line.starts_with("  ")).count();
    blocks.iter().filter(|block| !is_rare(block)).map(n_insts).sum()
}

#[cfg(feature = "jit")]
#[test]
fn a_fast_path_beside_a_cold_call_has_no_instruction_more() {
    let engine = Engine::default();
    let call = "local.get n  call slow  local.get a  i64.add  local.set a";
    let other = "i32.const 0  local.get n  f64.reinterpret_i64  f64.sqrt  f64.store";
    let without = n_often(&engine, "", other);
    let cold = n_often(&engine, "cold", call);
    // On aarch64 the allocator leaves the context in the register of the argument after the call, where it expects it in another
    // one: two moves.
    let n_moves = if cfg!(target_arch = "aarch64") { 2 } else { 0 };
    assert!(cold <= without + n_moves, "{cold} beside {without}");
    // Any other call costs its loop something.
    let ordinary = n_often(&engine, "", call);
    assert!(ordinary > without, "{ordinary} beside {without}");
}

#[cfg(feature = "wasm")]
#[test]
fn imports_of_webassembly_can_be_marked() {
    use slotvm::bytecode::module::{ImportCall, ImportKind};
    use slotvm::{LeafFunc, Module};

    type Half = unsafe extern "C" fn(*mut std::ffi::c_void, i64) -> i64;
    unsafe extern "C" fn half(_: *mut std::ffi::c_void, x: i64) -> i64 {
        x / 2
    }
    // (func (export "run") (param i64) (result i64) calls `fail` for numbers below 0, and else `half`.
    let module: [&[u8]; 7] = [
        b"\0asm\x01\0\0\0",
        b"\x01\x06\x01\x60\x01\x7e\x01\x7e",
        b"\x02\x17\x02\x03env\x04half\0\0\x03env\x04fail\0\0",
        b"\x03\x02\x01\0",
        b"\x07\x07\x01\x03run\0\x02",
        b"\x0a\x15\x01\x13\0\x20\0\x42\0\x53\x04\x7e",
        b"\x20\0\x10\x01\x05\x20\0\x10\0\x0b\x0b",
    ];
    let mut bytecode = slotvm::bytecode::wasm::import(&module.concat()).unwrap();
    for (import, mark) in bytecode.imports.iter_mut().zip([ImportCall::Leaf, ImportCall::Cold]) {
        let ImportKind::Func(_, call) = &mut import.kind else { panic!("it is a function") };
        *call = mark;
    }
    for_all(|engine| {
        let mut linker = Linker::new(engine);
        linker.func_wrap("env", "fail", |x: i64| x - 1).unwrap();
        let module = Module::from_bytecode(engine, bytecode.clone()).unwrap();
        let mut store = slotvm::Store::new(engine, ());
        // SAFETY: it computes with its argument.
        let leaf = unsafe { LeafFunc::new(half as Half, std::ptr::null_mut(), 256) }.unwrap();
        linker.func_wrap_leaf("env", "half", &leaf).unwrap();
        let instance = linker.instantiate(&mut store, &module).unwrap();
        let run = instance.get_typed_func::<i64, i64>(&store, "run").unwrap();
        assert_eq!([7, -7].map(|x| run.call(&mut store, x).unwrap()), [3, -8]);
    });
}
