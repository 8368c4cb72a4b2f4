//! A row that is added to the table of stages and passes is seen by everything that reads the table, without another
//! edit, in slot form as in SSA form: the JIT, timings, spans, `opt`, `dump`, `explain`, file tests and `bench`.
//!
//! Needs the copy of the sources that `filetests/examples/plant.rs` makes, whose table has two more rows, and there the
//! feature `planted`. One test, since the passes of these rows are the whole process's.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use slotvm::{Config, Engine, Instance, Module, Store, Tier};
use slotvm_bytecode::{ValType, text, verify};
use slotvm_cases::{runner, stages};
use slotvm_ssa::ir::Function;
use slotvm_ssa::ir::edit::Editor;
use slotvm_ssa::ir::entity::{Block, Value};
use slotvm_ssa::optimize::optimize;
use slotvm_ssa::switches::{choose_pass, choose_slot_pass};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use vmrun::bench::stage_names;
use vmrun::cli::Cli;
use vmrun::commands;

const SOURCE: &str = r#"
export "f" func f
func f(n: i64) -> i64 {
  local sum: i64
next:
  local.get sum local.get n i64.add local.set sum
  local.get n i64.const 1 i64.sub local.tee n i64.eqz i32.eqz br_if next
  local.get sum return
}"#;

static RUNS: AtomicUsize = AtomicUsize::new(0);
static SLOT_RUNS: AtomicUsize = AtomicUsize::new(0);

/// The planted rows.
const PLANTED: [&str; 2] = ["planted_slots", "planted"];

/// Changes nothing.
fn counts(_: &mut Editor<'_>) {
    RUNS.fetch_add(1, Ordering::Relaxed);
}

/// Likewise, in slot form.
fn counts_slots(_: &mut Function) {
    SLOT_RUNS.fetch_add(1, Ordering::Relaxed);
}

/// Gives a local another type than its accesses have.
fn is_wrong_in_slots(f: &mut Function) {
    f.slots[0].ty = ValType::F32;
}

/// Uses a phi of the loop in the entry, where it has no value yet.
fn is_wrong(editor: &mut Editor<'_>) {
    let phi = editor.params(Block(1))[0];
    editor.replace_value(Value(0), phi);
}

/// The number of times that the passes ran since the last question, first that in slot form.
fn runs() -> [usize; 2] {
    [&SLOT_RUNS, &RUNS].map(|runs| runs.swap(0, Ordering::Relaxed))
}

fn module(config: &Config) -> Result<Module, slotvm::Error> {
    Module::new(&Engine::new(config).unwrap(), SOURCE)
}

/// Keeps the names of spans.
#[derive(Default)]
struct Names {
    n_spans: AtomicU64,
    names: Arc<Mutex<BTreeSet<&'static str>>>,
}

impl Subscriber for Names {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span()
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.names.lock().unwrap().insert(span.metadata().name());
        Id::from_u64(self.n_spans.fetch_add(1, Ordering::Relaxed) + 1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn a_new_row_is_seen_by_everything() {
    choose_pass(counts);
    choose_slot_pass(counts_slots);
    let mut config = Config::new();
    config.tier(Tier::Jit);

    let names = Names::default();
    let spans = names.names.clone();
    let compiled = tracing::subscriber::with_default(names, || module(&config).unwrap());
    assert_eq!(runs(), [1, 1], "the JIT runs the passes");
    let times: Vec<(&str, Duration)> = compiled.timings().stages().collect();
    for planted in PLANTED {
        assert!(spans.lock().unwrap().contains(planted), "it has a span");
        let time = times.iter().find(|(name, _)| *name == planted).expect("it has a time");
        assert!(time.1 > Duration::ZERO);
    }
    let mut store = Store::new(compiled.engine(), ());
    let instance = Instance::new(&mut store, &compiled, &[]).unwrap();
    let func = instance.get_typed_func::<i64, i64>(&store, "f").unwrap();
    assert_eq!(func.call(&mut store, 4).unwrap(), 10);

    let verified = verify(text::parse(SOURCE).unwrap()).unwrap();
    optimize(&verified).unwrap();
    assert_eq!(runs(), [0, 1], "`opt` runs the one that it uses");

    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("f.vasm");
    let program = program.to_str().unwrap();
    fs::write(program, SOURCE).unwrap();
    let execute = |args: &[&str]| {
        let args = std::iter::once("vmrun").chain(args.iter().copied());
        commands::execute(Cli::from_args(args.map(Into::into))).unwrap()
    };
    for (planted, expected) in PLANTED.into_iter().zip([[1, 0], [1, 1]]) {
        assert_eq!(execute(&["dump", program, "--stage", planted]), 0);
        assert_eq!(runs(), expected, "`dump` shows what {planted} leaves");
    }
    let page = folder.path().join("page.json");
    let page = page.to_str().unwrap();
    assert_eq!(execute(&["explain", program, "--func", "f", "--json", "-o", page]), 0);
    let page = fs::read_to_string(page).unwrap();
    for planted in PLANTED {
        assert!(page.contains(&format!("\"{planted}\"")), "`explain` has a column of {planted}");
    }
    assert!(runs().iter().all(|&n| n > 0));

    let case = folder.path().join("case.vasm");
    for planted in PLANTED {
        let text =
            format!("; stages: {planted}\n; why: a row is a stage\n{SOURCE}\n; run: f(4) == 10\n");
        fs::write(&case, text).unwrap();
        runner::run(&case, true).unwrap();
        let blessed = fs::read_to_string(&case).unwrap();
        assert!(blessed.contains(&format!("=== {planted}\nfunc f0 f")), "{blessed}");
        assert!(
            runs().iter().all(|&n| n > 1),
            "file tests show it, and evaluate functions after it"
        );
        fs::write(&case, blessed.replace("i64.add", "i64.sub")).unwrap();
        assert!(runner::run(&case, false).is_err());
        assert!(stages::names().contains(&planted));
        assert!(stage_names().contains(&planted), "`bench` reports its time");
    }

    config.verify_passes(true).contain_faults(true);
    choose_pass(is_wrong);
    let error = module(&config).err().expect("the function is invalid").to_string();
    let expected = "stage planted left an invalid function: property 17 (defs-dominate)";
    assert!(error.contains(expected), "{error}");
    let error = optimize(&verified).expect_err("the function is invalid").to_string();
    assert!(error.contains(expected), "{error}");
    choose_slot_pass(is_wrong_in_slots);
    let error = module(&config).err().expect("the function is invalid").to_string();
    assert!(error.contains("stage planted_slots left an invalid function: property "), "{error}");
}
