//! Runs many generated cases in parallel, with statistics, and reports a failing case, shrunk.

use std::cell::Cell;
use std::fmt::Write;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, Once};
use std::thread::Builder;

use slotvm_bytecode::text;

use crate::check::{Facts, NATIVE_STACK_BYTES_MAX, Survey, check};
use crate::generate::{Case, bytes_of_seed, generate};

/// The environment variable with the number of cases to run.
pub const COUNT_VARIABLE: &str = "SLOTVM_GENERATED";
/// The environment variable with the seed of the first case of a run whose seeds change.
pub const SEED_VARIABLE: &str = "SLOTVM_SEED";
/// The stack of threads that check cases.
const STACK_BYTES: usize = NATIVE_STACK_BYTES_MAX + (4 << 20);
/// Limit of the checks for shrinking a case.
const SHRINK_CHECKS_MAX: usize = 3_000;

/// The number of cases to run: that of the environment variable, or else the default.
///
/// # Panics
/// Panics if the environment variable is not a number.
pub fn count_or(usual: u64) -> u64 {
    number_or(COUNT_VARIABLE, usual)
}

/// The seed of the first case: that of the environment variable, or else the default.
///
/// # Panics
/// Panics if the environment variable is not a number.
pub fn seed_or(usual: u64) -> u64 {
    number_or(SEED_VARIABLE, usual)
}

fn number_or(variable: &str, usual: u64) -> u64 {
    match std::env::var(variable) {
        Ok(n) => n.parse().unwrap_or_else(|_| panic!("{variable}={n}: expected a number")),
        Err(_) => usual,
    }
}

/// Checks a case; a panic counts as a failure.
///
/// # Errors
/// Returns what is wrong.
pub fn try_check(case: &Case) -> Result<Facts, String> {
    match quietly(|| check(case)) {
        Ok(Ok(facts)) => Ok(facts),
        Ok(Err(difference)) => Err(difference.to_string()),
        Err(panic) => Err(format!("panic: {panic}")),
    }
}

/// Checks the cases of seeds on all cores.
///
/// # Errors
/// Returns the report of a case that fails.
pub fn check_seeds(seeds: Range<u64>) -> Result<Survey, String> {
    let facts = on_all_cores(seeds, |seed| {
        let bytes = bytes_of_seed(seed);
        try_check(&generate(&bytes)).map_err(|_| report(&bytes))
    })?;
    let mut survey = Survey::default();
    facts.iter().for_each(|facts| survey.add(facts));
    Ok(survey)
}

/// Checks seeds on all cores, and returns the result of each check, in no particular order.
///
/// # Errors
/// Returns a seed that fails, and its error. No further checks are then started.
pub fn on_all_cores<F: Send>(
    seeds: Range<u64>,
    check: impl Fn(u64) -> Result<F, String> + Sync,
) -> Result<Vec<F>, String> {
    let next = AtomicU64::new(seeds.start);
    let has_failed = AtomicBool::new(false);
    let all = Mutex::new(Ok(Vec::new()));
    let work = || {
        while !has_failed.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                break;
            }
            let found = check(seed);
            let mut all = all.lock().expect("no thread panics");
            match (found, &mut *all) {
                (Ok(facts), Ok(all)) => all.push(facts),
                (Ok(_), Err(_)) => {}
                (Err(error), all) => {
                    has_failed.store(true, Ordering::Relaxed);
                    *all = Err(format!("seed {seed}:\n{error}"));
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |n| n.get()) {
            let thread = Builder::new().stack_size(STACK_BYTES);
            thread.spawn_scoped(scope, work).expect("the system has a thread for each core");
        }
    });
    all.into_inner().expect("no thread panics")
}

/// Shrinks bytes whose case fails, and describes the resulting case.
pub fn report(bytes: &[u8]) -> String {
    let is_wrong = |bytes: &[u8]| try_check(&generate(bytes)).is_err();
    describe(&generate(&shrink(bytes, SHRINK_CHECKS_MAX, is_wrong)))
}

/// Describes a case and its error.
pub fn describe(case: &Case) -> String {
    match try_check(case) {
        Ok(_) => print(case, "nothing is wrong with"),
        Err(error) => print(case, &error),
    }
}

