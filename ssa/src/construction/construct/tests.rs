//! Random programs on random graphs. One oracle follows a path through the program and through what
//! construction made of it, and compares what the reads give; the others are the definitions.

mod on_the_fly;

use super::*;
use crate::graphs::steps::within;
use crate::tools::testing::{Bits, Rng, convergence, families, live_in, random_graph, size};

/// A random program on a graph. Each write is of a value of its own, or of what a read gave that comes
/// before it on all paths.
fn random_program(rng: &mut Rng, cfg: Cfg, n_slots: u32) -> SlotProgram {
    let tree = DomTree::semi_nca(&cfg);
    let max = 1 + rng.below(6);
    let mut n_values = n_slots;
    let mut lists: Vec<Vec<Access>> = vec![vec![]; cfg.n_blocks()];
    // Dominators come first, and then the blocks that have none.
    let unreachable = (0..cfg.n_blocks() as u32).filter(|&b| tree.number(b).is_none());
    let mut reads: Vec<(u32, u32)> = vec![];
    for block in tree.preorder().iter().copied().chain(unreachable) {
        for _ in 0..rng.below(max) {
            let slot = rng.below(n_slots);
            let above = |&&(b, _): &&(u32, u32)| b == block || tree.dominates(b, block);
            let n_above = reads.iter().filter(above).count() as u32;
            lists[block as usize].push(if rng.one_in(2) {
                reads.push((block, n_values));
                n_values += 1;
                Access::Read { slot, value: n_values - 1 }
            } else if n_above > 0 && rng.one_in(3) {
                let nth = rng.below(n_above) as usize;
                let &(_, value) = reads.iter().filter(above).nth(nth).expect("there are so many");
                Access::Write { slot, value }
            } else {
                n_values += 1;
                Access::Write { slot, value: n_values - 1 }
            });
        }
    }
    SlotProgram::new(cfg, n_slots, n_values, lists)
}

/// The program's initial values: value `i` of slot `i`.
fn initial_values(program: &SlotProgram) -> Vec<u32> {
    (0..program.n_slots()).collect()
}

fn construct_with(
    program: &SlotProgram,
    construction: Construction,
    renaming: Renaming,
    undef: Undef<'_>,
) -> SsaForm {
    let options = ConstructOptions { construction, renaming, undef, ..Default::default() };
    construct(program, &options, &mut Scratch::default()).expect("it is small")
}

/// Follows a random path and checks that each read returns the contents of its slot. A value is what it was
/// when its definition was executed last, so that one of an earlier round of a loop is another.
fn check_on_a_path(rng: &mut Rng, program: &SlotProgram, form: &SsaForm, undef: Undef<'_>) {
    const NOTHING: u64 = 0;
    let made_before = |value: u32| u64::from(value) + 1;
    let cfg = program.cfg();
    let mut slots: Vec<u64> = match undef {
        Undef::Undefined => vec![NOTHING; program.n_slots() as usize],
        Undef::Initial(values) => values.iter().map(|&value| made_before(value)).collect(),
    };
    let n_values = program.n_values() as usize + form.phis().len();
    let mut values: Vec<u64> = (0..n_values as u32).map(made_before).collect();
    // What reads gave in slot form.
    let mut read = vec![NOTHING; program.n_values() as usize];
    let is_read: Vec<bool> = {
        let mut is_read = vec![false; program.n_values() as usize];
        for block in 0..cfg.n_blocks() as u32 {
            for access in program.accesses(block) {
                if let Access::Read { value, .. } = *access {
                    is_read[value as usize] = true;
                }
            }
        }
        is_read
    };
    // The phis of a block stand together.
    let mut phis_of = vec![0..0; cfg.n_blocks()];
    for (i, phi) in form.phis().iter().enumerate() {
        let of_block = &mut phis_of[phi.block as usize];
        *of_block = if of_block.end == 0 { i..i + 1 } else { of_block.start..i + 1 };
    }
    let get = |values: &[u64], value: u32| match value {
        UNDEF => NOTHING,
        _ => values[value as usize],
    };
    let mut tick = n_values as u64;
    let mut block = cfg.entry();
    let mut came_by = None;
    for _ in 0..50 {
        // Phis are parallel.
        let phis = || phis_of[block as usize].clone();
        let operand = |i: usize| {
            let mut operands = form.operands(i);
            let at_entry = operands.len() - 1;
            get(&values, operands.nth(came_by.unwrap_or(at_entry)).expect("an operand"))
        };
        let operands: Vec<u64> = phis().map(operand).collect();
        for (i, value) in phis().zip(operands) {
            values[form.phis()[i].value as usize] = value;
        }
        for &access in program.accesses(block) {
            tick += 1;
            match access {
                Access::Read { slot, value } => {
                    let given = get(&values, form.value(value));
                    assert_eq!(given, slots[slot as usize], "{access:?} {program:?} {form:?}");
                    read[value as usize] = given;
                }
                Access::Write { slot, value } if is_read[value as usize] => {
                    let given = get(&values, form.value(value));
                    assert_eq!(given, read[value as usize], "{access:?} {program:?} {form:?}");
                    slots[slot as usize] = given;
                }
                Access::Write { slot, value } => {
                    values[value as usize] = tick;
                    slots[slot as usize] = tick;
                }
            }
        }
        let succs = cfg.succs(block);
        if succs.is_empty() {
            break;
        }
        let next = succs[rng.below(succs.len() as u32) as usize];
        let edges = || (0..).zip(cfg.preds(next)).filter(|(_, pred)| **pred == block);
        let nth = rng.below(edges().count() as u32) as usize;
        came_by = edges().nth(nth).map(|(edge, _)| edge);
        block = next;
    }
}

