//! The programs of `programs/wend` in slotvm, beside the same slot form compiled by LLVM: a report.
//!
//! LLVM gets what `wend --emit llvm` prints, with a runtime in LLVM IR (`runtime.ll`) whose functions are inlined
//! always. It compiles that once without optimisation (`llc -O0`) and once with it (`opt -O2`, `llc -O2`). Times are
//! CPU time of a run, without compiling, the least of several rounds; all must print the same. A round is as many runs
//! as make it long beside a look at the clock. A filter selects programs by name. Needs LLVM 19 and a C compiler;
//! without them, the columns are empty.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use slotvm::{Config, Engine, SlotMode, Tier};
use slotvm_benches::Args;
use slotvm_bytecode::verify;
use vmrun::bench::clock::thread_cpu_time;
use vmrun::table::table;

type Failure = Box<dyn std::error::Error>;

const RUNTIME: &str = include_str!("runtime.ll");
const DRIVER: &str = include_str!("driver.c");
/// The time in which a program is run again and again.
const TIME: Duration = Duration::from_millis(400);
const ROUNDS_MAX: u32 = 500;
/// A round takes at least this long. A look at the clock takes a third of a microsecond, as some programs do.
const ROUND: Duration = Duration::from_micros(100);

/// The runs of a program that are timed.
#[derive(Copy, Clone)]
struct Runs {
    n_rounds: u32,
    /// The number of runs in a round.
    in_round: u32,
}

fn main() -> Result<(), Failure> {
    let args = Args::from_env();
    let headers =
        ["program", "memory µs", "ssa µs", "llc -O0 µs", "opt -O2 µs", "-O0 / ssa", "-O2 / ssa"];
    let mut rows = table(1, headers);
    let mut logs = [Vec::new(), Vec::new()];
    for path in programs()? {
        let name = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
        if !args.selects(&name) {
            continue;
        }
        let source = std::fs::read_to_string(&path)?;
        let compiled = wend::compile(&source)?;
        let [memory, ssa] =
            [SlotMode::Memory, SlotMode::Ssa].map(|mode| ours(&compiled, mode, args.is_test));
        let ((expected, memory, _), (printed, ssa, runs)) = (memory?, ssa?);
        assert_eq!(printed, expected, "{name}");
        let mut cells = vec![name.clone(), micros(memory), micros(ssa)];
        let mut ratios = Vec::new();
        for (level, logs) in [Level::None, Level::Two].into_iter().zip(&mut logs) {
            let Some((printed, time)) = llvm(&compiled, level, runs)? else { break };
            assert_eq!(printed, expected, "{name} by LLVM");
            let ratio = time.as_secs_f64() / ssa.as_secs_f64();
            logs.push(ratio.ln());
            cells.push(micros(time));
            ratios.push(format!("{ratio:.2}"));
        }
        cells.resize(5, "-".to_owned());
        ratios.resize(2, "-".to_owned());
        rows.add_row(cells.into_iter().chain(ratios));
    }
    println!("{rows}");
    for (name, logs) in ["llc -O0", "opt -O2"].iter().zip(logs) {
        if !logs.is_empty() {
            let mean = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
            println!("time of {name} divided by that of ssa, geometric mean: {mean:.2}");
        }
    }
    Ok(())
}

fn programs() -> Result<Vec<PathBuf>, Failure> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs/wend");
    let paths: Result<Vec<PathBuf>, _> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths.map_err(|error: std::io::Error| error)?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "wend"));
    paths.sort();
    Ok(paths)
}

fn micros(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1e6)
}

