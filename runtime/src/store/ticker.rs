//! Deadlines in time: what lets a call from the host run so long and no longer.
//!
//! A [`Ticker`] has a thread that sleeps until the earliest deadline of all calls that run, and then makes
//! the polls of the call's store notice. It starts with the first call that has a deadline, sleeps for good
//! while none runs, and ends when the ticker is dropped.
//!
//! # What a call costs
//! A call reads the clock, writes its deadline to a word ([`Words::armed`]), and looks at when the ticker
//! will wake; only if that is too late, it has to wake it. When the call ends, it takes the deadline back.
//! So calls that follow each other wake the ticker once in the time that they are given, at most.
//!
//! # Why no deadline is missed
//! A call first arms and then reads [`Watch::next_wake`]; the ticker first writes it and then looks at all
//! armed deadlines once more. All of this is sequentially consistent: either the call sees the new time of
//! waking, and compares with that, or the ticker sees the deadline.
//!
//! # Why no deadline strikes the next call
//! The ticker replaces a deadline by [`EXPIRED`] only if it is still the one that it has seen, and the end
//! of a call replaces either. It then makes the polls notice; should the call have ended meanwhile, the
//! next poll finds that nothing has expired, and continues.
//!
//! # Forks
//! The child of a fork has no ticker thread, and locks may be locked by threads that it does not have. So
//! everything is made anew there, when a call needs it ([`Ticker::watch`]). A call that is running while
//! its process forks has no deadline in the child.

use std::collections::HashMap;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::error::Error;

/// No deadline.
pub(crate) const NEVER: u64 = u64::MAX;
/// Deadline that has passed.
pub(crate) const EXPIRED: u64 = 0;

/// Bytes of the stack of the ticker's thread.
const STACK_BYTES: usize = 128 << 10;

/// Number of forks between this process and the one that loaded this code.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The words by which a store, its native code and the ticker know of deadlines.
#[derive(Debug)]
pub(crate) struct Words {
    /// The epoch at which the next poll is to stop and look; 0 if it is to do so in any case.
    pub(crate) poll_at: AtomicU64,
    /// The time at which the running call is to be interrupted, by [`now`]; [`NEVER`] or [`EXPIRED`].
    pub(crate) armed: AtomicU64,
}

impl Words {
    pub(crate) fn new() -> Words {
        Words { poll_at: AtomicU64::new(0), armed: AtomicU64::new(NEVER) }
    }

    /// Whether the time of the running call is up.
    pub(crate) fn has_expired(&self) -> bool {
        self.armed.load(Ordering::SeqCst) == EXPIRED
    }

    /// Lets polls stop from an epoch on. If the time is up meanwhile, they stop at once: either the ticker
    /// writes its 0 after this does, or this sees that the time is up.
    pub(crate) fn set_poll_at(&self, epoch: u64) {
        self.poll_at.store(epoch, Ordering::SeqCst);
        if self.has_expired() {
            self.poll_at.store(0, Ordering::SeqCst);
        }
    }

    /// Ends the time of the running call without waiting for it.
    pub(crate) fn expire_now(&self) {
        self.armed.store(EXPIRED, Ordering::SeqCst);
        self.poll_at.store(0, Ordering::SeqCst);
    }

    /// Ends the time of the call with this deadline, if it still runs.
    fn expire(&self, deadline: u64) {
        let (expired, order) = (EXPIRED, Ordering::SeqCst);
        if self.armed.compare_exchange(deadline, expired, order, order).is_ok() {
            self.poll_at.store(0, Ordering::SeqCst);
        }
    }
}

/// Nanoseconds of the monotonic clock; neither [`NEVER`] nor [`EXPIRED`].
#[inline]
pub(crate) fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is there to be written. The clock exists wherever this code runs.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// Ends calls whose time is up. All stores of an engine have one. See the module documentation.
pub struct Ticker {
    /// The watch of this process, or of an ancestor by fork; null before the first use. Owns a reference of the
    /// `Arc`.
    watch: AtomicPtr<Watch>,
}

/// A ticker in one process.
pub(crate) struct Watch {
    /// [`FORKS`] of the process.
    process: u32,
    /// Time of the thread's next wake-up, at the latest.
    next_wake: AtomicU64,
    state: Mutex<Watching>,
    changed: Condvar,
}

#[derive(Default)]
struct Watching {
    /// The words of all stores that had a deadline, by their address.
    watched: HashMap<usize, Arc<Words>>,
    thread: Option<JoinHandle<()>>,
    is_stopped: bool,
}

