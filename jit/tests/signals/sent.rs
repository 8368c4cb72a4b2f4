//! Signals from other processes and threads while guest code runs.

use std::mem;
use std::os::unix::process::ExitStatusExt as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use slotvm::{Config, Engine, Linker, Module, Store, Tier};

use crate::guest::Guest;
use crate::{check_in_child, in_child};

/// Number of signals that the tests' handlers received.
static N_HANDLED: AtomicUsize = AtomicUsize::new(0);

extern "C" fn count(_: libc::c_int) {
    N_HANDLED.fetch_add(1, SeqCst);
}

/// Installs what is to handle a signal: `SIG_DFL`, `SIG_IGN`, or a function of one parameter.
fn handle(signal: libc::c_int, handler: usize) {
    // SAFETY: the handlers of the tests have one parameter, and do what a handler may.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = handler;
        assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
    }
}

/// Nothing but instructions that can trap, until the host has enough of it.
fn spin(engine: &Engine, go_on: impl Fn() -> i32 + Send + Sync + 'static) {
    let body =
        "local.get n i32.load local.get m i32.div_u local.get n i32.add local.set n ".repeat(50);
    let source = format!(
        r#"
        import "env" "go_on" func go_on() -> i32
        memory 0 1 1
        export "spin" func spin
        func spin(n: i32, m: i32) -> i32 {{
          local rounds: i32
        next:
          {body}
          local.get rounds i32.const 1 i32.add local.tee rounds
          i32.const 1000 i32.rem_u br_if next
          call go_on br_if next
          local.get n
          return
        }}"#
    );
    let mut linker = Linker::new(engine);
    linker.func_wrap("env", "go_on", go_on).unwrap();
    let mut store = Store::new(engine, ());
    let module = Module::from_text(engine, &source).unwrap();
    let instance = linker.instantiate(&mut store, &module).unwrap();
    let spin = instance.get_typed_func::<(i32, i32), i32>(&store, "spin").unwrap();
    assert_eq!(spin.call(&mut store, (0, 1)).unwrap(), 0);
}

/// Sends signals to a thread that runs guest code, one after the other was handled.
fn send_to_guest_code(n_signals: usize) {
    static DONE: AtomicBool = AtomicBool::new(false);
    let (sender, receiver) = mpsc::sync_channel(1);
    std::thread::scope(|scope| {
        let guest = scope.spawn(move || {
            let engine = Engine::new(Config::new().tier(Tier::BEST)).unwrap();
            // SAFETY: the call has no preconditions.
            sender.send(unsafe { libc::pthread_self() }).unwrap();
            spin(&engine, || i32::from(!DONE.load(SeqCst)));
        });
        let thread = receiver.recv().unwrap();
        for n in 0..n_signals {
            let signal = [libc::SIGSEGV, libc::SIGFPE, libc::SIGBUS][n % 3];
            // SAFETY: the thread runs until this is signalled as done.
            assert_eq!(unsafe { libc::pthread_kill(thread, signal) }, 0);
            while N_HANDLED.load(SeqCst) <= n && !guest.is_finished() {
                std::thread::yield_now();
            }
        }
        DONE.store(true, SeqCst);
        guest.join().unwrap();
    });
}

#[test]
fn a_signal_sent_to_guest_code_is_no_trap() {
    check_in_child("sent::a_signal_sent_to_guest_code_is_no_trap", || {
        for signal in [libc::SIGSEGV, libc::SIGFPE, libc::SIGBUS] {
            handle(signal, count as *const () as usize);
        }
        send_to_guest_code(300);
        assert_eq!(N_HANDLED.load(SeqCst), 300);
        Guest::new().trap(100);
    });
}

#[test]
fn a_signal_sent_to_guest_code_kills_if_nobody_handles_it() {
    let status = in_child("sent::a_signal_sent_to_guest_code_kills_if_nobody_handles_it", || {
        handle(libc::SIGSEGV, libc::SIG_DFL);
        send_to_guest_code(1);
    });
    assert_eq!(status.signal(), Some(libc::SIGSEGV));
}

#[test]
fn a_signal_that_the_program_ignores_stays_ignored_and_ours() {
    check_in_child("sent::a_signal_that_the_program_ignores_stays_ignored_and_ours", || {
        let signals = [libc::SIGSEGV, libc::SIGFPE, libc::SIGBUS, libc::SIGILL];
        for signal in signals {
            handle(signal, libc::SIG_IGN);
        }
        let guests = Guest::of_both_kinds();
        for mut guest in guests {
            for signal in signals {
                // SAFETY: raising a signal has no preconditions.
                assert_eq!(unsafe { libc::raise(signal) }, 0);
                guest.trap(8);
            }
            guest.trap_in_other_ways();
        }
    });
}

/// The time between two signals of the timer.
const PERIOD: Duration = Duration::from_micros(500);

/// Starts a timer that signals the thread. The signal's number is that of user 1.
fn start_timer() -> libc::timer_t {
    // SAFETY: the structures are complete, and the calls write the timer only.
    unsafe {
        let mut event: libc::sigevent = mem::zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGUSR1;
        event.sigev_notify_thread_id = libc::gettid();
        let mut timer = mem::zeroed();
        assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer), 0);
        let period = libc::timespec { tv_sec: 0, tv_nsec: PERIOD.as_nanos() as i64 };
        let times = libc::itimerspec { it_interval: period, it_value: period };
        assert_eq!(libc::timer_settime(timer, 0, &times, std::ptr::null_mut()), 0);
        timer
    }
}

/// Counts the signals of the timer, those too that came while one was still waiting.
extern "C" fn count_timer(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: a timer's signal says how many others it stands for: the second number after the three
    // with which each starts, and padding.
    let overrun = unsafe { info.cast::<libc::c_int>().add(5).read() };
    N_HANDLED.fetch_add(1 + overrun as usize, SeqCst);
}

#[test]
fn no_signal_of_a_timer_is_lost_in_traps() {
    check_in_child("sent::no_signal_of_a_timer_is_lost_in_traps", || {
        // SAFETY: the handler has the signature that SA_SIGINFO demands, and does what a handler may.
        unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            action.sa_sigaction = count_timer as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            assert_eq!(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()), 0);
        }
        let mut guests = Guest::of_both_kinds();
        let before = Instant::now();
        let timer = start_timer();
        let start = Instant::now();
        for _ in 0..500 {
            for guest in &mut guests {
                guest.trap(100);
            }
        }
        let elapsed = start.elapsed();
        // The last one may be on its way.
        std::thread::sleep(10 * PERIOD);
        // SAFETY: the timer exists.
        assert_eq!(unsafe { libc::timer_delete(timer) }, 0);
        let elapsed_max = before.elapsed();
        let n_periods = |time: Duration| (time.as_nanos() / PERIOD.as_nanos()) as usize;
        let expected = n_periods(elapsed)..=n_periods(elapsed_max);
        let n = N_HANDLED.load(SeqCst);
        assert!(expected.contains(&n), "{n} signals in {elapsed:?}, not {expected:?}");
    });
}
