//! Programs around the corners of the lowering.

use std::fmt::Write;

use slotvm::Val;
use slotvm_bytecode::{Op, ValType};

use crate::engines::compare;

const NEAR_ENDS: [u32; 9] =
    [0, 1, 65_527, 65_528, 65_533, 65_535, 65_536, 0x7fff_ffff, 0xffff_ffff];

fn exported(source: &str) -> String {
    let names = source.lines().filter_map(|line| line.trim_start().strip_prefix("func "));
    let names = names.map(|rest| rest.split('(').next().expect("a name"));
    let exports: Vec<String> = names.map(|name| format!("export \"{name}\" func {name}")).collect();
    format!("{source}\n{}", exports.join("\n"))
}

/// A value of each numeric type with all bytes different.
fn constant(ty: ValType) -> &'static str {
    match ty {
        ValType::I32 => "i32.const 0x81828384",
        ValType::I64 => "i64.const 0x8182838485868788",
        ValType::F32 => "f32.const -0x1.8p100",
        ValType::V128 => "v128.const i64x2 0x8182838485868788 0x898a8b8c8d8e8f90",
        _ => "f64.const -0x1.234p100",
    }
}

#[test]
#[cfg_attr(not(feature = "jit"), ignore = "needs native code")]
fn plain_accesses_reach_exactly_the_memory() {
    let mut source = String::from("memory mem 1 3\nexport \"mem\" memory mem\n");
    let mut names = Vec::new();
    for &op in Op::ALL.iter().filter(|op| op.access().is_some_and(|access| !access.indexed)) {
        let access = op.access().unwrap();
        for offset in [0u32, 3, 0x7fff_ffff, 0xffff_ffff] {
            let name = format!("{}.{offset}", op.mnemonic());
            let (result, value) = match access.store {
                true => (String::new(), constant(access.ty)),
                false => (format!("-> {}", access.ty), ""),
            };
            let op = op.mnemonic();
            writeln!(
                source,
                "func {name}(a: i32) {result} {{ local.get a {value} {op} {offset} return }}"
            )
            .unwrap();
            names.push(name);
        }
    }
    let mut calls = Vec::new();
    for name in &names {
        calls.extend(NEAR_ENDS.map(|address| (name.as_str(), vec![Val::I32(address as i32)])));
    }
    let outcomes = compare(&exported(&source), &calls);
    let n_traps = outcomes.iter().filter(|outcome| outcome.contains("memory access")).count();
    assert!(n_traps > outcomes.len() / 4 && n_traps < outcomes.len());
}

#[test]
#[cfg_attr(not(feature = "jit"), ignore = "needs native code")]
fn indexed_accesses_do_not_wrap() {
    let mut source = String::from("memory mem 1 3\nexport \"mem\" memory mem\n");
    let mut names = Vec::new();
    for &op in Op::ALL.iter().filter(|op| op.access().is_some_and(|access| access.indexed)) {
        let access = op.access().unwrap();
        for (scale, offset) in [(1, 0u32), (2, 6), (4, 0x7fff_ffff), (8, 0xffff_ffff), (8, 0)] {
            let name = format!("{}.{scale}.{offset}", op.mnemonic());
            let (result, value) = match access.store {
                true => (String::new(), constant(access.ty)),
                false => (format!("-> {}", access.ty), ""),
            };
            let op = op.mnemonic();
            writeln!(
                source,
                "func {name}(b: i32, i: i32) {result} {{
                   local.get b local.get i {value} {op} {scale} {offset} return }}"
            )
            .unwrap();
            names.push(name);
        }
    }
    let mut calls = Vec::new();
    for name in &names {
        for base in [0u32, 8, 65_535, 0xffff_fff8] {
            for index in [0u32, 1, 8191, 8192, 0x2000_0000, 0xffff_ffff] {
                calls.push((name.as_str(), vec![Val::I32(base as i32), Val::I32(index as i32)]));
            }
        }
    }
    let outcomes = compare(&exported(&source), &calls);
    assert!(outcomes.iter().any(|outcome| outcome.contains("memory access")));
    assert!(outcomes.iter().any(|outcome| !outcome.contains("memory access")));
}

