//! Interrupting guest code: by epochs, which the host counts, and by the time that a call may take.
//!
//! Code that can be interrupted polls: it compares the engine's epoch with a word of the store, and asks the
//! store ([`crate::store::poll`]) if the epoch has come to it. The word is the store's epoch deadline, or 0 if the
//! time of the call is up ([`crate::store::ticker`]); so one comparison serves both.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::error::Error;
use crate::store::ticker::{NEVER, Ticker, Watch, Words, now};

/// The ways to interrupt the guest code of a store.
#[derive(Clone, Debug)]
pub struct Interruption {
    /// The epoch, which the host counts up.
    pub epoch: Arc<AtomicU64>,
    /// The store's first epoch deadline.
    pub epoch_deadline: u64,
    /// The ticker that ends calls whose time is up.
    pub ticker: Arc<Ticker>,
    /// The timeout of a call from the host.
    pub timeout: Option<Duration>,
}

/// The reaction to the epoch deadline of a store.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpdateDeadline {
    /// Interrupt the guest: it traps with [`Interrupted`](slotvm_bytecode::TrapCode::Interrupted). The deadline stays.
    Interrupt,
    /// Continue, with a deadline this number of epochs after the current one.
    Continue(u64),
}

/// The state of a store's interruption.
pub(crate) struct Interrupts {
    pub(super) epoch: Arc<AtomicU64>,
    pub(super) epoch_deadline: u64,
    pub(super) words: Arc<Words>,
    ticker: Arc<Ticker>,
    /// The place of the words in the ticker, if they are registered.
    watch: Option<Arc<Watch>>,
    /// The timeout of a call in nanoseconds, or [`NEVER`].
    pub(super) timeout: u64,
}

impl fmt::Debug for Interrupts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupts").field("words", &self.words).finish_non_exhaustive()
    }
}

/// A duration in nanoseconds; [`NEVER`] for none, and for one of 584 years.
pub(super) fn nanos(timeout: Option<Duration>) -> u64 {
    timeout.map_or(NEVER, |time| u64::try_from(time.as_nanos()).unwrap_or(NEVER))
}

impl Interrupts {
    pub(crate) fn new(config: &Interruption) -> Interrupts {
        let words = Arc::new(Words::new());
        words.set_poll_at(config.epoch_deadline);
        Interrupts {
            epoch: config.epoch.clone(),
            epoch_deadline: config.epoch_deadline,
            words,
            ticker: config.ticker.clone(),
            watch: None,
            timeout: nanos(config.timeout),
        }
    }

    /// The words that native code compares: the epoch, and when to stop.
    pub(crate) fn native_words(&self) -> (*const AtomicU64, *const AtomicU64) {
        (Arc::as_ptr(&self.epoch), &raw const self.words.poll_at)
    }

    /// Whether a poll has to stop and look.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.epoch.load(Ordering::Relaxed) >= self.words.poll_at.load(Ordering::Relaxed)
    }

    /// Begins the time of a call.
    #[inline]
    pub(crate) fn arm(&mut self) -> Result<(), Error> {
        if self.timeout == NEVER { Ok(()) } else { self.arm_with_timeout() }
    }

    #[inline]
    fn arm_with_timeout(&mut self) -> Result<(), Error> {
        if self.timeout == 0 {
            self.words.expire_now();
            return Ok(());
        }
        let deadline = now().saturating_add(self.timeout).min(NEVER - 1);
        self.words.armed.store(deadline, Ordering::SeqCst);
        match &self.watch {
            Some(watch) if watch.will_see(deadline) => {}
            _ => self.watch = Some(self.ticker.notice(&self.words)?),
        }
        Ok(())
    }

    /// Ends the time of a call.
    #[inline]
    pub(crate) fn disarm(&mut self) {
        if self.timeout != NEVER {
            self.words.armed.store(NEVER, Ordering::Release);
        }
    }

    /// Lets polls stop when the epoch deadline is reached.
    pub(super) fn set_epoch_deadline(&mut self, ticks_beyond_current: u64) {
        let epoch = self.epoch.load(Ordering::Relaxed);
        self.epoch_deadline = epoch.saturating_add(ticks_beyond_current);
        self.words.set_poll_at(self.epoch_deadline);
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        if let Some(watch) = &self.watch {
            watch.forget(&self.words);
        }
    }
}
