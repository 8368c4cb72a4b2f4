//! Interrupting guest code: by epochs, which the host counts, and by the time that a call may take.
//!
//! Code that can be interrupted polls: it compares the engine's epoch with a word of the store, and calls
//! [`Store::poll`] if the epoch has come to it. The word is the store's epoch deadline, or 0 if the time of
//! the call is up ([`crate::store::ticker`]); so one comparison serves both.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use slotvm_bytecode::TrapCode;

use crate::error::Error;
use crate::store::Store;
use crate::store::ticker::{NEVER, Ticker, Watch, Words, now};
use crate::trap::Trap;

/// What can interrupt the guest code of a store.
#[derive(Clone, Debug)]
pub struct Interruption {
    /// The epoch, which the host counts up.
    pub epoch: Arc<AtomicU64>,
    /// The store's first epoch deadline.
    pub epoch_deadline: u64,
    /// What ends calls whose time is up.
    pub ticker: Arc<Ticker>,
    /// How long a call from the host may take.
    pub timeout: Option<Duration>,
}

/// What to do when the epoch deadline of a store is reached.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpdateDeadline {
    /// Interrupt the guest: it traps with [`TrapCode::Interrupted`]. The deadline stays.
    Interrupt,
    /// Go on, with a deadline so many epochs after the present one.
    Continue(u64),
}

/// Decides what to do when the epoch deadline is reached.
pub type EpochCallback = Box<dyn FnMut(&mut Store) -> Result<UpdateDeadline, Error> + Send + Sync>;

/// What a store knows about its interruption.
pub(crate) struct Interrupts {
    epoch: Arc<AtomicU64>,
    epoch_deadline: u64,
    callback: Option<EpochCallback>,
    words: Arc<Words>,
    ticker: Arc<Ticker>,
    /// Where the ticker knows the words, if it does.
    watch: Option<Arc<Watch>>,
    /// How long a call may take, in nanoseconds, or [`NEVER`].
    timeout: u64,
}

impl fmt::Debug for Interrupts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupts").field("words", &self.words).finish_non_exhaustive()
    }
}

/// A duration in nanoseconds; [`NEVER`] for none, and for one of 584 years.
fn nanos(timeout: Option<Duration>) -> u64 {
    timeout.map_or(NEVER, |time| u64::try_from(time.as_nanos()).unwrap_or(NEVER))
}

impl Interrupts {
    pub(crate) fn new(config: &Interruption) -> Interrupts {
        let words = Arc::new(Words::new());
        words.set_poll_at(config.epoch_deadline);
        Interrupts {
            epoch: config.epoch.clone(),
            epoch_deadline: config.epoch_deadline,
            callback: None,
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
    fn set_epoch_deadline(&mut self, ticks_beyond_current: u64) {
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

impl Store {
    /// Lets guest code be interrupted when the epoch has grown by so much. Has no effect on code that does
    /// not poll.
    pub fn set_epoch_deadline(&mut self, ticks_beyond_current: u64) {
        if let Some(interrupts) = &mut self.interrupts {
            interrupts.set_epoch_deadline(ticks_beyond_current);
        }
    }

    /// Lets guest code trap when the epoch deadline is reached. This is how a store begins.
    pub fn epoch_deadline_trap(&mut self) {
        self.set_epoch_callback(None);
    }

    /// Lets a function decide what happens when the epoch deadline is reached. While it runs, the deadline
    /// of guest code that it calls traps.
    pub fn epoch_deadline_callback(
        &mut self,
        callback: impl FnMut(&mut Store) -> Result<UpdateDeadline, Error> + Send + Sync + 'static,
    ) {
        self.set_epoch_callback(Some(Box::new(callback)));
    }

    fn set_epoch_callback(&mut self, callback: Option<EpochCallback>) {
        if let Some(interrupts) = &mut self.interrupts {
            interrupts.callback = callback;
        }
    }

    /// Sets how long calls from the host may take; of the calls that are active it does not change that.
    ///
    /// # Errors
    /// If the code of the store does not poll.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        let is_active = self.n_host_calls > 0;
        let Some(interrupts) = &mut self.interrupts else {
            return Err(Error::Usage("the code of this store cannot be interrupted".to_owned()));
        };
        if is_active {
            return Err(Error::Usage("the timeout of a call that is active is fixed".to_owned()));
        }
        interrupts.timeout = nanos(timeout);
        Ok(())
    }

    /// Does what guest code does when it polls. Host functions that wait call it now and then.
    ///
    /// # Errors
    /// A trap without frames, if the guest is to be interrupted; what the host's callback fails with.
    #[inline]
    pub fn check_interrupt(&mut self) -> Result<(), Error> {
        match &self.interrupts {
            Some(interrupts) if interrupts.is_due() => self.poll(),
            _ => Ok(()),
        }
    }

    /// Polls for a call that waits for its code, repeatedly. A callback of the host is only asked when an epoch
    /// has begun since the last time, so that one which does not move the deadline is not asked in a loop.
    ///
    /// # Errors
    /// As [`Store::poll`].
    pub(crate) fn check_wait(&mut self, seen: &mut Option<u64>) -> Result<(), Error> {
        let Some(interrupts) = &self.interrupts else { return Ok(()) };
        let epoch = interrupts.epoch.load(Ordering::Relaxed);
        let is_new = seen.replace(epoch).is_some_and(|seen| seen != epoch);
        let asks = interrupts.callback.is_some() && !interrupts.words.has_expired();
        if !interrupts.is_due() || asks && !is_new {
            return Ok(());
        }
        self.poll()
    }

    /// What a poll does that has to stop and look. It may call back into guest code.
    ///
    /// # Errors
    /// The trap, if the guest is to be interrupted, without frames; what the host's callback fails with.
    #[cold]
    pub(crate) fn poll(&mut self) -> Result<(), Error> {
        let interrupted = || Err(Trap::new(TrapCode::Interrupted, []).into());
        let Some(interrupts) = &mut self.interrupts else { return Ok(()) };
        if interrupts.words.has_expired() {
            return interrupted();
        }
        if interrupts.epoch.load(Ordering::Relaxed) < interrupts.epoch_deadline {
            // The time of a call before has run out just as it ended.
            interrupts.words.set_poll_at(interrupts.epoch_deadline);
            return Ok(());
        }
        let Some(mut callback) = interrupts.callback.take() else { return interrupted() };
        let id = self.id();
        let decision = catch_unwind(AssertUnwindSafe(|| callback(self)));
        self.check_identity(id);
        self.set_epoch_callback(Some(callback));
        match decision {
            Ok(Ok(UpdateDeadline::Interrupt)) => interrupted(),
            Ok(Ok(UpdateDeadline::Continue(ticks))) => {
                self.set_epoch_deadline(ticks);
                Ok(())
            }
            Ok(Err(error)) => Err(error),
            Err(panic) => resume_unwind(panic),
        }
    }
}
