//! Programs are lists of reads and writes in the blocks of a graph. Oracles are the definition of pruned
//! and minimal SSA form, a walk along random paths, and the paper's own algorithm for redundant sets.

mod algorithm5;
mod texts;

use super::*;
use crate::graphs::cfg::{Cfg, ControlFlow};
use crate::graphs::dominators::DomTree;
use crate::graphs::loops::LoopForest;
use crate::graphs::place::PhiPlacer;
use crate::tools::testing::{
    Bits, Rng, all_numbered_graphs, convergence, families, live_in, random_numbered_graph,
};

/// An access of a variable.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Do {
    Read(u32),
    /// Writes a new value.
    Write(u32),
    /// Writes to the first variable what it reads from the second.
    Copy(u32, u32),
}

/// A graph and the actions of its blocks.
#[derive(Debug)]
struct Program {
    cfg: Cfg,
    actions: Vec<Vec<Do>>,
}

/// The values that are written are numbered from here, in the order of blocks and actions.
const FIRST_WRITTEN: u32 = 1 << 20;

/// The initial value of a variable is its number.
fn undefined(variable: u32) -> u32 {
    variable
}

/// A program in SSA form.
#[derive(Debug)]
struct Form {
    /// Variable, value and operands of the phis, by block.
    phis: Vec<Vec<(u32, u32, Vec<u32>)>>,
    /// The value of each read, in the order of blocks and actions.
    reads: Vec<u32>,
    report: BraunReport,
}

/// The order in which blocks are filled and sealed.
struct Plan<'a> {
    /// The order in which blocks are filled.
    order: &'a [u32],
    /// Whether blocks are sealed as soon as can be, or all at the end.
    seals_early: bool,
}

impl Program {
    fn random(rng: &mut Rng, cfg: Cfg, n_variables: u32) -> Program {
        let max = 1 + rng.below(6);
        let action = |rng: &mut Rng| match rng.below(2) {
            0 => Do::Read(rng.below(n_variables)),
            _ => Do::Write(rng.below(n_variables)),
        };
        let block = |rng: &mut Rng| (0..rng.below(max)).map(|_| action(rng)).collect();
        let actions = (0..cfg.n_blocks()).map(|_| block(rng)).collect();
        Program { cfg, actions }
    }

    fn construct(&self, braun: &mut Braun, plan: &Plan<'_>, options: BraunOptions) -> Form {
        let Program { cfg, actions } = self;
        let n_blocks = cfg.n_blocks() as u32;
        let mut undefined = undefined;
        braun.start(options);
        // Where the values of a block's writes and the results of its reads start.
        let count = |is_it: fn(&Do) -> bool| {
            let counts = actions.iter().map(move |list| list.iter().filter(|a| is_it(a)).count());
            let starts = counts.scan(0, |sum, n| Some(std::mem::replace(sum, *sum + n)));
            starts.collect::<Vec<usize>>()
        };
        let writes = count(|action| matches!(action, Do::Write(_)));
        let reads = count(|action| !matches!(action, Do::Write(_)));
        let n_reads = actions.iter().flatten().filter(|a| !matches!(a, Do::Write(_))).count();
        let mut results = vec![NONE; n_reads];

        let mut n_unfilled: Vec<usize> = (0..n_blocks).map(|b| cfg.preds(b).len()).collect();
        let mut seal = |braun: &mut Braun, block: u32| {
            braun.seal_block(block, cfg.preds(block).iter().copied(), &mut undefined);
        };
        let is_early =
            |n_unfilled: &[usize], block: u32| plan.seals_early && n_unfilled[block as usize] == 0;
        for block in 0..n_blocks {
            if is_early(&n_unfilled, block) {
                seal(braun, block);
            }
        }
        for &block in plan.order {
            let mut value = FIRST_WRITTEN + writes[block as usize] as u32;
            let mut result = reads[block as usize];
            for &action in &actions[block as usize] {
                match action {
                    Do::Write(variable) => {
                        braun.write_variable(variable, block, value);
                        value += 1;
                    }
                    Do::Read(variable) | Do::Copy(_, variable) => {
                        let read = braun.read_variable(variable, block, &mut self::undefined);
                        results[result] = read;
                        result += 1;
                        if let Do::Copy(to, _) = action {
                            braun.write_variable(to, block, read);
                        }
                    }
                }
            }
            for &succ in cfg.succs(block) {
                n_unfilled[succ as usize] -= 1;
                if is_early(&n_unfilled, succ) {
                    seal(braun, succ);
                }
            }
        }
        if !plan.seals_early {
            plan.order.iter().for_each(|&block| seal(braun, block));
        }
        let report = braun.finish(&mut self::undefined);
        let mut phis = vec![vec![]; n_blocks as usize];
        for phi in braun.phis() {
            let BraunPhi { value, block, variable, operands } = phi;
            assert_eq!(operands.len(), cfg.preds(block).len());
            phis[block as usize].push((variable, value, operands.to_vec()));
        }
        phis.iter_mut().for_each(|list| list.sort_unstable());
        let reads = results.into_iter().map(|value| braun.resolve(value)).collect();
        assert_eq!(report.n_left, phis.iter().map(Vec::len).sum::<usize>());
        assert_eq!(report.n_made, report.n_trivial + report.n_redundant + report.n_left);
        assert!(!braun.is_exhausted());
        Form { phis, reads, report }
    }

