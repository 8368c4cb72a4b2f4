//! Checks of the text of the repository: comments about unsafe code, and the tests that hold each promise.

use std::fs;
use std::path::{Path, PathBuf};

/// Phrases that leave the argument to the reader: whose promise, which one, and where it is kept, is not said.
const EMPTY: [&str; 6] = [
    "caller's promise",
    "caller promises",
    "embedder's promise",
    ": as in",
    ": as above",
    ": likewise",
];

/// Files below a folder.
pub(crate) fn sources(folder: PathBuf) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found
}

/// The comments of a text that start with `SAFETY:`, each as one line, with the line where it starts.
fn safety_comments(text: &str) -> Vec<(usize, String)> {
    let mut comments: Vec<(usize, String)> = Vec::new();
    let mut is_inside = false;
    for (i, line) in text.lines().enumerate() {
        let comment = line.trim_start().strip_prefix("// ");
        match comment {
            Some(words) if words.starts_with("SAFETY:") => comments.push((i + 1, words.to_owned())),
            Some(words) if is_inside => {
                let (_, last) = comments.last_mut().expect("it is inside one");
                last.push(' ');
                last.push_str(words);
            }
            _ => {}
        }
        is_inside = comment.is_some_and(|words| is_inside || words.starts_with("SAFETY:"));
    }
    comments
}

#[test]
fn comments_about_unsafe_code_say_whose_promise_is_kept_where() {
    let jit = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = [jit.join("src"), jit.join("../runtime/src")].map(sources).concat();
    let mut n_comments = 0;
    for path in files {
        for (line, comment) in safety_comments(&fs::read_to_string(&path).unwrap()) {
            let empty = EMPTY.iter().find(|phrase| comment.contains(**phrase));
            assert!(empty.is_none(), "{}:{line}: {comment}", path.display());
            n_comments += 1;
        }
    }
    assert!(n_comments > 100, "the comments are not found any more");
}

/// The promises of `SECURITY.md`, by their first words, each with the cell that names its tests.
fn promises(text: &str) -> Vec<(&str, &str)> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("| **")?.split_once("** | "));
    rows.map(|(promise, tests)| (promise, tests.trim_end_matches('|'))).collect()
}

#[test]
fn every_promise_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = fs::read_to_string(root.join("SECURITY.md")).unwrap();
    let (_, promised) = text.split_once("## What is promised").expect("it has this part");
    let (promised, _) = promised.split_once("\n## ").expect("there are other parts behind it");
    let promised = promised.lines().filter_map(|line| line.strip_prefix("* **")?.split_once(".**"));
    let promised: Vec<&str> = promised.map(|(name, _)| name).collect();
    let held = promises(&text);
    assert_eq!(held.iter().map(|(name, _)| *name).collect::<Vec<_>>(), promised);
    for (promise, tests) in held {
        // Every second part stands between backquotes: a file or folder, then its tests.
        let (mut sources_at_hand, mut n_tests) = (String::new(), 0);
        for name in tests.split('`').skip(1).step_by(2) {
            if name.contains('/') {
                let path = root.join(name);
                let files = if path.is_dir() { sources(path) } else { vec![path] };
                let read =
                    |file: &PathBuf| fs::read_to_string(file).unwrap_or_else(|_| panic!("{name}"));
                sources_at_hand = files.iter().map(read).collect();
            } else {
                let is_there = sources_at_hand.contains(&format!("fn {name}("));
                assert!(is_there, "{promise}: there is no `{name}` where it should be");
                n_tests += 1;
            }
        }
        assert!(n_tests > 0, "{promise}: no test is named");
    }
}
