//! Functions that are compiled when they are first called.

use std::sync::Barrier;

use slotvm::{
    Compile, Config, Engine, Error, Instance, Linker, Module, SlotMode, Store, Tier, Val,
};

use crate::support::{frames, instance, instance_with, marked, module};

fn lazy() -> Engine {
    Engine::new(Config::new().tier(Tier::Jit).compile(Compile::Lazy)).unwrap()
}

fn compiled(module: &Module) -> Vec<&str> {
    module.functions().iter().map(|function| &*function.name).collect()
}

/// An engine that compiles each function, since it inlines none.
fn lazy_without_inlining() -> Engine {
    let passes = "-inline".parse().unwrap();
    Engine::new(Config::new().tier(Tier::Jit).compile(Compile::Lazy).passes(passes)).unwrap()
}

#[test]
fn what_is_not_called_is_not_compiled() {
    let engine = lazy_without_inlining();
    let module = module(
        &engine,
        "export \"f\" func f
         func never() -> i32 { i32.const 1 return }
         func f(n: i32) -> i32 { local.get n br_if more i32.const 7 return
         more: local.get n call g return }
         func g(n: i32) -> i32 { local.get n i32.const 1 i32.sub call f return }",
    );
    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &module, &[]).unwrap();
    let f = instance.get_typed_func::<i32, i32>(&store, "f").unwrap();
    assert!(compiled(&module).is_empty());
    let bytes = module.code_bytes();
    assert_eq!(f.call(&mut store, 0).unwrap(), 7);
    assert_eq!(compiled(&module), ["f"]);
    assert_eq!(f.call(&mut store, 3).unwrap(), 7);
    assert_eq!(compiled(&module), ["f", "g"]);
    assert!(module.code_bytes() > bytes);
    // Another store has what is compiled.
    let mut other = Store::new(&engine, ());
    let instance = Instance::new(&mut other, &module, &[]).unwrap();
    let f = instance.get_typed_func::<i32, i32>(&other, "f").unwrap();
    assert_eq!(f.call(&mut other, 2).unwrap(), 7);
    assert_eq!(module.functions().len(), 2);
}

/// More integers and floats than registers, and more results.
#[test]
fn a_first_call_has_all_its_arguments() {
    let types = ["i32", "f64", "i64", "f32"];
    let n = 40;
    let params: Vec<String> = (0..n).map(|i| format!("p{i}: {}", types[i % 4])).collect();
    let results = vec![types; n / 4].concat().join(", ");
    let gets: String = (0..n).map(|i| format!("local.get {i} ")).collect();
    // Twice the results: what is passed on, by a call, an indirect call or in place of this function.
    let source = format!(
        "table t funcref 1
         elem e t at i32.const 0 func direct
         export \"direct\" func direct
         export \"call\" func call_it
         export \"indirect\" func indirect
         export \"tail\" func tail
         func direct({params}) -> ({results}) {{ {gets} return }}
         func again({params}) -> ({results}) {{ {gets} return }}
         func last({params}) -> ({results}) {{ {gets} return }}
         func call_it({params}) -> ({results}) {{ {gets} call again return }}
         func indirect({params}) -> ({results}) {{ {gets} i32.const 0 call_indirect ({plain}) -> ({results}), t return }}
         func tail({params}) -> ({results}) {{ {gets} return_call last }}",
        params = params.join(", "),
        plain = results,
    );
    let args: Vec<Val> = (0..n)
        .map(|i| match i % 4 {
            0 => Val::I32(i as i32 - 5),
            1 => Val::F64((i as f64 / 3.0).to_bits()),
            2 => Val::I64(i64::MIN + i as i64),
            _ => Val::F32((i as f32 / 7.0).to_bits()),
        })
        .collect();
    for export in ["indirect", "direct", "call", "tail"] {
        let (mut store, instance) = instance(&lazy(), &source);
        let f = instance.get_func(&store, export).unwrap();
        for _ in 0..2 {
            let mut results = vec![Val::I32(0); n];
            f.call(&mut store, &args, &mut results).unwrap();
            assert_eq!(format!("{results:?}"), format!("{args:?}"), "{export}");
        }
    }
}

#[test]
fn traps_of_a_first_call_have_their_places() {
    let source = "\
        export \"f\" func f
        func f(n: i32) -> i32 {
          local.get n call g ; here
          return
        }
        func g(n: i32) -> i32 {
          i32.const 1 local.get n i32.div_s ; here
          return
        }";
    let (mut store, instance) = instance(&lazy(), source);
    let f = instance.get_typed_func::<i32, i32>(&store, "f").unwrap();
    for _ in 0..2 {
        let found = frames(&f.call(&mut store, 0).unwrap_err());
        let lines = marked(source, "here");
        assert_eq!(found, [("g".to_owned(), lines[1]), ("f".to_owned(), lines[0])]);
    }
    assert_eq!(f.call(&mut store, 1).unwrap(), 1);
}

