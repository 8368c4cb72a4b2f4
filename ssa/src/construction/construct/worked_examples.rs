//! The worked examples of the texts on SSA construction that this project comes from, and what these
//! texts get wrong: phi sites, phi operands and the values of loads must be what
//! `testdata/worked-examples.txt` says, in each form and by each way to get there.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// An example: the lines of its section by their first word, and for slots by their name.
pub(crate) struct Example<'t> {
    pub(crate) name: &'t str,
    pub(crate) lines: BTreeMap<&'t str, &'t str>,
    pub(crate) slots: BTreeMap<&'t str, &'t str>,
}

/// All examples.
pub(crate) fn examples() -> Vec<Example<'static>> {
    let text = include_str!("../../../testdata/worked-examples.txt");
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
    assert_eq!(examples.len(), 11);
    examples
}

/// The members of the set after a word: `minimal {a, b}`.
pub(crate) fn set<'t>(line: &'t str, word: &str) -> BTreeSet<&'t str> {
    let (_, rest) = line.split_once(&format!(" {word} {{")).expect("the set is there");
    let (members, _) = rest.split_once('}').expect("a set ends");
    members.split(", ").filter(|name| !name.is_empty()).collect()
}

/// The parts of a list, which may be empty.
pub(crate) fn split<'t>(list: &'t str, by: &str) -> Vec<&'t str> {
    list.split(by).map(str::trim).filter(|part| !part.is_empty()).collect()
}

impl<'t> Example<'t> {
    /// The graph, and the names of its blocks.
    pub(crate) fn graph(&self) -> (Cfg, Vec<&'t str>) {
        let mut names = vec![self.lines["entry"]];
        let mut lists: Vec<Vec<u32>> = vec![vec![]];
        for edge in split(self.lines["edges"], " ") {
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
        (Cfg::new(0, lists), names)
    }

    /// Operations of a block: for each store the slot and the value's name, for each load its name and the slot.
    pub(crate) fn ops(&self, block: &str) -> Vec<Operation<'t>> {
        let ops = split(self.lines["ops"], ";")
            .into_iter()
            .find_map(|ops| ops.split_once(": ").filter(|(name, _)| *name == block));
        let parse = |op: &'t str| match op.strip_prefix("store ").and_then(|op| op.split_once('='))
        {
            Some((slot, value)) => Operation::Store { slot: self.slot(slot), value },
            None => {
                let (name, slot) = op.split_once("=load ").expect("a load");
                Operation::Load { name, slot: self.slot(slot) }
            }
        };
        ops.map_or(vec![], |(_, ops)| split(ops, ", ").into_iter().map(parse).collect())
    }

    fn slot(&self, name: &str) -> u32 {
        self.slots.keys().position(|&slot| slot == name).expect("a slot") as u32
    }

    /// The blocks where a construction has phis of a slot.
    pub(crate) fn sites(&self, construction: Construction, slot: u32) -> BTreeSet<&'t str> {
        if construction == Construction::Maximal {
            let (cfg, names) = self.graph();
            let joins = (0..cfg.n_blocks() as u32).filter(|&block| cfg.preds(block).len() >= 2);
            return joins.map(|block| names[block as usize]).collect();
        }
        let line = self.slots.values().nth(slot as usize).expect("a slot");
        set(line, construction.name())
    }

    /// The phis of the pruned form: `name={operands}`.
    pub(crate) fn phis(&self) -> BTreeSet<String> {
        split(self.lines["phis"], "; ")
            .into_iter()
            .flat_map(|line| line.split_once(": ").expect("a block").1.split_inclusive(')'))
            .map(|phi| {
                let phi = phi.trim_start_matches(", ").trim_end_matches(')');
                let (name, operands) = phi.split_once("=phi(").expect("a phi");
                format!("{name}={:?}", split(operands, ", ").into_iter().collect::<BTreeSet<_>>())
            })
            .collect()
    }

    /// Results of loads: `load->value`.
    pub(crate) fn loads(&self) -> BTreeSet<String> {
        split(self.lines["loads"], ", ").into_iter().map(String::from).collect()
    }
}

