//! `vmrun wast`: runs WebAssembly test scripts.

use slotvm::{Config, Tier};

use super::print;
use crate::cli::WastArgs;
use crate::error::{CliError, note};
use crate::load;
use crate::progress::Progress;
use crate::table::table;
use crate::wast;

pub(super) fn wast(args: &WastArgs) -> Result<(), CliError> {
    let is_native = args.jit || args.slots.is_some() || args.passes.is_some();
    let tier = if is_native { Tier::Jit } else { Tier::Interpreter };
    let mut config = Config::new();
    config.tier(tier).slots(args.slots.unwrap_or_default());
    config.passes(args.passes.unwrap_or_default());
    let mut table = table(1, ["file", "passed", "failed", "refused"]);
    let mut n_failed = 0;
    let progress = Progress::steps(args.scripts.len(), "running scripts");
    for path in &args.scripts {
        let source = load::read(path)?;
        let source = str::from_utf8(&source).map_err(|error| CliError::module(path, error))?;
        let outcome = wast::run(source, &config).map_err(|error| CliError::module(path, error))?;
        progress.above(|| {
            for failure in &outcome.failed {
                note(format_args!("{}:{}: {}", path.display(), failure.line, failure.message));
            }
            for refusal in &outcome.refused {
                let (line, what) = (refusal.line, &refusal.message);
                note(format_args!("{}:{line}: not supported: {what}", path.display()));
            }
        });
        progress.step();
        n_failed += outcome.failed.len();
        let counts = [outcome.n_passed, outcome.failed.len(), outcome.refused.len()];
        let name = path.display().to_string();
        table.add_row([name].into_iter().chain(counts.map(|n| n.to_string())));
    }
    drop(progress);
    print(&format!("{table}\n"))?;
    if n_failed == 0 { Ok(()) } else { Err(CliError::Reported) }
}
