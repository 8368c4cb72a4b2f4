//! Progress of what takes more than a second, on a terminal.
//!
//! Short commands show nothing, and neither does a command whose standard error is read by something else.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The time after which progress is shown.
const SHOWN_AFTER: Duration = Duration::from_secs(1);
/// The time between two pictures of the spinner.
const TICK: Duration = Duration::from_millis(100);

/// The progress of a command, shown until it is dropped.
pub struct Progress {
    bar: ProgressBar,
    /// Ends the thread that shows the progress; none without a terminal.
    shows: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// The progress of something that has one step, or nobody knows how many.
    pub fn spinner(message: &str) -> Progress {
        let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}");
        Progress::new(ProgressBar::no_length(), style.expect("the template is valid"), message)
    }

    /// The progress of something that has so many steps.
    pub fn steps(n: usize, message: &str) -> Progress {
        let style = ProgressStyle::with_template("{spinner} {msg} {pos}/{len} {elapsed}");
        Progress::new(ProgressBar::new(n as u64), style.expect("the template is valid"), message)
    }

    fn new(bar: ProgressBar, style: ProgressStyle, message: &str) -> Progress {
        bar.set_draw_target(ProgressDrawTarget::hidden());
        let bar = bar.with_style(style).with_message(message.to_owned());
        let shows = io::stderr().is_terminal().then(|| show_later(bar.clone()));
        Progress { bar, shows }
    }

    /// Ends a step.
    pub fn step(&self) {
        self.bar.inc(1);
    }

    /// Writes something to the terminal above the progress.
    pub fn above<R>(&self, write: impl FnOnce() -> R) -> R {
        self.bar.suspend(write)
    }
}

/// Shows a progress bar if it is not at its end by then.
fn show_later(bar: ProgressBar) -> (Sender<()>, JoinHandle<()>) {
    let (ended, waits) = mpsc::channel();
    let show = move || {
        if waits.recv_timeout(SHOWN_AFTER) == Err(RecvTimeoutError::Timeout) {
            bar.set_draw_target(ProgressDrawTarget::stderr());
            bar.enable_steady_tick(TICK);
        }
    };
    (ended, thread::spawn(show))
}

impl Drop for Progress {
    /// Removes what is shown.
    fn drop(&mut self) {
        if let Some((ended, thread)) = self.shows.take() {
            drop(ended);
            // It shows a bar, and cannot fail.
            _ = thread.join();
        }
        self.bar.finish_and_clear();
    }
}
