//! Mistakes in texts about the paper, each with the right answer.

use super::*;

fn started() -> Braun {
    let mut braun = Braun::default();
    braun.start(BraunOptions::default());
    braun
}

/// "A sealed block gets no more instructions, so every sealed block is filled." It gets no more
/// predecessors.
#[test]
fn a_sealed_block_may_be_empty_and_filled_later() {
    let mut braun = started();
    let mut undefined = undefined;
    braun.seal_block(0, [], &mut undefined);
    braun.write_variable(0, 0, 10);
    assert_eq!(braun.read_variable(0, 0, &mut undefined), 10);
    braun.write_variable(0, 0, 11);
    braun.seal_block(1, [0], &mut undefined);
    assert_eq!(braun.read_variable(0, 1, &mut undefined), 11);
    assert_eq!(braun.finish(&mut undefined).n_made, 0);
}

/// "A block is sealed when all predecessors are filled." That permits sealing it, and no more: here it
/// is sealed later, and what was read before is right.
#[test]
fn a_block_whose_predecessors_are_filled_need_not_be_sealed_yet() {
    let mut braun = started();
    let mut undefined = undefined;
    braun.seal_block(0, [], &mut undefined);
    braun.write_variable(0, 0, 10);
    let early = braun.read_variable(0, 1, &mut undefined);
    assert_eq!(early, PHI, "an incomplete phi");
    braun.write_variable(0, 1, 11);
    braun.seal_block(2, [1], &mut undefined);
    assert_eq!(braun.read_variable(0, 2, &mut undefined), 11);
    braun.seal_block(1, [0], &mut undefined);
    assert_eq!(braun.resolve(early), 10);
    let report = braun.finish(&mut undefined);
    assert_eq!((report.n_made, report.n_trivial, report.n_left), (1, 1, 0));
}

/// `tryRemoveTrivialPhi` with `same ≠ FALSE` for `same ≠ ⊥`, and an undefined phi that stays the operand
/// of its users: a phi without an operand but itself is undefined, and so are those that use it.
#[test]
fn what_is_undefined_replaces_a_phi_in_its_users() {
    let mut braun = started();
    let mut undefined = undefined;
    // Unreachable: 1 <-> 1, then 2 with 1 as predecessor twice.
    let user = braun.read_variable(0, 2, &mut undefined);
    let itself = braun.read_variable(0, 1, &mut undefined);
    braun.seal_block(2, [1, 1], &mut undefined);
    assert_eq!(braun.resolve(user), itself, "the phi of block 2 is that of block 1");
    braun.seal_block(1, [1, 1], &mut undefined);
    assert_eq!(braun.resolve(itself), self::undefined(0));
    assert_eq!(braun.resolve(user), self::undefined(0));
    assert_eq!(braun.finish(&mut undefined).n_trivial, 2);
}

/// A phi that a removal removes may be among the users that were to be looked at: `p` uses `q` twice over
/// and both wait for the value of `r`.
#[test]
fn a_user_that_is_removed_meanwhile_is_passed_over() {
    // Loops in loops, 1 to 6 each the header of the next: all phis wait for the outermost.
    let n = 6;
    let mut braun = started();
    let mut undefined = undefined;
    braun.seal_block(0, [], &mut undefined);
    braun.write_variable(0, 0, 10);
    let reads: Vec<u32> =
        (1..=n).map(|block| braun.read_variable(0, block, &mut undefined)).collect();
    // Each has the phis of all others as operands, so that each is in the lists of several.
    for block in (1..=n).rev() {
        let preds = (0..block).chain(block + 1..=n);
        let preds: Vec<u32> = if block == 1 { preds.collect() } else { preds.skip(1).collect() };
        braun.seal_block(block, preds, &mut undefined);
    }
    let report = braun.finish(&mut undefined);
    assert!(reads.iter().all(|&read| braun.resolve(read) == 10));
    assert_eq!(report.n_trivial + report.n_redundant, n as usize);

    // The same as a chain of trivial phis, sealed from the inside: each removal removes the next.
    let mut braun = started();
    braun.seal_block(0, [], &mut undefined);
    braun.write_variable(0, 0, 10);
    let reads: Vec<u32> =
        (1..=n).map(|block| braun.read_variable(0, block, &mut undefined)).collect();
    for block in (1..=n).rev() {
        braun.seal_block(block, [block - 1, block, block - 1, block], &mut undefined);
    }
    assert!(reads.iter().all(|&read| braun.resolve(read) == 10));
    assert_eq!(braun.finish(&mut undefined).n_trivial, n as usize);
}

