//! Polls of guest code, and the callback of the host.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;
use std::time::Duration;

use slotvm_bytecode::TrapCode;

use super::interrupt::{UpdateDeadline, nanos};
use super::{EpochCallback, Store};
use crate::error::Error;
use crate::trap::Trap;

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
        if self.interrupts.is_some() {
            self.epoch_callback = callback;
        }
    }

    /// Sets how long calls from the host may take; of the calls that are active it does not change that.
    ///
    /// # Errors
    /// Fails if the code of the store does not poll.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        let is_active = self.calls.n_host_calls > 0;
        let Some(interrupts) = &mut self.interrupts else {
            return Err(Error::Usage("interruption is not configured for this store".to_owned()));
        };
        if is_active {
            return Err(Error::Usage("cannot change the timeout during a call".to_owned()));
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
        let asks = self.epoch_callback.is_some() && !interrupts.words.has_expired();
        if !interrupts.is_due() || asks && !is_new {
            return Ok(());
        }
        self.poll_inside()
    }

    /// Polls inside of an operation, where references into the embedder's heap cannot be visited: nobody knows which of them
    /// the code has in registers.
    ///
    /// # Errors
    /// As [`Store::poll`].
    #[cold]
    pub(crate) fn poll_inside(&mut self) -> Result<(), Error> {
        self.calls.n_polls_inside += 1;
        // A panic of the callback is one of the call that polls, and that ends.
        let polled = catch_unwind(AssertUnwindSafe(|| self.poll()));
        self.calls.n_polls_inside -= 1;
        polled.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Slow path of a poll. It may call back into guest code.
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
        let Some(mut callback) = self.epoch_callback.take() else { return interrupted() };
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
