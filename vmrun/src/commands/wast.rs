//! `vmrun wast`: runs WebAssembly test scripts.

use serde::Serialize;
use slotvm::{Config, Tier};

use crate::cli::WastArgs;
use crate::error::{CliError, note};
use crate::load;
use crate::output::{print, print_json};
use crate::progress::Progress;
use crate::table::table;
use crate::wast;

pub(super) fn wast(args: &WastArgs) -> Result<(), CliError> {
    let is_native = args.native.is_asked();
    let tier = if is_native { Tier::Jit } else { Tier::Interpreter };
    let mut config = Config::new();
    config.tier(tier).slots(args.native.slots.unwrap_or_default());
    config.passes(args.native.passes.unwrap_or_default());
    let mut counts = Vec::new();
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
        counts.push(Counts {
            file: path.display().to_string(),
            passed: outcome.n_passed,
            failed: outcome.failed.len(),
            refused: outcome.refused.len(),
        });
    }
    drop(progress);
    if args.json.is_asked {
        print_json(&counts)?;
    } else {
        let mut table = table(1, ["file", "passed", "failed", "refused"]);
        for Counts { file, passed, failed, refused } in counts {
            table.add_row(
                [file].into_iter().chain([passed, failed, refused].map(|n| n.to_string())),
            );
        }
        print(&format!("{table}\n"))?;
    }
    if n_failed == 0 { Ok(()) } else { Err(CliError::Reported) }
}

/// The counts of a script's commands.
#[derive(Serialize)]
struct Counts {
    file: String,
    passed: usize,
    failed: usize,
    refused: usize,
}