#[test]
#[cfg_attr(not(feature = "jit"), ignore = "needs native code")]
fn accesses_trap_where_they_stand_although_code_generators_move_them() {
    let source = "
        memory mem 1
        export \"mem\" memory mem
        func folded(a: i32, b: i64) -> i64 { local.get a i64.load local.get b i64.add return }
        func float(a: i32, b: f64) -> f64 { local.get b local.get a f64.load f64.add return }
        func updated(a: i32, b: i64) {
          local.get a
          local.get a i64.load local.get b i64.add
          i64.store return
        }
        func overwritten(a: i32) {
          local.get a i32.const 1 i32.store
          local.get a i32.const 2 i32.store
          return
        }
        func divided(a: i32, b: i64) -> i64 { local.get b local.get a i64.load i64.div_u return }
        func remainder(a: i32, b: i32) -> i32 { local.get b local.get a i32.load i32.rem_s return }
        func compared(a: i32, b: i64) -> i32 {
          local.get a i32.load 4
          local.get b i32.wrap_i64
          i32.lt_s
          br_if less
          i32.const 1
          return
        less:
          unreachable
        }
        func unused(a: i32, b: i64) { local.get a f64.load drop return }
        func selected(a: i32, b: i64) -> i64 {
          local.get a i64.load local.get b local.get a i32.load select return
        }
        func tested(a: i32, b: i64) -> i32 { local.get a i64.load local.get b i64.eq return }
        func ordered(a: i32, b: i64) -> i64 {
          i32.const 0 local.get b i64.store
          local.get a i64.load
          i32.const 0 i64.const 5 i64.store
          return
        }
        func converted(a: i32) -> i64 { local.get a f64.load i64.trunc_f64_s return }
        func narrow(a: i32) -> i64 { local.get a i64.load32_s local.get a i64.load8_u i64.add return }
        func in_a_loop(a: i32, n: i64) -> i64 {
          local sum: i64
        head:
          local.get sum local.get a i64.load i64.add local.set sum
          local.get a i32.const 1000 i32.add local.set a
          local.get n i64.const 1 i64.sub local.tee n
          i64.const 0 i64.gt_s br_if head
          local.get sum return
        }";
    let mut calls = Vec::new();
    for name in [
        "folded",
        "updated",
        "divided",
        "compared",
        "unused",
        "selected",
        "tested",
        "ordered",
        "in_a_loop",
    ] {
        for address in [8, 65_528, 65_529, 65_532, -1] {
            for b in [0, 7, 200] {
                calls.push((name, vec![Val::I32(address), Val::I64(b)]));
            }
        }
    }
    for address in [8, 65_533, -1] {
        calls.push(("overwritten", vec![Val::I32(address)]));
        calls.push(("converted", vec![Val::I32(address)]));
        calls.push(("narrow", vec![Val::I32(address)]));
        calls.push(("float", vec![Val::I32(address), Val::F64(1.5f64.to_bits())]));
        calls.push(("remainder", vec![Val::I32(address), Val::I32(9)]));
    }
    compare(&exported(source), &calls);
}