/// The text of a case below an error.
pub fn print(case: &Case, error: &str) -> String {
    let mut text = format!("{error}\n");
    let Case { module, func, args, fuel, cut, memory, bare } = case;
    let printed = text::print(module).unwrap_or_else(|error| error.to_string());
    write!(
        text,
        "; call of f{func} with {args:x?}, fuel {fuel}, cut {cut}, memory {memory:?}, bare {bare}\n\
         {printed}"
    )
    .expect("strings take everything");
    text
}

/// Makes bytes shorter and smaller while the case still fails, with a limited number of checks.
pub fn shrink(
    bytes: &[u8],
    n_questions_max: usize,
    mut is_wrong: impl FnMut(&[u8]) -> bool,
) -> Vec<u8> {
    let mut best = bytes.to_vec();
    let mut n_questions = 0;
    let mut try_instead = |best: &mut Vec<u8>, candidate: Vec<u8>| {
        n_questions += 1;
        let takes = candidate != *best && n_questions <= n_questions_max && is_wrong(&candidate);
        if takes {
            *best = candidate;
        }
        takes
    };
    loop {
        let before = best.clone();
        let mut chunk = best.len().next_power_of_two();
        while chunk > 0 {
            // From the end, since no other choices depend on the last bytes.
            let mut start = best.len() / chunk * chunk;
            loop {
                let end = (start + chunk).min(best.len());
                let without = [&best[..start.min(end)], &best[end..]].concat();
                if !try_instead(&mut best, without) {
                    let mut zeroed = best.clone();
                    zeroed[start.min(end)..end].fill(0);
                    try_instead(&mut best, zeroed);
                }
                let Some(next) = start.checked_sub(chunk) else { break };
                start = next;
            }
            chunk /= 2;
        }
        for i in 0..best.len() {
            let mut smaller = best.clone();
            smaller[i] /= 2;
            try_instead(&mut best, smaller);
        }
        if best == before {
            return best;
        }
    }
}

thread_local! {
    /// Whether panics of this thread are expected, and print no message.
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs a closure that may panic, without the usual message.
///
/// # Errors
/// Returns the message of the panic.
pub fn quietly<R>(f: impl FnOnce() -> R) -> Result<R, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |info| {
            if !IS_QUIET.get() {
                usual(info);
            }
        }));
    });
    let was_quiet = IS_QUIET.replace(true);
    let result = catch_unwind(AssertUnwindSafe(f));
    IS_QUIET.set(was_quiet);
    result.map_err(|payload| match payload.downcast::<String>() {
        Ok(message) => *message,
        Err(payload) => payload.downcast::<&str>().map_or("?".to_owned(), |m| (*m).to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shrinking_leaves_what_is_needed() {
        let bytes: Vec<u8> = (0..200).collect();
        // Bytes fail if a byte of 100 or more comes somewhere before one of 7 or more.
        let is_wrong = |bytes: &[u8]| {
            let first = bytes.iter().position(|&byte| byte >= 100);
            first.is_some_and(|at| bytes[at + 1..].iter().any(|&byte| byte >= 7))
        };
        let small = shrink(&bytes, 3_000, is_wrong);
        assert_eq!(small.len(), 2);
        assert!((100..200).contains(&small[0]) && (7..14).contains(&small[1]), "{small:?}");
    }

    #[test]
    fn shrinking_stops_when_it_has_asked_enough() {
        let mut n = 0;
        let bytes = shrink(&[9; 1000], 50, |_| {
            n += 1;
            true
        });
        assert!(bytes.len() < 1000);
        assert!(n <= 50);
    }

    #[test]
    fn a_seed_that_fails_is_the_result_of_all() {
        let halves = |seed| if seed % 2 == 0 { Ok(seed / 2) } else { Err("odd".to_owned()) };
        assert_eq!(on_all_cores(7..8, halves), Err("seed 7:\nodd".to_owned()));
        assert!(on_all_cores(0..100, halves).is_err());
        let mut doubles = on_all_cores(0..100, |seed| Ok(2 * seed)).expect("none fails");
        doubles.sort_unstable();
        assert_eq!(doubles, Vec::from_iter((0..200).step_by(2)));
    }

    #[test]
    fn a_panic_is_a_failure_with_a_message() {
        assert_eq!(quietly(|| panic!("at {}", 3)), Err::<(), _>("at 3".to_owned()));
        assert_eq!(quietly(|| panic!("plain")), Err::<(), _>("plain".to_owned()));
        assert_eq!(quietly(|| 5), Ok(5));
    }
}
