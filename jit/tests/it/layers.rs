//! Folders of a crate import each other one way only, as `ARCHITECTURE.md` lists them, and so do the files of a folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::safety::sources;

/// The folders from the top down.
const JIT: [&str; 8] =
    ["raw", "api", "native", "precompiled", "compile", "lower", "code", "config"];
const NATIVE: [&str; 4] = ["module", "scheduling", "ownership", "crossing"];
const SSA: [&str; 7] = ["optimize", "pipeline", "tools", "passes", "construction", "ir", "graphs"];
const RUNTIME: [&str; 5] = ["calls", "interp", "store", "steps", "memory"];

/// All packages whose sources are looked at.
pub(crate) const PACKAGES: [&str; 12] = [
    "vm",
    "runtime",
    "ssa",
    "jit",
    "wasi",
    "views",
    "filetests",
    "vmrun",
    "vmrun/base",
    "vmrun/bench",
    "vmrun/cli",
    "vmrun/crosscheck",
];

/// A path in a crate: the names of modules and, last, of what they have.
type Names = Vec<String>;

/// The paths that code names, all from the root of its crate. `module` is the module of the code. Comments and tests may
/// name any.
fn imports(text: &str, module: &[String]) -> Vec<Names> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code: String = lines.flat_map(|line| [line, "\n"]).collect();
    let mut found = Vec::new();
    let starts = ["crate::", "super::", "self::"]
        .into_iter()
        .flat_map(|start| code.match_indices(start).map(move |(at, _)| (at, start)));
    for (at, start) in starts {
        let before = code[..at].chars().next_back();
        let is_start = before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':');
        if !is_start || code[..at].ends_with("(in ") {
            continue;
        }
        let mut rest = &code[at + start.len()..];
        let mut path = match start {
            "crate::" => Vec::new(),
            "super::" => module[..module.len() - 1].to_vec(),
            _ => module.to_vec(),
        };
        while let Some(after) = rest.strip_prefix("super::") {
            path.pop();
            rest = after;
        }
        read_tree(rest, &path, &mut found);
    }
    found
}

/// Reads a path, or a tree of some, and returns what is left of the text.
fn read_tree<'t>(text: &'t str, path: &[String], found: &mut Vec<Names>) -> &'t str {
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = rest.trim_start_matches([',', ' ', '\n']);
            if let Some(rest) = rest.strip_prefix('}') {
                return rest;
            }
            let after = read_tree(rest, path, found);
            let after = after.find([',', '}']).map_or("", |end| &after[end..]);
            assert!(after.len() < rest.len(), "a list of imports ends");
            rest = after;
        }
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let mut path = path.to_vec();
    path.push(text[..end].to_owned());
    match text[end..].strip_prefix("::") {
        Some(rest) if !rest.starts_with('<') => read_tree(rest, &path, found),
        _ => {
            found.push(path);
            &text[end..]
        }
    }
}

/// The modules of a crate that are files, with their texts.
fn modules(source: &Path) -> Vec<(Names, String)> {
    let module = |path: &Path| {
        let inside = path.strip_prefix(source).unwrap().with_extension("");
        let mut names: Names = inside.iter().map(|part| part.to_str().unwrap().into()).collect();
        if ["mod", "lib", "main"].contains(&names.last()?.as_str()) {
            names.pop();
        }
        let is_test = names.iter().any(|name| name.ends_with("tests"));
        (!is_test).then(|| (names, fs::read_to_string(path).unwrap()))
    };
    sources(source.to_owned()).iter().filter_map(|path| module(path)).collect()
}

/// For each folder, the files and folders in it that each of them names. A file and the folder of its parts are one.
fn folders(source: &Path) -> BTreeMap<Names, BTreeMap<String, BTreeSet<String>>> {
    let modules = modules(source);
    let mut known = BTreeSet::new();
    for (names, _) in &modules {
        known.extend((0..=names.len()).map(|n| &names[..n]));
    }
    let mut folders: BTreeMap<Names, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (module, text) in modules.iter().filter(|(names, _)| !names.is_empty()) {
        for path in imports(text, module) {
            let n_same = path.iter().zip(module).take_while(|(a, b)| a == b).count();
            if n_same < module.len() && n_same < path.len() && known.contains(&path[..=n_same]) {
                let folder = folders.entry(module[..n_same].to_vec()).or_default();
                folder.entry(module[n_same].clone()).or_default().insert(path[n_same].clone());
            }
        }
    }
    folders
}

pub(crate) fn source(package: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(package).join("src")
}

/// Checks that nothing in a folder names what is above it. What is in no list stands below all.
fn check(package: &str, folder: &[&str], order: &[&str]) -> usize {
    let place = |name: &str| order.iter().position(|&known| known == name).unwrap_or(order.len());
    let folders = folders(&source(package));
    let folder: Names = folder.iter().map(|&name| name.into()).collect();
    let mut n_imports = 0;
    for (from, to) in &folders[&folder] {
        for name in to {
            assert!(place(name) >= place(from), "{package}: {from} imports from {name}, above it");
            n_imports += 1;
        }
    }
    n_imports
}

#[test]
fn no_folder_imports_from_one_above_it() {
    let n_imports = check("jit", &[], &JIT)
        + check("jit", &["native"], &NATIVE)
        + check("runtime", &[], &RUNTIME)
        + check("ssa", &[], &SSA);
    assert!(n_imports > 60, "only {n_imports} imports are found");
}

/// A circle in a graph, if there is one.
fn circle(graph: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<&str>> {
    graph.keys().find_map(|start| {
        let mut paths = vec![vec![start.as_str()]];
        let mut seen = BTreeSet::new();
        while let Some(path) = paths.pop() {
            for next in graph.get(*path.last().unwrap()).into_iter().flatten() {
                let longer = [&path[..], &[next]].concat();
                if next == start {
                    return Some(longer);
                }
                if seen.insert(next) {
                    paths.push(longer);
                }
            }
        }
        None
    })
}

#[test]
fn no_files_of_a_folder_import_each_other_in_a_circle() {
    let mut n_imports = 0;
    for package in PACKAGES {
        for (folder, graph) in folders(&source(package)) {
            let folder = folder.join("/");
            assert_eq!(circle(&graph), None, "in {package}/src/{folder}");
            n_imports += graph.values().map(BTreeSet::len).sum::<usize>();
        }
    }
    assert!(n_imports > 700, "only {n_imports} imports are found");
}

#[test]
fn circles_are_found() {
    let graph = |edges: &[(&str, &str)]| {
        let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (from, to) in edges {
            graph.entry((*from).into()).or_default().insert((*to).into());
        }
        graph
    };
    assert_eq!(circle(&graph(&[("a", "b"), ("a", "c"), ("b", "c")])), None);
    let found = graph(&[("a", "b"), ("b", "c"), ("c", "d"), ("d", "b")]);
    assert_eq!(circle(&found), Some(vec!["b", "c", "d", "b"]));
}

#[test]
fn imports_are_found_in_code_only() {
    let text = "//! [`crate::raw`]\nuse crate::api::{a, b::{c as d, e}};\nuse super::f::*;\nfn f(x: crate::lower::X<u32>) {}\n#[cfg(test)]\nuse crate::code;";
    let module: Names = ["native", "module"].map(str::to_owned).into();
    let found: Vec<_> = imports(text, &module).iter().map(|path| path.join("/")).collect();
    assert_eq!(found, ["api/a", "api/b/c", "api/b/e", "lower/X", "native/f/"]);
}