/// An operation of a block of an example.
pub(crate) enum Operation<'t> {
    /// A store of a value, which may be what a load gave.
    Store { slot: u32, value: &'t str },
    /// A load, by the name of its result.
    Load { name: &'t str, slot: u32 },
}

/// The program of an example, and the names of its values: first the value, then for loads the slot.
fn program<'t>(example: &Example<'t>, cfg: Cfg, names: &[&'t str]) -> (SlotProgram, Vec<&'t str>) {
    let mut values: Vec<&str> = vec![];
    let mut number = |name| {
        values.iter().position(|&n| n == name).unwrap_or_else(|| {
            values.push(name);
            values.len() - 1
        }) as u32
    };
    let lists: Vec<Vec<Access>> = names
        .iter()
        .map(|name| {
            let access = |op| match op {
                Operation::Store { slot, value } => Access::Write { slot, value: number(value) },
                Operation::Load { name, slot } => Access::Read { slot, value: number(name) },
            };
            example.ops(name).into_iter().map(access).collect()
        })
        .collect();
    let n_slots = example.slots.len() as u32;
    (SlotProgram::new(cfg, n_slots, values.len() as u32, lists), values)
}

fn check_sites(example: &Example<'_>, program: &SlotProgram, names: &[&str]) {
    for &construction in Construction::ALL {
        for placement in Placement::ALL {
            let options = ConstructOptions { construction, placement, ..Default::default() };
            let form = construct(program, &options, &mut Scratch::default()).expect("it is small");
            for slot in 0..program.n_slots() {
                let phis = form.phis().iter().filter(|phi| phi.slot == slot);
                let found: BTreeSet<&str> = phis.map(|phi| names[phi.block as usize]).collect();
                let expected = example.sites(construction, slot);
                assert_eq!(found, expected, "{construction:?}, slot {slot} of {}", example.name);
            }
        }
    }
}

/// Checks phis and loads of the pruned form.
fn check_ssa(example: &Example<'_>, program: &SlotProgram, names: &[&str], values: &[&str]) {
    let slots: Vec<&str> = example.slots.keys().copied().collect();
    for renaming in Renaming::ALL {
        let options = ConstructOptions { renaming, ..ConstructOptions::default() };
        let form = construct(program, &options, &mut Scratch::default()).expect("it is small");
        let name = |value: u32| match value.checked_sub(program.n_values()) {
            None => values[value as usize].to_owned(),
            Some(_) if value == UNDEF => "zero".to_owned(),
            Some(phi) => {
                let Phi { block, slot, .. } = form.phis()[phi as usize];
                format!("{}_{}", slots[slot as usize], names[block as usize])
            }
        };
        let phis = form.phis().iter().enumerate().map(|(i, phi)| {
            let edges = program.cfg().preds(phi.block).iter().zip(form.operands(i));
            let operand = |(&pred, value)| format!("{}:{}", names[pred as usize], name(value));
            let operands: BTreeSet<String> = edges.map(operand).collect();
            format!("{}={operands:?}", name(phi.value))
        });
        assert_eq!(phis.collect::<BTreeSet<String>>(), example.phis(), "{}", example.name);
        let blocks = 0..names.len() as u32;
        let loads = blocks.flat_map(|block| program.accesses(block)).filter_map(|&access| {
            let Access::Read { value, .. } = access else { return None };
            Some(format!("{}->{}", values[value as usize], name(form.value(value))))
        });
        assert_eq!(loads.collect::<BTreeSet<String>>(), example.loads(), "{}", example.name);
    }
}

#[test]
fn the_worked_examples_come_out_right() {
    for example in examples() {
        let (cfg, names) = example.graph();
        let (program, values) = program(&example, cfg, &names);
        check_sites(&example, &program, &names);
        check_ssa(&example, &program, &names, &values);
    }
}

/// The pruned form of a program with one slot, by both ways to rename, which give the same.
fn pruned(succs: &[&[u32]], accesses: &[&[Access]], n_values: u32) -> SsaForm {
    let cfg = Cfg::new(0, succs.iter().map(|list| list.to_vec()));
    let lists = accesses.iter().map(|list| list.to_vec());
    let program = SlotProgram::new(cfg, 1, n_values, lists);
    let [form, other] = Renaming::ALL.map(|renaming| {
        let options = ConstructOptions { renaming, ..ConstructOptions::default() };
        construct(&program, &options, &mut Scratch::default()).expect("it is small")
    });
    assert_eq!(form.phis(), other.phis());
    assert_eq!(form.operands, other.operands);
    assert_eq!(form.replacements, other.replacements);
    form
}

fn read(value: u32) -> Access {
    Access::Read { slot: 0, value }
}

fn write(value: u32) -> Access {
    Access::Write { slot: 0, value }
}

/// A text replaces the first load of a loop header by the constant stored before the loop, "since it is
/// currently 1", and so computes 1 + 1 in each round.
#[test]
fn a_load_in_a_loop_header_gives_the_phi_and_not_what_was_stored_before_the_loop() {
    // 0 stores 0; 1 loads 1 and stores 2, and loops; 2 ends.
    let form = pruned(&[&[1], &[1, 2], &[]], &[&[write(0)], &[read(1), write(2)], &[]], 3);
    assert_eq!(form.phis(), [Phi { block: 1, slot: 0, value: 3 }]);
    assert_eq!(form.value(1), 3);
    assert!(form.operands(0).eq([0, 2]));
}

/// A text keys the operands of phis by the block that defines the value. Here none of the definitions is
/// in a predecessor of the phi, and two edges bring the same one.
#[test]
fn operands_of_phis_belong_to_edges_and_not_to_defining_blocks() {
    // 0 stores and goes to 1 or 2; 1 stores and goes on by 3; 2 and 3, which are empty, meet in 4.
    // A switch in 2 goes there twice.
    let succs: &[&[u32]] = &[&[1, 2], &[3], &[4, 4], &[4], &[]];
    let form = pruned(succs, &[&[write(0)], &[write(1)], &[], &[], &[read(2)]], 3);
    assert_eq!(form.phis(), [Phi { block: 4, slot: 0, value: 3 }]);
    assert!(form.operands(0).eq([0, 0, 1]), "in the order of the predecessors 2, 2, 3");
}

/// Texts that follow a draft of the SSA book ask whether a definition dominates the block of the phi that
/// uses it. No operand of a phi does; on the first example that gives `phi(undef, undef)`.
#[test]
fn a_phi_uses_its_operands_at_the_end_of_the_predecessors() {
    // A diamond whose arms store.
    let succs: &[&[u32]] = &[&[1, 2], &[3], &[3], &[]];
    let form = pruned(succs, &[&[], &[write(0)], &[write(1)], &[read(2)]], 3);
    assert!(form.operands(0).eq([0, 1]));
    assert_eq!(form.value(2), 3);
}

/// A text mixes up which of its two loads reads which variable.
#[test]
fn each_load_gives_what_its_own_slot_holds() {
    let cfg = Cfg::new(0, [[]]);
    let load = |slot, value| Access::Read { slot, value };
    let store = |slot, value| Access::Write { slot, value };
    let accesses = [[store(0, 0), store(1, 1), load(1, 2), load(0, 3)]];
    let program = SlotProgram::new(cfg, 2, 4, accesses);
    let options = ConstructOptions::default();
    let form = construct(&program, &options, &mut Scratch::default()).expect("it is small");
    assert_eq!([2, 3].map(|value| form.value(value)), [1, 0]);
}

/// A text has it that a block with fewer than two predecessors is in no frontier. An entry with a back
/// edge is, and its phi has an operand for what comes from outside.
#[test]
fn an_entry_with_one_predecessor_needs_a_phi() {
    let form = pruned(&[&[0, 1], &[]], &[&[read(0), write(1)], &[read(2)]], 3);
    assert_eq!(form.phis(), [Phi { block: 0, slot: 0, value: 3 }]);
    assert!(form.operands(0).eq([1, UNDEF]));
    assert_eq!([0, 2].map(|value| form.value(value)), [3, 1]);
}

/// The code of a text replaces a load in its own block only, fails on predecessors that are unreachable,
/// and has no value for what is read before it is stored.
#[test]
fn a_load_is_replaced_wherever_it_is_used() {
    // 0 loads before any store; 1 stores that; 2, where the unreachable 3 goes too, loads it.
    let succs: &[&[u32]] = &[&[1], &[2], &[], &[2]];
    let form = pruned(succs, &[&[read(0), write(1), read(2)], &[write(2)], &[read(3)], &[]], 4);
    assert_eq!(form.phis(), []);
    assert_eq!([0, 1, 2, 3].map(|value| form.value(value)), [UNDEF, 1, 1, 1]);
}
