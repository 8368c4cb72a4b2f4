//! Compares our promotion with LLVM's: the result of `opt -passes=mem2reg` on a slot form, phi by phi.
//!
//! Needs the `opt` of LLVM 19 or later; without one the tests are reported as ignored, with the reason.
//! `SLOTVM_GENERATED` sets the number of generated functions and modules. `cargo test --test llvm --
//! --nocapture` shows the counts.

mod folding;
mod graphs;
mod modules;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use slotvm_filetests::opt::Opt;

/// Runs comparisons with LLVM, and prints the counts.
type Check = fn(Opt) -> Result<String, String>;

const CHECKS: &[(&str, Check)] = &[
    ("construction_gives_the_phis_of_mem2reg", graphs::check),
    ("promotion_of_programs_is_mem2reg", modules::check_programs),
    ("promotion_of_generated_modules_is_mem2reg", modules::check_generated),
];

fn main() -> ExitCode {
    let trials = CHECKS.iter().map(|&(name, check)| trial(name, check)).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn trial(name: &'static str, check: Check) -> Trial {
    Trial::ignorable_test(name, move || match Opt::find() {
        Err(reason) => Ok(Completion::ignored_with(reason)),
        Ok(opt) => {
            let counts = check(opt).map_err(Failed::from)?;
            println!("LLVM {}, {name}: {counts}", opt.version);
            Ok(Completion::Completed)
        }
    })
}
