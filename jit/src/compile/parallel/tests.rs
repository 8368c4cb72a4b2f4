//! The code is the same, whichever threads make it.

use std::fmt::Write as _;
use std::path::Path;

use slotvm_bytecode::{decode, text, verify};

use super::*;
use crate::compiler::FunctionInfo;
use crate::native::module::memory_plan;
use crate::{Config, Engine, Module, SlotMode, Tier};

/// A way to compile a module.
fn options(engine: &Engine, module: &VerifiedModule) -> CompileOptions {
    let native = engine.native().expect("the engine makes native code");
    native.compile_options(memory_plan(native.config(), module))
}

/// Compiled functions as text, for comparison.
fn describe(compiled: &[Option<CompiledFunction>]) -> String {
    let mut text = String::new();
    for function in compiled {
        let Some(function) = function else {
            text.push_str("none\n");
            continue;
        };
        let code = &function.code;
        let (work, sizes, promotion) = (function.work, function.sizes, function.promotion);
        let relocs: Vec<String> = code.relocs.iter().map(|reloc| reloc.describe()).collect();
        writeln!(text, "{:x?} {} {relocs:?}", code.bytes, code.alignment).unwrap();
        writeln!(text, "{:?} {:?} {:?}", code.traps, code.calls, code.places).unwrap();
        writeln!(text, "{work:?} {sizes:?} {promotion:?}").unwrap();
    }
    text
}

/// Runs a check in pools of several sizes.
fn in_pools(check: impl Fn() + Sync) {
    for n_threads in [1, 2, 4] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(&check);
    }
}

fn check_same(module: &VerifiedModule, slots: SlotMode) {
    let engine = Engine::new(Config::new().tier(Tier::BEST).slots(slots)).unwrap();
    let options = options(&engine, module);
    let budget = Budget::new(module);
    let expected = describe(&compile_all(module, options.clone(), &budget, false).unwrap());
    in_pools(|| {
        let found = compile_all(module, options.clone(), &budget, true).unwrap();
        assert!(describe(&found) == expected, "{slots}: {:?}", module.module().names.module);
    });
}

#[test]
fn programs_are_the_same_to_the_byte() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs");
    let mut n_functions = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "bc") {
            let module = verify(decode(&std::fs::read(path).unwrap()).unwrap()).unwrap();
            n_functions += module.module().funcs.len();
            check_same(&module, SlotMode::Ssa);
        }
    }
    assert!(n_functions > 100, "{n_functions}");
}

/// Functions of many sizes, which call each other.
fn many_functions() -> VerifiedModule {
    let mut source = String::new();
    for i in 0..300 {
        let adds = "local.get n i64.const 3 i64.mul local.get m i64.add local.set n ";
        let adds = adds.repeat(i * 7 % 60);
        let other = (i * 31 + 7) % 300;
        writeln!(
            source,
            "func f{i}(n: i64, m: i64) -> i64 {{
               again: {adds} local.get n local.get m call f{other} local.set m
               local.get n i64.const 1 i64.sub local.tee n i64.eqz i32.eqz br_if again
               local.get m return }}"
        )
        .unwrap();
    }
    verify(text::parse(&source).unwrap()).unwrap()
}

#[test]
fn many_functions_are_the_same_to_the_byte() {
    let module = many_functions();
    for slots in SlotMode::ALL {
        check_same(&module, slots);
    }
}

#[test]
fn the_error_is_that_of_the_first_function_that_has_one() {
    // Each call gives a thousand results, which the end of its block forgets.
    let calls = "call g ".repeat(900);
    let blocks: String = (0..20).map(|i| format!("l{i}: {calls} unreachable\n")).collect();
    let results = vec!["i64"; 1_000].join(", ");
    let mut source = format!("func g() -> ({results}) {{ unreachable }}\n");
    for i in 0..40 {
        let body = if matches!(i, 11 | 12 | 30) { &blocks } else { "return" };
        writeln!(source, "func f{i}() {{ {body} }}").unwrap();
    }
    let module = verify(text::parse(&source).unwrap()).unwrap();
    let engine = Engine::new(Config::new().tier(Tier::BEST)).unwrap();
    let budget = Budget::new(&module);
    in_pools(|| {
        let error = compile_all(&module, options(&engine, &module), &budget, true).err().unwrap();
        assert_eq!((error.func, error.name.as_str()), (12, "f11"));
    });
}

#[test]
fn engines_compile_in_parallel_if_they_are_asked_to() {
    let module = std::sync::Arc::new(many_functions());
    let functions = |parallel| {
        let engine =
            Engine::new(Config::new().tier(Tier::BEST).parallel_compilation(parallel)).unwrap();
        let module = Module::from_verified(&engine, module.clone()).unwrap();
        // All but the times.
        let facts = |info: &&FunctionInfo| {
            (info.func, info.name.clone(), info.work, info.sizes, info.promotion)
        };
        let functions: Vec<_> = module.functions().iter().map(facts).collect();
        (functions, module.code_bytes())
    };
    let expected = functions(false);
    in_pools(|| assert!(functions(true) == expected));
    // On the global pool, too.
    assert!(functions(true) == expected);
}

/// Functions whose callers have all inlined them have no code, unless something else can enter them.
#[test]
fn what_nothing_enters_has_no_code() {
    let source = "
        export \"exported\" func exported
        export \"main\" func main
        table t funcref 1
        elem e t at i32.const 0 func in_table
        func leaf(n: i64) -> i64 { local.get n i64.const 3 i64.add return }
        func middle(n: i64) -> i64 { local.get n call leaf return }
        func exported(n: i64) -> i64 { local.get n call leaf return }
        func in_table(n: i64) -> i64 { local.get n call leaf return }
        func never_called(n: i64) -> i64 { local.get n i64.const 1 i64.add return }
        func has_loop(n: i64) -> i64 {
        again: local.get n i64.const 4 i64.sub call leaf local.tee n i64.eqz i32.eqz br_if again
          local.get n return }
        func main(n: i64) -> i64 {
          local.get n call middle call exported call in_table call has_loop return }";
    let module = verify(text::parse(source).unwrap()).unwrap();
    let names = |passes: &str| {
        let engine =
            Engine::new(Config::new().tier(Tier::BEST).passes(passes.parse().unwrap())).unwrap();
        let module = Module::from_verified(&engine, module.clone()).unwrap();
        let names: Vec<String> = module.functions().iter().map(|f| f.name.clone()).collect();
        assert_eq!(module.native().unwrap().codes().len(), names.len());
        let mut store = crate::Store::new(&engine, ());
        let instance = crate::Instance::new(&mut store, &module, &[]).unwrap();
        let main = instance.get_typed_func::<i64, i64>(&store, "main").unwrap();
        assert_eq!(main.call(&mut store, 5).unwrap(), 0);
        names
    };
    assert_eq!(names("all"), ["exported", "in_table", "never_called", "has_loop", "main"]);
    let all = ["leaf", "middle", "exported", "in_table", "never_called", "has_loop", "main"];
    assert_eq!(names("-inline"), all);
}
