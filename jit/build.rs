//! Hashes the sources of the crates that make native code, which code that is kept depends on: versions under development
//! differ in nothing else. Crates from a registry have the version to be told apart by, and their own sources here.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

fn main() {
    let mut hasher = DefaultHasher::new();
    for sources in ["src", "../vm/src", "../ssa/src", "../runtime/src"] {
        println!("cargo::rerun-if-changed={sources}");
        add(Path::new(sources), &mut hasher);
    }
    println!("cargo::rustc-env=SLOTVM_SOURCES={:016x}", hasher.finish());
}

/// Adds the files of a directory, in the order of their names.
fn add(directory: &Path, hasher: &mut DefaultHasher) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            add(&path, hasher);
        } else if let Ok(bytes) = fs::read(&path) {
            (path.as_os_str().as_encoded_bytes(), bytes).hash(hasher);
        }
    }
}
