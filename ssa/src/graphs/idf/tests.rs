use super::*;
use crate::graphs::steps::within;
use crate::tools::testing::{
    Bits, Rng, all_graphs, all_numbered_graphs, blocks, convergence, families, graph_of_bits,
    is_full, live_in, nest, random_graph, reachable, size, slot_blocks,
};

const PRUNINGS: [Pruning; 3] = [Pruning::None, Pruning::Semi, Pruning::Full];

/// The sites of each slot by the definition, without pruning: the blocks at which paths from two writes
/// converge. The initial value is written in a block before the entry.
fn converging(cfg: &Cfg, writes: Bits) -> Bits {
    let n = cfg.n_blocks() as u32;
    let live = reachable(cfg, cfg.entry(), 0);
    let lists = (0..n).map(|b| if live >> b & 1 == 1 { cfg.succs(b).to_vec() } else { vec![] });
    let started = Cfg::new(n, lists.chain([vec![cfg.entry()]]));
    convergence(&started, writes & live | 1 << n)
}

/// The sites that a placer finds, as a set of blocks for each slot.
fn sites(placer: &SitePlacer, n_slots: usize) -> Vec<Bits> {
    let mut found = vec![0; n_slots];
    for &(block, slot) in placer.sites() {
        assert_eq!(found[slot.index()] >> block & 1, 0, "no site occurs twice");
        found[slot.index()] |= 1 << block;
    }
    found
}

/// Checks all placements and prunings against the definitions.
fn check(placer: &mut SitePlacer, cfg: &Cfg, slots: &[(Bits, Bits)]) {
    let tree = DomTree::semi_nca(cfg);
    let lists = slot_blocks(slots);
    let reached = reachable(cfg, cfg.entry(), 0);
    let minimal: Vec<Bits> = slots.iter().map(|&(writes, _)| converging(cfg, writes)).collect();
    let live: Vec<Bits> =
        slots.iter().map(|&(writes, reads)| live_in(cfg, writes, reads) & reached).collect();
    for pruning in PRUNINGS {
        for placement in Placement::ALL {
            placer.place(cfg, &tree, &lists, pruning, placement).expect("few entries");
            let found = sites(placer, slots.len());
            for (slot, &(writes, reads)) in slots.iter().enumerate() {
                let expected = match pruning {
                    Pruning::None => minimal[slot],
                    Pruning::Semi if reads & reached == 0 => 0,
                    Pruning::Semi => minimal[slot],
                    Pruning::Full => minimal[slot] & live[slot],
                };
                assert_eq!(
                    found[slot], expected,
                    "{pruning:?} by {placement:?}, writes {writes:b} reads {reads:b} in {cfg:?}"
                );
                let is_live = live[slot] >> cfg.entry() & 1 == 1 && pruning == Pruning::Full;
                assert_eq!(placer.live_at_entry().contains(&Slot::new(slot)), is_live);
            }
            assert!(placer.live_at_entry().is_sorted());
            // The sites of one block are in the order of slots.
            let mut last = vec![None; cfg.n_blocks()];
            for &(block, slot) in placer.sites() {
                assert!(last[block as usize] < Some(slot));
                last[block as usize] = Some(slot);
            }
        }
    }
}

fn all_slots(n: u32) -> Vec<(Bits, Bits)> {
    (0..1u64 << (2 * n)).map(|sets| (sets >> n, sets & ((1 << n) - 1))).collect()
}

fn random_slots(rng: &mut Rng, n: u32, n_slots: u32) -> Vec<(Bits, Bits)> {
    let all = (1 << n) - 1;
    (0..n_slots).map(|_| (rng.next() & rng.next() & all, rng.next() & rng.next() & all)).collect()
}

#[test]
fn sites_match_the_definition_on_all_small_graphs() {
    let mut placer = SitePlacer::default();
    for n in 1..=3 {
        let slots = all_slots(n);
        for cfg in all_graphs(n) {
            check(&mut placer, &cfg, &slots);
        }
    }
}

/// `SLOTVM_FULL=1` takes all of them, otherwise some are drawn.
#[test]
fn sites_match_the_definition_on_graphs_of_four_and_five_blocks() {
    let mut placer = SitePlacer::default();
    let mut rng = Rng(51);
    let mut check_one = |cfg: &Cfg| {
        let slots = random_slots(&mut rng, cfg.n_blocks() as u32, 2);
        check(&mut placer, cfg, &slots);
    };
    if is_full() {
        all_graphs(4).for_each(|cfg| check_one(&cfg));
        all_numbered_graphs(5).for_each(|(cfg, _)| check_one(&cfg));
    } else {
        let mut draw = Rng(56);
        for _ in 0..1_000 {
            check_one(&graph_of_bits(4, draw.next()));
            check_one(&graph_of_bits(5, draw.next()));
        }
    }
}

