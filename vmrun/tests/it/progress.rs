//! Progress on a terminal, and none elsewhere.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::binary::command;

/// Both ends of a terminal.
pub(crate) fn terminal() -> (OwnedFd, OwnedFd) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there are terminals");
    grantpt(&ours).expect("it is ours");
    unlockpt(&ours).expect("it is ours");
    let name = ptsname(&ours, Vec::new()).expect("it has a name");
    let theirs = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("it is there");
    (ours, theirs)
}

/// The standard error of `vmrun verify -` if its input comes after this time.
fn said(input_after: Duration, stderr: Stdio) -> std::process::Child {
    let mut child = command(&["verify", "-"]);
    // Colours and progress need a terminal that can do something.
    child.env("TERM", "xterm").stdin(Stdio::piped()).stderr(stderr);
    let mut child = child.spawn().expect("the binary starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    thread::sleep(input_after);
    stdin.write_all(b"func f() { return }").expect("it is read");
    child
}

#[test]
fn progress_is_shown_after_a_second_and_on_a_terminal_only() {
    let slow = Duration::from_millis(1500);
    let (ours, theirs) = terminal();
    let mut child = said(slow, theirs.into());
    assert!(child.wait().expect("it ends").success());
    let mut shown = [0; 4096];
    let n = File::from(ours).read(&mut shown).expect("something was shown");
    let shown = String::from_utf8_lossy(&shown[..n]).into_owned();
    assert!(shown.contains("verifying 0/1"), "{shown:?}");

    let child = said(slow, Stdio::piped());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.success(), output.stderr), (true, vec![]));
}
