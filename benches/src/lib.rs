//! Shared parts of the benchmarks: the folders of programs, and the arguments of reports.
//!
//! | benchmark | what it measures |
//! |---|---|
//! | `stages` | each stage of compilation on programs and large functions |
//! | `growth` | how stages grow with operations and locals: a report |
//! | `import` | the import of large WebAssembly modules |
//! | `checks` | what it costs to check what guard pages and signals give for nothing: a report |
//! | `parallel` | compiling on several threads |
//! | `hostile` | what hostile modules cost: a report |
//! | `lines` | a program that grows line by line, as under a REPL: a report |
//! | `lazy` | compiling functions when they are first called: a report |
//! | `placement` | how much the time of each program depends on where its code lies: a report |
//! | `programs` | each program in each slot mode |
//! | `calls` | calls between host and guest, and what a trap costs |
//! | `interruption` | what it costs that guest code can be interrupted, and how late it is: a report |
//! | `ssa` | SSA construction beside others, on graphs of all shapes and sizes: a report |
//! | `wend` | the programs of `programs/wend` beside the same slots compiled by LLVM: a report |
//! | `bias` | whether `vmrun bench` measures what criterion does: a report |
//! | `report` | memory against registers: the report of `vmrun bench programs` |

pub mod contenders;
pub mod families;
pub mod graph_text;
pub mod llvm_ir;
pub mod slot_graph;

use std::path::PathBuf;

use vmrun::bench::program;

/// The files of all programs.
///
/// # Panics
/// Panics if they are not there.
pub fn program_files() -> Vec<PathBuf> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../programs"));
    program::find(&[folder]).unwrap_or_else(|error| panic!("{error}"))
}

/// The arguments of a benchmark, understood as criterion does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Args {
    /// Whether only to see that the benchmark runs: `--test` is given, or `--bench`, which
    /// `cargo bench` adds, is not.
    pub is_test: bool,
    /// Whether to measure with less care: `--quick`.
    pub is_quick: bool,
    /// Names or parts of names of what to measure; everything if empty.
    filters: Vec<String>,
    /// Arguments that start with a `-`.
    options: Vec<String>,
}

impl Args {
    /// The arguments of the process.
    pub fn from_env() -> Args {
        Args::parse(std::env::args().skip(1))
    }

    fn parse(args: impl Iterator<Item = String>) -> Args {
        let (options, filters): (Vec<String>, Vec<String>) =
            args.partition(|arg| arg.starts_with('-'));
        let has = |option: &str| options.iter().any(|given| given == option);
        let (is_test, is_quick) = (has("--test") || !has("--bench"), has("--quick"));
        Args { is_test, is_quick, filters, options }
    }

    /// Whether to measure what has this name.
    pub fn selects(&self, name: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| name.contains(filter))
    }

    /// Whether only some of all is to be measured.
    pub fn has_filters(&self) -> bool {
        !self.filters.is_empty()
    }

    /// The values of an option such as `--out=FOLDER`.
    pub fn values<'a>(&'a self, option: &'a str) -> impl Iterator<Item = &'a str> {
        self.options.iter().filter_map(move |given| given.strip_prefix(option)?.strip_prefix('='))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Args {
        Args::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_benchmark_measures_only_if_cargo_bench_asks() {
        assert!(args("").is_test);
        assert!(args("--bench --test").is_test);
        assert!(!args("--bench").is_test && !args("--bench").is_quick);
        assert!(args("--bench --quick").is_quick);
    }

    #[test]
    fn options_have_values() {
        let args = args("--bench --out=a --quick --out=b=c --outer=d");
        assert_eq!(args.values("--out").collect::<Vec<_>>(), ["a", "b=c"]);
        assert!(args.is_quick && !args.has_filters());
    }

    #[test]
    fn filters_are_parts_of_names() {
        assert!(args("--bench").selects("growth"));
        let args = args("--bench fib sha");
        assert!(args.selects("fib_rec") && args.selects("sha256") && !args.selects("growth"));
    }

    #[test]
    fn programs_are_found() {
        assert!(program_files().iter().any(|path| path.ends_with("mandelbrot.bc")));
    }
}