#[test]
fn sites_match_the_definition_on_random_graphs() {
    let mut placer = SitePlacer::default();
    let mut rng = Rng(52);
    for round in 0..1_000 {
        let n = 1 + rng.below(10);
        let cfg = random_graph(&mut rng, n);
        // Now and then more slots than a word has bits.
        let n_slots = if round % 100 == 0 { 150 } else { rng.below(5) };
        let slots = random_slots(&mut rng, n, n_slots);
        check(&mut placer, &cfg, &slots);
    }
}

/// The maximal form has a phi at every block that two or more edges enter, the edge into the function
/// being one. Each form has the phis of the next, and on the whole more.
#[test]
fn each_form_has_the_sites_of_the_next() {
    let mut rng = Rng(53);
    let mut placer = SitePlacer::default();
    let mut counts = [0; 4];
    for _ in 0..3_000 {
        let n = 1 + rng.below(12);
        let cfg = random_graph(&mut rng, n);
        let tree = DomTree::semi_nca(&cfg);
        let in_edges = |b: u32| {
            let preds = cfg.preds(b).iter().filter(|&&pred| tree.number(pred).is_some());
            preds.count() + usize::from(b == cfg.entry())
        };
        let is_join = |&b: &u32| tree.number(b).is_some() && in_edges(b) > 1;
        let maximal = (0..n).filter(is_join).fold(0, |set: Bits, b| set | 1 << b);
        let slots = slot_blocks(&random_slots(&mut rng, n, 4));
        let mut larger = vec![maximal; 4];
        counts[0] += 4 * maximal.count_ones();
        for (pruning, count) in PRUNINGS.into_iter().zip(&mut counts[1..]) {
            placer.place(&cfg, &tree, &slots, pruning, Placement::Auto).expect("few entries");
            let found = sites(&placer, 4);
            for (found, larger) in found.iter().zip(&larger) {
                assert_eq!(found & !larger, 0, "{pruning:?} in {cfg:?}");
                *count += found.count_ones();
            }
            larger = found;
        }
    }
    assert!(counts.is_sorted_by(|larger, smaller| larger > smaller), "{counts:?}");
}

/// A text's code puts a block back on the worklist as often as it meets it, without asking whether it
/// has its phi already. It never ends on a loop whose header does not write.
#[test]
fn placement_ends_on_loops_whose_header_does_not_write() {
    let mut placer = SitePlacer::default();
    let cfg = Cfg::new(0, [vec![1], vec![2, 3], vec![1], vec![]]);
    check(&mut placer, &cfg, &[(0b101, 0b1000), (0b100, 0b100), (0b1, 0b110)]);
    let tree = DomTree::semi_nca(&cfg);
    let slots = slot_blocks(&[(0b101, 0b1000)]);
    for placement in Placement::ALL {
        placer.place(&cfg, &tree, &slots, Pruning::Full, placement).expect("few entries");
        assert_eq!(placer.sites(), [(1, Slot(0))]);
    }
}

/// The classical theory excludes an entry inside a loop: there is no write before it.
#[test]
fn an_entry_with_a_back_edge_merges_the_initial_value() {
    let mut placer = SitePlacer::default();
    let cfg = Cfg::new(0, [vec![0, 1], vec![]]);
    let tree = DomTree::semi_nca(&cfg);
    for (writes, expected) in [(0b01, &[(0, Slot(0))][..]), (0b00, &[]), (0b10, &[])] {
        let slots = slot_blocks(&[(writes, 0b11)]);
        for placement in Placement::ALL {
            placer.place(&cfg, &tree, &slots, Pruning::Full, placement).expect("few entries");
            assert_eq!((placer.sites(), placer.live_at_entry()), (expected, &[Slot(0)][..]));
        }
    }
}

