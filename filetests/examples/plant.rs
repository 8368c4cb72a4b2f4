//! Copies the workspace and plants faults in the copy: `cargo run -p slotvm-filetests --example plant -- FOLDER`.

use std::path::Path;
use std::process::ExitCode;

use slotvm_filetests::planted::plant;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1) else {
        eprintln!("expected the folder of the copy");
        return ExitCode::from(2);
    };
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    match plant(&workspace, Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
