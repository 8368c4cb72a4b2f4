//! Memory against registers: all programs in every slot mode, as `vmrun bench programs` reports them.
//!
//! A filter selects programs by name, `--quick` measures one round. `vmrun bench` also writes JSON and
//! draws a chart.

use slotvm::PassSet;
use slotvm_benches::{Args, program_files};
use vmrun::bench::{measure, program, table};
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
    let size = args.is_test.then_some(1);
    print!("{}", table::render(&measure::measure(&files, rounds, size, PassSet::all())?));
    Ok(())
}
