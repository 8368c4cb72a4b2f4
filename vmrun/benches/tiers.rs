//! Processes of `vmrun` that choose tiers by themselves, beside those that only interpret, compile everything first, or
//! compile each function when it is first called.
//!
//! Each program runs at several sizes, found by the time that the interpreter takes: the first one at which it takes 0.8
//! to 1.3 of the wanted time, or the last one below. A round runs all ways one after the other, and the figures are
//! medians of their wall-clock time and of their CPU time. `--quick` measures one round; a filter selects programs by parts
//! of their names; `--test` runs each way of one program once. Arguments that are paths of files name other programs,
//! which take no size: they run as they are, in their own folder and with its files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::time::{Duration, Instant};

use vmrun::table::table;

const WAYS: [(&str, &[&str]); 4] =
    [("auto", &[]), ("interp", &["--interp"]), ("jit", &["--jit"]), ("lazy", &["--lazy"])];
const ROUNDS: usize = 3;
/// Wanted times of the interpreter in milliseconds: of a process that does next to nothing, and more.
const TARGETS_MS: [u64; 5] = [0, 5, 20, 200, 2000];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let has = |option: &str| args.iter().any(|arg| arg == option);
    let is_test = has("--test") || !has("--bench");
    let rounds = if is_test || has("--quick") { 1 } else { ROUNDS };
    let names = args.iter().filter(|arg| !arg.starts_with('-'));
    let (files, filters): (Vec<&String>, Vec<&String>) =
        names.partition(|arg| Path::new(arg).is_file());
    let mut programs: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
    let has_sizes = files.is_empty();
    if has_sizes {
        programs = our_programs();
        programs.retain(|path| {
            let name = path.to_string_lossy();
            filters.is_empty() || filters.iter().any(|filter| name.contains(*filter))
        });
    }
    let targets = if is_test || !has_sizes { &TARGETS_MS[..1] } else { &TARGETS_MS };
    if is_test {
        programs.truncate(1);
    }
    let headers =
        ["program", "size", "interp ms", "jit ms", "lazy ms", "auto ms", "of best", "CPU"];
    let mut table = table(1, headers);
    // The ratios of time and CPU time by wanted time.
    let mut ratios: BTreeMap<u64, Vec<[f64; 2]>> = BTreeMap::new();
    for program in &programs {
        for &target in targets {
            let size = has_sizes.then(|| size(program, Duration::from_millis(target)));
            let Some(times) = measure(program, size, rounds) else {
                eprintln!("{} is left out at size {size:?}: it fails", program.display());
                continue;
            };
            let [auto, others @ ..] = times;
            let best = others.into_iter().min_by_key(|time| time.wall).expect("there are some");
            let ratio = |time: Duration, best: Duration| time.as_secs_f64() / best.as_secs_f64();
            let ratio = [ratio(auto.wall, best.wall), ratio(auto.cpu, best.cpu)];
            ratios.entry(target).or_default().push(ratio);
            let name = program.file_name().expect("it is a file").to_string_lossy().into_owned();
            let ms = |time: Time| format!("{:.1}", time.wall.as_secs_f64() * 1e3);
            let [interp, jit, lazy] = others.map(ms);
            let size = size.map_or(String::new(), |size| size.to_string());
            let mut row = vec![name, size, interp, jit, lazy, ms(auto)];
            row.extend(ratio.map(|ratio| format!("{ratio:.2}")));
            table.add_row(row);
        }
    }
    if !is_test {
        println!("{table}");
        for (target, ratios) in &ratios {
            let mean = |k: usize| {
                let logs: f64 = ratios.iter().map(|ratio| ratio[k].ln()).sum();
                (logs / ratios.len() as f64).exp()
            };
            let most = ratios.iter().map(|ratio| ratio[0]).fold(0.0, f64::max);
            println!(
                "{target} ms: {:.3} of the best, at most {most:.2}; CPU time {:.2}",
                mean(0),
                mean(1)
            );
        }
    }
    if is_test && ratios.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Programs that take a size.
