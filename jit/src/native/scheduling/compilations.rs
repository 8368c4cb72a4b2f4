//! Compilations of functions by threads of their own, so that calls that wait for code can be interrupted.
//!
//! All calls that wait for a function share its compilation. A call that is interrupted leaves; the compilation
//! continues, and the next call finds its result. At most [`RUNNING_MAX`] run at a time, whether or not somebody
//! waits for them; calls that want another one wait until one has ended, or leave when they are interrupted.
//! Whoever owns the code joins the threads before dropping it.
//!
//! Each compilation has a new thread, which costs about 0.3 ms (`docs/decisions.md`): as much as the compilation of
//! a function of ten blocks.

use std::io;
use std::mem;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Compilations of a module that run at a time.
pub(crate) const RUNNING_MAX: usize = 4;
/// The time between two checks of a waiting call for an interruption. Nothing wakes it when an epoch begins.
const CHECK_EVERY: Duration = Duration::from_millis(1);

/// The compilations of a module.
#[derive(Default)]
pub(crate) struct Compilations {
    state: Mutex<Running>,
    changed: Condvar,
}

#[derive(Default)]
struct Running {
    /// The functions that are being compiled.
    running: Vec<usize>,
    /// The threads that compile them, and some that have ended.
    threads: Vec<JoinHandle<()>>,
    /// The process that the threads belong to.
    process: u32,
}

/// The reason for which a call stopped waiting without a result.
#[derive(Debug)]
pub(crate) enum Left {
    /// The call is interrupted.
    Interrupted,
    /// The system makes no thread.
    NoThread(io::Error),
}

impl Compilations {
    /// Waits until a function `is_done`, and has `start` start a thread for it unless one is at work. The thread
    /// makes the function done, whatever happens, and then calls [`Compilations::end`]. `is_interrupted` is called
    /// now and then, without a lock, as it may run code of the host.
    ///
    /// # Errors
    /// Fails if the call is interrupted first, or there is no thread.
    pub(crate) fn wait(
        &self,
        function: usize,
        is_done: impl Fn() -> bool,
        start: impl Fn() -> io::Result<JoinHandle<()>>,
        mut is_interrupted: impl FnMut() -> bool,
    ) -> Result<(), Left> {
        let mut checked = Instant::now();
        let mut state = self.lock();
        while !is_done() {
            state.start_once(function, &start).map_err(Left::NoThread)?;
            let woken = self.changed.wait_timeout(state, CHECK_EVERY);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
            // Not only when the wait timed out: others may end so often that it never does.
            if !is_done() && checked.elapsed() >= CHECK_EVERY {
                drop(state);
                if is_interrupted() {
                    return Err(Left::Interrupted);
                }
                checked = Instant::now();
                state = self.lock();
            }
        }
        Ok(())
    }

    /// Ends the compilation of a function, by its thread.
    pub(crate) fn end(&self, function: usize) {
        self.lock().running.retain(|&running| running != function);
        self.changed.notify_all();
    }