#[test]
#[cfg_attr(not(feature = "jit"), ignore = "needs native code")]
fn calls_of_all_kinds_pass_values_of_all_types() {
    let source = "
        import \"env\" \"mix\" func mix(i32, f64) -> i64
        import \"env\" \"fail\" func fail(i64) -> i64
        table t funcref 6
        table u externref 2
        elem e t at i32.const 0 func add, many, mix, deep
        func add(a: i32, b: f64) -> i64 {
          local.get a i64.extend_i32_s local.get b i64.trunc_f64_s i64.sub return
        }
        func host(a: i32, b: f64) -> i64 { local.get a local.get b call mix return }
        func failing(a: i64) -> i64 { local.get a call fail i64.const 2 i64.mul return }
        func indirect(i: i32) -> i64 {
          i32.const 10 f64.const 3.0 local.get i call_indirect (i32, f64) -> i64, t return
        }
        func tail(i: i32) -> i64 {
          i32.const 10 f64.const 3.0 local.get i return_call_indirect (i32, f64) -> i64, t
        }
        func tail_host(a: i32) -> i64 { local.get a f64.const 3.0 return_call mix }
        func many(a: i32) -> (i32, i64, f32, f64, i32, i32, i32, i64, funcref) {
          local.get a i64.const 2 f32.const 3.0 f64.const 4.0 local.get a i32.const 6
          i32.const -7 i64.const -8 ref.func add
          return
        }
        func calls_many(a: i32, i: i32) -> (i32, i64, f32, f64, i32, i32, i32, i64, funcref) {
          local.get i br_if tail
          local.get a i32.const 1 call_indirect (i32) -> (i32, i64, f32, f64, i32, i32, i32, i64, funcref), t
          return
        tail:
          local.get a i32.const 1 i32.add return_call many
        }
        func floats(a: f64) -> (f64, f32, f64, f64, f64, f64, f64, f64, f64, f64) {
          local.get a local.get a f32.demote_f64 local.get a local.get a local.get a
          local.get a local.get a local.get a local.get a f64.const 9.0 return
        }
        func params(a: f64, b: i32, c: i64, d: f32, e: i64, f: i64, g: i64, h: i64, i: i32, j: f64) -> i64 {
          local.get a i64.trunc_f64_s local.get b i64.extend_i32_s i64.add
          local.get c i64.add local.get d i64.trunc_f32_s i64.add
          local.get e i64.add local.get f i64.sub local.get g i64.add local.get h i64.sub
          local.get i i64.extend_i32_u i64.add local.get j i64.trunc_f64_s i64.mul return
        }
        func params_tail(a: i64) -> i64 {
          f64.const 1.0 i32.const 2 local.get a f32.const 4.0 local.get a i64.const 6 i64.const 7
          i64.const 8 i32.const -9 f64.const 10.0 return_call params
        }
        func deep(n: i32) -> i32 {
          local.get n i32.eqz br_if done
          local.get n i32.const 1 i32.sub call deep i32.const 1 i32.add return
        done:
          i32.const 0 return
        }
        func even(n: i32) -> i32 {
          local.get n i32.eqz br_if yes
          local.get n i32.const 1 i32.sub return_call odd
        yes:
          i32.const 1 return
        }
        func odd(n: i32) -> i32 {
          local.get n i32.eqz br_if no
          local.get n i32.const 1 i32.sub return_call even
        no:
          i32.const 0 return
        }
        func references(r: externref) -> (i32, i32, externref, i32) {
          i32.const 1 local.get r table.set u
          i32.const 0 table.get u ref.is_null
          i32.const 1 table.get u ref.is_null
          local.get r i32.const 3 table.grow u drop
          i32.const 4 table.get u
          table.size u
          return
        }";
    let int = |value| vec![Val::I32(value)];
    let mut calls = vec![
        ("host", vec![Val::I32(-3), Val::F64(9.5f64.to_bits())]),
        ("failing", vec![Val::I64(5)]),
        ("failing", vec![Val::I64(-5)]),
        ("tail_host", int(-5)),
        ("many", int(-5)),
        ("calls_many", vec![Val::I32(-5), Val::I32(0)]),
        ("calls_many", vec![Val::I32(-5), Val::I32(1)]),
        ("floats", vec![Val::F64((-2.75f64).to_bits())]),
        ("params_tail", vec![Val::I64(1 << 40)]),
        ("deep", int(30)),
        ("even", int(2_000)),
        ("even", int(2_001)),
        ("references", vec![Val::ExternRef(None)]),
    ];
    for index in [0, 1, 2, 3, 4, 6, -1] {
        calls.push(("indirect", int(index)));
        calls.push(("tail", int(index)));
    }
    let outcomes = compare(&exported(source), &calls);
    assert_eq!(outcomes[0], "0x6");
    assert_eq!(outcomes[2], "error: negative");
    assert_eq!(outcomes[10], "0x1");
}

