use super::*;
use crate::construction::build::BuildOptions;
use crate::construction::promote::{Scratch, promote};
use crate::ir::edit::edit;
use crate::passes::simplify::simplify;
use crate::tools::samples::{random_walk, slot_form};
use crate::tools::testing::Rng;

/// All that promotion, simplification and destruction do to random functions keeps the order of effects.
#[test]
fn stages_keep_the_order() {
    let mut rng = Rng(7);
    for _ in 0..500 {
        let module = random_walk(&mut rng);
        let options = BuildOptions { fuel: true, stack_cells: true, polls: true, waits: false };
        let mut f = slot_form(&module, module.n_funcs() - 1, &options);
        let effects = Effects::of(&f);
        promote(&mut f, &mut Scratch::default());
        effects.check(&f).unwrap_or_else(|violation| panic!("{violation}\n{f}"));
        simplify(&mut f);
        effects.check(&f).unwrap_or_else(|violation| panic!("{violation}\n{f}"));
        crate::passes::destruct::destruct(&mut f);
        effects.check(&f).unwrap_or_else(|violation| panic!("{violation}\n{f}"));
    }
}

/// Exchanging two effects that follow each other is found in nearly every function: they are the same in none.
#[test]
fn exchanged_effects_are_found() {
    let mut rng = Rng(8);
    let mut n_exchanged = 0;
    for _ in 0..500 {
        let module = random_walk(&mut rng);
        let options = BuildOptions { fuel: true, stack_cells: true, polls: true, waits: false };
        let f = slot_form(&module, module.n_funcs() - 1, &options);
        let effects = Effects::of(&f);
        for block in f.blocks() {
            let ordered = |&(_, inst): &(usize, &Inst)| {
                let op = f.opcode(*inst);
                op.is_ordered() && !op.is_terminator()
            };
            let places: Vec<usize> =
                f.insts(block).iter().enumerate().filter(ordered).map(|(i, _)| i).collect();
            for pair in places.windows(2) {
                let mut faulty = f.clone();
                let first = f.blocks[block.index()].insts.0 as usize;
                faulty.layout.swap(first + pair[0], first + pair[1]);
                let violation =
                    effects.check(&faulty).expect_err("two effects have passed each other");
                assert_eq!(violation.property, Property::EffectsInOrder);
                n_exchanged += 1;
            }
        }
    }
    assert!(n_exchanged > 1_000, "{n_exchanged}");
}

#[test]
fn blocks_may_be_split_off() {
    let mut rng = Rng(9);
    for _ in 0..200 {
        let module = random_walk(&mut rng);
        let mut f = slot_form(&module, module.n_funcs() - 1, &BuildOptions::default());
        let effects = Effects::of(&f);
        edit(&mut f, |editor| {
            let loc = editor.func().loc(editor.insts(Block(0))[0]);
            for edge in (0..editor.func().n_edges()).map(crate::ir::entity::Edge::new) {
                editor.split_edge(edge, loc);
            }
        });
        effects.check(&f).unwrap_or_else(|violation| panic!("{violation}\n{f}"));
    }
}
