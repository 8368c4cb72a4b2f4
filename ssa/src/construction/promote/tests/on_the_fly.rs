//! Construction on the fly.

use super::*;

#[test]
fn construction_on_the_fly_computes_the_same_with_no_more_phis() {
    let mut rng = Rng(14);
    let mut scratch = Scratch::default();
    let (mut n_pruned, mut n_left) = (0, 0);
    for i in 0..2_000 {
        let n = 1 + rng.below(10);
        let (cfg, _) = random_numbered_graph(&mut rng, n);
        let actions = random_actions(&mut rng, cfg.n_blocks(), 3);
        let slots = make(&cfg, 3, &actions);
        let braun = BraunOptions { marker: i % 2 == 0, ..BraunOptions::default() };
        let construction = Construction::Braun(braun);
        let [(ssa, report), (_, pruned)] =
            [construction, Construction::Pruned].map(|construction| {
                let mut f = slots.clone();
                let options = PromoteOptions { construction, ..PromoteOptions::default() };
                let report = promote_with(&mut f, options, &mut scratch);
                assert_valid(&f, Form::Ssa);
                (f, report)
            });
        assert_eq!((report.n_phis, report.counts.n_placed), (ssa.n_phis(), 3));
        assert_eq!((report.n_gets, report.n_sets), count(&actions));
        // Copies of a slot share its values, and so do slots that are zero.
        assert!(report.n_phis <= pruned.n_phis);
        n_pruned += pruned.n_phis;
        n_left += report.n_phis;
        for _ in 0..5 {
            assert_same_on_a_path(&mut rng, &slots, &ssa);
        }
    }
    assert!(0 < n_left && n_left < n_pruned, "{n_left} of {n_pruned}");
}

#[test]
fn too_many_entries_of_construction_on_the_fly_are_refused() {
    let cfg = crate::tools::testing::chain(100);
    let mut actions = vec![vec![]; 100];
    actions[0] = vec![Do::Set(0), Do::Set(1)];
    actions[99] = vec![Do::Get(0), Do::Get(1)];
    let slots = make(&cfg, 2, &actions);
    let promoted = |entries_max: usize| {
        let braun = BraunOptions { entries_max, ..BraunOptions::default() };
        let construction = Construction::Braun(braun);
        let options = PromoteOptions { construction, ..PromoteOptions::default() };
        let mut f = slots.clone();
        let report = promote_with(&mut f, options, &mut Scratch::default());
        (report.too_large, f)
    };
    assert_eq!(promoted(1_000).0, None);
    let (too_large, left) = promoted(50);
    assert_eq!(too_large, Some(TooLarge::Entries(50)));
    assert!(crate::ir::print::print(&left) == crate::ir::print::print(&slots), "it has changed");
}
