//! Reports time and memory of compiling compile bombs.
//!
//! ```text
//! cargo run --release -p slotvm-filetests --example bombs -- [MODE…]
//! ```
//!
//! Loads and compiles each bomb in a process of its own, and prints its time and memory beside the promise:
//! 100 ms for each KB of bytecode up to 64 KB and 10 ms for each KB beyond, and 128 MiB and 1,024 bytes for each byte.
//! Times are CPU time of the thread; memory is the peak of the process minus its memory before. `!` marks
//! figures that exceed the promise. It reads `/proc`, so it needs Linux.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use slotvm::compiler::Effort;
use slotvm::{Config, Engine, Module, SlotMode, Tier};
use slotvm_bytecode::encode;
use slotvm_filetests::bombs::family;
use slotvm_filetests::campaign::cost::{promised_bytes, promised_ms};

/// Families, their sizes, and the number of functions.
const CASES: &[(&str, usize, usize)] = &[
    ("nested loops x locals", 180, 1),
    ("nested loops x locals", 4_000, 1),
    ("nested loops x locals", 100, 40),
    ("ifs x locals", 2_500, 1),
    ("ifs x locals", 4_000, 1),
    ("nested loops", 20_000, 1),
    ("ifs", 16_000, 1),
    ("ifs", 180_000, 1),
    ("blocks", 1_000_000, 1),
    ("switch", 100_000, 1),
    ("switch x locals", 100_000, 1),
    ("switches x shapes", 40_000, 1),
    ("calls x locals", 20_000, 1),
    ("loop x locals", 4_000, 1),
    ("edges back", 20_000, 1),
    ("irreducible ladder", 4_000, 1),
    ("deep stack", 100_000, 1),
    ("straight code", 500_000, 1),
    ("straight code", 2_000_000, 1),
    ("loads", 40_000, 1),
    ("pile of loads", 4_000, 1),
    ("pile of loads", 20_000, 1),
    ("sum of loads", 20_000, 1),
    ("late sum", 2_000, 1),
    ("wide calls", 4_000, 1),
    ("wide returns", 4_000, 1),
    ("common values", 4_000, 1),
    ("rotations", 75_000, 1),
    ("rotations", 37_500, 14),
    ("sums with constants", 30_000, 1),
    ("sums with constants", 25_000, 14),
    ("saturating lanes", 20_000, 1),
    ("saturating lanes", 36_000, 14),
    ("calls by table", 20_000, 1),
    ("calls by table", 15_000, 14),
    ("targets", 100_000, 1),
    ("targets", 1 << 20, 1),
];

const MIB: f64 = (1 << 20) as f64;
/// The option of the process that compiles the module on its standard input.
const CHILD: &str = "--child";

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [first, mode] = &args[..]
        && first == CHILD
    {
        return compile(parse(mode));
    }
    let modes: Vec<SlotMode> = args.iter().map(|mode| parse(mode)).collect();
    let modes = if modes.is_empty() { vec![SlotMode::Ssa] } else { modes };
    println!(
        "| bomb | KB | mode | effort level | ms | ms/KB | promised ms | peak MiB | promised MiB |"
    );
    println!("|---|--:|---|---|--:|--:|--:|--:|--:|");
    for &(name, size, n_funcs) in CASES {
        let bytes = encode(&family(name).modules(size, n_funcs));
        for mode in &modes {
            println!("{}", row(&format!("{n_funcs} x {name} {size}"), &bytes, *mode));
        }
    }
}

fn parse(mode: &str) -> SlotMode {
    mode.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn row(name: &str, bytes: &[u8], mode: SlotMode) -> String {
    let program = std::env::current_exe().expect("the program has a file");
    let mut child = Command::new(program)
        .args([CHILD, mode.name()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program runs");
    child.stdin.take().expect("it is piped").write_all(bytes).expect("the child reads");
    let output = child.wait_with_output().expect("the child ends");
    let output = String::from_utf8_lossy(&output.stdout);
    let mut words = output.splitn(3, ' ');
    let mut number = || words.next().and_then(|word| word.parse().ok()).unwrap_or(f64::NAN);
    let (ms, mib) = (number(), number());
    let effort = words.next().unwrap_or("died").trim();
    let kb = bytes.len() as f64 / 1024.0;
    let ms_max = promised_ms(bytes.len());
    let mib_max = promised_bytes(bytes.len()) as f64 / MIB;
    // A missing number counts as exceeding, too.
    let mark = |value: f64, max: f64| if value <= max { "" } else { "! " };
    format!(
        "| {name} | {kb:.1} | {mode} | {effort} | {}{ms:.0} | {:.1} | {ms_max:.0} | {}{mib:.0} | \
         {mib_max:.0} |",
        mark(ms, ms_max),
        ms / kb,
        mark(mib, mib_max),
    )
}

/// Compiles the module that it reads, and prints time, memory and effort level.
fn compile(mode: SlotMode) {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).expect("the parent writes");
    let engine =
        Engine::new(Config::new().tier(Tier::BEST).slots(mode)).expect("there is native code");
    let memory_before = status_kib("VmRSS");
    let time_before = cpu_time();
    let module = Module::new(&engine, &bytes);
    let time = cpu_time() - time_before;
    let kib = status_kib("VmHWM").saturating_sub(memory_before);
    let effort = match &module {
        Ok(module) => {
            let lowest = module.functions().into_iter().max_by_key(|function| function.work.effort);
            let work = lowest.expect("there is a function").work;
            match work.cause {
                Some(cause) => format!("{}: {}", work.effort, cause.message()),
                None => Effort::AsAsked.to_string(),
            }
        }
        Err(error) => format!("refused: {error}"),
    };
    println!("{} {} {effort}", time.as_secs_f64() * 1e3, kib as f64 / 1024.0);
}

fn cpu_time() -> Duration {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").expect("this is Linux");
    let time = times.split_whitespace().next().and_then(|word| word.parse().ok());
    Duration::from_nanos(time.expect("it starts with nanoseconds"))
}

fn status_kib(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("this is Linux");
    let line = status.lines().find(|line| line.starts_with(key)).expect("the line is there");
    let number = line.split_whitespace().nth(1).and_then(|word| word.parse().ok());
    number.expect("it is a number")
}
