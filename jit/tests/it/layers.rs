//! Folders of a crate import each other one way only, as `ARCHITECTURE.md` lists them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::safety::sources;

/// The folders from the top down.
const JIT: [&str; 8] =
    ["raw", "api", "native", "precompiled", "compile", "lower", "code", "config"];
const SSA: [&str; 7] = ["optimize", "pipeline", "tools", "passes", "construction", "ir", "graphs"];
const RUNTIME: [&str; 5] = ["calls", "interp", "store", "steps", "memory"];

/// The folders that code names by paths of its crate. Comments and tests may name any.
fn imports(text: &str) -> impl Iterator<Item = &str> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let paths = lines.flat_map(|line| line.split("crate::").skip(1));
    paths.filter_map(|path| path.split(|c: char| !c.is_alphanumeric() && c != '_').next())
}

fn check(source: &Path, order: &[&str]) -> usize {
    let place = |name: &str| order.iter().position(|&folder| folder == name);
    let mut n_imports = 0;
    for path in sources(source.to_owned()) {
        let inside = path.strip_prefix(source).unwrap().with_extension("");
        let mut parts = inside.iter().map(|part| part.to_str().unwrap());
        let first = parts.next().unwrap();
        if first == "lib" || first.ends_with("tests") || parts.any(|part| part.ends_with("tests")) {
            continue;
        }
        // The other files stand below all folders.
        let folder = place(first).unwrap_or(order.len());
        let text = fs::read_to_string(&path).unwrap();
        for name in imports(&text) {
            let Some(imported) = place(name) else { continue };
            assert!(imported >= folder, "{} imports from {name}, above it", path.display());
            n_imports += 1;
        }
    }
    n_imports
}

#[test]
fn no_folder_imports_from_one_above_it() {
    let jit = Path::new(env!("CARGO_MANIFEST_DIR"));
    let n_imports = check(&jit.join("src"), &JIT)
        + check(&jit.join("../runtime/src"), &RUNTIME)
        + check(&jit.join("../ssa/src"), &SSA);
    assert!(n_imports > 250, "only {n_imports} imports are found");
}

/// The limit that a line defines, if it does.
fn limit(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("pub").unwrap_or(line);
    let line = line.rsplit_once("const ").map_or(line, |(_, rest)| rest).trim_start();
    let (name, rest) = line.split_once(':')?;
    let is_limit = name.ends_with("_MAX") && rest.contains(" = ");
    (is_limit && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')).then_some(name)
}

#[test]
fn no_two_limits_have_the_same_name() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut limits = BTreeMap::new();
    let crates = ["vm", "runtime", "ssa", "jit", "wasi", "views", "vmrun"];
    let commands = ["vmrun/base", "vmrun/bench", "vmrun/cli", "vmrun/crosscheck"];
    for crate_ in crates.into_iter().chain(commands) {
        for path in sources(root.join(crate_).join("src")) {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for name in code.lines().filter_map(limit) {
                let other = limits.insert(name.to_owned(), path.clone());
                assert!(other.is_none(), "{name} is in {} and {other:?}", path.display());
            }
        }
    }
    assert!(limits.len() > 120, "only {} limits are found", limits.len());
    assert!(limits.contains_key("STACK_OPERANDS_MAX"));
}

#[test]
fn imports_are_found_in_code_only() {
    let text = "//! [`crate::raw`]\nuse crate::api::{a, b};\nfn f(x: crate::lower::X) {}\n#[cfg(test)]\nuse crate::code;";
    assert_eq!(imports(text).collect::<Vec<_>>(), ["api", "lower"]);
}