    /// Constructs the form with blocks in their order, sealed early.
    fn construct_in_order(&self, options: BraunOptions) -> Form {
        let order: Vec<u32> = (0..self.cfg.n_blocks() as u32).collect();
        let plan = Plan { order: &order, seals_early: true };
        self.construct(&mut Braun::default(), &plan, options)
    }

    /// The blocks that write a variable, and those that read it before they write it.
    fn writes_and_reads(&self, variable: u32) -> (Bits, Bits) {
        let (mut writes, mut reads) = (0, 0);
        for (block, actions) in self.actions.iter().enumerate() {
            for action in actions {
                let (read, written) = match *action {
                    Do::Read(v) => (Some(v), None),
                    Do::Write(v) => (None, Some(v)),
                    Do::Copy(to, from) => (Some(from), Some(to)),
                };
                if read == Some(variable) && writes >> block & 1 == 0 {
                    reads |= 1 << block;
                }
                if written == Some(variable) {
                    writes |= 1 << block;
                }
            }
        }
        (writes, reads)
    }

    /// The blocks with a phi of a variable in pruned SSA form, by the definition.
    fn pruned(&self, variable: u32) -> Bits {
        let (writes, reads) = self.writes_and_reads(variable);
        convergence(&self.cfg, writes | 1) & live_in(&self.cfg, writes, reads)
    }

    /// Follows a random path, and compares the value of each read with the last write.
    fn walk(&self, rng: &mut Rng, form: &Form, n_variables: u32, n_steps: usize) {
        let Program { cfg, actions } = self;
        let mut memory: Vec<u32> = (0..n_variables).collect();
        let mut phis = std::collections::HashMap::new();
        let mut block = 0;
        let counts = |is_it: fn(&Do) -> bool, block: u32| {
            actions[..block as usize].iter().flatten().filter(|a| is_it(a)).count()
        };
        for _ in 0..n_steps {
            let mut written = FIRST_WRITTEN + counts(|a| matches!(a, Do::Write(_)), block) as u32;
            let mut read = counts(|a| !matches!(a, Do::Write(_)), block);
            for &action in &actions[block as usize] {
                if let Do::Write(variable) = action {
                    memory[variable as usize] = written;
                    written += 1;
                    continue;
                }
                let (Do::Read(from) | Do::Copy(_, from)) = action else { unreachable!() };
                let value = form.reads[read];
                read += 1;
                let value = if value & PHI == 0 { value } else { phis[&value] };
                assert_eq!(value, memory[from as usize], "{self:?}\n{form:?}");
                if let Do::Copy(to, _) = action {
                    memory[to as usize] = value;
                }
            }
            let succs = cfg.succs(block);
            if succs.is_empty() {
                return;
            }
            let next = succs[rng.below(succs.len() as u32) as usize];
            // All edges from the same block bring the same; any is the one taken.
            let places: Vec<usize> =
                (0..cfg.preds(next).len()).filter(|&i| cfg.preds(next)[i] == block).collect();
            let old = phis.clone();
            for (_, value, operands) in &form.phis[next as usize] {
                let operand = operands[places[0]];
                assert!(places.iter().all(|&place| operands[place] == operand));
                let known = if operand & PHI == 0 { operand } else { old[&operand] };
                phis.insert(*value, known);
            }
            block = next;
        }
    }
}

