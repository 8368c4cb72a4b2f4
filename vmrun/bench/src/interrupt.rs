//! Ctrl-C, which ends a measurement but keeps what has been measured.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::SIGINT;
use signal_hook::flag;

use vmrun_base::error::EXIT_INTERRUPTED;

/// Whether a measurement should end.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Sets the flag at the first Ctrl-C. A second one ends the process.
    ///
    /// # Errors
    /// Fails if the system refuses the handler.
    pub fn at_ctrl_c() -> io::Result<Stop> {
        let stop = Stop::default();
        // Handlers run in the order in which they were registered: the first one finds what the second one set before.
        flag::register_conditional_shutdown(SIGINT, EXIT_INTERRUPTED.into(), stop.0.clone())?;
        flag::register(SIGINT, stop.0.clone())?;
        Ok(stop)
    }

    /// Sets the flag.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the flag is set.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
