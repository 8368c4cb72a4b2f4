//! Values and signatures of all sizes, and statistics of compiling.

use std::fmt::Write as _;

use slotvm::{
    Config, Engine, FuncType, Global, GlobalType, Linker, Module, Store, Tier, V128, Val, ValType,
};

use crate::support::{for_all, instance, instance_with};

/// A list of types of all kinds.
fn types(n: usize, first: usize) -> Vec<ValType> {
    use ValType::{F32, F64, I32, I64, V128};
    (0..n).map(|i| [I32, I64, F32, F64, V128][(i * 3 + first) % 5]).collect()
}

/// A value of a type that encodes its position.
fn val(ty: ValType, i: usize) -> Val {
    match ty {
        ValType::I32 => Val::I32(-(i as i32)),
        ValType::I64 => Val::I64(-(i as i64)),
        ValType::F32 => Val::from(i as f32),
        ValType::F64 => Val::from(-(i as f64)),
        ValType::V128 => Val::V128((u128::MAX - ((i as u128) << 64 | 7)).into()),
        _ => Val::default_for(ty),
    }
}

fn same(a: &[Val], b: &[Val]) {
    let text = |vals: &[Val]| vals.iter().map(|val| format!("{val:?}")).collect::<Vec<_>>();
    assert_eq!(text(a), text(b));
}

#[test]
fn signatures_of_all_sizes() {
    for (n_params, n_results) in [(0, 1), (1, 0), (5, 6), (8, 8), (15, 14), (3, 40), (40, 3)] {
        for_all(|engine| check_signature(engine, n_params, n_results));
    }
}

#[test]
fn the_largest_signatures() {
    // The modes lower calls by the same code, so the default stands for all.
    for (n_params, n_results) in [(1000, 1000), (1000, 0), (0, 1000)] {
        check_signature(&Engine::new(Config::new().tier(Tier::BEST)).unwrap(), n_params, n_results);
    }
}

/// Calls functions with these numbers of parameters and results in all ways.
fn check_signature(engine: &Engine, n_params: usize, n_results: usize) {
    let ty = FuncType::new(types(n_params, 0), types(n_results, 2));
    let list = |types: &[ValType]| types.iter().map(|ty| ty.name()).collect::<Vec<_>>().join(", ");
    let signature = format!("({}) -> ({})", list(&ty.params), list(&ty.results));
    let mut forward = String::new();
    for i in 0..n_params {
        write!(forward, "local.get {i} ").unwrap();
    }
    // Through the host, directly, through a table, and by tail calls of each kind.
    let source = format!(
        r#"import "env" "host" func host{signature}
           table t funcref 2
           elem e t at i32.const 0 func host, direct
           export "direct" func direct
           export "indirect" func indirect
           export "tail" func tail
           export "tail_host" func tail_host
           export "tail_indirect" func tail_indirect
           func direct{signature} {{ {forward} call host return }}
           func indirect{signature} {{ {forward} i32.const 1 call_indirect {signature}, t return }}
           func tail{signature} {{ {forward} return_call direct }}
           func tail_host{signature} {{ {forward} return_call host }}
           func tail_indirect{signature} {{ {forward} i32.const 0 return_call_indirect {signature}, t }}"#
    );
    let params: Vec<Val> = ty.params.iter().enumerate().map(|(i, &ty)| val(ty, i)).collect();
    let expected: Vec<Val> = ty.results.iter().enumerate().map(|(i, &ty)| val(ty, i)).collect();
    let mut linker: Linker<()> = Linker::new(engine);
    let (params_seen, results_given) = (params.clone(), expected.clone());
    linker
        .func_new("env", "host", ty.clone(), move |_, params, results| {
            same(params, &params_seen);
            results.copy_from_slice(&results_given);
            Ok(())
        })
        .unwrap();
    let (mut store, instance) = instance_with(engine, &source, &linker, ());
    for name in ["direct", "indirect", "tail", "tail_host", "tail_indirect"] {
        let func = instance.get_func(&store, name).unwrap();
        assert_eq!(func.ty(&store), ty);
        let mut results = vec![Val::I32(0); n_results];
        func.call(&mut store, &params, &mut results).unwrap();
        same(&results, &expected);
    }
}

#[test]
fn values_must_fit_the_type() {
    for_all(|engine| {
        let (mut store, instance) = instance(
            engine,
            r#"export "f" func f func f(a: i32, b: f64) -> i64 { i64.const 1 return }"#,
        );
        let f = instance.get_func(&store, "f").unwrap();
        let mut one = [Val::I32(0)];
        f.call(&mut store, &[Val::I32(1), Val::from(1.0)], &mut one).unwrap();
        assert_eq!(one[0].i64(), Some(1));
        assert_eq!(one[0].i32(), None);
        let error = f.call(&mut store, &[Val::I32(1)], &mut one).unwrap_err();
        assert_eq!(error.to_string(), "expected values of types [i32, f64], found [i32]");
        assert!(f.call(&mut store, &[Val::I32(1), Val::I32(1)], &mut one).is_err());
        assert!(f.call(&mut store, &[Val::I32(1), Val::from(1.0)], &mut []).is_err());
    });
}

