use slotvm_bytecode::{TrapCode, VerifiedModule, text, verify};

use crate::construction::build::BuildOptions;
use crate::ir::eval::{Imports, Machine, Options};
use crate::optimize::optimize;
use crate::tools::samples::{module, random_walk, slot_forms, walk};
use crate::tools::testing::Rng;

/// The module with the code that its functions get.
fn written(module: &VerifiedModule) -> VerifiedModule {
    let optimized = optimize(module).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(optimized.left, []);
    let text = text::print(&optimized.module).expect("it can be printed");
    verify(optimized.module).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The code of function `f` as text.
fn code(source: &str) -> String {
    let module = written(&module(source));
    let text = text::print(module.module()).expect("it can be printed");
    let (_, code) = text.split_once("func f(").expect("there is a function f");
    let (code, _) = code.split_once("\n}").expect("it ends");
    code.lines().skip(1).map(str::trim).collect::<Vec<_>>().join("; ")
}

#[test]
fn values_stay_on_the_operand_stack() {
    let source = "func f(a: i32, b: i32) -> i32 {
        local c: i32
        local.get a  local.get b  i32.add  local.set c
        local.get c  i32.const 2  i32.mul  return }";
    let expected = "local.get a; local.get b; i32.add; i32.const 2; i32.mul; return";
    assert_eq!(code(source), expected);
}

#[test]
fn values_that_are_used_at_once_again_are_duplicated() {
    let source = "func f(a: i32, b: i32) -> i32 {
        local c: i32
        local.get a  local.get b  i32.add  local.set c
        local.get c  local.get c  i32.mul  return }";
    let expected = "local.get a; local.get b; i32.add; dup; i32.mul; return";
    assert_eq!(code(source), expected);
}

#[test]
fn hints_go_where_their_branches_go() {
    // The second branch goes the other way, so that its code is next.
    let source = "func f(n: i32) -> i32 {
        local.get n  .unlikely br_if rare
        local.get n  i32.const 3  i32.lt_s  .likely br_if next
        br rare
      next:
        i32.const 5  return
      rare:
        i32.const 7  return }";
    let expected = "local.get n; .unlikely; br_if rare; local.get n; i32.const 3; i32.ge_s; \
        .unlikely; br_if rare; next:; i32.const 5; return; rare:; i32.const 7; return";
    assert_eq!(code(source), expected);
}

#[test]
fn a_loop_is_as_people_write_it() {
    let source = "func f(n: i64) -> i64 {
        local sum: i64
      again:
        local.get sum  local.get n  i64.add  local.set sum
        local.get n  i64.const 1  i64.sub  local.tee n
        i64.eqz  br_if end
        br again
      end:
        local.get sum  return }";
    let expected = "local sum: i64; again:; local.get sum; local.get n; i64.add; local.set sum; \
        local.get n; i64.const 1; i64.sub; local.tee n; i64.eqz; i32.eqz; br_if again; end:; \
        local.get sum; return";
    assert_eq!(code(source), expected);
}

#[test]
fn what_is_in_another_order_goes_through_locals() {
    // The calls keep their order, although their results change places.
    let source = "import \"env\" \"a\" func a() -> i32
      import \"env\" \"b\" func b() -> i32
      func f() -> i32 {
        call a  call b  swap  i32.sub  return }";
    let expected = "local i32; call a; local.set 0; call b; local.get 0; i32.sub; return";
    assert_eq!(code(source), expected);
}

#[test]
fn values_are_held_below_other_code() {
    let source = "import \"env\" \"g\" func g()
      import \"env\" \"h\" func h() -> i64
      func f() -> i64 { call h  call g  return }";
    assert_eq!(code(source), "call h; call g; return");
    let swap = "import \"env\" \"g\" func g(i64)
      func f(a: i64, b: i64) {
      again:
        local.get a  call g  local.get a  local.get b  local.set a  local.set b  br again }";
    let expected = "again:; local.get a; call g; \
        local.get a; local.get b; local.set a; local.set b; br again";
    assert_eq!(code(swap), expected);
}

