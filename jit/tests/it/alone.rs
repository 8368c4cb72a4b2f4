//! Tests that look at their process, and so must be alone in it. The unit tests have this module, too.

use std::process::Command;

/// Set in the process that a test has started for itself.
const ALONE: &str = "SLOTVM_TEST_ALONE";

/// Runs a test, given by its path, in a process that runs nothing else, and prints what it prints.
pub(crate) fn alone(test: &str, run: impl FnOnce()) {
    if std::env::var_os(ALONE).is_some() {
        return run();
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--test-threads=1", "--nocapture"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    assert!(child.status.success() && out.contains("1 passed"), "{}\n{out}\n{err}", child.status);
    print!("{out}");
}