#[test]
#[cfg_attr(not(feature = "jit"), ignore = "needs native code")]
fn compiling_tells_about_each_function() {
    use slotvm::{Config, SlotMode};

    let source = r#"
        import "env" "f" func imported()
        func first(n: i64) -> i64 {
          local sum: i64
        next:
          local.get n i64.eqz br_if done
          local.get sum local.get n i64.add local.set sum
          local.get n i64.const 1 i64.sub local.set n
          br next
        done:
          local.get sum return
        }
        func second() { return }"#;
    for slots in SlotMode::ALL {
        let engine = Engine::new(Config::new().tier(Tier::BEST).slots(slots)).unwrap();
        let module = crate::support::module(&engine, source);
        let functions = module.functions();
        let names: Vec<_> = functions.iter().map(|f| (f.func, f.name.as_str())).collect();
        assert_eq!(names, [(1, "first"), (2, "second")]);
        let sizes = functions[0].sizes;
        let expected = match slots {
            // Of the loop, and of the sum where it ends.
            SlotMode::Ssa => (3, 0),
            // Variables are promoted by Cranelift; the IR has none.
            SlotMode::Variables => (0, 0),
            _ => (0, 16),
        };
        assert_eq!((sizes.n_phis, sizes.slot_bytes), expected, "{slots}");
        assert_eq!(functions[0].promotion.is_some(), slots == SlotMode::Ssa);
        let code_bytes: usize = functions.iter().map(|f| f.sizes.code_bytes).sum();
        assert!(sizes.code_bytes > 10 && code_bytes <= module.code_bytes());
        let timings = module.timings();
        assert!(timings.of("asm") > std::time::Duration::ZERO);
        assert!(timings.total() >= timings.of("asm") + timings.of("verify"));
        let clif = module.clif(1).unwrap().unwrap();
        assert!(clif.starts_with("function"), "{clif}");
        assert_eq!(clif.contains("explicit_slot"), slots.is_memory(), "{clif}");
        assert!(module.asm(2).unwrap().unwrap().contains("ret"));
        assert_eq!(module.clif(0).unwrap(), None);
        assert_eq!(module.clif(99).unwrap(), None);
    }
}

#[test]
fn vectors_are_scalars_of_the_typed_interface() {
    let source = r#"
        import "env" "swap" func swap(i32, v128, i64) -> (v128, i64, v128)
        import "env" "g" global g: mut v128
        global own: mut v128 = v128.const i64x2 1 2
        export "f" func f
        export "own" global own
        func f(a: v128, b: i32) -> (v128, i64, v128) {
          global.get g
          global.set own
          local.get a
          global.set g
          local.get b
          local.get a
          i64.const 5
          call swap
          return
        }"#;
    for_all(|engine| {
        let mut store = Store::new(engine, ());
        let mut linker = Linker::new(engine);
        let swap = |a: i32, v: V128, b: i64| (V128::from(!v.as_u128()), i64::from(a) + b, v);
        linker.func_wrap("env", "swap", swap).unwrap();
        let ty = GlobalType { ty: ValType::V128, mutable: true };
        let global = Global::new(&mut store, ty, Val::V128(3.into())).unwrap();
        linker.define(&store, "env", "g", global).unwrap();
        let module = Module::from_text(engine, source).unwrap();
        let instance = linker.instantiate(&mut store, &module).unwrap();
        let own = instance.get_global(&store, "own").unwrap();
        assert_eq!(own.get(&store).unwrap_v128().as_u128(), 2 << 64 | 1);
        let f = instance.get_typed_func::<(V128, i32), (V128, i64, V128)>(&store, "f").unwrap();
        let v = V128::from(0x0123_4567_89ab_cdef_0011_2233_4455_6677);
        let results = f.call(&mut store, (v, -9)).unwrap();
        assert_eq!(results, (V128::from(!v.as_u128()), -4, v));
        assert_eq!(global.get(&store).v128(), Some(v));
        assert_eq!(own.get(&store).v128(), Some(V128::from(3)));
        own.set(&mut store, Val::V128(v)).unwrap();
        assert_eq!(own.get(&store).v128(), Some(v));
        assert!(own.set(&mut store, Val::I64(1)).is_err());
        assert!(instance.get_typed_func::<(V128, i64), V128>(&store, "f").is_err());
    });
}
