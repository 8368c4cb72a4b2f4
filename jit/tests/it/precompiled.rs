//! Code that outlives its engine: precompiled modules and caches.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use slotvm::{
    Cache, CacheConfig, Compile, Config, Engine, Error, Linker, MemoryPlan, Module, SlotMode,
    Store, Tier, TierCompilation, TierThresholds,
};
use tempfile::TempDir;

const KEY: [u8; 32] = [7; 32];

/// Functions with loops, calls of all kinds, traps with places, results in memory, and memory.
const SOURCE: &str = r#"
    import "host" "twice" func twice(a: i64) -> i64
    memory m 1
    table t funcref 3
    elem e t at i32.const 0 func square, cube
    export "sum" func sum
    export "deep" func deep
    export "all" func all
    export "load" func load
    func square(a: i64) -> i64 { local.get a  local.get a  i64.mul return }
    func cube(a: i64) -> i64 { local.get a  local.get a  call square  i64.mul return }
    func sum(n: i32) -> i64 {
        local i: i32
        local total: i64
      again:
        local.get total
        local.get i
        i64.extend_i32_s
        local.get i
        i32.const 3
        i32.rem_u
        call_indirect (i64) -> i64, t
        call twice
        i64.add
        local.set total
        local.get i
        i32.const 1
        i32.add
        local.tee i
        local.get n
        i32.lt_s
        br_if again
        local.get total
        return
    }
    func divide(a: i32, b: i32) -> i32 { local.get a  local.get b  i32.div_s return }
    func inner(a: i32) -> i32 { i32.const 100  local.get a  call divide return }
    func deep(a: i32) -> i64 {
        local.get a  i32.const 3  i32.sub  call inner  i64.extend_i32_s return
    }
    func several(a: i64) -> (i64, i64, i64, i64, i64, i64, i64, i64) {
        local.get a local.get a local.get a local.get a
        local.get a local.get a local.get a local.get a
        return
    }
    func all(a: i32) -> i64 {
        local.get a
        i64.extend_i32_s
        call several
        i64.add i64.add i64.add i64.add i64.add i64.add i64.add
        return
    }
    func load(a: i32) -> i64 { local.get a  i64.load 65528  return }"#;

/// The results of the functions of [`SOURCE`], and their errors with the frames.
fn outcomes(module: &Module) -> Vec<String> {
    let engine = module.engine();
    let mut linker = Linker::<()>::new(engine);
    linker.func_wrap("host", "twice", |a: i64| 2 * a).unwrap();
    let mut store = Store::new(engine, ());
    // Those that have neither need neither.
    _ = store.set_fuel(100_000);
    store.set_epoch_deadline(1);
    let instance = linker.instantiate(&mut store, module).unwrap();
    let mut outcomes = Vec::new();
    for name in ["sum", "deep", "all", "load"] {
        let func = instance.get_typed_func::<i32, i64>(&store, name).unwrap();
        for argument in [1, 2, 3, 0, 1] {
            let result = func.call(&mut store, argument);
            outcomes.push(format!("{name} {argument}: {result:?}"));
        }
    }
    outcomes
}

fn config(change: impl FnOnce(&mut Config)) -> Config {
    let mut config = Config::new();
    config.tier(Tier::Jit).code_key(Some(KEY));
    change(&mut config);
    config
}

fn engine(change: impl FnOnce(&mut Config)) -> Engine {
    Engine::new(&config(change)).unwrap()
}

type Change = fn(&mut Config);

