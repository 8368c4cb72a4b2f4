//! The API is the same in builds with and without native code.

use std::path::Path;

use slotvm::compiler::{FunctionInfo, OnTheFly, PromoteOptions};
use slotvm::{
    CRANELIFT_VERSION, Compile, Config, Engine, Error, Instance, Module, ProfilingStrategy,
    SlotMode, Store, Tier, host_target,
};

use crate::safety::sources;

const HAS_JIT: bool = cfg!(feature = "jit");

#[test]
fn an_engine_of_a_tier_that_the_build_lacks_is_an_error() {
    assert_eq!(Tier::ALL.contains(&Tier::Jit), HAS_JIT);
    assert_eq!(Tier::BEST, if HAS_JIT { Tier::Jit } else { Tier::Interpreter });
    let default = if HAS_JIT { Tier::Auto } else { Tier::Interpreter };
    assert_eq!((Tier::default(), Engine::default().tier()), (default, default));
    assert_eq!(CRANELIFT_VERSION.is_empty(), !HAS_JIT);
    assert!(host_target().starts_with(std::env::consts::ARCH), "{}", host_target());
    for tier in [Tier::Interpreter, Tier::Jit] {
        match Engine::new(Config::new().tier(tier)) {
            Ok(engine) => {
                assert!(Tier::ALL.contains(&tier));
                assert_eq!(engine.tier(), tier);
            }
            Err(error) => {
                assert!(!HAS_JIT && tier == Tier::Jit, "{error}");
                assert!(matches!(error, Error::Compile(_)), "{error:?}");
                let message =
                    "this build of slotvm lacks the feature `jit`, which makes native code";
                assert_eq!(error.to_string(), message);
            }
        }
    }
}

#[test]
fn an_engine_that_interprets_takes_all_options_and_tells_of_no_native_code() {
    let mut config = Config::new();
    config
        .tier(Tier::Interpreter)
        .slots(SlotMode::Memory)
        .promotion(PromoteOptions::default())
        .on_the_fly(OnTheFly::default())
        .profiler(ProfilingStrategy::None)
        .signals_based_traps(false)
        .compile(Compile::Lazy)
        .parallel_compilation(true)
        .debug_info(true)
        .verify_passes(true);
    let engine = Engine::new(&config).unwrap();
    let source = "export \"f\" func f\nfunc f() -> i32 { i32.const 7 return }";
    let module = Module::from_text(&engine, source).unwrap();
    let functions: Vec<&FunctionInfo> = module.functions();
    assert!(functions.is_empty());
    assert_eq!(module.code_bytes(), 0);
    assert_eq!(module.clif(0).unwrap(), None);
    assert_eq!(module.asm(0).unwrap(), None);
    assert_eq!(module.machine_code(0).unwrap(), None);
    assert_eq!(engine.machine_features(), []);
    assert!(module.timings().of("asm").is_zero());
    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &module, &[]).unwrap();
    let f = instance.get_typed_func::<(), i32>(&store, "f").unwrap();
    assert_eq!(f.call(&mut store, ()).unwrap(), 7);
}

/// Modules of the crate are private, so what a build exports is up to the `pub use` items of `lib.rs`, and
/// to public items in modules that both builds have. None of these may depend on the feature.
#[test]
fn the_feature_decides_over_private_modules_and_the_list_of_tiers_only() {
    let mut n_found = 0;
    for path in sources(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
        for pair in lines.windows(2).filter(|pair| is_conditional(pair[0])) {
            let item = pair[1].strip_prefix("pub(crate) ").unwrap_or(pair[1]);
            let is_private = ["mod ", "use "].iter().any(|start| item.starts_with(start));
            assert!(
                is_private || ["Tier::Auto,", "Tier::Jit,"].contains(&pair[1]),
                "{}: {pair:?}",
                path.display()
            );
            n_found += 1;
        }
    }
    assert!(n_found > 10, "the attributes are not found any more");
}

fn is_conditional(line: &str) -> bool {
    line.contains("cfg") && line.contains("feature = \"jit\"")
}