fn all_options() -> impl Iterator<Item = BraunOptions> {
    [(true, true), (true, false), (false, true), (false, false)].into_iter().map(
        |(marker, scc_removal)| BraunOptions { marker, scc_removal, ..BraunOptions::default() },
    )
}

fn is_reducible(cfg: &Cfg) -> bool {
    let forest = LoopForest::new(cfg);
    !forest.loops().any(|it| forest.is_irreducible(it))
}

fn sites(form: &Form, variable: u32) -> Bits {
    let has = |block: &usize| form.phis[*block].iter().any(|phi| phi.0 == variable);
    (0..form.phis.len()).filter(has).fold(0, |set, block| set | 1 << block)
}

/// Checks a program without copies in all ways to construct it.
fn check(rng: &mut Rng, braun: &mut Braun, program: &Program, n_variables: u32) {
    let n_blocks = program.cfg.n_blocks() as u32;
    let mut order: Vec<u32> = (0..n_blocks).collect();
    let is_in_order = rng.one_in(2);
    if !is_in_order {
        for i in (1..n_blocks).rev() {
            order.swap(i as usize, rng.below(i + 1) as usize);
        }
    }
    let plan = Plan { order: &order, seals_early: !rng.one_in(4) };
    let is_reducible = is_reducible(&program.cfg);
    let pruned: Vec<Bits> = (0..n_variables).map(|variable| program.pruned(variable)).collect();
    for options in all_options() {
        let form = program.construct(braun, &plan, options);
        for (variable, &pruned) in (0..).zip(&pruned) {
            let sites = sites(&form, variable);
            if options.scc_removal || is_reducible {
                assert_eq!(sites, pruned, "{variable} by {options:?} in {program:?}\n{form:?}");
            }
            assert_eq!(sites & pruned, pruned, "{variable} by {options:?} in {program:?}");
        }
        if is_reducible {
            assert_eq!(form.report.n_redundant, 0);
        }
        for _ in 0..3 {
            program.walk(rng, &form, n_variables, 40);
        }
    }
}

#[test]
fn phis_are_the_pruned_ones_on_all_small_graphs() {
    let mut rng = Rng(1);
    let mut braun = Braun::default();
    for n in 1..=4 {
        for (cfg, _) in all_numbered_graphs(n) {
            let n = cfg.n_blocks();
            // In all blocks, one variable that is read and written at random.
            let lists =
                [vec![], vec![Do::Read(0)], vec![Do::Write(0)], vec![Do::Read(0), Do::Write(0)]];
            for _ in 0..3 {
                let list = |_| lists[rng.below(4) as usize].clone();
                let actions = (0..n).map(list).collect();
                let program = Program { cfg: cfg.clone(), actions };
                check(&mut rng, &mut braun, &program, 1);
            }
        }
    }
}

