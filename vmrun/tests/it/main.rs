//! The command line as users meet it, by running the real binary, and the programs of the repository.

mod binary;
mod crosscheck;
mod explain;
mod failures;
mod help;
mod invoke;
mod kept;
mod kernels;
mod opt;
mod passes;
mod program_engines;
mod program_files;
mod program_outputs;
mod programs;
mod real;
mod run;
mod suite;
mod terminal;
mod tools;
mod traps;
mod wasi;
mod wasi_programs;
mod wasm;