/// Later versions of LLVM mark all writing blocks as visited up front; a block that writes is walked
/// from itself, and not once more as part of the subtree above.
#[test]
fn writing_blocks_below_writing_blocks_find_their_own_frontier() {
    let mut placer = SitePlacer::default();
    // A nest of three diamonds, each inside an arm of the one around it.
    let lists =
        [vec![1, 9], vec![2, 8], vec![3, 4], vec![5], vec![5], vec![7], vec![], vec![10], vec![7]];
    let cfg = Cfg::new(0, lists.into_iter().chain([vec![10], vec![]]));
    for writes in 0..1 << 11 {
        if writes % 7 == 0 {
            check(&mut placer, &cfg, &[(writes, 0b100_0000_0000), (writes, u64::MAX >> 53)]);
        }
    }
}

#[test]
fn too_large_frontiers_are_an_error_that_names_the_limit() {
    let cfg = nest(10_000);
    let tree = DomTree::semi_nca(&cfg);
    let slots = slot_blocks(&[(0b110, 0b1)]);
    let mut placer = SitePlacer::default();
    for placement in Placement::ALL {
        let result = placer.place(&cfg, &tree, &slots, Pruning::Full, placement);
        assert_eq!(result.is_err(), placement == Placement::Frontiers);
    }
}

/// Slots as they are in programs: each is written and read a few times, here and there.
fn scattered_slots(rng: &mut Rng, n: u32, n_slots: u32) -> SlotBlocks {
    let mut pairs = |count: u32| {
        (0..count * n_slots).map(|i| (rng.below(n), Slot(i % n_slots))).collect::<Vec<_>>()
    };
    let (writes, reads) = (pairs(20), pairs(20));
    SlotBlocks::new(n_slots as usize, writes, reads)
}

#[test]
fn placements_agree_on_families() {
    let mut placer = SitePlacer::default();
    let mut rng = Rng(54);
    for (name, cfg) in families(3_000) {
        let tree = DomTree::semi_nca(&cfg);
        let slots = scattered_slots(&mut rng, cfg.n_blocks() as u32, 70);
        for pruning in PRUNINGS {
            let mut expected: Option<Vec<(u32, Slot)>> = None;
            for placement in Placement::ALL {
                placer.place(&cfg, &tree, &slots, pruning, placement).expect("few entries");
                let mut sites = placer.sites().to_vec();
                sites.sort_unstable();
                let expected = expected.get_or_insert_with(|| sites.clone());
                assert_eq!(&sites, expected, "{pruning:?} of {name} by {placement:?}");
            }
        }
    }
}

#[test]
fn steps_on_large_families_are_linear_for_each_slot() {
    let mut placer = SitePlacer::default();
    let mut rng = Rng(55);
    for (name, cfg) in families(50_000) {
        let tree = DomTree::semi_nca(&cfg);
        let slots = scattered_slots(&mut rng, cfg.n_blocks() as u32, 10);
        for placement in [Placement::PriorityQueue, Placement::LevelBuckets, Placement::Words] {
            for pruning in PRUNINGS {
                let what = format!("{pruning:?} of {name} by {placement:?}");
                let placed = within(3 * 10 * size(&cfg), what, || {
                    placer.place(&cfg, &tree, &slots, pruning, placement)
                });
                placed.expect("no sets");
            }
        }
    }
}

/// There are as many slots as blocks, each live in a block or two. The work must follow the live ranges.
#[test]
fn slots_that_live_briefly_cost_nothing_for_the_rest_of_the_function() {
    let mut placer = SitePlacer::default();
    for (name, cfg) in families(50_000) {
        let tree = DomTree::semi_nca(&cfg);
        let n = cfg.n_blocks() as u32;
        let has_one_pred = |&b: &u32| tree.idom(b).is_some() && cfg.preds(b).len() == 1;
        let below: Vec<u32> = (0..n).filter(has_one_pred).collect();
        // Written in one block and in one right below, read there.
        let here = (0..).map(Slot).zip(&below).map(|(slot, &block)| (block, slot));
        let above = here.clone().map(|(block, slot)| (cfg.preds(block)[0], slot));
        let slots = SlotBlocks::new(below.len(), here.clone().chain(above), here);
        for placement in [Placement::PriorityQueue, Placement::LevelBuckets, Placement::Words] {
            let placed = within(5 * size(&cfg), format!("{name} by {placement:?}"), || {
                placer.place(&cfg, &tree, &slots, Pruning::Full, placement)
            });
            placed.expect("no sets");
            assert!(placer.sites().is_empty(), "{name} by {placement:?}");
        }
    }
}

mod metamorphic;
mod steps;
mod worked_examples;