#[test]
#[cfg_attr(not(feature = "jit"), ignore = "needs native code")]
fn frames_in_linear_memory_are_zeroed_and_given_back() {
    let mut source = String::from(
        "
        memory mem 1
        export \"mem\" memory mem
        frame_stack 1024 1536
        func write(p: i32, v: i64) { local.get p local.get v i64.store return }
        func shared(v: i64, n: i32) -> i64 {
          local x: i64, y: i32
          local.addr x local.get v call write
          local.addr y i32.const 4 i32.add drop
          local.get n br_if more
          local.get x local.get y i64.extend_i32_s i64.add return
        more:
          local.get v i64.const 1 i64.add local.get n i32.const 1 i32.sub call shared
          local.get x i64.add
          return
        }
        func tails(v: i64, n: i32) -> i64 {
          local x: i64
          local.addr x local.get v call write
          local.get x i64.const 1 i64.add
          local.get n br_if more
          return
        more(i64):
          local.get n i32.const 1 i32.sub return_call tails
        }
        func big(v: i64, n: i32) -> i64 {
          local 40 i64
          i32.const 0\n",
    );
    for local in 2..42 {
        writeln!(source, "local.addr {local} i32.add").unwrap();
    }
    source += "drop local.get n i32.eqz br_if done
          local.addr 41 i32.const 8 i32.sub local.get v i64.store
          local.get 40 local.get v i64.const 1 i64.add local.get n i32.const 1 i32.sub call big
          i64.add return
        done:
          local.get 40 return
        }";
    let mut calls = Vec::new();
    for name in ["shared", "tails", "big"] {
        for n in [0, 1, 3, 5, 20, 90] {
            calls.push((name, vec![Val::I64(100), Val::I32(n)]));
        }
    }
    let outcomes = compare(&exported(&source), &calls);
    assert!(outcomes.iter().any(|outcome| outcome.contains("frame stack exhausted")));
}

