//! Random calls of all functions with random arguments. They do not panic, fail only with errors of the
//! specification, and change nothing outside of the directory.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use slotvm::{Tier, TrapCode};
use slotvm_wasi::{I32Exit, MemoryOutput};
use std::io::Cursor;
use std::sync::OnceLock;

use crate::guest::{ALL, DIR, FUNCTIONS, Folder, Guest, MEMORY_BYTES, TestEngine};

/// The time after which a call, such as a sleep, is interrupted.
const TIMEOUT: Duration = Duration::from_millis(50);

/// The number of the last error, `notcapable`.
const ERRNO_MAX: u32 = 76;

/// Paths inside, outside, and invalid ones.
const PATHS: [&str; 16] = [
    "f",
    "d",
    "d/g",
    "d/../f",
    "new",
    "d/new",
    ".",
    "..",
    "../outside/secret",
    "absolute/secret",
    "relative/secret",
    "relative",
    "up/outside/secret",
    "/",
    "",
    "f\0",
];

/// A call: the index of the function, and for each argument a number from which it is derived.
type Call = (usize, [u64; 9]);

fn engines() -> &'static [TestEngine] {
    static ENGINES: OnceLock<[TestEngine; 2]> = OnceLock::new();
    ENGINES.get_or_init(|| {
        let memory = "(memory (export \"memory\") 2 2)";
        [Tier::Interpreter, Tier::Jit].map(|tier| TestEngine::new(tier, TIMEOUT, memory))
    })
}

fn folder() -> Folder {
    let folder = Folder::new();
    let inside = folder.inside();
    fs::create_dir(inside.join("d")).unwrap();
    folder.write("f", "0123456789");
    folder.write("d/g", "deep");
    symlink(folder.root.path().join("outside"), inside.join("absolute")).unwrap();
    symlink("../outside", inside.join("relative")).unwrap();
    symlink("..", inside.join("up")).unwrap();
    folder
}

/// The paths and the arrays in memory from which calls choose their arguments.
struct Pool {
    texts: Vec<[i64; 2]>,
    arrays: Vec<[i64; 2]>,
}

impl Pool {
    fn new(guest: &mut Guest) -> Pool {
        let texts = PATHS.iter().map(|path| guest.text(path)).collect();
        let room = guest.put([b'.'; 300]);
        let mut subscriptions = [[0; 48]; 3];
        // A clock that is due, one that is not, and a file to read.
        subscriptions[0][16] = 1;
        subscriptions[1][16..32].copy_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
        subscriptions[2][8] = 1;
        subscriptions[2][16] = DIR as u8 + 1;
        let subscriptions = guest.put(subscriptions.as_flattened());
        let arrays = vec![
            guest.buffers(&[[room, 300]]),
            guest.buffers(&[[room, 3], [room + 1, 0], [room + 2, 40]]),
            guest.buffers(&[[-1, 1]]),
            [subscriptions, 3],
            [subscriptions, 1],
        ];
        Pool { texts, arrays }
    }

    /// The arguments of a call.
    fn args(&self, params: &str, numbers: &[u64]) -> Vec<i64> {
        let mut args: Vec<i64> = Vec::new();
        for (param, &number) in params.chars().zip(numbers) {
            let pick = (number >> 8) as usize;
            // An address usually comes with a length as the next argument.
            let is_length = args.last().is_some_and(|&last| last > 4095) && number & 8 != 0;
            let known =
                self.texts.iter().chain(&self.arrays).find(|[at, _]| Some(at) == args.last());
            args.push(match (number & 7, known) {
                _ if param == 'I' => self.wide(number),
                (_, Some(&[_, len])) if is_length => len,
                (0 | 1, _) => self.texts[pick % self.texts.len()][0],
                (2, _) => self.arrays[pick % self.arrays.len()][0],
                (3 | 4, _) => (pick % 9) as i64,
                (5, _) => (pick % MEMORY_BYTES as usize) as i64,
                (6, _) => i64::from(MEMORY_BYTES) - (pick % 70) as i64,
                _ => i64::from(number as i32 >> 8),
            });
        }
        args
    }

    /// Returns a size, an offset, a time or rights. No size is so many gigabytes that the disk might have
    /// them.
    fn wide(&self, number: u64) -> i64 {
        match number & 7 {
            0 | 1 => ALL,
            2 => ALL & (number >> 8) as i64,
            3 => i64::from(u8::MAX) & (number >> 8) as i64,
            4 => -1,
            5 => i64::MAX,
            6 => i64::MIN | (number >> 40) as i64,
            _ => 0,
        }
    }
}

fn check(calls: &[Call]) {
    for engine in engines() {
        let folder = folder();
        let others = folder.others();
        let ctx = folder
            .builder()
            .args(["prog", "arg"])
            .env("A", "b")
            .stdin(Cursor::new("some input"))
            .stdout(MemoryOutput::new(1000))
            .build();
        let mut guest = Guest::new(engine, ctx);
        let pool = Pool::new(&mut guest);
        for (func, numbers) in calls {
            let (name, params) = FUNCTIONS[func % FUNCTIONS.len()];
            let args = pool.args(params, numbers);
            match guest.try_call(name, &args) {
                Ok(errno) => assert!(errno <= ERRNO_MAX, "{name}{args:?}: {errno}"),
                Err(error) => match name {
                    "proc_exit" => assert_eq!(I32Exit::of(&error), Some(I32Exit(args[0] as i32))),
                    // On a busy machine, any call that can be interrupted may take too long.
                    "poll_oneoff" | "random_get" => {
                        assert_eq!(error.trap_code(), Some(TrapCode::Interrupted), "{error}");
                    }
                    _ => assert_eq!(
                        error.trap_code(),
                        Some(TrapCode::Interrupted),
                        "{name}{args:?}: {error}"
                    ),
                },
            }
        }
        drop(guest);
        assert_eq!(folder.others(), others, "{calls:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    #[test]
    fn random_calls_do_no_harm(calls in vec((any::<usize>(), any::<[u64; 9]>()), 1..60)) {
        check(&calls);
    }
}