/// A function whose calls have too many operands for its size.
fn with_a_bomb() -> String {
    let wide = vec!["i64"; 1_000].join(", ");
    let dups = "dup ".repeat(999);
    let calls = "call wide ".repeat(3_000);
    let drops = "drop ".repeat(999);
    format!(
        "table t funcref 1
         elem e t at i32.const 0 func bomb
         import \"env\" \"host\" func host() -> i64
         export \"bomb\" func bomb
         export \"call\" func call_it
         export \"indirect\" func indirect
         export \"tail\" func tail
         export \"fine\" func fine
         func wide({params}) -> ({wide}) {{ {gets} return }}
         func bomb() -> i64 {{ i64.const 1 {dups} {calls} {drops} return }}
         func call_it() -> i64 {{ call bomb return }}
         func indirect() -> i64 {{ i32.const 0 call_indirect () -> i64, t return }}
         func tail() -> i64 {{ return_call bomb }}
         func fine() -> i64 {{ call host return }}",
        params = (0..1_000).map(|i| format!("p{i}: i64")).collect::<Vec<_>>().join(", "),
        gets = (0..1_000).map(|i| format!("local.get {i} ")).collect::<String>(),
    )
}

#[test]
fn what_cannot_be_compiled_is_an_error_of_each_call() {
    for signals in [true, false] {
        let mut config = Config::new();
        config.tier(Tier::Jit).compile(Compile::Lazy).signals_based_traps(signals);
        let engine = Engine::new(&config).unwrap();
        let mut linker = Linker::new(&engine);
        linker.func_wrap("env", "host", || 5_i64).unwrap();
        let (mut store, instance) = instance_with(&engine, &with_a_bomb(), &linker, ());
        let func =
            |store: &Store<()>, name| instance.get_typed_func::<(), i64>(store, name).unwrap();
        for name in ["bomb", "call", "indirect", "tail", "call", "bomb"] {
            let error = func(&store, name).call(&mut store, ()).unwrap_err();
            assert!(matches!(error, Error::Compile(_)), "{name}: {error}");
            assert!(error.to_string().contains("function bomb cannot be compiled"), "{error}");
            assert_eq!(func(&store, "fine").call(&mut store, ()).unwrap(), 5);
        }
    }
}

#[test]
fn threads_compile_each_function_once() {
    let n = 40;
    let mut source = String::from("export \"f\" func f0\n");
    for i in 0..n {
        let next = (i + 1) % n;
        source += &format!(
            "func f{i}(n: i32) -> i32 {{ local.get n br_if more i32.const {i} return
             more: local.get n i32.const 1 i32.sub call f{next} return }}\n"
        );
    }
    let engine = lazy_without_inlining();
    let module = module(&engine, &source);
    let start = Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut store = Store::new(&engine, ());
                let instance = Instance::new(&mut store, &module, &[]).unwrap();
                let f = instance.get_typed_func::<i32, i32>(&store, "f").unwrap();
                start.wait();
                for depth in [0, 7, 90] {
                    assert_eq!(f.call(&mut store, depth).unwrap(), depth % n);
                }
            });
        }
    });
    let mut names: Vec<_> = compiled(&module);
    names.dedup();
    assert_eq!(names.len(), n as usize);
}

/// Code that is larger than the first part of the memory for it, and function by function.
#[test]
fn there_is_room_for_many_functions() {
    let n = 1_200;
    let mut source = String::from("export \"f\" func f0\n");
    for i in 0..n {
        source += &match i + 1 < n {
            true => {
                format!("func f{i}() -> i32 {{ call f{} i32.const 1 i32.add return }}\n", i + 1)
            }
            false => format!("func f{i}() -> i32 {{ i32.const 1 return }}\n"),
        };
    }
    let (mut store, instance) = instance(&lazy(), &source);
    let f = instance.get_typed_func::<(), i32>(&store, "f").unwrap();
    assert_eq!(f.call(&mut store, ()).unwrap(), n);
}

/// The compiler takes more than the smaller one of these stacks. On that no guest code runs: there must be
/// room for host functions.
#[test]
fn modules_are_compiled_on_small_stacks() {
    let mut source = String::from("memory m 1\nexport \"f\" func f\nfunc f(n: i32) -> i32 {\n");
    for i in 0..2_000 {
        source += &format!("local.get n i32.const {i} i32.mul local.tee n br_if a{i}\n");
        source += &format!("i32.const 8 local.get n i32.store 0 a{i}:\n");
    }
    source += "local.get n return }";
    let check = |compile: Compile, slots: SlotMode, calls: bool| {
        let mut config = Config::new();
        config.tier(Tier::Jit).slots(slots).compile(compile);
        let (mut store, instance) = instance(&Engine::new(&config).unwrap(), &source);
        let f = instance.get_typed_func::<i32, i32>(&store, "f").unwrap();
        if calls {
            assert_eq!(f.call(&mut store, 3).unwrap(), 0);
        }
    };
    for (kib, calls) in [(64, false), (256, true)] {
        for compile in [Compile::Eager, Compile::Lazy] {
            for slots in SlotMode::ALL {
                std::thread::scope(|scope| {
                    let builder = std::thread::Builder::new().stack_size(kib << 10);
                    let check = || check(compile, slots, calls);
                    builder.spawn_scoped(scope, check).unwrap().join().unwrap();
                });
            }
        }
    }
}
