use slotvm_bytecode::{VerifiedModule, text, verify};
use slotvm_ssa::construction::build::{BuildOptions, BuildScratch, build};
use slotvm_ssa::graphs::loops::LoopForest;
use slotvm_ssa::ir::graph::control_flow;

use super::estimate::Generator;
use super::*;

fn module(n_adds: &[usize]) -> VerifiedModule {
    let func = |(i, &n): (usize, &usize)| {
        let adds = "local.get n i32.const 1 i32.add local.set n ".repeat(n);
        format!("func f{i}(n: i32) {{ {adds} return }}\n")
    };
    let source: String = n_adds.iter().enumerate().map(func).collect();
    verify(text::parse(&source).expect("it is text")).expect("it is well-typed")
}

#[test]
fn shares_add_up_to_what_the_module_has() {
    for sizes in [&[0][..], &[1, 2, 3], &[9_000, 10, 2_000], &[20_000; 9]] {
        let module = module(sizes);
        let budget = Budget::new(&module);
        let shares = (0..module.n_funcs()).map(|func| budget.share(&module, func));
        let time: u64 = shares.map(|share| share.time).sum();
        // Each loses less than a point.
        assert!((budget.time - time) < sizes.len() as u64 + 1, "{sizes:?}");
    }
}

#[test]
fn larger_modules_have_more_but_less_for_each_byte() {
    let budgets = [100, 9_000, 90_000].map(|n| Budget::new(&module(&[n])));
    assert!(budgets.is_sorted_by(|a, b| a.time < b.time && a.memory < b.memory));
    let rate = |budget: &Budget| budget.time / budget.module_bytes;
    assert!(budgets.is_sorted_by(|a, b| rate(a) > rate(b)));
}

/// Whatever a translation makes of them.
#[test]
fn budgets_count_the_bytes_that_were_given() {
    let mut translated = module(&[9_000]).module().clone();
    translated.funcs[0].source_bytes = 20_000;
    let translated = verify(translated).expect("it is well-typed");
    assert!(translated.func(0).expect("it is defined").code.len() > 40_000);
    assert_eq!(Budget::new(&translated).module_bytes, 20_000);
    assert_eq!(Budget::new(&translated).time, Budget::of_bytes(20_000, false).time);
}

#[test]
fn every_count_can_be_too_much() {
    let share = Budget::new(&module(&[1_000]));
    let share = Share { time: share.time, bytes: share.memory, has_wide_types: false };
    let asked = Generator::Splitting { optimises: true };
    assert!(WorkCounts::default().estimate(asked).fits(share));
    let much = 1 << 40;
    let of = WorkCounts::default;
    let (slow, large) = (Excess { time: much, bytes: 0 }, Excess { time: 0, bytes: much });
    for (counts, cause) in [
        (WorkCounts { n_insts: much, ..of() }, Cause::Code),
        (WorkCounts { n_light_insts: much, ..of() }, Cause::Code),
        (WorkCounts { n_accesses: much, ..of() }, Cause::Code),
        (WorkCounts { n_slot_accesses: much, ..of() }, Cause::Code),
        (WorkCounts { n_blocks: much, ..of() }, Cause::Code),
        (WorkCounts { n_edges: much, ..of() }, Cause::Code),
        (WorkCounts { n_targets: much, ..of() }, Cause::Code),
        (WorkCounts { n_checks: much, ..of() }, Cause::Code),
        (WorkCounts { n_live_at_checks: much, ..of() }, Cause::LiveValues),
        (WorkCounts { n_live_through_checks: much, ..of() }, Cause::LiveValues),
        (WorkCounts { n_live_through: much, ..of() }, Cause::LiveValues),
        (WorkCounts { n_wide_operands: much, ..of() }, Cause::WideOperands),
        (WorkCounts { n_phi_operands: much, ..of() }, Cause::PhiOperands),
        (WorkCounts { n_live: much, ..of() }, Cause::LiveValues),
        (WorkCounts { n_recurring: much, ..of() }, Cause::RecurringValues),
        (WorkCounts { n_crowded: much, ..of() }, Cause::CrowdedBlocks),
        (WorkCounts { phi_scans: much, ..of() }, Cause::PhiScans),
        (WorkCounts { nesting: much, ..of() }, Cause::Nesting),
        (WorkCounts { dominator_steps: u64::MAX, ..of() }, Cause::Dominators),
        (WorkCounts { optimised: slow, ..of() }, Cause::Code),
        (WorkCounts { optimised: large, ..of() }, Cause::Code),
        (WorkCounts { rewriting: slow, ..of() }, Cause::Rewriting),
        (WorkCounts { rewriting: large, ..of() }, Cause::Rewriting),
    ] {
        let estimate = counts.estimate(asked);
        assert!(!estimate.fits(share), "{counts:?}");
        assert_eq!(estimate.cause(share), cause);
        // One pass over the code does not see what lives where.
        let is_linear = matches!(cause, Cause::Code | Cause::WideOperands);
        let is_linear = is_linear && counts.optimised == Excess::default();
        let is_linear = is_linear && counts.n_targets == 0 && counts.n_slot_accesses == 0;
        assert_eq!(counts.estimate(Generator::OnePass).fits(share), !is_linear);
    }
    let unoptimised = Generator::Splitting { optimises: false };
    for excess in [slow, large] {
        let counts = WorkCounts { unoptimised: excess, ..of() };
        assert!(!counts.estimate(unoptimised).fits(share));
        assert!(counts.estimate(Generator::OnePass).fits(share));
        assert!(counts.estimate(asked).fits(share));
        let counts = WorkCounts { in_one_pass: excess, ..of() };
        assert!(!counts.estimate(Generator::OnePass).fits(share));
        assert!(counts.estimate(unoptimised).fits(share));
    }
}

/// The machine code of an operation whose NaNs become canonical has as many live ranges as ten others.
#[test]
fn operations_whose_nans_become_canonical_count_more() {
    let source = format!(
        "func f(x: f64) -> f64 {{ local.get x {} return }}",
        "local.get x f64.add ".repeat(100)
    );
    let module = verify(text::parse(&source).expect("it is text")).expect("it is well-typed");
    let func = build(&module, 0, &BuildOptions::default(), &mut BuildScratch::default());
    let counts = |canonical_nans| {
        let hidden = HiddenValues {
            n_imported_funcs: 0,
            loads_entries: false,
            checks: false,
            canonical_nans,
        };
        WorkCounts::cheap(&func, &LoopForest::new(&control_flow(&func)), hidden)
    };
    let (plain, canonical) = (counts(false), counts(true));
    assert_eq!(canonical.n_places, plain.n_places + 9 * 100);
    assert_eq!(canonical.n_insts, plain.n_insts + 9 * 100);
    assert!(canonical.n_crowded > 4 * plain.n_crowded);
}