    /// Waits until all threads have ended. No call waits for them any more.
    pub(crate) fn join(&self) {
        let mut state = self.lock();
        state.enter_process();
        let threads = mem::take(&mut state.threads);
        drop(state);
        for thread in threads {
            // It has caught its panics, as a result of its function.
            _ = thread.join();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    /// Starts to compile a function unless it is being compiled, or too many others are.
    fn start_once(
        &mut self,
        function: usize,
        start: impl Fn() -> io::Result<JoinHandle<()>>,
    ) -> io::Result<()> {
        self.enter_process();
        if self.running.contains(&function) || self.running.len() >= RUNNING_MAX {
            return Ok(());
        }
        self.threads.retain(|thread| !thread.is_finished());
        self.threads.push(start()?);
        self.running.push(function);
        Ok(())
    }

    /// Forgets the compilations of the process from which this one was forked: their threads are not here, so
    /// they never end.
    fn enter_process(&mut self) {
        let process = std::process::id();
        if self.process != process {
            mem::take(&mut self.threads).into_iter().for_each(mem::forget);
            self.running.clear();
            self.process = process;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
    use std::sync::{Arc, OnceLock};

    use super::*;

    /// Compilations that end when they are told to.
    struct Fixture {
        compilations: Compilations,
        done: Vec<OnceLock<usize>>,
        may_end: AtomicBool,
        n_started: AtomicUsize,
        n_running: AtomicUsize,
        n_running_max: AtomicUsize,
    }

    impl Fixture {
        fn new(n: usize) -> Arc<Fixture> {
            Arc::new(Fixture {
                compilations: Compilations::default(),
                done: (0..n).map(|_| OnceLock::new()).collect(),
                may_end: AtomicBool::new(false),
                n_started: AtomicUsize::new(0),
                n_running: AtomicUsize::new(0),
                n_running_max: AtomicUsize::new(0),
            })
        }

        fn wait(
            self: &Arc<Fixture>,
            function: usize,
            is_interrupted: impl FnMut() -> bool,
        ) -> Result<usize, Left> {
            let start = || {
                let fixture = self.clone();
                fixture.n_started.fetch_add(1, SeqCst);
                std::thread::Builder::new().spawn(move || fixture.compile(function))
            };
            let is_done = || self.done[function].get().is_some();
            self.compilations.wait(function, is_done, start, is_interrupted)?;
            Ok(*self.done[function].get().unwrap())
        }

        fn compile(&self, function: usize) {
            let n = self.n_running.fetch_add(1, SeqCst) + 1;
            self.n_running_max.fetch_max(n, SeqCst);
            while !self.may_end.load(SeqCst) {
                std::thread::yield_now();
            }
            self.done[function].set(function * 10).unwrap();
            self.n_running.fetch_sub(1, SeqCst);
            self.compilations.end(function);
        }
    }

    #[test]
    fn calls_leave_and_find_the_result_later() {
        let fixture = Fixture::new(2);
        assert!(matches!(fixture.wait(1, || true), Err(Left::Interrupted)));
        assert!(matches!(fixture.wait(1, || true), Err(Left::Interrupted)));
        assert_eq!(fixture.n_started.load(SeqCst), 1);
        fixture.may_end.store(true, SeqCst);
        assert_eq!(fixture.wait(1, || false).unwrap(), 10);
        assert_eq!(fixture.n_started.load(SeqCst), 1);
        fixture.compilations.join();
        assert_eq!(Arc::strong_count(&fixture), 1, "the thread has ended");
    }

    #[test]
    fn few_run_at_a_time() {
        let fixture = Fixture::new(100);
        for function in 0..20 {
            assert!(matches!(fixture.wait(function, || true), Err(Left::Interrupted)));
        }
        assert_eq!(fixture.n_started.load(SeqCst), RUNNING_MAX);
        fixture.may_end.store(true, SeqCst);
        std::thread::scope(|scope| {
            for first in 0..8 {
                let fixture = &fixture;
                scope.spawn(move || {
                    for function in (first..100).step_by(8) {
                        assert_eq!(fixture.wait(function, || false).unwrap(), function * 10);
                    }
                });
            }
        });
        assert_eq!(fixture.n_started.load(SeqCst), 100);
        assert!(fixture.n_running_max.load(SeqCst) <= RUNNING_MAX);
        fixture.compilations.join();
        assert!(fixture.compilations.lock().running.is_empty());
    }

    #[test]
    fn threads_share_a_compilation() {
        let fixture = Fixture::new(3);
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| assert_eq!(fixture.wait(2, || false).unwrap(), 20));
            }
            while fixture.n_started.load(SeqCst) == 0 {
                std::thread::yield_now();
            }
            fixture.may_end.store(true, SeqCst);
        });
        assert_eq!(fixture.n_started.load(SeqCst), 1);
    }

    #[test]
    fn without_a_thread_a_call_fails_and_the_next_one_tries_again() {
        let fixture = Fixture::new(1);
        let none = || Err(io::Error::from(io::ErrorKind::WouldBlock));
        let left = fixture.compilations.wait(0, || false, none, || false);
        assert!(matches!(left, Err(Left::NoThread(_))));
        fixture.may_end.store(true, SeqCst);
        assert_eq!(fixture.wait(0, || false).unwrap(), 0);
    }
}