#[test]
fn results_that_nothing_uses_are_dropped_and_several_are_taken_together() {
    let source = "import \"env\" \"a\" func a() -> (i32, i32)
      func f() -> i32 {
        call a  drop  drop  call a  i32.sub  return }";
    assert_eq!(code(source), "call a; drop; drop; call a; i32.sub; return");
}

#[test]
fn labels_without_names_are_only_where_they_are_needed() {
    let source = "func f(n: i32) -> i32 {
        local.get n  i32.eqz  br_if 0
        i32.const 1 return
      0: i32.const 2 return }";
    let text = code(source);
    assert_eq!(text.matches(':').count(), 1, "{text}");
}

const FRAMES: &str = "memory m 1
    frame_stack 1024 4096
    func g(p: i32) -> i32 {
        local.get p  local.get p  i32.load  i32.const 3  i32.mul  i32.store
        local.get p  i32.load  return }
    func f(n: i32, x: i64) -> i64 {
        local a: i32  local b: f64  local c: i64  local p: i32  local d: i32
        i32.const 5  local.set a
        local.get x  local.set c
        local.addr a  call g  drop
        local.addr c  local.set p
        local.get p  local.get p  i64.load  i64.const 1  i64.add  i64.store
        local.addr d  local.set p
        local.get p  i32.const 9  i32.store
        local.addr n  i32.const 4  i32.add  drop
        local.get n  i32.eqz  br_if end
        local.get n  i32.const 1  i32.sub  local.get x  call f  drop
      end:
        local.get a  i64.extend_i32_u  local.get c  i64.add  local.get p  i32.load  i64.extend_i32_u
        i64.add  return }";

#[test]
fn frames_in_memory_stay_as_they_are() {
    let before = module(FRAMES);
    let after = written(&before);
    let again = written(&after);
    let frame_bytes = |module: &VerifiedModule| module.body(1).expect("it is defined").frame_bytes;
    assert_eq!(frame_bytes(&before), 8 * 4, "n, a, c and d escape, b and p do not");
    let run = |module: &VerifiedModule, n: u128| {
        let functions = slot_forms(module, &BuildOptions::default());
        let mut machine = Machine::new(module, functions, Imports::default(), Options::default());
        machine.instantiate().expect("it instantiates");
        let end = machine.call(1, &[n, 100]).map_err(|trap| (trap.code, trap.func));
        (end, machine.memory().to_vec())
    };
    for n in [0, 1, 10] {
        let expected = run(&before, n);
        assert_eq!(expected.0, Ok(vec![15 + 101 + 9]));
        for module in [&after, &again] {
            assert_eq!(frame_bytes(module), frame_bytes(&before));
            let text = text::print(module.module()).expect("it can be printed");
            let found = run(module, n);
            assert_eq!(found.0, expected.0, "{text}");
            let differs = (0..found.1.len()).find(|&i| found.1[i] != expected.1[i]);
            assert_eq!(differs, None, "{text}");
        }
    }
    // 128 frames fit.
    assert_eq!(run(&before, 128).0, Err((TrapCode::FrameStackOverflow, 1)));
    assert_eq!(run(&after, 128).0, Err((TrapCode::FrameStackOverflow, 1)));
    assert_eq!(run(&after, 127).0, Ok(vec![125]));
}

#[test]
fn random_functions_compute_the_same() {
    let mut rng = Rng(31);
    let mut n_compared = 0;
    for _ in 0..500 {
        let before = random_walk(&mut rng);
        let after = written(&before);
        let again = written(&after);
        for seed in 0..4 {
            let args = [rng.next(), rng.next()].map(u128::from);
            let run = |module: &VerifiedModule| {
                let options = BuildOptions { fuel: true, ..BuildOptions::default() };
                walk(module, slot_forms(module, &options), &args, seed)
            };
            let expected = run(&before);
            // The code charges other amounts of fuel.
            if expected.1.as_ref().is_err_and(|trap| trap.code == TrapCode::OutOfFuel) {
                continue;
            }
            n_compared += 1;
            for module in [&after, &again] {
                let text = || text::print(module.module()).expect("it can be printed");
                assert_eq!(run(module), expected, "{}", text());
            }
        }
    }
    assert!(n_compared > 800, "{n_compared}");
}