#[test]
fn phis_are_the_pruned_ones_and_reads_right_in_random_programs() {
    let mut rng = Rng(2);
    let mut braun = Braun::default();
    for _ in 0..10_000 {
        let n = 1 + rng.below(12);
        let (cfg, _) = random_numbered_graph(&mut rng, n);
        let n_variables = 1 + rng.below(3);
        let program = Program::random(&mut rng, cfg, n_variables);
        check(&mut rng, &mut braun, &program, n_variables);
    }
}

#[test]
fn reads_are_right_where_variables_are_copied() {
    let mut rng = Rng(3);
    let mut braun = Braun::default();
    let mut n_saved = 0;
    for _ in 0..5_000 {
        let n = 1 + rng.below(10);
        let (cfg, _) = random_numbered_graph(&mut rng, n);
        let mut program = Program::random(&mut rng, cfg, 3);
        for action in program.actions.iter_mut().flatten() {
            if let Do::Write(to) = *action
                && rng.one_in(2)
            {
                *action = Do::Copy(to, rng.below(3));
            }
        }
        let n_pruned: u32 = (0..3).map(|variable| program.pruned(variable).count_ones()).sum();
        for options in all_options() {
            let order: Vec<u32> = (0..program.cfg.n_blocks() as u32).collect();
            let plan = Plan { order: &order, seals_early: true };
            let form = program.construct(&mut braun, &plan, options);
            if options.scc_removal {
                assert!(form.report.n_left <= n_pruned as usize, "{program:?}");
                n_saved += n_pruned as usize - form.report.n_left;
            }
            for _ in 0..3 {
                program.walk(&mut rng, &form, 3, 40);
            }
        }
    }
    assert!(n_saved > 0, "copies save phis");
}

/// A program with the phi counts of pruned SSA form by word-parallel placement.
fn n_pruned(program: &Program, n_variables: u32) -> usize {
    let cfg = &program.cfg;
    let tree = DomTree::semi_nca(cfg);
    let mut placer = PhiPlacer::default();
    placer.start(cfg, &tree);
    placer.start_group();
    for (block, actions) in (0..).zip(&program.actions) {
        let mut written = 0_u64;
        for action in actions {
            match *action {
                Do::Read(v) if written >> v & 1 == 0 => placer.add_read(block, v),
                Do::Write(v) => {
                    written |= 1 << v;
                    placer.add_write(block, v);
                }
                _ => {}
            }
        }
    }
    assert!(n_variables <= 64);
    placer.place(cfg, &tree);
    placer.sites().map(|(_, variables)| variables.count_ones() as usize).sum()
}

#[test]
fn larger_random_graphs_have_the_pruned_phis() {
    let mut rng = Rng(4);
    let mut braun = Braun::default();
    let mut n_redundant = 0;
    for round in 0..60 {
        let n = 50 + 20 * round;
        let cfg = crate::tools::testing::irreducible(n);
        let (cfg, _) = DomTree::semi_nca(&cfg).renumber(&cfg);
        let mut program = Program::random(&mut rng, cfg, 5);
        // Few writes leave large sets of phis that are one value.
        for actions in &mut program.actions {
            actions.retain(|action| matches!(action, Do::Read(_)) || rng.one_in(8));
        }
        let order: Vec<u32> = (0..program.cfg.n_blocks() as u32).collect();
        for options in all_options().filter(|options| options.scc_removal) {
            let plan = Plan { order: &order, seals_early: true };
            let form = program.construct(&mut braun, &plan, options);
            assert_eq!(form.report.n_left, n_pruned(&program, 5));
            n_redundant += form.report.n_redundant;
            program.walk(&mut rng, &form, 5, 100);
        }
    }
    assert!(n_redundant > 1_000, "{n_redundant}");
}

