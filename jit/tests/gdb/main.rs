//! GDB stops in guest functions by name and by source line, and shows them, and their locals, in backtraces.
//!
//! Needs GDB, and that it may trace programs; otherwise the test is reported as ignored, with the reason.
//! The program that it debugs is this one.

use std::process::{Command, ExitCode, Output};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use slotvm::{Config, Engine, Linker, Module, SlotMode, Store, Tier};

/// Set in the program that is debugged.
const GUEST: &str = "SLOTVM_TEST_GDB";

const SOURCE: &str = r#"
    name file 1 "guest.lang"
    import "env" "report" func report(i32)
    export "outer_guest" func outer_guest
    func outer_guest(n: i32) {
        .line 11, 1
        local.get n  call inner_guest  call report
        .line 12, 1
        return
    }
    func inner_guest(n: i32) -> i32 {
        .line 21, 1
        local.get n  i32.eqz  br_if done
        .line 22, 1
        local.get n  i32.const 1  i32.sub  call inner_guest  return
      done:
        .line 24, 1
        i32.const 5  return
    }
    export "sum" func sum
    func sum(n: i32, scale: f64) -> i64 {
        local i: i32, total: i64, half: f64
        .line 31, 1
        local.get scale  f64.const 0.5  f64.mul  local.set half
        i64.const 7000000000  local.set total
      loop:
        .line 33, 1
        local.get total  local.get i  i64.extend_i32_s  i64.add  local.set total
        .line 34, 1
        local.get i  i32.const 1  i32.add  local.tee i
        call report
        .line 35, 1
        local.get i  local.get n  i32.lt_s  br_if loop
        .line 36, 1
        local.get total  local.get half  i64.trunc_f64_s  call added  return
    }
    func added(a: i64, b: i64) -> i64 {
        .line 41, 1
        local.get a  local.get b  i64.add  return
    }"#;

