//! The documents: their links lead somewhere, the files that they name exist, and what they count is counted again.

use std::fs;
use std::path::{Path, PathBuf};

use crate::binary::root;
use crate::guide::heading_anchors;

/// The documents, but for the guide, which has tests of its own.
fn documents() -> Vec<PathBuf> {
    let folders = ["", "docs", "docs/tables", "programs", "programs/wasm", "programs/wasm/wasi"];
    let mut found = Vec::new();
    for folder in folders {
        let entries = fs::read_dir(root().join(folder)).expect("the folder is there");
        let paths = entries.map(|entry| entry.expect("it can be listed").path());
        found.extend(paths.filter(|path| path.extension().is_some_and(|ending| ending == "md")));
    }
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A text without its blocks of code.
fn prose(text: &str) -> String {
    let parts = text.split("```").step_by(2);
    parts.collect()
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut n_links = 0;
    for path in documents() {
        let text = prose(&read(&path));
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|target| !target.contains("://")) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = match file {
                "" => path.clone(),
                file => path.parent().expect("it is a file").join(file),
            };
            assert!(file.exists(), "{}: {target}", path.display());
            let is_there =
                anchor.is_empty() || heading_anchors(&read(&file)).contains(&anchor.to_owned());
            assert!(is_there, "{}: no heading for {target}", path.display());
            n_links += 1;
        }
    }
    assert!(n_links > 100, "only {n_links} links are found");
}

/// Sources by their paths from the root, as in `jit/src/lower/`.
#[test]
fn every_source_that_a_document_names_is_there() {
    let mut n_sources = 0;
    let mut missing = Vec::new();
    for path in documents() {
        // What has changed since is not rewritten in the history.
        if path.ends_with("CHANGELOG.md") {
            continue;
        }
        let text = prose(&read(&path));
        for word in text.split('`').skip(1).step_by(2) {
            let is_source = word.contains("/src/")
                && word.chars().all(|c| c.is_ascii_alphanumeric() || "/_.-".contains(c));
            if is_source {
                n_sources += 1;
                if !root().join(word).exists() {
                    missing.push(format!("{}: {word}", path.display()));
                }
            }
        }
    }
    assert_eq!(missing, [""; 0]);
    assert!(n_sources > 100, "only {n_sources} sources are found");
}

/// The sections of the measurements, with their text.
fn sections(text: &str) -> Vec<(&str, &str)> {
    let sections = text.split("\n## ").skip(1);
    sections.map(|section| section.split_once('\n').expect("a section has text")).collect()
}

#[test]
fn measurements_list_each_section_once_and_name_its_commit() {
    let text = read(&root().join("docs/measurements.md"));
    let rows = text.lines().filter_map(|line| line.strip_prefix("| [")?.split(']').next());
    let sections = sections(&text);
    let titles: Vec<&str> = sections.iter().map(|(title, _)| *title).collect();
    assert_eq!(rows.take(titles.len()).collect::<Vec<_>>(), titles);
    assert_eq!(text.matches("\n| [").count(), titles.len());
    for (title, text) in sections {
        let (_, measured) = text.split_once("Measured at `").unwrap_or_else(|| panic!("{title}"));
        let (commit, rest) = measured.split_once('`').expect("the commit ends");
        assert!(
            commit.len() == 7 && commit.chars().all(|c| c.is_ascii_hexdigit()),
            "{title}: {commit}"
        );
        let date = rest.strip_prefix(" on 20").unwrap_or_else(|| panic!("{title}: {rest:.20}"));
        assert!(date.chars().take(8).all(|c| c.is_ascii_digit() || c == '-'), "{title}: {date:.8}");
    }
}

/// The number before a word, wherever a text has it.
fn counts(text: &str, before: &str, word: &str) -> Vec<usize> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let found = words.windows(3).filter(|three| three[0] == before && three[2].starts_with(word));
    found.filter_map(|three| three[1].parse().ok()).collect()
}

#[test]
fn counted_programs_are_those_of_the_folders() {
    let n_files = |folder: &str, ending: &str| {
        let entries = fs::read_dir(root().join(folder)).expect("the folder is there");
        let names = entries.map(|entry| entry.expect("it can be listed").file_name());
        names.filter(|name| name.to_string_lossy().ends_with(ending)).count()
    };
    let n_programs = n_files("programs", ".bc");
    let mut n_counts = 0;
    for path in ["README.md", "docs/measurements.md"] {
        let text = prose(&read(&root().join(path)));
        for before in ["the", "all", "The", "All"] {
            for n in counts(&text, before, "programs") {
                assert_eq!(n, n_programs, "{path}: {before} {n} programs");
                n_counts += 1;
            }
            for n in counts(&text, before, "kernels") {
                assert_eq!(n, n_files("programs/wasm", ".O2.wasm"), "{path}: {before} {n} kernels");
                n_counts += 1;
            }
        }
    }
    assert!(n_counts >= 5, "only {n_counts} are found");
}

#[test]
fn the_ways_through_the_code_are_as_many_as_are_announced() {
    const NUMBERS: [&str; 14] = [
        "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
        "eleven", "twelve", "thirteen",
    ];
    let text = read(&root().join("ARCHITECTURE.md"));
    let (before, rest) = text.split_once(" ways through the code\n").expect("there is the section");
    let (section, _) = rest.split_once("\n## ").expect("another section follows");
    let announced = before.rsplit(' ').next().expect("a word stands before it").to_lowercase();
    let n_ways = section.lines().filter(|line| line.starts_with("* **")).count();
    assert_eq!(announced, NUMBERS[n_ways], "{n_ways} are there");
    assert!(
        before.contains(&format!(" {announced} ways through the code")),
        "the introduction says another number"
    );
}
