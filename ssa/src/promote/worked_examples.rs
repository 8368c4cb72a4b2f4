//! The worked examples of the texts on SSA construction that this project comes from: dominators, phi
//! sites, phi operands and the values of loads must be what `testdata/worked-examples.txt` says.

use std::collections::{BTreeMap, BTreeSet};

use slotvm_bytecode::{Imm, Op, ValType};

use super::tests::{FunctionOf, assert_valid};
use super::*;
use crate::cfg::ControlFlow;
use crate::entity::Block;
use crate::verify::Form;

/// An example: the lines of its section by their first word, and for slots by their name.
struct Example<'t> {
    name: &'t str,
    lines: BTreeMap<&'t str, &'t str>,
    slots: BTreeMap<&'t str, &'t str>,
}

fn parse(text: &str) -> Vec<Example<'_>> {
    let mut examples: Vec<Example<'_>> = vec![];
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("example ") {
            examples.push(Example { name, lines: BTreeMap::new(), slots: BTreeMap::new() });
            continue;
        }
        let example = examples.last_mut().expect("an example has begun");
        let (key, rest) = line.trim().split_once(':').expect("a line has a key");
        match key.strip_prefix("slot ") {
            Some(slot) => example.slots.insert(slot, rest.trim()),
            None => example.lines.insert(key, rest.trim()),
        };
    }
    examples
}

/// The members of the set after a word: `minimal {a, b}`.
fn set<'t>(line: &'t str, word: &str) -> BTreeSet<&'t str> {
    let (_, rest) = line.split_once(&format!("{word} {{")).expect("the set is there");
    let (members, _) = rest.split_once('}').expect("a set ends");
    members.split(", ").filter(|name| !name.is_empty()).collect()
}

/// The parts of a list, which may be empty.
fn split<'t>(list: &'t str, by: &str) -> Vec<&'t str> {
    list.split(by).map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// The graph of an example, and the names of its blocks.
