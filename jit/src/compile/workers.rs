//! Threads of an engine that compile while programs go on.
//!
//! Nobody who runs a program waits for them: a job that cannot be handed over at once is refused, and asked for again
//! later. The threads start when there is work, and end with the engine. Whoever owns what jobs work on takes back
//! those that have not begun, and waits for those that have, before it is dropped ([`Workers::finish`]).
//!
//! The child of a fork has none of the threads, and starts its own. A lock that one of them held stays locked there, so
//! the child then compiles nothing.

use std::cmp::Reverse;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder, JoinHandle, available_parallelism};
use std::time::{Duration, Instant};

use crate::compile::contain;
use crate::compile::stack;

/// Threads of an engine, at most.
const THREADS_MAX: usize = 4;

/// Jobs among which the most urgent one is chosen, at most: the oldest ones. It bounds what choosing takes.
const EXAMINED_MAX: usize = 256;

/// How urgent a job is, as soon as a thread has time for one.
type Urgency = Box<dyn Fn() -> u64 + Send>;

/// See the module documentation.
#[derive(Default)]
pub(crate) struct Workers(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<Queue>,
    /// The process that the threads belong to, 0 if there were never any.
    process: AtomicU32,
    /// There is work, or no more to come.
    work: Condvar,
    /// A job has ended.
    ended: Condvar,
}

#[derive(Default)]
struct Queue {
    /// Jobs that wait for a thread, in the order in which they came.
    queue: Vec<Job>,
    /// Jobs that wait for their times.
    later: Vec<(Instant, Job)>,
    /// The owners of the jobs that run.
    running: Vec<usize>,
    threads: Vec<JoinHandle<()>>,
    n_idle: usize,
    is_closed: bool,
}

struct Job {
    owner: usize,
    urgency: Urgency,
    /// The processor that the program runs on that goes on meanwhile.
    processor: Option<usize>,
    work: Box<dyn FnOnce() + Send>,
}

impl Workers {
    /// Hands over a job for an owner, which is a number that no other one has while it lives. Of the jobs that wait, the most
    /// urgent one is done first, by what `urgency` says then. Returns whether that worked: not while others have the lock,
    /// and not if no thread can be started.
    pub(crate) fn push(
        &self,
        owner: usize,
        urgency: impl Fn() -> u64 + Send + 'static,
        work: impl FnOnce() + Send + 'static,
    ) -> bool {
        let Ok(mut state) = self.0.state.try_lock() else { return false };
        self.0.enter_process(&mut state);
        let n_threads_max =
            available_parallelism().map_or(1, |n| n.get() - 1).clamp(1, THREADS_MAX);
        if state.n_idle <= state.queue.len() && state.threads.len() < n_threads_max {
            let has_started = self.0.start_thread(&mut state);
            if !has_started && state.threads.is_empty() {
                return false;
            }
        }
        let processor = processor::current();
        state.queue.push(Job {
            owner,
            urgency: Box::new(urgency),
            processor,
            work: Box::new(work),
        });
        drop(state);
        self.0.work.notify_one();
        // The system may want to run the thread where this one runs, and not before this one has had its time: 3 ms.
        thread::yield_now();
        true
    }

    /// Hands over a job that is to begin after a time, or later if all threads are busy. Returns what
    /// [`Workers::push`] does.
    pub(crate) fn push_after(
        &self,
        time: Duration,
        owner: usize,
        work: impl FnOnce() + Send + 'static,
    ) -> bool {
        let Ok(mut state) = self.0.state.try_lock() else { return false };
        self.0.enter_process(&mut state);
        if state.threads.is_empty() && !self.0.start_thread(&mut state) {
            return false;
        }
        let urgency = Box::new(|| u64::MAX);
        let job = Job { owner, urgency, processor: None, work: Box::new(work) };
        state.later.push((Instant::now() + time, job));
        drop(state);
        // A thread that waits for work learns of the time.
        self.0.work.notify_one();
        true
    }

