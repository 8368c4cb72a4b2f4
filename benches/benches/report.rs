//! Memory against registers: all programs in every slot mode, as `vmrun bench programs` reports them.
//!
//! A filter selects programs by name, `--quick` measures one round. `vmrun bench` also writes JSON and
//! a page.

use slotvm::PassSet;
use slotvm_benches::{Args, program_files};
use vmrun::bench::interrupt::Stop;
use vmrun::bench::measure::{Options, measure};
use vmrun::bench::{program, table};
use vmrun::error::CliError;

const ROUNDS: u32 = 5;

fn main() -> Result<(), CliError> {
    let args = Args::from_env();
    let mut files = program_files();
    files.retain(|path| args.selects(&program::name(path)));
    if files.is_empty() {
        return Ok(());
    }
    let rounds = if args.is_test || args.is_quick { 1 } else { ROUNDS };
    let options = Options { rounds, size: args.is_test.then_some(1), passes: PassSet::all() };
    print!("{}", table::render(&measure(&files, &options, &Stop::default())?));
    Ok(())
}