fn main() -> ExitCode {
    if let Ok(mode) = std::env::var(GUEST) {
        guest_program(&mode);
        return ExitCode::SUCCESS;
    }
    let trial = |name: &str, check: fn() -> Result<(), String>| {
        Trial::ignorable_test(name, move || match gdb_is_there() {
            Err(reason) => Ok(Completion::ignored_with(reason)),
            Ok(()) => check().map(|()| Completion::Completed).map_err(Failed::from),
        })
    };
    let trials = vec![
        trial("gdb_stops_in_guest_functions_and_names_them", stops_and_names),
        trial("gdb_shows_locals_of_optimised_code", || shows_locals("ssa")),
        trial("gdb_shows_locals_that_are_kept_in_memory", || shows_locals("memory")),
        trial("gdb_shows_calls_that_were_inlined", shows_inlined_calls),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// The debugged program, with code of one kind.
#[inline(never)]
fn guest_program(mode: &str) {
    let mut config = Config::new();
    config.tier(Tier::BEST).debug_info(true);
    if mode != "inlined" {
        config.passes("-inline".parse().unwrap());
    }
    if mode == "memory" {
        config.slots(SlotMode::Memory);
    }
    let engine = Engine::new(&config).unwrap();
    let module = Module::from_text(&engine, SOURCE).unwrap();
    let mut linker = Linker::new(&engine);
    linker.func_wrap("env", "report", |n: i32| println!("the guest says {n}")).unwrap();
    let mut store = Store::new(&engine, ());
    let instance = linker.instantiate(&mut store, &module).unwrap();
    let f = instance.get_typed_func::<i32, ()>(&store, "outer_guest").unwrap();
    f.call(&mut store, 1).unwrap();
    let f = instance.get_typed_func::<(i32, f64), i64>(&store, "sum").unwrap();
    println!("the sum is {}", f.call(&mut store, (3, 5.0)).unwrap());
}

/// Runs commands in GDB, one after the other, for a program and its mode.
fn gdb(mode: &str, commands: &[&str], program: &[&std::ffi::OsStr]) -> std::io::Result<Output> {
    let mut gdb = Command::new("gdb");
    // Without the user's settings, and without what stops for an answer.
    gdb.args(["-nx", "-batch", "-iex", "set debuginfod enabled off"]);
    // Some versions fail on the arguments of Rust's functions.
    gdb.args(["-ex", "set print frame-arguments none", "-ex", "set breakpoint pending on"]);
    for command in commands {
        gdb.args(["-ex", command]);
    }
    gdb.arg("--args").args(program).env(GUEST, mode).output()
}

fn gdb_is_there() -> Result<(), String> {
    let machine = Command::new("uname").arg("-m").output().map_err(|error| error.to_string())?;
    let machine = String::from_utf8_lossy(&machine.stdout).trim().to_owned();
    if machine != std::env::consts::ARCH {
        return Err(format!("this program is emulated on {machine}"));
    }
    let output = gdb("", &["run"], &["true".as_ref()]);
    let output = output.map_err(|error| format!("cannot run gdb: {error}"))?;
    match String::from_utf8_lossy(&output.stdout).contains("exited normally") {
        true => Ok(()),
        false => {
            Err(format!("gdb cannot run programs: {}", String::from_utf8_lossy(&output.stderr)))
        }
    }
}

fn stops_and_names() -> Result<(), String> {
    let commands =
        ["break inner_guest", "run", "continue", "backtrace", "delete", "finish", "continue"];
    let session = Session::run("ssa", &commands)?;
    let frames = session.frames();
    let expect = |is_right, what| session.expect(is_right, what);
    let place = |name: &str| frames.iter().position(|frame| frame.contains(name));
    expect(place("inner_guest") == Some(0), "the innermost frame")?;
    expect(frames[0].ends_with("guest.lang:21"), "its line")?;
    expect(frames[1].contains("inner_guest"), "its caller, the same function")?;
    expect(frames[1].ends_with("guest.lang:22"), "the line of the call")?;
    expect(frames[2].contains("outer_guest"), "the exported function")?;
    expect(frames[2].ends_with("guest.lang:11"), "the line of the first call")?;
    expect(frames[3].contains("trampoline from the host (i32) -> ()"), "the entry")?;
    let program = place("guest_program");
    expect(program.is_some_and(|at| at > 3), "the host's function")?;
    expect(place(" main (").is_some_and(|at| Some(at) > program), "the whole stack")?;
    session.ends_with("the guest says 5")
}

/// Code of a mode shows the locals where it stops, in callers too.
fn shows_locals(mode: &str) -> Result<(), String> {
    let commands = [
        "break guest.lang:36",
        "break added",
        "run",
        "echo == at the line\\n",
        "info locals",
        "info args",
        "continue",
        "echo == in the callee\\n",
        "info args",
        "up",
        "echo == in its caller\\n",
        "info locals",
        "continue",
    ];
    let session = Session::run(mode, &commands)?;
    let expect = |is_right, what| session.expect(is_right, what);
    let parts: Vec<&str> = session.text.split("== ").collect();
    let [_, line, callee, caller] = parts[..] else { return expect(false, "three stops") };
    for (part, shown) in [
        (line, ["total = 7000000003", "half = 2.5"]),
        (callee, ["a = 7000000003", "b = 2"]),
        (caller, ["total = 7000000003", "half = 2.5"]),
    ] {
        for local in shown {
            expect(part.lines().any(|line| line == local), local)?;
        }
    }
    if mode == "memory" {
        expect(line.lines().any(|line| line == "i = 3"), "a local that is not needed any more")?;
        expect(line.contains("n = 3\nscale = 5\n"), "arguments")?;
    }
    session.ends_with("the sum is 7000000005")
}

fn shows_inlined_calls() -> Result<(), String> {
    let commands = ["break added", "run", "backtrace", "up", "info locals", "continue"];
    let session = Session::run("inlined", &commands)?;
    let frames = session.frames();
    let expect = |is_right, what| session.expect(is_right, what);
    expect(frames.len() > 3, "a backtrace")?;
    expect(frames[0].starts_with("#0  added ("), "the function that was inlined")?;
    expect(frames[0].ends_with("guest.lang:41"), "its line")?;
    expect(frames[1].starts_with("#1  sum ("), "the function around, in the same frame")?;
    expect(frames[1].ends_with("guest.lang:36"), "the line of the call")?;
    expect(frames[2].contains("trampoline from the host"), "its caller")?;
    let local = session.text.lines().any(|line| line == "total = 7000000003");
    expect(local, "a local of the function around")?;
    session.ends_with("the sum is 7000000005")
}

/// The output of GDB.
struct Session {
    text: String,
    errors: String,
}

impl Session {
    /// Runs commands for code of a mode.
    fn run(mode: &str, commands: &[&str]) -> Result<Session, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let output = gdb(mode, commands, &[program.as_ref()]).map_err(|error| error.to_string())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Session { text: text(&output.stdout), errors: text(&output.stderr) })
    }

    fn expect(&self, is_right: bool, what: &str) -> Result<(), String> {
        let Session { text, errors } = self;
        if is_right { Ok(()) } else { Err(format!("{what}: {text}\n{errors}")) }
    }

    /// The lines of backtraces.
    fn frames(&self) -> Vec<&str> {
        self.text.lines().filter(|line| line.starts_with('#')).collect()
    }

    /// All is as it should be after the program's end.
    fn ends_with(&self, line: &str) -> Result<(), String> {
        self.expect(self.text.contains(line), "the end")?;
        self.expect(self.text.contains("exited normally"), "no crash")
    }
}