#[test]
fn large_families_have_the_pruned_phis() {
    let mut rng = Rng(5);
    let mut braun = Braun::default();
    for (name, cfg) in families(30_000) {
        let (cfg, _) = DomTree::semi_nca(&cfg).renumber(&cfg);
        let program = Program::random(&mut rng, cfg, 4);
        let order: Vec<u32> = (0..program.cfg.n_blocks() as u32).collect();
        for marker in [true, false] {
            let options = BraunOptions { marker, ..BraunOptions::default() };
            let plan = Plan { order: &order, seals_early: true };
            let form = program.construct(&mut braun, &plan, options);
            assert_eq!(form.report.n_left, n_pruned(&program, 4), "{name}");
            program.walk(&mut rng, &form, 4, 20);
        }
    }
}

#[test]
fn a_chain_with_a_read_in_each_block_is_linear() {
    let n = 15_000;
    let mut actions = vec![vec![Do::Read(0)]; n as usize];
    actions[0] = vec![Do::Write(0)];
    let program = Program { cfg: crate::tools::testing::chain(n), actions };
    // Filled from the end, so that no read is helped by one before it, and in order.
    let backwards: Vec<u32> = (0..n).rev().collect();
    let forwards: Vec<u32> = (0..n).collect();
    let mut braun = Braun::default();
    for order in [&backwards, &forwards] {
        for seals_early in [true, false] {
            let plan = Plan { order, seals_early };
            let form = program.construct(&mut braun, &plan, BraunOptions::default());
            assert!(form.reads.iter().all(|&value| value == FIRST_WRITTEN));
            assert_eq!(form.report.n_left, 0);
        }
    }
}

#[test]
fn a_read_goes_through_a_million_nested_loops() {
    let n = 1_000_000;
    let cfg = crate::tools::testing::nest(n);
    let n_blocks = cfg.n_blocks() as u32;
    let mut actions = vec![vec![]; n_blocks as usize];
    actions[0] = vec![Do::Write(0)];
    actions[n as usize] = vec![Do::Read(0)];
    actions[n_blocks as usize - 1] = vec![Do::Read(0)];
    let program = Program { cfg, actions };
    // All sealed before the read, and all sealed after it.
    let form = program.construct_in_order(BraunOptions::default());
    assert_eq!((form.reads, form.report.n_left), (vec![FIRST_WRITTEN; 2], 0));
    let order: Vec<u32> = (0..n_blocks).collect();
    let plan = Plan { order: &order, seals_early: false };
    let form = program.construct(&mut Braun::default(), &plan, BraunOptions::default());
    assert_eq!((form.reads, form.report.n_left), (vec![FIRST_WRITTEN; 2], 0));
}

#[test]
fn the_marker_saves_the_phis_that_do_not_stay_where_nothing_loops() {
    let mut rng = Rng(6);
    let (mut n_made, mut n_left) = ([0, 0], 0);
    for _ in 0..500 {
        // Edges go to greater numbers.
        let n = 2 + rng.below(10);
        let succs = |rng: &mut Rng, block: u32| {
            let n_succs = 1 + rng.below(2);
            let far = |rng: &mut Rng| block + 1 + rng.below(n - block - 1);
            let mut list = if block + 1 < n { vec![block + 1] } else { vec![] };
            list.extend((1..n_succs).filter(|_| block + 1 < n).map(|_| far(rng)));
            list
        };
        let cfg = Cfg::new(0, (0..n).map(|block| succs(&mut rng, block)).collect::<Vec<_>>());
        let program = Program::random(&mut rng, cfg, 3);
        for marker in [false, true] {
            let options = BraunOptions { marker, ..BraunOptions::default() };
            let report = program.construct_in_order(options).report;
            n_made[usize::from(marker)] += report.n_made;
            if marker {
                assert_eq!(report.n_made, report.n_left);
                n_left += report.n_left;
            }
        }
    }
    assert!(n_made[0] > n_left && n_made[1] == n_left, "{n_made:?} {n_left}");
}

