//! Properties of every stage on generated modules; `SLOTVM_GENERATED` sets their number.

use std::sync::Arc;

use slotvm_bytecode::{VerifiedModule, decode, encode, text, verify};
use slotvm_cases::stages;
use slotvm_filetests::check::{check_constructions, check_optimized};
use slotvm_filetests::generate::case_of_seed;
use slotvm_filetests::seeds;
use slotvm_filetests::slot_accesses::check_module;
use slotvm_ssa::construction::braun::BraunOptions;
use slotvm_ssa::construction::build::{BuildOptions, BuildScratch, SsaOptions, build};
use slotvm_ssa::ir::verify::Form;

fn modules(n: u64) -> impl Iterator<Item = (u64, VerifiedModule)> {
    (0..n).map(|seed| (seed, verify(case_of_seed(seed).module).expect("generated modules verify")))
}

#[test]
fn slot_form_verifies() {
    let mut scratch = BuildScratch::default();
    for (seed, module) in modules(seeds::count_or(1_000)) {
        for options in [
            BuildOptions::default(),
            BuildOptions { fuel: true, stack_cells: true, polls: true, waits: false },
        ] {
            for func in module.n_imported_funcs()..module.n_funcs() {
                let f = build(&module, func, &options, &mut scratch);
                if let Err(violation) = slotvm_ssa::ir::verify::verify(&f, Form::Slots, &module) {
                    panic!("seed {seed}, function {func}: {violation}");
                }
            }
        }
    }
}

#[test]
fn construction_on_the_fly_makes_no_more_phis_than_promotion() {
    let without_sets = BraunOptions { scc_removal: false, ..BraunOptions::default() };
    let without_marker = BraunOptions { marker: false, ..BraunOptions::default() };
    let [mut n_promoted, mut n_left, mut n_with_sets] = [0; 3];
    for (seed, module) in modules(seeds::count_or(500)) {
        let promoted = stages::functions(&module, Form::Ssa, BuildOptions::default());
        let promoted = promoted.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let [usual, unmarked, with_sets] = [BraunOptions::default(), without_marker, without_sets]
            .map(|braun| {
                let options = SsaOptions { braun, ..SsaOptions::default() };
                let functions = stages::functions_on_the_fly(&module, &options);
                functions.unwrap_or_else(|error| panic!("seed {seed}: {error}"))
            });
        for (i, promoted) in promoted.iter().enumerate() {
            let n_phis = usual[i].n_phis();
            // A copy of a local shares its phis.
            assert!(n_phis <= promoted.n_phis(), "seed {seed}: {promoted}\n{}", usual[i]);
            assert_eq!(n_phis, unmarked[i].n_phis(), "seed {seed}");
            assert!(n_phis <= with_sets[i].n_phis(), "seed {seed}");
            n_promoted += promoted.n_phis();
            n_left += n_phis;
            n_with_sets += with_sets[i].n_phis();
        }
    }
    assert!(0 < n_left && n_left < n_promoted && n_left < n_with_sets);
}

#[test]
fn binary_and_text_round_trip() {
    for (seed, module) in modules(seeds::count_or(2_000)) {
        let module = module.module();
        let bytes = encode(module);
        assert_eq!(decode(&bytes).as_ref(), Ok(module), "seed {seed}: binary");
        let text = text::print(module).expect("verified code decodes");
        match text::parse(&text) {
            Ok(parsed) => assert_eq!(encode(&parsed), bytes, "seed {seed}: text"),
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
}

#[test]
fn every_construction_computes_the_same() {
    for seed in 0..seeds::count_or(60) {
        if let Err(difference) = check_constructions(&case_of_seed(seed)) {
            panic!("seed {seed}: {difference}");
        }
    }
}

#[test]
fn promoted_code_accesses_no_slot() {
    let mut n_accesses = 0;
    for (seed, module) in modules(seeds::count_or(300)) {
        match check_module(&Arc::new(module)) {
            Ok(n) => n_accesses += n,
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    assert!(n_accesses > 0, "no generated module has a slot");
}

#[test]
fn optimised_modules_do_the_same() {
    let compared = seeds::on_all_cores(0..seeds::count_or(150), |seed| {
        check_optimized(&case_of_seed(seed)).map_err(|difference| difference.to_string())
    });
    let compared = compared.unwrap_or_else(|error| panic!("{error}"));
    let n_compared = compared.iter().filter(|&&is_compared| is_compared).count();
    assert!(
        n_compared * 2 > compared.len(),
        "expected that most cases end by themselves, found {n_compared}"
    );
}
