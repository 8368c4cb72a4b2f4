//! The worked examples of [`crate::construction::construct`]'s tests as functions of the IR: the same phis and values,
//! in each form and by each way to get there.

use std::collections::{BTreeMap, BTreeSet};

use slotvm_bytecode::{Imm, Op, ValType};

use super::tests::{FunctionOf, all_options, assert_valid};
use super::*;
use crate::construction::construct::worked_examples::{Example, Operation, examples, split};
use crate::construction::observe::{Observer, ValueStep};
use crate::graphs::cfg::ControlFlow;
use crate::graphs::ids::Slot;
use crate::graphs::observe::{PlacementObserver, PlacementStep};
use crate::ir::entity::Block;
use crate::ir::verify::Form;

/// The graph of an example in preorder of its dominator tree, and the names of its blocks.
pub(crate) fn graph<'t>(example: &Example<'t>) -> (Cfg, Vec<&'t str>) {
    let (cfg, names) = example.graph();
    let tree = DomTree::semi_nca(&cfg);
    let names = tree.preorder().iter().map(|&block| names[block as usize]).collect();
    (tree.renumber(&cfg).0, names)
}

fn check_dominators(example: &Example<'_>, cfg: &Cfg, names: &[&str]) {
    for tree in [DomTree::semi_nca(cfg), DomTree::cooper_harvey_kennedy(cfg)] {
        let idoms: BTreeSet<String> = (0..cfg.n_blocks() as u32)
            .map(|b| {
                let idom = tree.idom(b).map_or("None", |idom| names[idom as usize]);
                format!("{}<-{idom}", names[b as usize])
            })
            .collect();
        let expected = split(example.lines["idom"], ",").into_iter().map(String::from).collect();
        assert_eq!(idoms, expected, "{}", example.name);
    }
}

/// The function of an example, and what its values are called: constants stand for the values that
/// are not loaded.
pub(crate) fn function<'t>(
    example: &Example<'t>,
    cfg: &Cfg,
    names: &[&'t str],
) -> (Function, BTreeMap<Value, &'t str>, BTreeMap<Value, &'t str>) {
    let mut f = FunctionOf::start(&vec![ValType::I64; example.slots.len()]);
    let mut loads = BTreeMap::new();
    let mut constants = BTreeMap::new();
    for block in 0..cfg.n_blocks() as u32 {
        f.start_block();
        for op in example.ops(names[block as usize]) {
            match op {
                Operation::Store { slot, value } => {
                    let load = loads.iter().find(|(_, load)| **load == value);
                    let value = load.map(|(&load, _)| load).unwrap_or_else(|| {
                        let constant = f.emit(Opcode::Op(Op::I64Const), Imm::NONE, &[]);
                        constants.insert(constant.expect("a result"), value);
                        constant.expect("a result")
                    });
                    f.set(slot, value);
                }
                Operation::Load { name, slot } => {
                    let value = f.get(slot);
                    loads.insert(value, name);
                    f.show(value);
                }
            }
        }
        f.end_block(cfg.succs(block));
    }
    (f.finish(), loads, constants)
}

/// Names the values of a function after promotion, and checks its phis by slot.
fn name_values(
    example: &Example<'_>,
    f: &Function,
    names: &[&str],
    constants: &BTreeMap<Value, &str>,
    options: PromoteOptions,
) -> BTreeMap<Value, String> {
    // The phis of a block are in the order of slots.
    let mut value_names: BTreeMap<Value, String> =
        constants.iter().map(|(&value, name)| (value, name.to_string())).collect();
    for inst in f.insts(Function::ENTRY) {
        if let &[value] = &f.results(*inst).collect::<Vec<_>>()[..] {
            value_names.entry(value).or_insert("zero".into());
        }
    }
    for block in f.blocks().skip(1) {
        let name = names[block.index()];
        let has_phi = |&slot: &u32| example.sites(options.construction, slot).contains(name);
        let slots: Vec<u32> = (0..example.slots.len() as u32).filter(has_phi).collect();
        assert_eq!(f.params(block).len(), slots.len(), "{name} {options:?} {}", example.name);
        for (&param, slot) in f.params(block).iter().zip(slots) {
            value_names.insert(param, format!("{}_{name}", slot_name(example, slot)));
        }
    }
    value_names
}

fn slot_name<'t>(example: &Example<'t>, slot: u32) -> &'t str {
    example.slots.keys().nth(slot as usize).expect("a slot")
}

