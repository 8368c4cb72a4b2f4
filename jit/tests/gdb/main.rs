//! GDB stops in guest functions by name and shows them in backtraces.
//!
//! Needs GDB, and that it may trace programs; otherwise the test is reported as ignored, with the reason.
//! The program that it debugs is this one.

use std::process::{Command, ExitCode, Output};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use slotvm::{Config, Engine, Linker, Module, Store, Tier};

/// Set in the program that is debugged.
const GUEST: &str = "SLOTVM_TEST_GDB";

const SOURCE: &str = r#"
    import "env" "report" func report(i32)
    export "outer_guest" func outer_guest
    func outer_guest(n: i32) {
        local.get n  call inner_guest  call report  return
    }
    func inner_guest(n: i32) -> i32 {
        local.get n  i32.eqz  br_if done
        local.get n  i32.const 1  i32.sub  call inner_guest  return
      done:
        i32.const 5  return
    }"#;

fn main() -> ExitCode {
    if std::env::var_os(GUEST).is_some() {
        guest_program();
        return ExitCode::SUCCESS;
    }
    let trial =
        Trial::ignorable_test(
            "gdb_stops_in_guest_functions_and_names_them",
            || match gdb_is_there() {
                Err(reason) => Ok(Completion::ignored_with(reason)),
                Ok(()) => check().map(|()| Completion::Completed).map_err(Failed::from),
            },
        );
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit_code()
}

/// The debugged program.
#[inline(never)]
fn guest_program() {
    let engine = Engine::new(
        Config::new().tier(Tier::BEST).debug_info(true).passes("-inline".parse().unwrap()),
    )
    .unwrap();
    let module = Module::from_text(&engine, SOURCE).unwrap();
    let mut linker = Linker::new(&engine);
    linker.func_wrap("env", "report", |n: i32| println!("the guest says {n}")).unwrap();
    let mut store = Store::new(&engine, ());
    let instance = linker.instantiate(&mut store, &module).unwrap();
    let f = instance.get_typed_func::<i32, ()>(&store, "outer_guest").unwrap();
    f.call(&mut store, 1).unwrap();
}

/// Runs commands in GDB, one after the other, for a program.
fn gdb(commands: &[&str], program: &[&std::ffi::OsStr]) -> std::io::Result<Output> {
    let mut gdb = Command::new("gdb");
    // Without the user's settings, and without what stops for an answer.
    gdb.args(["-nx", "-batch", "-iex", "set debuginfod enabled off"]);
    // Some versions fail on the arguments of Rust's functions.
    gdb.args(["-ex", "set print frame-arguments none", "-ex", "set breakpoint pending on"]);
    for command in commands {
        gdb.args(["-ex", command]);
    }
    gdb.arg("--args").args(program).env(GUEST, "1").output()
}

fn gdb_is_there() -> Result<(), String> {
    let machine = Command::new("uname").arg("-m").output().map_err(|error| error.to_string())?;
    let machine = String::from_utf8_lossy(&machine.stdout).trim().to_owned();
    if machine != std::env::consts::ARCH {
        return Err(format!("this program is emulated on {machine}"));
    }
    let output = gdb(&["run"], &["true".as_ref()]);
    let output = output.map_err(|error| format!("cannot run gdb: {error}"))?;
    match String::from_utf8_lossy(&output.stdout).contains("exited normally") {
        true => Ok(()),
        false => {
            Err(format!("gdb cannot run programs: {}", String::from_utf8_lossy(&output.stderr)))
        }
    }
}

fn check() -> Result<(), String> {
    let commands =
        ["break inner_guest", "run", "continue", "backtrace", "delete", "finish", "continue"];
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = gdb(&commands, &[program.as_ref()]).map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let expect = |is_right: bool, what: &str| match is_right {
        true => Ok(()),
        false => Err(format!("{what}: {text}\n{}", String::from_utf8_lossy(&output.stderr))),
    };
    let frames: Vec<&str> = text.lines().filter(|line| line.starts_with('#')).collect();
    let place = |name: &str| frames.iter().position(|frame| frame.contains(name));
    expect(place("inner_guest") == Some(0), "the innermost frame")?;
    expect(frames[1].contains("inner_guest"), "its caller, the same function")?;
    expect(frames[2].contains("outer_guest"), "the exported function")?;
    expect(frames[3].contains("trampoline from the host (i32) -> ()"), "the entry")?;
    let program = place("guest_program");
    expect(program.is_some_and(|at| at > 3), "the host's function")?;
    expect(place(" main (").is_some_and(|at| Some(at) > program), "the whole stack")?;
    expect(text.contains("the guest says 5"), "the end")?;
    expect(text.contains("exited normally"), "no crash")
}
