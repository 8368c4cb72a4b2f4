//! `docs/guide`: its commands run, its pictures are those of the recorded steps, its links lead somewhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

mod chapters;
mod commands;
mod document;
mod examples;
mod film;
mod strip;

pub(crate) use self::chapters::heading_anchors;
use self::chapters::{Chapter, chapters, source};
use self::document::Document;
use crate::binary::{Folder, root};

#[test]
fn every_command_runs_and_prints_what_stands_below_it() {
    let folder = Folder::new("guide");
    let mut n_commands = 0;
    for chapter in chapters() {
        for command in chapter.commands() {
            commands::check(&chapter, &command, &folder);
            n_commands += 1;
        }
    }
    assert!(n_commands > 20, "only {n_commands} commands were found");
}

#[test]
fn programs_that_chapters_show_are_files_that_commands_run() {
    let folder = root().join("docs/guide/programs");
    let mut shown = BTreeSet::new();
    for chapter in chapters() {
        for text in chapter.blocks("vasm") {
            let is_from = |path: &PathBuf| {
                let program = fs::read_to_string(path).expect("it can be read");
                program.contains(text.trim_end())
            };
            let found = files(&folder).into_iter().find(is_from);
            shown.insert(found.unwrap_or_else(|| panic!("{}: no file has\n{text}", chapter.name)));
        }
    }
    assert_eq!(shown, files(&folder), "each file is shown");
    let commands: Vec<String> =
        chapters().iter().flat_map(Chapter::commands).map(|command| command.line).collect();
    for path in shown {
        let name =
            path.strip_prefix(root()).expect("it is in the repository").display().to_string();
        assert!(commands.iter().any(|line| line.contains(&name)), "no command uses {name}");
    }
}

/// The files of a folder.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    entries.map(|entry| entry.expect("it can be read").path()).collect()
}

#[test]
fn the_summary_lists_exactly_the_chapters() {
    let summary = Chapter::read("SUMMARY.md");
    let listed: Vec<String> = summary.links().into_iter().map(|(target, _)| target).collect();
    let mut there: BTreeSet<String> = files(&source())
        .iter()
        .filter(|path| path.is_file())
        .map(|path| path.file_name().expect("it has one").to_string_lossy().into_owned())
        .collect();
    assert!(there.remove("SUMMARY.md"));
    assert_eq!(listed.iter().cloned().collect::<BTreeSet<_>>(), there);
    assert_eq!(listed.len(), there.len(), "no chapter is listed twice");
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut pictures = BTreeSet::new();
    for chapter in chapters() {
        for (target, is_picture) in chapter.links() {
            if target.contains("://") {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let path = match path {
                "" => source().join(&chapter.name),
                path => source().join(path),
            };
            assert!(path.exists(), "{}: {target}", chapter.name);
            if !anchor.is_empty() {
                let text = fs::read_to_string(&path).expect("it is text");
                let is_there = heading_anchors(&text).contains(&anchor.to_owned());
                assert!(is_there, "{}: no heading for {target}", chapter.name);
            }
            if is_picture {
                pictures.insert(path);
            }
        }
    }
    assert_eq!(pictures, files(&source().join("films")), "each picture is shown");
}

/// Recipes name files and folders by their paths from the root.
#[test]
fn every_path_that_a_chapter_names_is_there() {
    let mut n_paths = 0;
    for chapter in chapters() {
        for path in chapter.code_words().filter(|word| is_path(word)) {
            assert!(root().join(&path).exists(), "{}: {path}", chapter.name);
            n_paths += 1;
        }
    }
    assert!(n_paths > 50, "only {n_paths} paths were found");
}

/// Whether a word of code begins with a folder of packages. Commands and patterns have other characters.
fn is_path(word: &str) -> bool {
    let folders = [
        "vm/",
        "runtime/",
        "ssa/",
        "jit/",
        "wasi/",
        "vmrun/",
        "filetests/",
        "peers/",
        "programs/",
        "docs/",
    ];
    let is_plain = word.chars().all(|c| c.is_alphanumeric() || "/._-".contains(c));
    is_plain && folders.iter().any(|folder| word.starts_with(folder))
}

/// Rust in chapters is compiled and run as documentation of the crate `slotvm`.
#[test]
fn chapters_with_rust_are_doctests() {
    let tests = fs::read_to_string(root().join("jit/src/lib.rs")).expect("it is there");
    let with_rust = chapters().into_iter().filter(|chapter| !chapter.blocks("rust").is_empty());
    let mut n_chapters = 0;
    for chapter in with_rust {
        let include = format!("include_str!(\"../../docs/guide/src/{}\")", chapter.name);
        assert!(tests.contains(&include), "jit/src/lib.rs does not include {}", chapter.name);
        n_chapters += 1;
    }
    assert!(n_chapters > 0);
}

/// A strip: the picture, the program, the slot, the kind of film.
const STRIPS: [(&str, &str, &str, Kind); 7] = [
    ("diamond_phis", "diamond", "x", Kind::Placement),
    ("diamond_renaming", "diamond", "x", Kind::Renaming),
    ("loop_phis", "loop", "v", Kind::Placement),
    ("irreducible_phis", "irreducible", "n", Kind::Placement),
    ("irreducible_renaming", "irreducible", "v", Kind::Renaming),
    ("fib_phis", "fib", "b", Kind::Placement),
    ("fib_renaming", "fib", "b", Kind::Renaming),
];

#[derive(Copy, Clone)]
enum Kind {
    Placement,
    Renaming,
}

/// `BLESS=1` writes them.
#[test]
fn pictures_show_the_recorded_steps() {
    for (picture, program, name, kind) in STRIPS {
        let document = Document::of(&format!("docs/guide/programs/{program}.vasm"));
        let slot = document.slot(name);
        let (title, frames, has_tree) = match kind {
            Kind::Placement => (format!("Phis of {name}"), film::placement(&document, slot), true),
            Kind::Renaming => {
                (format!("Renaming of {name}"), film::renaming(&document, slot), false)
            }
        };
        let drawn =
            strip::strip(&document, &format!("{title} in {program}.vasm"), &frames, has_tree);
        roxmltree::Document::parse(&drawn).expect("it is well-formed");
        let path = source().join("films").join(format!("{picture}.svg"));
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, &drawn).expect("it can be written");
        }
        let current = fs::read_to_string(&path).unwrap_or_default();
        assert!(drawn == current, "{picture}.svg is not current: run with BLESS=1");
    }
}
