use std::collections::BTreeSet;

use super::*;
use crate::construction::construct::worked_examples::{Operation, examples, set, split};
use crate::construction::promote::worked_examples::{function, graph};
use crate::tools::samples::module;

/// A view of the only function of a module, as text.
fn view(source: &str, name: &str) -> String {
    show(&module(source), 0, name, &mut Style::Text).unwrap_or_else(|error| panic!("{error}"))
}

/// The words after a word of a line, up to the next comma or origin.
fn words_after<'t>(line: &'t str, word: &str) -> Vec<&'t str> {
    let (_, rest) = line.split_once(word).unwrap_or_else(|| panic!("{word}: {line}"));
    let end = rest.find([',', ';']).unwrap_or(rest.len());
    rest[..end].split_whitespace().filter(|&word| word != "-").collect()
}

/// The names of the blocks that a list of `b` and a number means.
fn named<'t>(list: &[&str], names: &[&'t str]) -> BTreeSet<&'t str> {
    list.iter().map(|b| names[b[1..].parse::<usize>().expect("a block")]).collect()
}

#[test]
fn frontiers_liveness_and_phis_are_those_of_the_worked_examples() {
    let any = module("func f() { return }");
    for example in examples() {
        let (cfg, names) = graph(&example);
        let (f, _, _) = function(&example, &cfg, &names);
        let shown = |name| show_from(&f, &any, name, &mut Style::Text).expect(name);
        let of_block = |text: &str, block: usize| text.lines().nth(block + 1).unwrap().to_owned();

        let frontiers = shown("frontiers");
        for set in split(example.lines["frontiers"], ";") {
            let (block, members) = set.split_once('=').expect("a set of a block");
            let block = names.iter().position(|&name| name == block).expect("a block");
            let line = of_block(&frontiers, block);
            let expected = split(members.trim_matches(['{', '}']), ",").into_iter().collect();
            assert_eq!(named(&words_after(&line, "frontier"), &names), expected, "{line}");
        }

        let (liveness, phis) = (shown("liveness"), shown("phis"));
        let mut sections: Vec<Vec<&str>> = Vec::new();
        for line in phis.lines().skip(1) {
            match line.starts_with("    ") {
                true => sections.last_mut().expect("a slot").push(line),
                false => sections.push(vec![line]),
            }
        }
        let slots = (0..).zip(example.slots.values());
        for (((number, slot), text), lines) in slots.zip(f.slot_texts()).zip(sections) {
            let slot = &format!(" {slot}");
            let is_live = |&block: &usize| {
                let line = of_block(&liveness, block);
                words_after(&line, " in ").contains(&text.as_str())
            };
            let live: BTreeSet<&str> =
                (0..names.len()).filter(is_live).map(|block| names[block]).collect();
            assert_eq!(live, set(slot, "live-in"), "{}: {text}", example.name);

            let (head, reasons) = lines.split_first().expect("a section has a head");
            assert!(head.trim_start().starts_with(&text), "{head}");
            let writes =
                |op: &Operation<'_>| matches!(op, Operation::Store { slot, .. } if *slot == number);
            let writers = names.iter().copied().filter(|name| example.ops(name).iter().any(writes));
            assert_eq!(named(&words_after(head, "written in"), &names), writers.collect());
            let blocks_of = |start: &str| -> BTreeSet<&str> {
                let lines = reasons.iter().filter_map(|line| line.trim_start().strip_prefix(start));
                let block = |line: &str| line.split(':').next().unwrap_or_default().to_owned();
                let blocks: Vec<String> =
                    lines.filter(|line| line.contains("live in")).map(block).collect();
                named(&blocks.iter().map(String::as_str).collect::<Vec<_>>(), &names)
            };
            let (placed, dead) = (blocks_of("phi in "), blocks_of("no phi in "));
            assert_eq!(placed, set(slot, "pruned"), "{}: {phis}", example.name);
            let minimal: BTreeSet<&str> = placed.union(&dead).copied().collect();
            assert_eq!(minimal, set(slot, "minimal"), "{}: {phis}", example.name);
        }
    }
}

/// Two loops, of which the inner one is entered at two blocks.
const LOOPS: &str = "
    func f(n: i32) {
        local i: i32, $\"a; <b>\": i32
      outer:
        local.get n  br_if left
        br right
      left:
        local.get i  i32.const 1  i32.add  local.set i
      right:
        i32.const 7  local.set 2
        local.get i  br_if left
        local.get n  i32.const 1  i32.sub  local.tee n  br_if outer
        return }";

#[test]
fn irreducible_loops_are_marked() {
    let text = view(LOOPS, "loops");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "func f0 f  ; 2 loops, 1 irreducible");
    assert!(lines[1].starts_with("  loop b1: depth 1, entered at b1, back from "), "{text}");
    assert!(lines[2].starts_with("    loop b3: irreducible, depth 2, entered at b3 b4,"), "{text}");
    assert_eq!(lines.len(), 3, "{text}");
}

#[test]
fn phis_have_reasons() {
    let text = view(LOOPS, "phis");
    // Written in each round, but nothing reads it.
    let (_, unread) = text.split_once("  s2.$\"a; <b>\": i32  written in").expect("its section");
    assert!(unread.contains("no phi in b1: not live in, in the frontier of"), "{text}");
    assert!(unread.contains("it is never read"), "{text}");
    let (_, of_n) = text.split_once("  s0.n: i32").expect("its section");
    assert!(of_n.contains("    phi in b1: live in, in the frontier of"), "{text}");
    assert!(of_n.contains("not in the iterated frontier of the writes"), "{text}");
}

#[test]
fn locals_in_memory_have_reasons_as_well() {
    let text = view(
        "memory m 1
        frame_stack 1024 4096
        func f(n: i32) { local a: i32  local.addr a  drop  return }",
        "phis",
    );
    assert!(text.contains("\n  s1.a: i32  in memory: "), "{text}");
}

#[test]
fn graphs_have_instructions_and_marked_headers() {
    let module = module(LOOPS);
    let drawing = |name| draw_with(&module, 0, name, PassSet::all()).expect("it is a graph");
    let dot = drawing("cfg").to_dot();
    assert!(dot.starts_with("digraph \"f\" {\n"), "{dot}");
    assert!(dot.contains("slot.set s2.$\\\"a; <b>\\\", v"), "{dot}");
    assert_eq!(dot.matches("color=red").count(), 1, "{dot}");
    assert_eq!(dot.matches("color=blue").count(), 1, "{dot}");
    // A tree has one edge less than nodes.
    let tree = drawing("dom");
    assert_eq!(tree.edges.len() + 1, tree.nodes.len());
    let ssa = drawing("ssa");
    assert!(ssa.nodes.iter().any(|node| node.lines[0].contains(".n: i32")), "{ssa:?}");
    let error = draw_with(&module, 0, "phis", PassSet::all()).expect_err("it is no graph");
    assert!(
        error.to_string().starts_with("stage phis is no graph; expected cfg, dom, slots"),
        "{error}"
    );
}

#[test]
fn views_that_are_too_long_are_refused() {
    assert!(graphs::check_items("live slots", ITEMS_MAX).is_ok());
    let error = graphs::check_items("live slots", ITEMS_MAX + 1).expect_err("one too many");
    assert_eq!(error.to_string(), "too long to show: more than 4194304 live slots");
}
