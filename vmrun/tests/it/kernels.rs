//! The kernels, which are C programs compiled to WebAssembly, and the files in their folder.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use slotvm_bytecode::VerifiedModule;
use vmrun::bench::program::Program;
use vmrun::load::load;

use crate::binary::root;
use crate::programs::check_each;

/// The optimisation levels of the modules, and the one that only promotes variables.
const LEVELS: [&str; 3] = ["O0", "O2", "naive"];
/// Files that belong to no kernel.
const SHARED_FILES: [&str; 5] = ["README.md", "build", "env.h", "native.c", "wasi"];

/// A kernel as a compiler made it at one level of optimisation.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    /// The name of the kernel and the level, with a dot between them.
    pub(crate) name: String,
    /// The path of the module.
    pub(crate) path: PathBuf,
}

fn folder() -> PathBuf {
    root().join("programs/wasm")
}

/// All kernels, by name, each at every level.
///
/// # Panics
/// Panics if their folder cannot be read.
pub(crate) fn all() -> Vec<Kernel> {
    let mut kernels: Vec<Kernel> = file_names()
        .iter()
        .filter_map(|file| file.strip_suffix(".wasm"))
        .map(|name| Kernel { name: name.into(), path: folder().join(format!("{name}.wasm")) })
        .collect();
    kernels.sort_by(|a, b| a.name.cmp(&b.name));
    kernels
}

fn file_names() -> BTreeSet<String> {
    let files = fs::read_dir(folder()).expect("the folder of kernels is there");
    let name = |file: fs::DirEntry| file.file_name().into_string().expect("names are UTF-8");
    files.map(|file| name(file.expect("the folder can be listed"))).collect()
}

/// Checks all kernels, several at once. Panics with all failures, not just the first.
pub(crate) fn check_all(check: impl Fn(&Kernel) -> Result<(), String> + Sync) {
    let kernels = all();
    assert!(kernels.len() >= 20, "only {} modules found", kernels.len());
    check_each(&kernels, |kernel| &kernel.name, check);
}

impl Kernel {
    /// The kernel's file with this ending.
    pub(crate) fn beside(&self, ending: &str) -> PathBuf {
        self.path.with_extension("").with_extension(ending)
    }

    /// The size in the source after `// default-size: ` or `// bench-size: `.
    pub(crate) fn size(&self, which: &str) -> Result<i32, String> {
        size_said_by(&self.beside("c"), which)
    }

    /// The module.
    ///
    /// # Panics
    /// Panics if it cannot be loaded.
    pub(crate) fn verified(&self) -> Arc<VerifiedModule> {
        let loaded = load(&self.path).unwrap_or_else(|error| panic!("{error}"));
        Arc::new(loaded.module)
    }
}

fn size_said_by(source: &Path, which: &str) -> Result<i32, String> {
    let text = fs::read_to_string(source).map_err(|error| error.to_string())?;
    let prefix = format!("// {which}: ");
    let size = text.lines().find_map(|line| line.strip_prefix(&prefix)?.parse().ok());
    size.ok_or_else(|| format!("{} has no `// {which}:`", source.display()))
}

#[test]
fn the_folder_holds_what_its_readme_lists() {
    let readme = fs::read_to_string(folder().join("README.md")).expect("it is there");
    let mut expected: BTreeSet<String> = SHARED_FILES.map(str::to_owned).into();
    // The rows of the table, without its headers and the line below them.
    for row in readme.lines().filter(|line| line.starts_with('|')).skip(2) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, _, _, default, bench] = cells[..] else { panic!("{row} has five columns") };
        let source = folder().join(format!("{name}.c"));
        for (which, size) in [("default-size", default), ("bench-size", bench)] {
            assert_eq!(size_said_by(&source, which).map(|size| size.to_string()), Ok(size.into()));
        }
        expected.extend(["c", "expected"].map(|ending| format!("{name}.{ending}")));
        expected.extend(LEVELS.map(|level| format!("{name}.{level}.wasm")));
    }
    assert_eq!(file_names(), expected);
}

#[test]
fn the_benchmark_finds_the_sizes_in_the_sources() {
    check_all(|kernel| {
        let program = Program::load(&kernel.path, None).map_err(|error| error.to_string())?;
        let (default, bench) = (kernel.size("default-size")?, kernel.size("bench-size")?);
        match program.size == Some(bench) && bench >= default && program.name == kernel.name {
            true => Ok(()),
            false => Err(format!("{} is measured with size {:?}", program.name, program.size)),
        }
    });
}

#[test]
fn modules_keep_names_but_do_not_say_who_made_them_and_where() {
    check_all(|kernel| {
        let bytes = fs::read(&kernel.path).map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&bytes);
        if let Some(found) =
            ["producers", ".debug", "clang", "/usr"].iter().find(|s| text.contains(**s))
        {
            return Err(format!("has {found:?} in it"));
        }
        let module = kernel.verified();
        let main = module.module().export("main").ok_or("exports no `main`")?;
        match module.func_name(main.index) {
            name if name == "run" => Ok(()),
            name => Err(format!("`main` is called {name:?}, not `run` as in C")),
        }
    });
}

#[test]
fn kernels_import_host_functions_only() {
    check_all(|kernel| {
        let module = kernel.verified();
        match module.module().imports.iter().find(|import| import.module != "env") {
            Some(import) => Err(format!("imports {} {}", import.module, import.name)),
            None => Ok(()),
        }
    });
}
