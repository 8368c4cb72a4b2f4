//! Threads: one module, compiled once, runs in a store of each thread.
//!
//! ```text
//! cargo run --release --bin threads
//! ```
//!
//! An [`Engine`] and a [`Module`] may be shared by any number of threads, and so may imports that were looked
//! up, an [`InstancePre`]. A [`Store`] has the state of programs, so one thread at a time uses it; stores
//! know nothing of each other.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use slotvm::{Engine, InstancePre, Linker, Module, Store};

/// Counts primes in a range, by division.
const PRIMES: &str = r#"
    import "host" "found" func found()
    export "count" func count
    func is_prime(n: i32) -> i32 {
      local d: i32
      local.get n  i32.const 2  i32.lt_u  br_if no
      i32.const 2  local.set d
    next:
      local.get d  local.get d  i32.mul  local.get n  i32.gt_u  br_if yes
      local.get n  local.get d  i32.rem_u  i32.eqz  br_if no
      local.get d  i32.const 1  i32.add  local.set d
      br next
    yes: i32.const 1  return
    no: i32.const 0  return
    }
    func count(from: i32, to: i32) -> i32 {
      local n: i32
    next:
      local.get from  local.get to  i32.ge_u  br_if done
      local.get from  call is_prime  i32.eqz  br_if skip
      local.get n  i32.const 1  i32.add  local.set n
      call found
    skip:
      local.get from  i32.const 1  i32.add  local.set from
      br next
    done:
      local.get n  return
    }"#;

/// Counts from all threads; a store's own data need no such care.
static FOUND: AtomicU64 = AtomicU64::new(0);

/// Counts the primes in a range with a store of its own.
fn count(linked: &InstancePre<()>, from: u32, to: u32) -> Result<u32, slotvm::Error> {
    let mut store = Store::new(linked.module().engine(), ());
    let instance = linked.instantiate(&mut store)?;
    instance.get_typed_func::<(u32, u32), u32>(&store, "count")?.call(&mut store, (from, to))
}

/// Counts the primes below a number, in parts, each by a thread.
fn primes_below(end: u32, n_threads: u32) -> Result<u32, slotvm::Error> {
    let engine = Engine::default();
    let module = Module::from_text(&engine, PRIMES)?;
    let mut linker = Linker::new(&engine);
    linker.func_wrap("host", "found", || {
        FOUND.fetch_add(1, Ordering::Relaxed);
    })?;
    let linked = linker.instantiate_pre(&module)?;
    let bound = |i: u32| (u64::from(end) * u64::from(i) / u64::from(n_threads)) as u32;
    thread::scope(|scope| {
        let part = |i| {
            let linked = &linked;
            scope.spawn(move || count(linked, bound(i), bound(i + 1)))
        };
        let parts: Vec<_> = (0..n_threads).map(part).collect();
        parts.into_iter().map(|part| part.join().expect("a part does not panic")).sum()
    })
}

fn main() -> ExitCode {
    const END: u32 = 1_000_000;
    let n_threads = thread::available_parallelism().map_or(1, |n| n.get() as u32);
    match primes_below(END, n_threads) {
        Ok(n) => {
            println!("{n} primes below {END}, counted by {n_threads} threads");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_threads_counts_the_same() {
        for n_threads in [1, 2, 7, 16] {
            let before = FOUND.load(Ordering::Relaxed);
            assert_eq!(primes_below(10_000, n_threads).unwrap(), 1229);
            assert_eq!(FOUND.load(Ordering::Relaxed) - before, 1229);
        }
    }
}
