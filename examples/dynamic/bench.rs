//! The programs of the dynamic language beside the same in Lua: whole processes, from the source to the last line.
//!
//! ```text
//! cargo bench -p slotvm-examples --bench dynamic -- --rounds 9
//! ```
//!
//! It runs `lua5.4` (PUC Lua) and `luajit`, without and with its compiler, in turns with the language's own program, and
//! compares what they print. Without `--bench`, which `cargo bench` adds, each runs once.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

const PROGRAMS: [&str; 8] =
    ["recursion", "loops", "arrays", "floats", "closures", "maps", "trees", "fields"];
const ENGINES: [&str; 4] = ["slotvm", "PUC Lua", "LuaJIT, interpreter", "LuaJIT"];
const ROUNDS: usize = 9;

fn main() -> ExitCode {
    match report() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn report() -> Result<(), String> {
    let args: Vec<String> = std::env::args().collect();
    let rounds = match args.iter().position(|arg| arg == "--rounds") {
        Some(at) => args
            .get(at + 1)
            .and_then(|n| n.parse().ok())
            .ok_or("expected a number after --rounds")?,
        None if args.iter().any(|arg| arg == "--bench") => ROUNDS,
        None => 1,
    };
    let names = ENGINES.map(|name| format!("{name}, ms")).join(" | ");
    println!("| program | {names} | of PUC Lua's |\n|---|---|---|---|---|---|");
    let mut products = [0.0; ENGINES.len()];
    for program in PROGRAMS {
        let medians = medians(program, rounds)?;
        let seconds = medians.map(|time| time.as_secs_f64());
        products
            .iter_mut()
            .zip(seconds)
            .for_each(|(product, time)| *product += (time / seconds[1]).ln());
        let cells = seconds.map(|time| format!("{:.0}", time * 1e3)).join(" | ");
        println!("| {program} | {cells} | {:.2} |", seconds[0] / seconds[1]);
    }
    let means = products.map(|product| format!("{:.2}", (product / PROGRAMS.len() as f64).exp()));
    println!("| geometric mean of the ratios to PUC Lua | {} | {} |", means.join(" | "), means[0]);
    Ok(())
}

/// The median time of each engine.
fn medians(program: &str, rounds: usize) -> Result<[Duration; ENGINES.len()], String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("dynamic/programs");
    let (source, lua) =
        (folder.join(program).with_extension("dyn"), folder.join(program).with_extension("lua"));
    let luajit = for_luajit(program, &lua)?;
    let command = |engine: usize| {
        let (name, args): (_, Vec<&Path>) = match engine {
            0 => (env!("CARGO_BIN_EXE_dynamic"), vec![&source]),
            1 => ("lua5.4", vec![&lua]),
            2 => ("luajit", vec![Path::new("-joff"), &luajit]),
            _ => ("luajit", vec![&luajit]),
        };
        let mut command = Command::new(name);
        command.args(args);
        command
    };
    let mut times = [const { Vec::new() }; ENGINES.len()];
    let mut printed = None;
    for _ in 0..rounds {
        for (engine, times) in times.iter_mut().enumerate() {
            let start = Instant::now();
            let output = command(engine)
                .output()
                .map_err(|error| format!("{}: {error}", ENGINES[engine]))?;
            times.push(start.elapsed());
            if !output.status.success() {
                let errors = String::from_utf8_lossy(&output.stderr);
                return Err(format!("{program} fails in {}: {errors}", ENGINES[engine]));
            }
            if printed.get_or_insert_with(|| output.stdout.clone()) != &output.stdout {
                return Err(format!("{program} prints something else in {}", ENGINES[engine]));
            }
        }
    }
    Ok(times.map(|mut times| {
        times.sort();
        times[times.len() / 2]
    }))
}

/// LuaJIT has no `//`. All its numbers are doubles, and the programs use it where the quotient is whole.
fn for_luajit(program: &str, lua: &Path) -> Result<PathBuf, String> {
    let error = |error| format!("{}: {error}", lua.display());
    let source = std::fs::read_to_string(lua).map_err(error)?;
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{program}.luajit.lua"));
    std::fs::write(&path, source.replace(" // ", " / ")).map_err(error)?;
    Ok(path)
}