    /// Takes back the jobs of an owner, and waits until none runs.
    pub(crate) fn finish(&self, owner: usize) {
        let Some(mut state) = self.0.lock_in_process() else { return };
        state.queue.retain(|job| job.owner != owner);
        state.later.retain(|(_, job)| job.owner != owner);
        while state.running.contains(&owner) {
            state = self.0.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let Some(mut state) = self.0.lock_in_process() else { return };
        state.is_closed = true;
        state.queue.clear();
        state.later.clear();
        let threads = mem::take(&mut state.threads);
        drop(state);
        self.0.work.notify_all();
        for thread in threads {
            // A thread that drops the last owner of the engine ends by itself.
            if thread.thread().id() != thread::current().id() {
                // Jobs have caught their panics.
                _ = thread.join();
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, or nothing in the child of a fork whose parent had it locked.
    fn lock_in_process(&self) -> Option<MutexGuard<'_, Queue>> {
        let is_childs = ![0, std::process::id()].contains(&self.process.load(Ordering::Relaxed));
        let mut state = if is_childs { self.state.try_lock().ok()? } else { self.lock() };
        self.enter_process(&mut state);
        Some(state)
    }

    /// Forgets the threads and the jobs of the process from which this one was forked: they never end.
    fn enter_process(&self, state: &mut Queue) {
        let process = std::process::id();
        if self.process.swap(process, Ordering::Relaxed) != process {
            mem::take(&mut state.threads).into_iter().for_each(mem::forget);
            state.running.clear();
            state.n_idle = 0;
        }
    }

    /// Waits for work, or until the time of a job.
    fn wait<'s>(&self, state: MutexGuard<'s, Queue>) -> MutexGuard<'s, Queue> {
        let Some(time) = state.later.iter().map(|&(time, _)| time).min() else {
            return self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        let left = time.saturating_duration_since(Instant::now());
        self.work.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Returns whether the system starts a thread.
    fn start_thread(self: &Arc<Shared>, state: &mut Queue) -> bool {
        let shared = self.clone();
        let builder = Builder::new().name("slotvm-compiler".to_owned());
        let thread = builder.stack_size(stack::THREAD_BYTES).spawn(move || shared.run());
        let has_started = thread.is_ok();
        state.threads.extend(thread);
        has_started
    }

    /// Does jobs, in a thread of its own, until there are no more to come.
    fn run(&self) {
        let mut state = self.lock();
        while !state.is_closed {
            let Some(Job { owner, processor, work, .. }) = state.next_job() else {
                state.n_idle += 1;
                state = self.wait(state);
                state.n_idle = state.n_idle.saturating_sub(1);
                continue;
            };
            state.running.push(owner);
            drop(state);
            processor.inspect(|&processor| processor::leave(processor));
            // Jobs have caught and counted the panics of what they do. This is the last line of defence: the thread has to
            // take back what it has noted.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
                let message = contain::message(&*panic);
                tracing::error!(
                    target: "slotvm::compile", message,
                    "a compiler thread has panicked: this is a bug in slotvm, please report it"
                );
            }
            state = self.lock();
            if let Some(at) = state.running.iter().position(|&running| running == owner) {
                state.running.swap_remove(at);
            }
            self.ended.notify_all();
        }
    }
}

impl Queue {
    /// The job to do next: one whose time has come, or else the most urgent one, or the first of several.
    fn next_job(&mut self) -> Option<Job> {
        // There is none as a rule.
        let now = if self.later.is_empty() { None } else { Some(Instant::now()) };
        let due = self.later.iter().position(|&(time, _)| Some(time) <= now);
        match due {
            Some(due) => Some(self.later.swap_remove(due).1),
            None => {
                let examined = self.queue.iter().take(EXAMINED_MAX).enumerate();
                let (most_urgent, _) = examined.min_by_key(|(_, job)| Reverse((job.urgency)()))?;
                Some(self.queue.remove(most_urgent))
            }
        }
    }
}

/// The processor that a thread runs on. New threads, and those that are woken, often run where the thread runs that has
/// made or woken them, even if another processor has nothing to do; then one of the two waits.
mod processor {
    /// The processor of this thread, if the system tells.
    #[cfg(target_os = "linux")]
    pub(super) fn current() -> Option<usize> {
        // SAFETY: the function has no arguments.
        usize::try_from(unsafe { libc::sched_getcpu() }).ok()
    }

    /// Moves this thread to another processor, if it runs on this one and may run on others.
    #[cfg(target_os = "linux")]
    pub(super) fn leave(processor: usize) {
        const BYTES: usize = size_of::<libc::cpu_set_t>();
        if current() != Some(processor) || processor >= 8 * BYTES {
            return;
        }
        // SAFETY: a set is bits, of which all may be 0. The calls read and write sets of this size, and the number of the
        // processor is one of a bit, as was just checked.
        unsafe {
            let mut all: libc::cpu_set_t = std::mem::zeroed();
            if libc::sched_getaffinity(0, BYTES, &mut all) != 0 {
                return;
            }
            let mut others = all;
            libc::CPU_CLR(processor, &mut others);
            if libc::CPU_COUNT(&others) > 0 && libc::sched_setaffinity(0, BYTES, &others) == 0 {
                // It stays where it is now as long as the system likes.
                libc::sched_setaffinity(0, BYTES, &all);
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn current() -> Option<usize> {
        None
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn leave(_: usize) {}

    #[cfg(all(test, target_os = "linux"))]
    mod tests {
        #[test]
        fn a_thread_moves_if_there_is_another_processor() {
            let before = super::current().unwrap();
            super::leave(before);
            super::leave(usize::MAX);
            assert!(super::current().is_some());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

    use super::*;

    /// Hands over a job, as often as it takes.
    fn push(workers: &Workers, owner: usize, work: impl Fn() + Send + Sync + 'static) {
        let work = Arc::new(work);
        while !workers.push(owner, || 0, {
            let work = work.clone();
            move || work()
        }) {
            thread::yield_now();
        }
    }

    #[test]
    fn an_owner_waits_for_what_runs_and_takes_back_the_rest() {
        let workers = Workers::default();
        let (go, n_done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let job = |is_last: bool| {
            let (go, n_done) = (go.clone(), n_done.clone());
            move || {
                while !go.load(SeqCst) && !is_last {
                    thread::yield_now();
                }
                n_done.fetch_add(1, SeqCst);
            }
        };
        for _ in 0..100 {
            push(&workers, 1, job(false));
        }
        push(&workers, 2, job(true));
        thread::scope(|scope| {
            scope.spawn(|| workers.finish(1));
            while workers.0.lock().queue.iter().any(|job| job.owner == 1) {
                thread::yield_now();
            }
            go.store(true, SeqCst);
        });
        let n_run = n_done.load(SeqCst);
        assert!(n_run <= THREADS_MAX + 1, "{n_run} were run");
        while workers.0.lock().running.contains(&2) || !workers.0.lock().queue.is_empty() {
            thread::yield_now();
        }
        workers.finish(2);
        assert!(workers.0.lock().running.is_empty());
    }

    #[test]
    fn the_most_urgent_job_is_done_first() {
        let urgent = Arc::new(AtomicUsize::new(0));
        let job = |owner| {
            let urgent = urgent.clone();
            let urgency = Box::new(move || u64::from(urgent.load(SeqCst) == owner));
            Job { owner, urgency, processor: None, work: Box::new(|| ()) }
        };
        let mut queue = Queue { queue: (1..5).map(job).collect(), ..Queue::default() };
        // It has become urgent since.
        urgent.store(3, SeqCst);
        let mut order = Vec::new();
        while let Some(job) = queue.next_job() {
            order.push(job.owner);
        }
        assert_eq!(order, [3, 1, 2, 4]);
    }

    #[test]
    fn jobs_wait_for_their_times() {
        let workers = Workers::default();
        let done = Arc::new(Mutex::new(Vec::new()));
        let job = |name: &'static str| {
            let done = done.clone();
            move || done.lock().unwrap().push((name, Instant::now()))
        };
        let start = Instant::now();
        let after = Duration::from_millis(50);
        for (owner, name) in [(1, "later"), (2, "never")] {
            let time = if owner == 1 { after } else { Duration::from_secs(3_600) };
            while !workers.push_after(time, owner, job(name)) {
                thread::yield_now();
            }
        }
        push(&workers, 1, job("first"));
        while done.lock().unwrap().len() < 2 {
            thread::yield_now();
        }
        // Dropping an owner does not wait for the time.
        workers.finish(2);
        workers.finish(1);
        drop(workers);
        let done = done.lock().unwrap();
        assert_eq!(done.iter().map(|&(name, _)| name).collect::<Vec<_>>(), ["first", "later"]);
        assert!(done[1].1 - start >= after);
    }

    #[test]
    fn a_job_that_panics_ends_as_others_do() {
        let workers = Workers::default();
        let done = Arc::new(AtomicBool::new(false));
        push(&workers, 1, || panic!("by a job"));
        let is_done = done.clone();
        push(&workers, 1, move || is_done.store(true, SeqCst));
        while !done.load(SeqCst) {
            thread::yield_now();
        }
        workers.finish(1);
    }

    #[test]
    fn threads_end_with_the_engine() {
        let workers = Workers::default();
        let counter = Arc::new(());
        for owner in 0..10 {
            let counter = counter.clone();
            push(&workers, owner, move || _ = &counter);
        }
        drop(workers);
        assert_eq!(Arc::strong_count(&counter), 1);
    }
}