#[test]
#[cfg_attr(not(feature = "jit"), ignore = "needs native code")]
fn control_flow_of_all_shapes() {
    let source = "
        func switch(k: i32, n: i32) -> i64 {
          local x: i64
          local.get n i64.extend_i32_u
          local.get k br_table [zero, one, two, zero] other
        zero(i64): i64.const 10 i64.add local.set x br out
        one(i64): i64.const 20 i64.mul local.set x br out
        two(i64): local.set x br zero_again
        zero_again: local.get x br zero
        other(i64): drop i64.const -1 local.set x
        out: local.get x return
        }
        func irreducible(c: i32, n: i32) -> i32 {
          local a: i32
          local.get c br_if second
        first:
          local.get a i32.const 3 i32.add local.set a
          local.get n i32.const 1 i32.sub local.set n
        second:
          local.get a i32.const 5 i32.mul local.set a
          local.get n i32.const 0 i32.gt_s br_if first
          local.get a return
        }
        func both(c: i32, n: i32) -> i32 {
          local x: i32
          local.get n local.get c br_if next
        next(i32):
          local.get x i32.add local.get c local.set x
          local.get x br_if other
          return
        other(i32): i32.const 100 i32.add return
        }
        func swap(c: i32, n: i32) -> (i32, i32) {
          local a: i32, b: i32
          local.get c local.set a
          i32.const 7 local.set b
        head:
          local.get n i32.eqz br_if out
          local.get a local.get b local.set a local.set b
          local.get n i32.const 1 i32.sub local.set n
          br head
        out: local.get a local.get b return
        }
        func restart(c: i32, n: i32) -> i32 {
          local.get n i32.const 1 i32.sub local.set n
          local.get c i32.const 2 i32.mul local.set c
          local.get n i32.const 0 i32.gt_s br_if again
          local.get c return
        again: br again2
        again2: local.get n br_if sub
          local.get c return
        sub: local.get c local.get n return_call restart
        }
        func float_loop(c: i32, n: i32) -> f64 {
          local x: f64
        head:
          local.get x f64.const 1.5 f64.add local.tee x
          local.get n f64.convert_i32_s
          f64.lt br_if head
          local.get x return
        }
        func not_less(c: i32, n: i32) -> i32 {
          local.get c f32.convert_i32_s f32.const nan local.get n select
          local.get n f32.convert_i32_s
          f32.lt i32.eqz br_if out
          i32.const 1 return
        out: i32.const 2 return
        }
        func operands(c: i32, n: i32) -> i32 {
          local.get c local.get n
        head(i32, i32):
          i32.const 1 i32.sub dup br_if more
          drop return
        more(i32, i32):
          swap i32.const 3 i32.mul swap br head
        }
        func stops(c: i32, n: i32) { local.get c br_if stop local.get n br_if stop return stop: unreachable }";
    let mut calls = Vec::new();
    for name in [
        "switch",
        "irreducible",
        "both",
        "swap",
        "restart",
        "float_loop",
        "not_less",
        "operands",
        "stops",
    ] {
        for c in [0, 1, 2, 3, 4, -1] {
            for n in [0, 1, 2, 5] {
                if name == "operands" && n == 0 {
                    continue; // Counts down 2^32 times.
                }
                calls.push((name, vec![Val::I32(c), Val::I32(n)]));
            }
        }
    }
    compare(&exported(source), &calls);
}

#[test]
#[cfg_attr(not(feature = "jit"), ignore = "needs native code")]
fn globals_and_bulk_operations() {
    let source = "
        memory mem 1 3
        export \"mem\" memory mem
        table t funcref 4 8
        table x funcref 4
        global a: mut i32 = i32.const -1
        global b: mut f32 = f32.const 1.5
        global c: mut i64 = i64.const 7
        global d: i64 = i64.const 9
        data p \"passive data\"
        elem e func f, f, f
        func f(n: i32) { return }
        func globals(n: i32) -> (i32, f32, i64, i64) {
          global.get a local.get n i32.add global.set a
          global.get b f32.const 2.0 f32.mul global.set b
          global.get c global.get d i64.mul global.set c
          global.get a global.get b global.get c global.get d return
        }
        func before_the_trap(n: i32) {
          i32.const 77 global.set a
          local.get n i32.const 5 i32.store
          i32.const 78 global.set a
          return
        }
        func fill(n: i32) { i32.const 65000 i32.const 200 local.get n memory.fill return }
        func copy(n: i32) { i32.const 64000 i32.const 64990 local.get n memory.copy return }
        func init(n: i32) { local.get n i32.const 2 i32.const 5 memory.init p return }
        func drops(n: i32) { data.drop p elem.drop e return }
        func grow(n: i32) -> (i32, i32) { local.get n memory.grow memory.size return }
        func tinit(n: i32) { local.get n i32.const 1 i32.const 2 table.init e t return }
        func tcopy(n: i32) { i32.const 0 local.get n i32.const 2 table.copy x t return }
        func tfill(n: i32) { local.get n ref.func f i32.const 2 table.fill x return }
        func tgrow(n: i32) -> (i32, i32) { ref.null funcref local.get n table.grow t table.size t return }
        func tget(n: i32) -> i32 { local.get n table.get x ref.is_null return }
        func tset(n: i32) { local.get n ref.func f table.set t return }";
    let mut calls = Vec::new();
    for n in [0, 1, 2, 3, 4, 536, 537, 65_536, -1] {
        for name in [
            "globals",
            "before_the_trap",
            "fill",
            "copy",
            "init",
            "tinit",
            "tcopy",
            "tfill",
            "tget",
            "tset",
            "tgrow",
            "grow",
        ] {
            calls.push((name, vec![Val::I32(n)]));
        }
    }
    calls.push(("drops", vec![Val::I32(0)]));
    calls.push(("init", vec![Val::I32(0)]));
    calls.push(("tinit", vec![Val::I32(0)]));
    compare(&exported(source), &calls);
}