fn our_programs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs");
    let mut programs = Vec::new();
    for (folder, ending) in [(folder.clone(), ".bc"), (folder.join("wasm"), ".O2.wasm")] {
        let entries = std::fs::read_dir(folder).expect("the folder is there");
        let paths = entries.map(|entry| entry.expect("the folder can be listed").path());
        programs.extend(paths.filter(|path| path.to_string_lossy().ends_with(ending)));
    }
    programs.sort();
    programs
}

/// The times of a process.
#[derive(Copy, Clone)]
struct Time {
    wall: Duration,
    cpu: Duration,
}

/// Medians for all ways, unless the program fails.
fn measure(program: &Path, size: Option<u32>, rounds: usize) -> Option<[Time; 4]> {
    let mut times = [(); 4].map(|()| Vec::with_capacity(rounds));
    for _ in 0..rounds {
        for ((_, options), times) in WAYS.iter().zip(&mut times) {
            times.push(run(program, size, options)?);
        }
    }
    let median = |mut all: Vec<Duration>| {
        all.sort_unstable();
        all[all.len() / 2]
    };
    Some(times.map(|times| Time {
        wall: median(times.iter().map(|time| time.wall).collect()),
        cpu: median(times.iter().map(|time| time.cpu).collect()),
    }))
}

/// Runs a program once. The CPU time is what the process says shortly before its end.
fn run(program: &Path, size: Option<u32>, options: &[&str]) -> Option<Time> {
    let mut command = command(program, size, options);
    let start = Instant::now();
    let Output { status, stderr, .. } = command.output().expect("`vmrun` can be started");
    let wall = start.elapsed();
    let stderr = String::from_utf8_lossy(&stderr);
    let cpu = stderr.lines().find_map(|line| line.trim().strip_prefix("CPU")?.strip_suffix(" ms"));
    let cpu = cpu?.trim().parse::<f64>().ok()?;
    status.success().then(|| Time { wall, cpu: Duration::from_secs_f64(cpu / 1e3) })
}

fn command(program: &Path, size: Option<u32>, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vmrun"));
    let program = std::path::absolute(program).expect("the path has a file name");
    command.arg(&program).args(options).arg("--time");
    match size {
        Some(size) => _ = command.args(["--", &size.to_string()]),
        None => {
            command.current_dir(program.parent().expect("it is a file"));
            command.args(["--unknown-imports", "zero", "--dir", ".::.", "--"]);
        }
    }
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// The size at which the interpreter takes about as long as wanted.
fn size(program: &Path, wanted: Duration) -> u32 {
    let (mut low, mut high) = (1, None);
    let mut size = 1_u32;
    for _ in 0..40 {
        match interpreted(program, size, 2 * wanted + Duration::from_millis(20)) {
            None => high = Some(size),
            Some(time) if time < wanted.mul_f64(0.8) => low = size,
            Some(time) if time < wanted.mul_f64(1.3) => return size,
            Some(_) => high = Some(size),
        }
        size = match high {
            None if low < 1 << 30 => 2 * low + 1,
            Some(high) if high > low + 1 => {
                // Between them, by their logarithms while these are far apart.
                let middle = (f64::from(low) * f64::from(high)).sqrt() as u32;
                middle.clamp(low + 1, high - 1)
            }
            _ => break,
        };
    }
    low
}

/// The time of the interpreter, unless it is above a limit, or the program fails.
fn interpreted(program: &Path, size: u32, limit: Duration) -> Option<Duration> {
    let start = Instant::now();
    let mut child =
        command(program, Some(size), &["--interp"]).spawn().expect("`vmrun` can be started");
    loop {
        if let Some(status) = child.try_wait().expect("it is a child") {
            return status.success().then(|| start.elapsed());
        }
        if start.elapsed() > limit {
            _ = child.kill();
            _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}