/// Returns the output of a program in a slot mode, the least time of a run, and what was run.
fn ours(
    compiled: &wend::Compiled,
    slots: SlotMode,
    is_test: bool,
) -> Result<(Vec<u8>, Duration, Runs), Failure> {
    let engine = Engine::new(Config::new().tier(Tier::BEST).slots(slots))?;
    let mut program = wend::host::Instance::new(&engine, compiled, Vec::new())?;
    // The first run makes the ways between host and guest, too.
    program.run()?;
    let printed = std::mem::take(program.out_mut());
    let mut round = |in_round: u32| -> Result<Duration, Failure> {
        let start = thread_cpu_time();
        for _ in 0..in_round {
            program.out_mut().clear();
            program.run()?;
        }
        Ok(thread_cpu_time() - start)
    };
    let mut runs = Runs { n_rounds: 0, in_round: 1 };
    while !is_test && round(runs.in_round)? < ROUND {
        runs.in_round *= 2;
    }
    let (mut least, mut total) = (Duration::MAX, Duration::ZERO);
    while runs.n_rounds == 0 || !is_test && total < TIME && runs.n_rounds < ROUNDS_MAX {
        let time = round(runs.in_round)?;
        (least, total, runs.n_rounds) = (least.min(time), total + time, runs.n_rounds + 1);
    }
    assert_eq!(*program.out_mut(), printed, "another run prints the same");
    Ok((printed, least / runs.in_round, runs))
}

/// The optimisation of LLVM.
#[derive(Copy, Clone)]
enum Level {
    None,
    Two,
}

/// The same by LLVM, if there are its tools.
fn llvm(
    compiled: &wend::Compiled,
    level: Level,
    runs: Runs,
) -> Result<Option<(Vec<u8>, Duration)>, Failure> {
    let tools = ["opt-19", "llc-19", "cc"];
    let is_there = |tool: &&str| Command::new(tool).arg("--version").output().is_ok();
    if !tools.iter().all(is_there) {
        return Ok(None);
    }
    let folder = tempfile::tempdir()?;
    let file = |name: &str| folder.path().join(name);
    std::fs::write(file("program.ll"), llvm_text(compiled)?)?;
    std::fs::write(file("driver.c"), DRIVER)?;
    let (passes, effort) = match level {
        Level::None => ("-passes=always-inline", "-O0"),
        Level::Two => ("-passes=default<O2>", "-O2"),
    };
    let [opt, llc, cc] = tools.map(Command::new);
    let succeed = |mut command: Command| -> Result<std::process::Output, Failure> {
        let output = command.current_dir(folder.path()).output()?;
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            Ok(output)
        } else {
            Err(format!("{command:?}: {message}").into())
        }
    };
    let with = |mut command: Command, args: &[&str]| {
        command.args(args);
        command
    };
    succeed(with(opt, &[passes, "-S", "program.ll", "-o", "inlined.ll"]))?;
    let options = ["-relocation-model=pic", "-filetype=obj", "inlined.ll", "-o", "program.o"];
    succeed(with(with(llc, &[effort]), &options))?;
    succeed(with(cc, &["-O2", "driver.c", "program.o", "-o", "program"]))?;
    let counts = [runs.n_rounds, runs.in_round].map(|count| count.to_string());
    let output = succeed(with(Command::new(file("program")), &counts.each_ref().map(|c| &**c)))?;
    let nanos = String::from_utf8(output.stderr)?.trim().parse()?;
    Ok(Some((output.stdout, Duration::from_nanos(nanos) / runs.in_round)))
}

/// The LLVM form of a program, with the runtime.
fn llvm_text(compiled: &wend::Compiled) -> Result<String, Failure> {
    let module = verify(compiled.module.clone())?;
    let frames = compiled.module.frame_stack.expect("there are frames");
    let texts = &compiled.module.datas[0];
    let quoted: String = texts.bytes.iter().map(|byte| format!("\\{byte:02x}")).collect();
    let pages = compiled.module.memories[0].min;
    let runtime = RUNTIME
        .replace("MEMORY_BYTES", &(pages << 16).to_string())
        .replace("TEXTS_BYTES", &texts.bytes.len().to_string())
        .replace("TEXTS_START", &wend::emit::TEXTS_START.to_string())
        .replace("FRAMES", &frames.base.to_string())
        .replace("RECORDS", &(frames.base + frames.bytes).to_string())
        .replace("TEXTS", &quoted);
    let program = wend::show_llvm(&module)?;
    let own: Vec<&str> = program.lines().filter(|line| !line.starts_with("declare ")).collect();
    Ok(format!("{}\n{runtime}", own.join("\n")))
}