#[test]
fn unreachable_circles_are_undefined() {
    // 0 -> 5; 1 is its own predecessor, 2 and 3 are each other's, 4 has them and itself.
    let cfg = Cfg::new(0, [vec![5], vec![1], vec![3, 4], vec![2], vec![4], vec![]]);
    let actions = vec![
        vec![Do::Write(0)],
        vec![Do::Read(0)],
        vec![],
        vec![Do::Read(0)],
        vec![Do::Read(0)],
        vec![Do::Read(0)],
    ];
    let program = Program { cfg, actions };
    for options in all_options() {
        for seals_early in [true, false] {
            let order = [0, 1, 2, 3, 4, 5];
            let plan = Plan { order: &order, seals_early };
            let form = program.construct(&mut Braun::default(), &plan, options);
            let expected = [undefined(0), undefined(0), undefined(0), FIRST_WRITTEN];
            assert_eq!(form.reads, expected);
            assert_eq!(form.report.n_left, 0);
        }
    }
}

/// Even values are constants: their last two digits.
struct Constants;

impl Values for Constants {
    fn undefined(&mut self, _: u32) -> u32 {
        0
    }
    fn fold(&mut self, a: u32, b: u32) -> Option<u32> {
        ((a | b) & 1 == 0 && a % 100 == b % 100).then_some(a % 100)
    }
}

#[test]
fn equal_constants_join_without_a_phi() {
    let mut braun = Braun::default();
    let diamond = |braun: &mut Braun, values: [u32; 3]| {
        // 0 -> 1, 2, 3; these -> 4, which goes back to itself.
        braun.start(BraunOptions::default());
        braun.seal_block(0, [], &mut Constants);
        for (block, value) in (1..).zip(values) {
            braun.seal_block(block, [0], &mut Constants);
            braun.write_variable(7, block, value);
        }
        let read = braun.read_variable(7, 4, &mut Constants);
        braun.seal_block(4, [1, 2, 3, 4], &mut Constants);
        let report = braun.finish(&mut Constants);
        (braun.resolve(read), report.n_left)
    };
    assert_eq!(diamond(&mut braun, [142, 42, 242]), (42, 0));
    assert_eq!(diamond(&mut braun, [142, 42, 244]), (PHI, 1));
    assert_eq!(diamond(&mut braun, [141, 141, 141]), (141, 0));
    assert_eq!(diamond(&mut braun, [141, 41, 141]), (PHI, 1));
}

#[test]
fn too_many_entries_end_the_construction() {
    let cfg = crate::tools::testing::ladder(1_000);
    let actions = vec![(0..50).map(Do::Read).collect(); 1_000];
    let program = Program { cfg, actions };
    let mut braun = Braun::default();
    let mut n_entries = |entries_max: usize| {
        let mut undefined = undefined;
        braun.start(BraunOptions { entries_max, ..BraunOptions::default() });
        for block in 0..1_000 {
            let preds = program.cfg.preds(block).iter().copied();
            braun.seal_block(block, preds, &mut undefined);
        }
        for block in (0..1_000).rev() {
            for variable in 0..50 {
                braun.read_variable(variable, block, &mut undefined);
            }
        }
        braun.finish(&mut undefined);
        (braun.is_exhausted(), braun.definitions.len() + braun.phis.n_operands())
    };
    assert!(!n_entries(200_000).0);
    let (is_exhausted, n) = n_entries(10_000);
    // One read may add as many as there are blocks and edges.
    assert!(is_exhausted && n < 13_000, "{n}");
}

#[test]
#[should_panic(expected = "sealed once")]
fn sealing_twice_is_refused() {
    let mut braun = Braun::default();
    braun.start(BraunOptions::default());
    braun.seal_block(0, [], &mut undefined);
    braun.seal_block(0, [], &mut undefined);
}

#[test]
#[should_panic(expected = "all blocks are sealed")]
fn a_read_in_a_block_that_is_never_sealed_is_refused() {
    let mut braun = Braun::default();
    braun.start(BraunOptions::default());
    braun.read_variable(0, 0, &mut undefined);
    braun.finish(&mut undefined);
}
