//! Construction on the fly finds what placement and renaming find.

use super::*;
use crate::construction::braun::BraunOptions;

const MARKER: [bool; 2] = [true, false];

fn on_the_fly(marker: bool, scc_removal: bool) -> Construction {
    Construction::Braun(BraunOptions { marker, scc_removal, ..BraunOptions::default() })
}

/// The program with writes of values of their own in the place of writes of what was read.
fn without_copies(program: &SlotProgram) -> SlotProgram {
    let blocks = 0..program.cfg().n_blocks() as u32;
    let is_read = |value: u32| {
        let mut all = blocks.clone().flat_map(|block| program.accesses(block));
        all.any(|access| matches!(*access, Access::Read { value: v, .. } if v == value))
    };
    let mut n_values = program.n_values();
    let mut lists: Vec<Vec<Access>> =
        blocks.clone().map(|block| program.accesses(block).to_vec()).collect();
    for access in lists.iter_mut().flatten() {
        if let Access::Write { value, .. } = access
            && is_read(*value)
        {
            *value = n_values;
            n_values += 1;
        }
    }
    SlotProgram::new(program.cfg().clone(), program.n_slots(), n_values, lists)
}

fn assert_same(found: &SsaForm, expected: &SsaForm, program: &SlotProgram) {
    assert_eq!(found.phis(), expected.phis(), "{program:?}");
    for phi in 0..found.phis().len() {
        let [found, expected] = [found, expected].map(|form| Vec::from_iter(form.operands(phi)));
        assert_eq!(found, expected, "{program:?}");
    }
    for value in 0..program.n_values() {
        assert_eq!(found.value(value), expected.value(value), "{program:?}");
    }
}

#[test]
fn the_form_is_the_pruned_one_where_nothing_is_copied() {
    let mut rng = Rng(31);
    for _ in 0..4_000 {
        let n = 1 + rng.below(10);
        let cfg = random_graph(&mut rng, n);
        let n_slots = 1 + rng.below(3);
        let program = without_copies(&random_program(&mut rng, cfg, n_slots));
        let initial = initial_values(&program);
        for undef in [Undef::Undefined, Undef::Initial(&initial)] {
            let construct =
                |construction| construct_with(&program, construction, Renaming::Undo, undef);
            let expected = construct(Construction::Pruned);
            for marker in MARKER {
                assert_same(&construct(on_the_fly(marker, true)), &expected, &program);
                let more = construct(on_the_fly(marker, false));
                assert!(more.phis().len() >= expected.phis().len());
                assert_eq!(more.braun().map(|report| report.n_left), Some(more.phis().len()));
                check_on_a_path(&mut rng, &program, &more, undef);
            }
        }
    }
}

#[test]
fn copies_save_phis_and_reads_stay_right() {
    let mut rng = Rng(32);
    let (mut n_pruned, mut n_left) = (0, 0);
    for _ in 0..4_000 {
        let n = 1 + rng.below(10);
        let cfg = random_graph(&mut rng, n);
        let program = random_program(&mut rng, cfg, 3);
        let initial = initial_values(&program);
        let undef = Undef::Initial(&initial);
        let pruned = construct_with(&program, Construction::Pruned, Renaming::Undo, undef);
        for marker in MARKER {
            for scc_removal in [true, false] {
                let construction = on_the_fly(marker, scc_removal);
                let form = construct_with(&program, construction, Renaming::Undo, undef);
                check_on_a_path(&mut rng, &program, &form, undef);
                if scc_removal {
                    assert!(form.phis().len() <= pruned.phis().len());
                    n_pruned += pruned.phis().len();
                    n_left += form.phis().len();
                }
            }
        }
    }
    assert!(n_left < n_pruned, "{n_left} of {n_pruned}");
}

#[test]
fn too_much_is_refused() {
    let cfg = crate::tools::testing::ladder(1_000);
    let lists: Vec<Vec<Access>> = (0..1_000)
        .map(|block| {
            (0..10)
                .flat_map(|slot| {
                    let value = 20 * block + 2 * slot;
                    [Access::Read { slot, value }, Access::Write { slot, value: value + 1 }]
                })
                .collect()
        })
        .collect();
    let program = SlotProgram::new(cfg, 10, 20_000, lists);
    let construct_with = |entries_max: usize, phi_operands_max: usize| {
        let braun = BraunOptions { entries_max, ..BraunOptions::default() };
        let construction = Construction::Braun(braun);
        let options = ConstructOptions { construction, phi_operands_max, ..Default::default() };
        construct(&program, &options, &mut Scratch::default()).map(|form| form.phis().len())
    };
    let enough = BraunOptions::ENTRIES_MAX_USUAL;
    assert!(construct_with(enough, CONSTRUCTED_PHI_OPERANDS_MAX).is_ok());
    assert_eq!(construct_with(1_000, CONSTRUCTED_PHI_OPERANDS_MAX), Err(TooLarge::Entries(1_000)));
    assert_eq!(construct_with(enough, 1_000), Err(TooLarge::PhiOperands(1_000)));
}