#[test]
#[cfg_attr(not(feature = "jit"), ignore = "needs native code")]
fn many_locals_start_as_zero() {
    let mut source = String::from("func f(n: i32) -> i64 {\n  local 60 i64, 60 i32, 60 f64\n");
    for local in 1..61 {
        writeln!(source, "local.get {local} i64.const {local} i64.add local.set {local}").unwrap();
    }
    source += "i64.const 0\n";
    for local in 1..181 {
        let cast = match local {
            1..61 => "",
            61..121 => "i64.extend_i32_s",
            _ => "i64.trunc_f64_s",
        };
        writeln!(source, "local.get {local} {cast} i64.add").unwrap();
    }
    source += "return }";
    let outcomes = compare(&exported(&source), &[("f", vec![Val::I32(0)])]);
    assert_eq!(outcomes[0], format!("{:#x}", 60 * 61 / 2));
}

#[test]
#[cfg_attr(not(feature = "jit"), ignore = "needs native code")]
fn parameters_on_the_stack_and_results_in_areas_survive_calls_and_tail_calls() {
    /// Far more than registers hold; those of the limits take Cranelift seconds.
    const PARAMS: usize = 150;
    const RESULTS: usize = PARAMS;
    let types = [ValType::I32, ValType::F64, ValType::I64, ValType::F32];
    let list = |n: usize| {
        let names: Vec<&str> = (0..n).map(|i| types[i % types.len()].name()).collect();
        names.join(", ")
    };
    let (params, results) = (list(PARAMS), list(RESULTS));
    let mut source = format!("func wide({params}) -> ({results}) {{\n");
    // Returns its parameters, the integers among them doubled.
    for i in 0..RESULTS {
        let ty = types[i % types.len()].name();
        writeln!(source, "local.get {i} local.get {i} {ty}.add").unwrap();
    }
    source += "return }\n";
    let constants = |source: &mut String| {
        for i in 0..PARAMS {
            let dot = if i % 2 == 1 { ".5" } else { "" };
            writeln!(source, "{}.const {i}{dot}", types[i % types.len()].name()).unwrap();
        }
    };
    writeln!(source, "func tail(a: i32) -> ({results}) {{").unwrap();
    constants(&mut source);
    source += "return_call wide }\n";
    // Sums what comes back, so that each result counts.
    source += "func sum(a: i32) -> (f64, f64) {\n local x: f64, y: f64\n";
    for (callee, sum) in [("wide", "x"), ("tail", "y")] {
        if callee == "wide" {
            constants(&mut source);
        } else {
            source += "local.get a\n";
        }
        writeln!(source, "call {callee}").unwrap();
        for i in (0..RESULTS).rev() {
            let cast = ["f64.convert_i32_s", "", "f64.convert_i64_s", "f64.promote_f32"][i % 4];
            writeln!(
                source,
                "{cast} f64.const {}.0 f64.mul local.get {sum} f64.add local.set {sum}",
                i + 1
            )
            .unwrap();
        }
    }
    source += "local.get x local.get y return }\n";
    let source = source + "export \"sum\" func sum";
    let outcomes = compare(&source, &[("sum", vec![Val::I32(0)])]);
    let halves = |i: usize| if i % 2 == 1 { 0.5 } else { 0.0 };
    let sum: f64 = (0..RESULTS).map(|i| 2.0 * (i as f64 + halves(i)) * (i + 1) as f64).sum();
    assert_eq!(outcomes[0], format!("{0:#x}d {0:#x}d", sum.to_bits()));
}