/// Checks the function after a promotion: its phis by slot, and for the pruned form what they are made
/// of and what loads give.
fn check_ssa(example: &Example<'_>, cfg: &Cfg, names: &[&str], options: PromoteOptions) {
    let (mut f, loads, constants) = function(example, cfg, names);
    let shown: Vec<&str> = shown_values(&f).map(|value| loads[&value]).collect();
    let mut film = Film::default();
    promote_observed(&mut f, options, &mut Scratch::default(), &mut film);
    assert_valid(&f, Form::Ssa);
    let value_names = name_values(example, &f, names, &constants, options);
    if options.construction != Construction::Pruned {
        return;
    }

    let phis: BTreeSet<String> = f
        .blocks()
        .skip(1)
        .flat_map(|block| {
            f.params(block).iter().enumerate().map(move |(i, &param)| (block, i, param))
        })
        .map(|(block, i, param)| {
            let operand = |edge| {
                let src = names[f.edge_src(edge).index()];
                format!("{src}:{}", value_names[&f.edge_args(edge)[i]])
            };
            let operands: BTreeSet<String> =
                f.pred_edges(block).iter().map(|&e| operand(e)).collect();
            format!("{}={operands:?}", value_names[&param])
        })
        .collect();
    assert_eq!(phis, example.phis(), "{options:?} {}", example.name);

    let now = shown_values(&f).map(|value| &value_names[&value]);
    let values: BTreeSet<String> =
        shown.into_iter().zip(now).map(|(load, value)| format!("{load}->{value}")).collect();
    assert_eq!(values, example.loads(), "{options:?} {}", example.name);
    check_film(example, names, &film.steps, &loads, &value_names);
}

/// The steps of the scan and of renaming.
#[derive(Default)]
struct Film {
    steps: Vec<ValueStep>,
}

impl PlacementObserver for Film {
    fn place(&mut self, _: &[Slot]) {}

    fn placement_step(&mut self, _: u64, _: PlacementStep) {}
}

impl Observer for Film {
    fn value_step(&mut self, step: ValueStep) {
        self.steps.push(step);
    }
}

/// Replays the steps of a promotion to pruned form. Each value that is read must be the one that the steps before have
/// left in the slot, and all of them together must give the example's loads and phi operands.
fn check_film(
    example: &Example<'_>,
    names: &[&str],
    steps: &[ValueStep],
    loads: &BTreeMap<Value, &str>,
    value_names: &BTreeMap<Value, String>,
) {
    let mut current: BTreeMap<Slot, u32> = BTreeMap::new();
    let mut returned: BTreeMap<u32, u32> = BTreeMap::new();
    let mut operands: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut block = 0;
    for &step in steps {
        match step {
            ValueStep::Settled { read, value, .. } => {
                assert_eq!(returned.insert(read, value), None);
            }
            ValueStep::Initial { slot, value } | ValueStep::Restore { slot, value } => {
                current.insert(slot, value);
            }
            ValueStep::Enter { block: next } => block = next,
            ValueStep::Phi { slot, value } => {
                let name = format!("{}_{}", slot_name(example, slot.0), names[block as usize]);
                assert_eq!(value_names[&Value(value)], name);
                current.insert(slot, value);
            }
            ValueStep::Write { slot, value } => {
                current.insert(slot, value);
            }
            ValueStep::Read { slot, read, value } => {
                assert_eq!(current[&slot], value);
                assert_eq!(returned.insert(read, value), None);
            }
            ValueStep::Operand { dst, slot, value } => {
                assert_eq!(current[&slot], value);
                let phi = format!("{}_{}", slot_name(example, slot.0), names[dst as usize]);
                let operand = format!("{}:{}", names[block as usize], value_names[&Value(value)]);
                operands.entry(phi).or_default().insert(operand);
            }
        }
    }
    let phis: BTreeSet<String> =
        operands.iter().map(|(phi, operands)| format!("{phi}={operands:?}")).collect();
    assert_eq!(phis, example.phis(), "{}", example.name);
    let resolve = |mut value: u32| {
        while let Some(&other) = returned.get(&value) {
            value = other;
        }
        Value(value)
    };
    let is_settled = |load: &&Value| returned.contains_key(&load.0);
    let results: BTreeSet<String> = loads
        .keys()
        .filter(is_settled)
        .map(|load| format!("{}->{}", loads[load], value_names[&resolve(load.0)]))
        .collect();
    let expected = example.loads();
    assert_eq!(results, expected, "{}", example.name);
}

/// The values that are shown, in the order of blocks.
fn shown_values(f: &Function) -> impl Iterator<Item = Value> + '_ {
    f.blocks()
        .flat_map(|block: Block| f.insts(block))
        .filter(|&&inst| f.opcode(inst) == Opcode::Op(Op::GlobalSet))
        .map(|&inst| f.operands(inst)[0])
}

#[test]
fn the_worked_examples_come_out_right() {
    for example in examples() {
        let (cfg, names) = graph(&example);
        check_dominators(&example, &cfg, &names);
        for options in all_options() {
            check_ssa(&example, &cfg, &names, options);
        }
    }
}