/// The phi `p = φ(x, p, x)` with `x` and `p` for witnesses that it is not trivial: a phi is no witness of
/// its own, not even after it has replaced what was one.
#[test]
fn a_phi_is_no_witness_of_its_own() {
    let mut braun = started();
    let mut undefined = undefined;
    braun.seal_block(0, [], &mut undefined);
    braun.write_variable(0, 0, 10);
    let read = braun.read_variable(0, 1, &mut undefined);
    braun.seal_block(1, [0, 1, 0], &mut undefined);
    assert_eq!(braun.resolve(read), 10);
    assert_eq!(braun.finish(&mut undefined).n_trivial, 1);

    // p = φ(x, q, x) in block 1, with q = φ(p, p) in block 2 sealed after it.
    let mut braun = started();
    braun.seal_block(0, [], &mut undefined);
    braun.write_variable(0, 0, 10);
    let [p, q] = [1, 2].map(|block| braun.read_variable(0, block, &mut undefined));
    braun.seal_block(1, [0, 2, 0], &mut undefined);
    assert_eq!(braun.resolve(p), p, "q may be anything");
    braun.seal_block(2, [1, 1], &mut undefined);
    assert_eq!([p, q].map(|phi| braun.resolve(phi)), [10, 10]);
    assert_eq!(braun.finish(&mut undefined).n_trivial, 2);
}

/// "Minimal means that there are no strongly connected phis." No redundant ones: two variables that a
/// loop exchanges are connected phis, and all of them stay.
#[test]
fn connected_phis_that_are_not_redundant_stay() {
    let mut braun = started();
    let mut undefined = undefined;
    braun.seal_block(0, [], &mut undefined);
    braun.write_variable(0, 0, 10);
    braun.write_variable(1, 0, 11);
    let [a, b] = [0, 1].map(|variable| braun.read_variable(variable, 1, &mut undefined));
    braun.write_variable(0, 1, b);
    braun.write_variable(1, 1, a);
    braun.seal_block(1, [0, 1], &mut undefined);
    let report = braun.finish(&mut undefined);
    assert_eq!((report.n_made, report.n_redundant, report.n_left), (2, 0, 2));
    let operands: Vec<&[u32]> = braun.phis().map(|phi| phi.operands).collect();
    assert_eq!(operands, [[10, b], [11, a]]);
}

/// "Pruned means that each phi has a user other than itself." Two phis that use only each other have; they
/// are not made, since nothing reads them.
#[test]
fn phis_that_only_use_each_other_are_not_made() {
    // 0 -> 1 -> 2 -> 1, 2: the variable is written in 0 and 2 and read nowhere.
    let cfg = Cfg::new(0, [vec![1], vec![2], vec![1, 2]]);
    let actions = vec![vec![Do::Write(0)], vec![], vec![Do::Write(0)]];
    let form = Program { cfg, actions }.construct_in_order(BraunOptions::default());
    assert_eq!(form.report.n_made, 0);
}

/// The smallest graph with a redundant set: a loop with two entries.
#[test]
fn a_loop_with_two_entries_needs_the_removal_of_redundant_sets() {
    let cfg = Cfg::new(0, [vec![1, 2], vec![2], vec![1, 3], vec![]]);
    let actions = vec![vec![Do::Write(0)], vec![], vec![], vec![Do::Read(0)]];
    let program = Program { cfg, actions };
    for options in all_options() {
        let form = program.construct_in_order(options);
        let n_left = if options.scc_removal { 0 } else { 2 };
        assert_eq!(form.report.n_left, n_left);
        assert_eq!(form.reads[0] == FIRST_WRITTEN, options.scc_removal);
    }
}