/// The blocks with phis of each slot by the definitions, on the graph with a block before its entry.
fn sites_by_definition(program: &SlotProgram, construction: Construction) -> Vec<Vec<u32>> {
    let cfg = program.cfg();
    let tree = DomTree::semi_nca(cfg);
    let inside = |&block: &u32| tree.number(block).map(|number| number + 1);
    let lists = tree.preorder().iter().map(|&b| cfg.succs(b).iter().filter_map(inside).collect());
    let split = Cfg::new(0, std::iter::once(vec![1]).chain(lists));
    let n = split.n_blocks() as u32;
    (0..program.n_slots())
        .map(|slot| {
            let (mut writes, mut reads): (Bits, Bits) = (0, 0);
            for block in 1..n {
                for access in program.accesses(tree.preorder()[block as usize - 1]) {
                    match *access {
                        Access::Read { slot: s, .. } if s == slot && writes >> block & 1 == 0 => {
                            reads |= 1 << block;
                        }
                        Access::Write { slot: s, .. } if s == slot => writes |= 1 << block,
                        _ => {}
                    }
                }
            }
            let sites = match construction {
                Construction::Maximal => {
                    let joins = (0..n).filter(|&block| split.preds(block).len() >= 2);
                    joins.fold(0, |set, block| set | 1 << block)
                }
                Construction::SemiPruned if reads == 0 => 0,
                Construction::Minimal | Construction::SemiPruned => convergence(&split, writes | 1),
                Construction::Braun(_) => unreachable!("it is none of those in the list"),
                Construction::Pruned => {
                    convergence(&split, writes | 1) & live_in(&split, writes, reads)
                }
            };
            let blocks = (1..n).filter(|block| sites >> block & 1 == 1);
            blocks.map(|block| tree.preorder()[block as usize - 1]).collect()
        })
        .collect()
}

/// The blocks with phis of each slot.
fn sites(program: &SlotProgram, form: &SsaForm) -> Vec<Vec<u32>> {
    let of_slot = |slot| {
        let phis = form.phis().iter().filter(|phi| phi.slot == slot);
        phis.map(|phi| phi.block).collect()
    };
    (0..program.n_slots()).map(of_slot).collect()
}

fn assert_equal(a: &SsaForm, b: &SsaForm, program: &SlotProgram) {
    assert_eq!(a.phis(), b.phis());
    for i in 0..a.phis().len() {
        assert!(a.operands(i).eq(b.operands(i)), "{:?} {program:?}", a.phis()[i]);
    }
    assert_eq!(a.replacements, b.replacements, "{program:?}");
}

#[test]
fn all_constructions_have_the_phis_of_their_definition_and_read_the_same_on_all_paths() {
    let mut rng = Rng(21);
    let mut scratch = Scratch::default();
    for &placement in Placement::ALL.iter().cycle().take(2_000) {
        let n = 1 + rng.below(9);
        let cfg = random_graph(&mut rng, n);
        let n_slots = 1 + rng.below(4);
        let program = random_program(&mut rng, cfg, n_slots);
        let initial = initial_values(&program);
        for undef in [Undef::Undefined, Undef::Initial(&initial)] {
            for &construction in Construction::ALL {
                let form = construct_with(&program, construction, Renaming::Undo, undef);
                let other = ConstructOptions {
                    construction,
                    placement,
                    renaming: Renaming::Chains,
                    undef,
                    ..ConstructOptions::default()
                };
                let other = construct(&program, &other, &mut scratch).expect("it is small");
                assert_equal(&form, &other, &program);
                let expected = sites_by_definition(&program, construction);
                assert_eq!(sites(&program, &form), expected, "{construction:?} {program:?}");
                assert_eq!(form.counts().n_slots(), n_slots as usize);
                for _ in 0..3 {
                    check_on_a_path(&mut rng, &program, &form, undef);
                }
            }
        }
    }
}

