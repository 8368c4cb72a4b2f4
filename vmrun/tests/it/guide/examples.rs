//! The programs of the chapter on promotion are worked examples of SSA construction.

use std::collections::BTreeSet;
use std::fs;

use super::document::Document;
use crate::binary::root;

/// A program, the start of the example's title, its blocks in the order of the program's numbers, and a slot.
const PROGRAMS: [(&str, &str, &[&str], &str); 4] = [
    ("diamond", "000-diamond", &["b0", "b5", "b8", "b6"], "x"),
    ("loop", "ADDED loop without store in header", &["e", "h", "b", "x"], "v"),
    ("irreducible", "003-irreducible pair", &["e", "l", "r", "x"], "v"),
    (
        "fib",
        "001-fib",
        &["entry", "if.then", "if.end", "while.cond", "while.body", "while.end", "return"],
        "b",
    ),
];

#[test]
fn programs_of_the_guide_are_worked_examples() {
    let path = root().join("ssa/testdata/worked-examples.txt");
    let all = fs::read_to_string(path).expect("it is there");
    for (program, title, names, slot) in PROGRAMS {
        let mut examples = all.split("\nexample ");
        let example =
            examples.find(|text| text.starts_with(title)).expect("an example has the title");
        let document = Document::of(&format!("docs/guide/programs/{program}.vasm"));
        assert_eq!(edges(&document, names), section(example, "edges: "), "{program}");
        let (_, pruned) = section_text(example, &format!("slot {slot}: "))
            .split_once(" pruned {")
            .expect("the example has pruned form");
        let expected: BTreeSet<String> = pruned
            .trim_end_matches('}')
            .split(", ")
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect();
        let phis = document.phi_blocks(slot).into_iter();
        let found: BTreeSet<String> = phis.map(|block| names[block as usize].to_owned()).collect();
        assert_eq!(found, expected, "{program}: blocks with a phi of {slot}");
    }
}

fn section_text<'t>(example: &'t str, key: &str) -> &'t str {
    let mut lines = example.lines().map(str::trim);
    lines.find_map(|line| line.strip_prefix(key)).expect("the example has the line")
}

fn section(example: &str, key: &str) -> BTreeSet<String> {
    section_text(example, key).split(' ').map(str::to_owned).collect()
}

fn edges(document: &Document, names: &[&str]) -> BTreeSet<String> {
    let blocks = document.slot_form().iter();
    let pairs = blocks.flat_map(|block| block.succs.iter().map(move |to| (block.id, *to)));
    pairs.map(|(from, to)| format!("{}->{}", names[from as usize], names[to as usize])).collect()
}
