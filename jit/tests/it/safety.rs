//! What comments about unsafe code have to say.

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
fn sources(folder: PathBuf) -> Vec<PathBuf> {
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