#[test]
fn each_construction_has_the_phis_of_the_next() {
    let mut rng = Rng(22);
    for _ in 0..1_000 {
        let n = 1 + rng.below(60);
        let cfg = random_graph(&mut rng, n);
        let program = random_program(&mut rng, cfg, 5);
        let keys = |construction| -> Vec<(u32, u32)> {
            let form = construct_with(&program, construction, Renaming::Undo, Undef::Undefined);
            form.phis().iter().map(|phi| (phi.block, phi.slot)).collect()
        };
        for pair in Construction::ALL.windows(2) {
            let (more, fewer) = (keys(pair[0]), keys(pair[1]));
            assert!(fewer.iter().all(|site| more.contains(site)), "{pair:?} {program:?}");
        }
    }
}

#[test]
fn an_entry_in_a_loop_has_phis_with_an_operand_for_the_caller() {
    // Block 1 is the entry, and goes back to itself twice and on to block 0.
    let cfg = Cfg::new(1, [vec![], vec![1, 0, 1]]);
    let accesses = [
        vec![Access::Read { slot: 0, value: 3 }],
        vec![Access::Read { slot: 0, value: 1 }, Access::Write { slot: 0, value: 2 }],
    ];
    let program = SlotProgram::new(cfg, 1, 4, accesses);
    for (undef, first) in [(Undef::Undefined, UNDEF), (Undef::Initial(&[0]), 0)] {
        let form = construct_with(&program, Construction::Pruned, Renaming::Undo, undef);
        assert_eq!(form.phis(), [Phi { block: 1, slot: 0, value: 4 }]);
        assert!(form.operands(0).eq([2, 2, first]));
        assert_eq!([1, 2, 3].map(|value| form.value(value)), [4, 2, 2]);
    }
}

#[test]
fn unreachable_blocks_are_dropped() {
    // Block 1 is unreachable and goes to block 3, where the arms 0 and 2 meet.
    let cfg = Cfg::new(0, [vec![3, 2], vec![3, 0], vec![3], vec![]]);
    let accesses = [
        vec![Access::Write { slot: 0, value: 0 }],
        vec![Access::Read { slot: 0, value: 1 }, Access::Write { slot: 1, value: 2 }],
        vec![Access::Write { slot: 0, value: 3 }],
        vec![Access::Read { slot: 0, value: 4 }, Access::Read { slot: 1, value: 5 }],
    ];
    let program = SlotProgram::new(cfg, 2, 6, accesses);
    let form = construct_with(&program, Construction::Pruned, Renaming::Undo, Undef::Undefined);
    assert_eq!(form.phis(), [Phi { block: 3, slot: 0, value: 6 }]);
    assert!(form.operands(0).eq([0, UNDEF, 3]));
    assert_eq!([1, 4, 5].map(|value| form.value(value)), [UNDEF, 6, UNDEF]);
}

#[test]
fn too_many_operands_are_refused() {
    let cfg = Cfg::new(0, [vec![1, 2], vec![3], vec![3], vec![]]);
    let write = |value| vec![Access::Write { slot: 0, value }];
    let accesses = [vec![], write(0), write(1), vec![Access::Read { slot: 0, value: 2 }]];
    let program = SlotProgram::new(cfg, 1, 3, accesses);
    for &construction in Construction::ALL {
        for (phi_operands_max, fits) in [(1, false), (2, true)] {
            let options = ConstructOptions { construction, phi_operands_max, ..Default::default() };
            let form = construct(&program, &options, &mut Scratch::default());
            assert_eq!(form.is_ok(), fits, "{construction:?}");
            if let Err(error) = form {
                assert_eq!(error.to_string(), "more than 1 phi operands");
            }
        }
    }
}

#[test]
fn steps_on_large_families_are_linear() {
    let mut rng = Rng(23);
    let mut scratch = Scratch::default();
    for (name, cfg) in families(30_000) {
        let program = random_program_without_copies(&mut rng, cfg);
        for &construction in Construction::ALL {
            for renaming in Renaming::ALL {
                let options = ConstructOptions { construction, renaming, ..Default::default() };
                let what = format!("{name}: {construction:?} {renaming:?}");
                let form = within(4 * 10 * size(program.cfg()), what, || {
                    construct(&program, &options, &mut scratch)
                });
                let form = form.expect("it has ten slots");
                check_on_a_path(&mut rng, &program, &form, Undef::Undefined);
            }
        }
    }
}

/// A random program with ten slots on a large graph.
fn random_program_without_copies(rng: &mut Rng, cfg: Cfg) -> SlotProgram {
    let mut n_values = 0;
    let lists: Vec<Vec<Access>> = (0..cfg.n_blocks())
        .map(|_| {
            let access = |_| {
                let (slot, value) = (rng.below(10), n_values);
                n_values += 1;
                match rng.one_in(2) {
                    true => Access::Read { slot, value },
                    false => Access::Write { slot, value },
                }
            };
            (0..2).map(access).collect()
        })
        .collect();
    SlotProgram::new(cfg, 10, n_values, lists)
}