/// Changes of a configuration. But for the first ones, code of the one is not good for another.
const CHANGES: [(&str, Change); 15] = [
    ("", |_| {}),
    ("", |config| _ = config.compile(Compile::Lazy)),
    ("", |config| _ = config.parallel_compilation(true)),
    ("", |config| {
        let thresholds = TierThresholds { calls: 1, rounds: 1 };
        config.tier(Tier::Auto).tier_thresholds(Some(thresholds));
        config.tier_compilation(TierCompilation::Synchronous);
    }),
    ("", |config| _ = config.tier(Tier::Auto)),
    ("", |config| _ = config.debug_info(true)),
    ("slots", |config| _ = config.slots(SlotMode::MemoryOpt)),
    ("passes", |config| _ = config.passes("-inline".parse().unwrap())),
    ("fuel", |config| _ = config.consume_fuel(true)),
    ("polls", |config| _ = config.epoch_interruption(true)),
    ("deterministic stack", |config| _ = config.deterministic_stack(Some(10_000))),
    ("enable_nan_canonicalization", |config| _ = config.canonical_nans(true)),
    ("memory", |config| _ = config.memory(Some(MemoryPlan::CHECKED))),
    ("traps by signals", |config| _ = config.signals_based_traps(false)),
    ("construction", |config| _ = config.on_the_fly(Default::default())),
];

#[test]
fn precompiled_modules_do_what_others_do() {
    let interpreter = Engine::new(Config::new().tier(Tier::Interpreter)).unwrap();
    let expected = outcomes(&Module::from_text(&interpreter, SOURCE).unwrap());
    assert!(expected.iter().any(|outcome| outcome.contains("DivisionByZero")), "{expected:#?}");
    for (i, (name, change)) in CHANGES.into_iter().enumerate() {
        let name = format!("{i} {name}");
        let precompiled = engine(change).precompile_module(SOURCE).unwrap();
        let module = Module::deserialize_authenticated(&engine(change), &precompiled).unwrap();
        assert_eq!(outcomes(&module), expected, "{name}");
        assert!(module.functions().is_empty(), "{name}: all of them were kept");
        // What was made of it is as good.
        let again = module.serialize().unwrap();
        let module = Module::deserialize_authenticated(&engine(change), &again).unwrap();
        assert_eq!(outcomes(&module), expected, "{name}");
        assert!(module.functions().is_empty(), "{name}: all of them were kept");
        assert_eq!(module.serialize().unwrap(), again, "{name}");
        // So is what a module of another origin has, before and after it ran.
        let made = Module::from_text(&engine(change), SOURCE).unwrap();
        for _ in 0..2 {
            let bytes = made.serialize().unwrap();
            let module = Module::deserialize_authenticated(&engine(change), bytes).unwrap();
            assert_eq!(outcomes(&module), expected, "{name}");
            assert!(module.functions().is_empty(), "{name}: all of them were kept");
            assert_eq!(outcomes(&made), expected, "{name}");
        }
    }
}

fn refusal(result: Result<Module, Error>) -> String {
    match result {
        Err(Error::Precompiled(error)) => error.to_string(),
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("the module is accepted"),
    }
}

#[test]
fn code_is_for_engines_that_would_have_made_the_same() {
    for (i, (name, made)) in CHANGES.into_iter().enumerate() {
        let precompiled = engine(made).precompile_module(SOURCE).unwrap();
        for (j, (other, used)) in CHANGES.into_iter().enumerate() {
            let result = Module::deserialize_authenticated(&engine(used), &precompiled);
            if name == other || i == j {
                result.unwrap();
                continue;
            }
            let refusal = refusal(result);
            let named =
                |name: &str| !name.is_empty() && refusal.contains(&format!("its {name} is"));
            assert!(
                refusal.starts_with("a precompiled module for another engine")
                    && (named(name) || named(other) || refusal.contains("opt_level")),
                "{name}, {other}: {refusal}"
            );
        }
    }
}