impl Ticker {
    /// A ticker that has no thread yet.
    pub fn new() -> Ticker {
        extern "C" fn in_child() {
            FORKS.fetch_add(1, Ordering::Relaxed);
        }
        static AT_FORK: Once = Once::new();
        // If there is no memory for it, only the children of forks have no deadlines.
        // SAFETY: the handler does nothing but add to an atomic integer.
        AT_FORK.call_once(|| _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) });
        Ticker { watch: AtomicPtr::new(ptr::null_mut()) }
    }

    /// The ticker of this process.
    fn watch(&self) -> Arc<Watch> {
        let found = self.watch.load(Ordering::Acquire);
        // SAFETY: the pointer comes from `Arc::into_raw`, and the ticker's reference is given back by
        // `drop` only.
        let of = |watch: *mut Watch| unsafe {
            Arc::increment_strong_count(watch);
            Arc::from_raw(watch)
        };
        if !found.is_null() {
            let watch = of(found);
            if watch.is_here() {
                return watch;
            }
        }
        let fresh = Arc::new(Watch::new());
        let raw = Arc::into_raw(fresh.clone()).cast_mut();
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        match self.watch.compare_exchange(found, raw, success, failure) {
            // What the parent process had is not freed: it may be locked.
            Ok(_) => fresh,
            Err(other) => {
                // SAFETY: the reference made above, which nothing else has.
                drop(unsafe { Arc::from_raw(raw) });
                of(other)
            }
        }
    }

    /// Lets the ticker know of a store whose call is armed, or that the call needs it to wake earlier.
    ///
    /// # Errors
    /// Fails if the system gives no thread.
    #[cold]
    pub(crate) fn notice(&self, words: &Arc<Words>) -> Result<Arc<Watch>, Error> {
        let watch = self.watch();
        let mut state = watch.lock();
        state.watched.entry(Arc::as_ptr(words).addr()).or_insert_with(|| words.clone());
        if state.thread.is_none() {
            let thread = watch.clone().start();
            state.thread = Some(thread.map_err(Error::Thread)?);
        }
        watch.changed.notify_one();
        drop(state);
        Ok(watch)
    }
}

impl Default for Ticker {
    fn default() -> Ticker {
        Ticker::new()
    }
}

impl std::fmt::Debug for Ticker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticker").finish_non_exhaustive()
    }
}

impl Drop for Ticker {
    /// Waits for the thread to end.
    fn drop(&mut self) {
        let watch = *self.watch.get_mut();
        if watch.is_null() {
            return;
        }
        // SAFETY: the reference that the ticker owns.
        let watch = unsafe { Arc::from_raw(watch) };
        if !watch.is_here() {
            // The thread is one of the parent process, and the state may be locked for good.
            std::mem::forget(watch);
            return;
        }
        let thread = {
            let mut state = watch.lock();
            state.is_stopped = true;
            state.thread.take()
        };
        watch.changed.notify_one();
        if let Some(thread) = thread {
            // It has nothing to tell.
            _ = thread.join();
        }
    }
}

impl Watch {
    fn new() -> Watch {
        Watch {
            process: FORKS.load(Ordering::Relaxed),
            next_wake: AtomicU64::new(NEVER),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Whether the thread, if there is one, is of this process.
    #[inline]
    fn is_here(&self) -> bool {
        self.process == FORKS.load(Ordering::Relaxed)
    }

    /// Whether an armed deadline, of a store that the ticker knows, will be noticed.
    #[inline]
    pub(crate) fn will_see(&self, deadline: u64) -> bool {
        self.is_here() && self.next_wake.load(Ordering::SeqCst) <= deadline
    }

    /// Forgets a store.
    pub(crate) fn forget(&self, words: &Arc<Words>) {
        if self.is_here() {
            self.lock().watched.remove(&Arc::as_ptr(words).addr());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Watching> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the thread, on which no signal handler of the host is to run.
    fn start(self: Arc<Watch>) -> std::io::Result<JoinHandle<()>> {
        let builder = std::thread::Builder::new().name("slotvm-ticker".to_owned());
        // SAFETY: both sets are initialised before they are read. A new thread inherits the mask.
        unsafe {
            let (mut all, mut old) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
            let thread = builder.stack_size(STACK_BYTES).spawn(move || self.run());
            libc::pthread_sigmask(libc::SIG_SETMASK, &old, ptr::null_mut());
            thread
        }
    }

    /// The loop of the thread.
    fn run(&self) {
        let mut state = self.lock();
        while !state.is_stopped {
            let wake = self.next(&state);
            state = if wake == NEVER {
                self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
            } else {
                let rest = Duration::from_nanos(wake.saturating_sub(now()));
                let woken = self.changed.wait_timeout(state, rest);
                woken.unwrap_or_else(PoisonError::into_inner).0
            };
        }
    }

    /// Ends calls whose time is up, and decides when to wake.
    fn next(&self, state: &Watching) -> u64 {
        let mut wake = expire(state);
        loop {
            self.next_wake.store(wake, Ordering::SeqCst);
            let earliest = expire(state);
            if earliest >= wake {
                return wake;
            }
            wake = earliest;
        }
    }
}

/// Ends calls whose time is up; returns the earliest deadline of the others.
fn expire(state: &Watching) -> u64 {
    let now = now();
    let mut earliest = NEVER;
    for words in state.watched.values() {
        match words.armed.load(Ordering::SeqCst) {
            EXPIRED => {}
            deadline if deadline <= now => words.expire(deadline),
            deadline => earliest = earliest.min(deadline),
        }
    }
    earliest
}
