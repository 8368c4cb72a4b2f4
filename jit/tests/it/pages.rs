//! Permissions of the pages that hold compiled code.

use std::sync::atomic::{AtomicBool, Ordering};

use slotvm::{Compile, Config, Engine, Func, Instance, Module, Store, Tier};

/// Mappings that can be both written and executed.
fn writable_code() -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("this is Linux");
    let permissions =
        |line: &str| line.split_whitespace().nth(1).expect("each has them").to_owned();
    assert!(maps.lines().any(|line| permissions(line).starts_with("r-xp")), "{maps}");
    let both = |line: &&str| permissions(line).contains('w') && permissions(line).contains('x');
    maps.lines().filter(both).map(str::to_owned).collect()
}

/// While one thread looks at the pages all the time, another one compiles: whole modules, functions when they
/// are called, and trampolines.
#[test]
fn no_page_is_writable_and_executable() {
    let function = |i: i64| {
        format!(
            "export \"f{i}\" func f{i}\nfunc f{i}(n: i64) -> i64 {{ local.get n call host i64.const {i} i64.add return }}\n"
        )
    };
    let source: String = (0..30).map(function).collect();
    let source = format!("import \"e\" \"h\" func host(i64) -> i64\n{source}");
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let mut n_looks = 0;
            while !is_done.load(Ordering::Relaxed) || n_looks == 0 {
                let found = writable_code();
                assert!(found.is_empty(), "{found:?}");
                n_looks += 1;
            }
        });
        for compile in [Compile::Eager, Compile::Lazy] {
            let engine = Engine::new(Config::new().tier(Tier::Jit).compile(compile));
            let engine = engine.expect("there is native code");
            let module = Module::from_text(&engine, &source).expect("it is well-typed");
            let mut store = Store::new(&engine, ());
            let host = Func::wrap(&mut store, |n: i64| n).expect("there is memory for it");
            let instance = Instance::new(&mut store, &module, &[host.into()]).expect("it fits");
            for i in 0..30 {
                let f = instance.get_typed_func::<i64, i64>(&store, &format!("f{i}"));
                assert_eq!(f.expect("it is exported").call(&mut store, 1).expect("it ends"), i + 1);
            }
        }
        is_done.store(true, Ordering::Relaxed);
        looking.join().expect("it has found nothing");
    });
}