#[test]
fn whoever_has_no_key_says_so() {
    let with_key = engine(|_| {});
    let other_key = engine(|config| _ = config.code_key(Some([8; 32])));
    let without = engine(|config| _ = config.code_key(None));
    let (by_key, by_none) =
        (with_key.precompile_module(SOURCE).unwrap(), without.precompile_module(SOURCE).unwrap());
    let changed = "a precompiled module that was changed, or that has another key";
    assert_eq!(refusal(Module::deserialize_authenticated(&other_key, &by_key)), changed);
    assert_eq!(refusal(Module::deserialize_authenticated(&with_key, &by_none)), changed);
    let none = "the engine has no key to authenticate code by";
    assert_eq!(refusal(Module::deserialize_authenticated(&without, &by_none)), none);
    // SAFETY: the bytes are what the engines have returned.
    unsafe {
        assert_eq!(refusal(Module::deserialize(&without, &by_key)), changed);
        Module::deserialize(&without, &by_none).unwrap();
    }
    let interpreter = engine(|config| _ = config.tier(Tier::Interpreter));
    let no_code = "the engine makes no native code";
    assert_eq!(refusal(Module::deserialize_authenticated(&interpreter, &by_key)), no_code);
    assert_eq!(interpreter.precompile_module(SOURCE).unwrap_err().to_string(), no_code);
    let other_door = "a precompiled module, which has to be deserialized";
    assert_eq!(refusal(Module::new(&with_key, &by_key)), other_door);
    assert_eq!(with_key.precompile_module(&by_key).unwrap_err().to_string(), other_door);
    for bytes in [&b""[..], b"\0slotvm", b"\0asm\x01\0\0\0", SOURCE.as_bytes()] {
        let refusal = refusal(Module::deserialize_authenticated(&with_key, bytes));
        assert_eq!(refusal, "not a precompiled module");
    }
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((self.0 >> 33) % n as u64) as usize
    }
}

/// Changes of files: as many as `SLOTVM_GENERATED` says.
#[test]
fn changed_code_is_refused_or_compiled_anew() {
    let n = std::env::var("SLOTVM_GENERATED").map_or(1000, |n| n.parse().unwrap());
    let engine = engine(|_| {});
    let one = engine.precompile_module(SOURCE).unwrap();
    let other_source = SOURCE.replace("i64.mul", "i64.add");
    let other = engine.precompile_module(&other_source).unwrap();
    let module = Module::deserialize_authenticated(&engine, &one).unwrap();
    let expected = outcomes(&module);
    let other_module = Module::deserialize_authenticated(&engine, &other).unwrap();
    assert_ne!(outcomes(&other_module), expected);
    let mut random = Random(1);
    let (mut n_refused, mut n_compiled) = (0, 0);
    for i in 0..n {
        let mut changed = one.clone();
        match i % 4 {
            0 => changed[random.below(one.len())] ^= 1 << random.below(8),
            1 => changed.truncate(random.below(one.len())),
            2 => {
                // The end of another file, which is as long but for accidents.
                changed.truncate(random.below(one.len()));
                changed.extend(&other[changed.len().min(other.len())..]);
            }
            _ => {
                let len = random.below(200) + 1;
                let start = random.below(one.len() - len);
                let from = random.below(other.len() - len);
                changed[start..start + len].copy_from_slice(&other[from..from + len]);
            }
        }
        if changed == one || changed == other {
            continue;
        }
        match Module::deserialize_authenticated(&engine, &changed) {
            Err(Error::Precompiled(_)) => n_refused += 1,
            Err(error) => panic!("another error: {error}"),
            Ok(module) => {
                assert_eq!(outcomes(&module), expected);
                // Trampolines are not seen.
                let is_compiled = !module.functions().is_empty();
                n_compiled += usize::from(is_compiled);
                assert!(!is_compiled || module.compile_stats().replaced() > 0);
            }
        }
    }
    assert!(n_refused > n / 2 && n_compiled > n / 100, "{n_refused} {n_compiled}");
}

#[test]
fn a_file_that_changes_after_it_was_opened_changes_nothing() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("program.vmc");
    let engine = engine(|_| {});
    let bytes = engine.precompile_module(SOURCE).unwrap();
    let expected = outcomes(&Module::deserialize_authenticated(&engine, &bytes).unwrap());
    fs::write(&path, &bytes).unwrap();
    let module = Module::deserialize_file_authenticated(&engine, &path).unwrap();
    assert_eq!(outcomes(&module), expected);
    assert!(module.functions().is_empty());
    assert_eq!(module.compile_stats().replaced(), 0);
    // What was used was copied.
    let file = File::options().write(true).open(&path).unwrap();
    file.write_all_at(&vec![0xcc; bytes.len()], 0).unwrap();
    assert_eq!(outcomes(&module), expected);
    // What was not is compiled.
    fs::write(&path, &bytes).unwrap();
    let module = Module::deserialize_file_authenticated(&engine, &path).unwrap();
    file.write_all_at(&vec![0xcc; bytes.len()], 0).unwrap();
    assert_eq!(outcomes(&module), expected);
    assert!(!module.functions().is_empty());
    assert!(module.compile_stats().replaced() > 0);
    fs::write(&path, &bytes).unwrap();
    let module = Module::deserialize_file_authenticated(&engine, &path).unwrap();
    file.set_len(0).unwrap();
    assert_eq!(outcomes(&module), expected);
    let error = Module::deserialize_file_authenticated(&engine, &path);
    assert_eq!(refusal(error), "not a precompiled module");
    let missing = Module::deserialize_file_authenticated(&engine, directory.path().join("none"));
    assert!(matches!(missing.unwrap_err(), Error::File { .. }));
}

