//! Native code beside other users of signals, in the same process.
//!
//! Signal handlers belong to a process, and crashes end it, so each test runs in a process of its own.

mod foreign;
#[path = "../it/fork.rs"]
mod fork;
mod guest;
mod process;
mod sent;
mod without;

use std::process::ExitStatus;

/// Set in a child process, to the test that it should run.
const CHILD: &str = "SLOTVM_TEST_SIGNALS";

/// Seconds after which a child process that hangs is killed.
const CHILD_SECONDS_MAX: u32 = 120;

/// Runs a part of a test in a process of its own, and returns how that ended. `test` is the name of the
/// test that calls this.
fn in_child(test: &str, part: fn()) -> ExitStatus {
    if std::env::var(CHILD).is_ok_and(|child| child == test) {
        // SAFETY: the call has no preconditions.
        unsafe { libc::alarm(CHILD_SECONDS_MAX) };
        part();
        std::process::exit(0);
    }
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, test)
        .output()
        .unwrap();
    // Seen if the test fails.
    println!("{}", String::from_utf8_lossy(&output.stdout));
    println!("{}", String::from_utf8_lossy(&output.stderr));
    output.status
}

/// Runs a test in a process of its own.
fn check_in_child(test: &str, body: fn()) {
    let status = in_child(test, body);
    assert!(status.success(), "{status}");
}