fn graph<'t>(example: &Example<'t>) -> (Cfg, DomTree, Vec<&'t str>) {
    let mut names = vec![example.lines["entry"]];
    let mut lists: Vec<Vec<u32>> = vec![vec![]];
    for edge in split(example.lines["edges"], " ") {
        let (from, to) = edge.split_once("->").expect("an edge");
        let [from, to] = [from, to].map(|name| {
            names.iter().position(|&n| n == name).unwrap_or_else(|| {
                names.push(name);
                lists.push(vec![]);
                names.len() - 1
            })
        });
        lists[from].push(to as u32);
    }
    let cfg = Cfg::new(0, lists);
    let tree = DomTree::semi_nca(&cfg);
    let names = tree.preorder().iter().map(|&block| names[block as usize]).collect();
    let (cfg, tree) = tree.renumber(&cfg);
    (cfg, tree, names)
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
fn function<'t>(
    example: &Example<'t>,
    cfg: &Cfg,
    names: &[&'t str],
) -> (Function, BTreeMap<Value, &'t str>, BTreeMap<Value, &'t str>) {
    let slots: Vec<&str> = example.slots.keys().copied().collect();
    let slot_of = |name: &str| slots.iter().position(|&s| s == name).expect("a slot") as u32;
    let mut f = FunctionOf::start(&vec![ValType::I64; slots.len()]);
    let mut loads = BTreeMap::new();
    let mut constants = BTreeMap::new();
    for block in 0..cfg.n_blocks() as u32 {
        f.start_block();
        let ops = split(example.lines["ops"], ";").into_iter().find_map(|ops| {
            ops.split_once(": ").filter(|(name, _)| *name == names[block as usize])
        });
        for op in ops.map_or(vec![], |(_, ops)| split(ops, ", ")) {
            if let Some((name, value)) = op.strip_prefix("store ").and_then(|op| op.split_once('='))
            {
                let loaded = loads.iter().find(|(_, load)| **load == value).map(|(&load, _)| load);
                let value = loaded.unwrap_or_else(|| {
                    let constant = f.emit(Opcode::Op(Op::I64Const), Imm::NONE, &[]);
                    constants.insert(constant.expect("a result"), value);
                    constant.expect("a result")
                });
                f.set(slot_of(name), value);
            } else {
                let (name, slot) = op.split_once("=load ").expect("a load");
                let value = f.get(slot_of(slot));
                loads.insert(value, name);
                f.show(value);
            }
        }
        f.end_block(cfg.succs(block));
    }
    (f.finish(), loads, constants)
}

/// Checks phi sites, with liveness and without.
fn check_sites(example: &Example<'_>, cfg: &Cfg, tree: &DomTree, names: &[&str]) {
    let (mut f, ..) = function(example, cfg, names);
    let mut log = AccessLog::default();
    take_out_accesses(&mut f, &mut log);
    let mut placer = PhiPlacer::default();
    placer.start(cfg, tree);
    for (slot, (name, line)) in (0..).zip(&example.slots) {
        for variant in ["minimal", "pruned"] {
            placer.start_group();
            for block in 0..cfg.n_blocks() as u32 {
                let (reads, writes, _) = log.of_block(block);
                if writes.iter().any(|write| write.slot == slot) {
                    placer.add_write(block, 0);
                }
                if variant == "minimal" || reads.iter().any(|read| read.slot == slot) {
                    placer.add_read(block, 0);
                }
            }
            placer.place(cfg, tree);
            let sites: BTreeSet<&str> = placer.sites().map(|(b, _)| names[b as usize]).collect();
            assert_eq!(sites, set(line, variant), "{variant} {name} in {}", example.name);
        }
    }
}

/// Checks the function after promotion.
fn check_ssa(example: &Example<'_>, cfg: &Cfg, names: &[&str]) {
    let (mut f, loads, constants) = function(example, cfg, names);
    let shown: Vec<&str> = shown_values(&f).map(|value| loads[&value]).collect();
    promote(&mut f, &mut Scratch::default());
    assert_valid(&f, Form::Ssa);

    // What the values are called now. The phis of a block are in the order of slots.
    let mut value_names: BTreeMap<Value, String> =
        constants.iter().map(|(&value, name)| (value, name.to_string())).collect();
    for inst in f.insts(Function::ENTRY) {
        if let &[value] = &f.results(*inst).collect::<Vec<_>>()[..] {
            value_names.entry(value).or_insert("zero".into());
        }
    }
    for block in f.blocks().skip(1) {
        let name = names[block.index()];
        let slots = example.slots.iter().filter(|(_, line)| set(line, "pruned").contains(name));
        for (&param, (slot, _)) in f.params(block).iter().zip(slots) {
            value_names.insert(param, format!("{slot}_{name}"));
        }
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
    let expected: BTreeSet<String> = split(example.lines["phis"], "; ")
        .into_iter()
        .flat_map(|line| line.split_once(": ").expect("a block").1.split_inclusive(')'))
        .map(|phi| {
            let phi = phi.trim_start_matches(", ").trim_end_matches(')');
            let (name, operands) = phi.split_once("=phi(").expect("a phi");
            format!("{name}={:?}", split(operands, ", ").into_iter().collect::<BTreeSet<_>>())
        })
        .collect();
    assert_eq!(phis, expected, "{}", example.name);

    let now = shown_values(&f).map(|value| &value_names[&value]);
    let values: BTreeSet<String> =
        shown.into_iter().zip(now).map(|(load, value)| format!("{load}->{value}")).collect();
    let expected = split(example.lines["loads"], ", ").into_iter().map(String::from).collect();
    assert_eq!(values, expected, "{}", example.name);
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
    let examples = parse(include_str!("../../testdata/worked-examples.txt"));
    assert_eq!(examples.len(), 11);
    for example in &examples {
        let (cfg, tree, names) = graph(example);
        check_dominators(example, &cfg, &names);
        check_sites(example, &cfg, &tree, &names);
        check_ssa(example, &cfg, &names);
    }
}
