//! Limits have one name each, and `docs/limits.md` lists them. `BLESS=1` writes it again.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use slotvm_bytecode::limits;

use crate::layers::{PACKAGES, source};
use crate::safety::sources;

/// A constant that bounds something.
struct Limit {
    /// Its file, from the root of the repository.
    path: String,
    value: String,
    doc: String,
}

/// The name and the value of the limit that a line defines, if it does.
fn definition(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let line = line.strip_prefix("pub").unwrap_or(line);
    let line = line.rsplit_once("const ").map_or(line, |(_, rest)| rest).trim_start();
    let (name, rest) = line.split_once(':')?;
    let (_, value) = rest.split_once(" = ")?;
    let is_name = name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    (is_name && name.ends_with("_MAX")).then_some((name, value.trim_end_matches(';')))
}

/// All limits, by name.
fn all() -> BTreeMap<String, Limit> {
    let mut all = BTreeMap::new();
    let known: BTreeMap<&str, (u64, &str)> =
        limits::ALL.iter().map(|&(name, max, doc)| (name, (max, doc))).collect();
    for package in PACKAGES.into_iter().filter(|&package| package != "filetests") {
        for path in sources(source(package)) {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let inside = path.strip_prefix(source(package)).unwrap().display();
            let mut docs = Vec::new();
            for line in code.lines() {
                if let Some(doc) = line.trim_start().strip_prefix("/// ") {
                    docs.push(doc);
                    continue;
                }
                if let Some((name, value)) = definition(line) {
                    let (value, doc) = match known.get(name) {
                        Some(&(max, doc)) => (max.to_string(), doc.to_owned()),
                        None => (value.to_owned(), docs.join(" ")),
                    };
                    let path = format!("{package}/src/{inside}");
                    let limit = Limit { path: path.clone(), value, doc };
                    let other = all.insert(name.to_owned(), limit);
                    assert!(other.is_none(), "{name} is in {path} and {:?}", other.unwrap().path);
                }
                docs.clear();
            }
        }
    }
    all
}

#[test]
fn no_two_limits_have_the_same_name() {
    let all = all();
    assert!(all.len() > 150, "only {} limits are found", all.len());
    assert!(all.contains_key("STACK_OPERANDS_MAX") && all.contains_key("ALONE_MAX"));
}

/// Documentation as text: links are what they show.
fn plain(doc: &str) -> String {
    let mut out = String::new();
    let mut rest = doc;
    while let Some((before, link)) = rest.split_once("[`") {
        let (name, after) = link.split_once("`]").expect("a link ends");
        let after = match after.strip_prefix('(') {
            Some(target) => target.split_once(')').expect("a target ends").1,
            None => after,
        };
        write!(out, "{before}`{name}`").unwrap();
        rest = after;
    }
    (out + rest).replace('|', "\\|")
}

#[test]
fn the_page_lists_all_limits() {
    let (refusing, others): (Vec<_>, Vec<_>) =
        all().into_iter().partition(|(_, limit)| limit.path.ends_with("src/limits.rs"));
    let mut page = String::from(
        "# Limits\n\nMade from the sources by `BLESS=1 cargo test -p slotvm --test it named_limits`. \
         Those that an embedder sets are fields of\n`Config`, `Limits` and `ResourceLimiter`.\n\n\
         ## What modules and programs may have, or ask for at once\n\n",
    );
    let others_head = "\n## What stages do: more is optimised less, stays interpreted, takes another way, or is shown \
                       less\n\n";
    for (head, limits) in [("", refusing), (others_head, others)] {
        page.push_str(head);
        page.push_str("| limit | value | of what | file |\n|---|---|---|---|\n");
        for (name, Limit { path, value, doc }) in limits {
            assert!(!doc.is_empty(), "{name} says of what it is the limit");
            let (value, doc) = (value.replace('|', "\\|"), plain(&doc));
            writeln!(page, "| `{name}` | {value} | {doc} | `{path}` |").unwrap();
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/limits.md");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "docs/limits.md is not up to date: set BLESS=1 to write it again");
}

#[test]
fn definitions_are_found() {
    let found = ["pub const A_MAX: usize = 1 << 3;", "    B_MAX: u32 = 7 \"x\";", "let C_MAX = 1;"];
    let found = found.map(definition);
    assert_eq!(found, [Some(("A_MAX", "1 << 3")), Some(("B_MAX", "7 \"x\"")), None]);
    assert_eq!(plain("as [`F`](f) or [`G`] | x"), "as `F` or `G` \\| x");
}