fn cache_in(directory: &Path) -> Cache {
    Cache::new(CacheConfig::new().with_directory(directory)).unwrap()
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files.filter(|path| !path.ends_with("key")).collect();
    files.sort();
    files
}

#[test]
fn what_was_run_once_has_its_code_the_next_time() {
    for (i, (name, change)) in CHANGES.into_iter().enumerate() {
        let directory = TempDir::new().unwrap();
        let run = |source: &str| {
            // As another process would.
            let cache = cache_in(directory.path());
            let engine = engine(|config| {
                change(config);
                config.cache(Some(cache));
            });
            let module = Module::new(&engine, source).unwrap();
            let before = module.code_bytes();
            let outcomes = outcomes(&module);
            (outcomes, module.functions().len(), module.code_bytes() - before)
        };
        let (expected, n_compiled, _) = run(SOURCE);
        if i != 4 {
            assert!(n_compiled > 0, "{name}");
            assert_eq!(files(directory.path()).len(), 1, "{name}");
        }
        let (again, n_compiled, bytes) = run(SOURCE);
        assert_eq!((again, n_compiled), (expected.clone(), 0), "{name}");
        if i != 4 {
            assert!(bytes > 0, "{name}: its code was placed");
        }
        // Another module has code of its own.
        assert_ne!(run(&SOURCE.replace("i64.mul", "i64.add")).0, expected, "{name}");
        assert_eq!(run(SOURCE).0, expected, "{name}");
    }
}

/// A server may never drop its modules.
#[test]
fn code_is_written_while_its_module_is_there() {
    let directory = TempDir::new().unwrap();
    let engine = || {
        engine(|config| {
            config.tier(Tier::Auto).tier_compilation(TierCompilation::Synchronous);
            config.tier_thresholds(Some(TierThresholds { calls: 1, rounds: 1 }));
            config.cache(Some(cache_in(directory.path())));
        })
    };
    let first = engine();
    let module = Module::new(&first, SOURCE).unwrap();
    let expected = outcomes(&module);
    let start = Instant::now();
    let is_written = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "vmc");
    while !files(directory.path()).iter().any(is_written) {
        assert!(start.elapsed() < Duration::from_secs(60), "nothing was written");
        thread::sleep(Duration::from_millis(20));
    }
    let second = engine();
    let again = Module::new(&second, SOURCE).unwrap();
    assert_eq!(outcomes(&again), expected);
    assert!(again.functions().is_empty(), "its code was kept");
    drop(module);
}

#[test]
fn files_that_are_not_as_they_should_be_are_replaced() {
    let directory = TempDir::new().unwrap();
    let run = |source: &str| {
        let engine = engine(|config| _ = config.cache(Some(cache_in(directory.path()))));
        let module = Module::new(&engine, source).unwrap();
        (outcomes(&module), module.functions().len(), module.compile_stats().replaced())
    };
    let (expected, n_funcs, n_replaced) = run(SOURCE);
    assert_eq!(n_replaced, 0);
    let [file] = &*files(directory.path()) else { panic!("one file is written") };
    let good = fs::read(file).unwrap();
    for bad in [&b""[..], b"\0slotvmc", &good[..good.len() / 2], &[&good[..], b"x"].concat()] {
        fs::write(file, bad).unwrap();
        assert_eq!(run(SOURCE), (expected.clone(), n_funcs, 1));
        assert_eq!(fs::read(file).unwrap(), good);
        assert_eq!(run(SOURCE), (expected.clone(), 0, 0));
    }
    // A file of another module under this name.
    let other = SOURCE.replace("i64.mul", "i64.add");
    let (of_other, ..) = run(&other);
    let all = files(directory.path());
    let other_file = all.iter().find(|path| *path != file).unwrap();
    fs::copy(other_file, file).unwrap();
    assert_eq!(run(SOURCE), (expected, n_funcs, 1));
    assert_eq!(run(&other), (of_other, 0, 0));
}

#[test]
fn only_its_owner_can_write_in_a_cache() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("a/b");
    let open = || Cache::new(CacheConfig::new().with_directory(&path)).map(|cache| *cache.key());
    let key = open().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&path.join("key"))), (0o700, 0o600));
    assert_eq!(open().unwrap(), key);
    let refused = |part: &str| {
        let error = open().unwrap_err().to_string();
        assert!(error.starts_with("cannot use /") && error.contains(part), "{error}");
    };
    let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    set(&path.join("key"), 0o640);
    refused("others may use the key: its mode is 640");
    set(&path.join("key"), 0o600);
    set(&path, 0o777);
    refused("others may use the directory: its mode is 777");
    set(&path, 0o755);
    assert_eq!(open().unwrap(), key);
    fs::write(path.join("key"), [1; 33]).unwrap();
    refused("the key has 33 bytes, not 32");
    fs::remove_file(path.join("key")).unwrap();
    assert_ne!(open().unwrap(), key);
    fs::write(directory.path().join("file"), "").unwrap();
    let error = Cache::new(CacheConfig::new().with_directory(directory.path().join("file")));
    assert!(matches!(error, Err(Error::Cache { .. })));
}

#[test]
fn a_cache_stays_as_small_as_it_is_told() {
    const SIZE_MAX: u64 = 50_000;
    let directory = TempDir::new().unwrap();
    let mut config = CacheConfig::new();
    config.with_directory(directory.path()).with_files_total_size_soft_limit(SIZE_MAX);
    let size = || files(directory.path()).iter().map(|p| fs::metadata(p).unwrap().len()).sum();
    let engine = engine(|config_| _ = config_.cache(Some(Cache::new(&config).unwrap())));
    let source = |i: usize| SOURCE.replace("i32.const 100", &format!("i32.const {i}"));
    for i in 0..30 {
        let module = Module::new(&engine, source(i)).unwrap();
        assert_eq!(module.functions().len(), 9);
        let size: u64 = size();
        assert!(0 < size && size <= SIZE_MAX, "{size}");
    }
    // The last one is there.
    assert!(Module::new(&engine, source(29)).unwrap().functions().is_empty());
    config.with_files_total_size_soft_limit(10);
    let engine = self::engine(|config_| _ = config_.cache(Some(Cache::new(&config).unwrap())));
    let n = files(directory.path()).len();
    Module::new(&engine, source(100)).unwrap();
    assert_eq!(files(directory.path()).len(), n, "one that is too large alone is not written");
}

#[test]
fn many_can_use_a_cache_at_the_same_time() {
    let directory = TempDir::new().unwrap();
    let source = |i: usize| SOURCE.replace("i32.const 100", &format!("i32.const {i}"));
    let expected: Vec<Vec<String>> =
        (0..3).map(|i| outcomes(&Module::new(&engine(|_| {}), source(i)).unwrap())).collect();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (expected, path) = (&expected, directory.path());
            scope.spawn(move || {
                for i in 0..12 {
                    let mut config = CacheConfig::new();
                    // Files come and go.
                    config.with_directory(path).with_files_total_size_soft_limit(15_000);
                    let cache = Cache::new(&config).unwrap();
                    let engine = engine(|config| _ = config.cache(Some(cache)));
                    let k = (thread + i) % 3;
                    let module = Module::new(&engine, source(k)).unwrap();
                    assert_eq!(outcomes(&module), expected[k]);
                }
            });
        }
    });
    assert!(files(directory.path()).iter().all(|path| path.extension().is_some()));
}
