//! `vmrun bench`: its figures, its files, its comparison with an earlier report, and Ctrl-C.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;

use serde_json::Value;
use slotvm::SlotMode;

use crate::binary::{Folder, command, root, vmrun};
use crate::tools::text_of;
use crate::{kernels, programs};

/// The signal of Ctrl-C.
const SIGINT: i32 = 2;

#[test]
fn the_benchmark_takes_webassembly() {
    let kernels = kernels::all();
    for levels in kernels.chunk_by(|a, b| a.beside("c") == b.beside("c")) {
        let size = levels[0].size("default-size").expect("its source says it").to_string();
        let mut args = vec!["bench", "--rounds", "1", "--size", &size];
        args.extend(levels.iter().map(|kernel| text_of(&kernel.path)));
        let ran = vmrun(&args);
        assert_eq!(ran.code, 0, "{ran:?}");
        for kernel in levels {
            let row = format!("| {} ", kernel.name);
            assert_eq!(ran.stdout.matches(&row).count(), 4, "{} is in each table", kernel.name);
        }
    }
}

#[test]
fn the_benchmark_gives_programs_of_wasi_what_their_sources_say() {
    // Their exit codes are right only if they get their input, directories, arguments and variables.
    let names = ["json", "diff", "host"];
    let path = |name: &str| format!("programs/wasm/wasi/{name}.O2.wasm");
    let mut args = vec!["bench".to_owned(), "--rounds".to_owned(), "1".to_owned()];
    args.extend(names.map(path));
    let ran = vmrun(&args);
    assert_eq!(ran.code, 0, "{ran:?}");
    for name in names {
        let row = format!("| {name}.O2 ");
        assert_eq!(ran.stdout.matches(&row).count(), 4, "{name} has a row in each table");
    }
    let work = root().join("programs/wasm/wasi/work");
    assert_eq!(fs::read_dir(work).expect("it is there").count(), 2, "it worked with a copy");
}

#[test]
fn the_benchmark_says_what_goes_wrong_with_programs() {
    let folder = Folder::new("bench_failures");
    let exits = r#"(module
        (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
        (memory (export "memory") 1)
        (func (export "_start") (call $exit (i32.const 3))))"#;
    let cases = [
        ("exits", exits, 1, "error: exits: expected exit code 0, found 3"),
        ("nothing", "(module)", 2, "error: no function to measure; expected an export `main`"),
    ];
    for (name, text, code, message) in cases {
        let module = wat::parse_str(text).expect("the text is right");
        let path = folder.write(&format!("{name}.wasm"), module);
        let ran = vmrun(&["bench", text_of(&path), "--rounds", "1"]);
        assert_eq!(ran.code, code, "{ran:?}");
        assert!(ran.stderr.starts_with(message), "{ran:?}");
    }
    // With a source that states the exit code, the program succeeds, and there is nothing to measure.
    folder.write("exits.c", "// Ends.\n// exit: 3\n");
    let ran = vmrun(&["bench", text_of(&folder.path("exits.wasm")), "--rounds", "1"]);
    let error = ran.error(1);
    assert!(error.contains("too short to measure: exits;"), "{error}");
}

#[test]
fn the_benchmark_reports_every_program_in_every_mode() {
    let folder = Folder::new("bench");
    let (json, svg) = (folder.path("report.json"), folder.path("report.svg"));
    let args =
        ["bench", "programs", "--rounds", "1", "--json", text_of(&json), "--svg", text_of(&svg)];
    let ran = vmrun(&args);
    assert_eq!(ran.code, 0, "{ran:?}");
    let table = ran.stdout;
    assert!(table.starts_with(&format!("Cranelift {}", slotvm::CRANELIFT_VERSION)), "{table}");
    let all = programs::all();
    for program in &all {
        assert!(table.contains(&format!("| {} ", program.name)), "{} is left out", program.name);
    }
    for mode in SlotMode::ALL {
        assert!(table.contains(mode.description()), "{mode} is not explained");
    }
    for row in ["geometric mean", "sum"] {
        assert!(table.contains(&format!("| {row} ")), "there is no {row}");
    }

    let report = fs::read_to_string(&json).expect("it is written");
    let report: Value = serde_json::from_str(&report).expect("it is JSON");
    let reported = report["programs"].as_array().expect("there are programs");
    let names: Vec<_> = reported.iter().map(|p| p["name"].as_str().expect("a name")).collect();
    assert_eq!(names, all.iter().map(|program| &program.name).collect::<Vec<_>>());
    for program in reported {
        let modes = program["modes"].as_array().expect("there are modes");
        assert_eq!(modes.len(), SlotMode::ALL.len());
        for mode in modes {
            // A run of microseconds may take no time at all on a coarse clock.
            assert!(mode["run_ns"].as_u64().is_some_and(|ns| ns < u64::MAX), "{program}");
            assert!(mode["code_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{program}");
            let stages = mode["stages_ns"].as_object().expect("there are stages");
            assert!(stages["load"].as_u64().is_some_and(|ns| ns > 0), "{program}");
            assert_eq!(mode["with_less_work"], Value::Array(vec![]), "{program}");
        }
        assert!(program["ops"].as_u64().is_some_and(|ops| ops > 0), "{program}");
    }

    let chart = fs::read_to_string(&svg).expect("it is written");
    let chart = roxmltree::Document::parse(&chart).expect("it is XML");
    assert_eq!(chart.root_element().tag_name().name(), "svg");
    let texts: BTreeSet<&str> =
        chart.descendants().filter_map(|node| node.text()).map(str::trim).collect();
    for program in &all {
        assert!(texts.contains(program.name.as_str()), "{} is not drawn", program.name);
    }
}

const FIB: &str = "programs/fib_rec.bc";

/// Measures a small program, and returns its report as JSON.
fn measured(folder: &Folder, rounds: &str) -> (std::path::PathBuf, Value) {
    let path = folder.path("old.json");
    let args = ["bench", FIB, "--size", "24", "--rounds", rounds, "--json", text_of(&path)];
    vmrun(&args).output();
    let json = fs::read_to_string(&path).expect("it is written");
    (path, serde_json::from_str(&json).expect("it is JSON"))
}

#[test]
fn the_schema_has_its_fields() {
    let (_, report) = measured(&Folder::new("bench_schema"), "3");
    assert_eq!((&report["schema"], &report["version"]), (&"slotvm-bench".into(), &1.into()));
    assert_eq!((&report["rounds"], &report["partial"]), (&3.into(), &false.into()));
    let program = &report["programs"][0];
    assert_eq!((&program["name"], &program["size"]), (&"fib_rec".into(), &24.into()));
    for mode in program["modes"].as_array().expect("there are modes") {
        for rounds in ["rounds_ns", "compile_rounds_ns"] {
            assert_eq!(mode[rounds].as_array().map(Vec::len), Some(3), "{mode}");
        }
        let [low, high] = [0, 1].map(|end| mode["run_interval_ns"][end].as_u64());
        let run = mode["run_ns"].as_u64();
        assert!(low.is_some() && low <= run && run <= high, "{mode}");
        assert!(mode["ratio"]["value"].is_f64() && mode["ratio"]["interval"][1].is_f64(), "{mode}");
        let accesses = mode["slot_reads"].as_u64().zip(mode["slot_writes"].as_u64());
        let (reads, writes) = accesses.expect("they are counted");
        let is_in_memory = mode["mode"].as_str().is_some_and(|mode| mode.starts_with("memory"));
        assert_eq!((reads > 0, writes > 0), (is_in_memory, is_in_memory), "{mode}");
        let bytes = |field: &str| mode[field].as_u64().expect("a number");
        assert_eq!(bytes("frame_bytes"), bytes("slot_bytes") + bytes("spill_bytes"));
    }
    assert!(program["losses"].is_array() && program.get("pays_after_runs").is_some());
    assert_eq!(report["diff"], Value::Null);
}

#[test]
fn pages_and_markdown_are_written() {
    let folder = Folder::new("bench_page");
    let (html, markdown) = (folder.path("r.html"), folder.path("r.md"));
    let files = ["--html", text_of(&html), "--markdown", text_of(&markdown)];
    vmrun(&[&["bench", FIB, "--size", "24", "--rounds", "2"][..], &files].concat()).output();
    let html = fs::read_to_string(html).expect("it is written");
    assert!(html.starts_with("<!doctype html>") && html.contains("prefers-color-scheme: dark"));
    assert!(html.contains("<svg role=\"img\"") && html.contains("fib_rec"));
    let markdown = fs::read_to_string(markdown).expect("it is written");
    assert!(markdown.contains("| fib_rec "), "{markdown}");
}

#[test]
fn slower_code_is_found_by_comparison() {
    let folder = Folder::new("bench_diff");
    let (path, original) = measured(&folder, "8");
    let compare = |args: &[&str]| {
        let bench = ["bench", FIB, "--size", "24", "--rounds", "8", "--diff", text_of(&path)];
        vmrun(&[&bench, args].concat())
    };
    // The earlier report says that everything took a thousandth, or a thousand times as long.
    let scale = |factor: f64| {
        let mut old = original.clone();
        for mode in old["programs"][0]["modes"].as_array_mut().expect("there are modes") {
            for rounds in ["rounds_ns", "compile_rounds_ns"] {
                for ns in mode[rounds].as_array_mut().expect("there are rounds") {
                    *ns = ((ns.as_f64().expect("a number") * factor) as u64).into();
                }
            }
        }
        fs::write(&path, old.to_string()).expect("it is written");
    };
    scale(1e-3);
    let json = folder.path("new.json");
    let ran = compare(&["--json", text_of(&json)]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stdout.contains("slower: fib_rec ssa run: "), "{ran:?}");
    let new: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).expect("it is JSON");
    assert_eq!(new["diff"]["n_compared"], 10, "{}", new["diff"]);
    assert_eq!(new["diff"]["slower"][0]["program"], "fib_rec", "{}", new["diff"]);
    scale(1e3);
    let ran = compare(&[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("faster: fib_rec ssa compile: "), "{ran:?}");
}

#[test]
fn a_file_that_is_no_report_is_refused_before_anything_is_measured() {
    let folder = Folder::new("bench_bad_diff");
    let path = folder.write("old.json", "{}");
    let bench = ["bench", FIB, "--diff", text_of(&path)];
    let error = vmrun(&bench).error(1);
    let expected = format!(
        "error: {}: expected a report of `vmrun bench --json`: missing field `schema`",
        text_of(&path)
    );
    assert!(error.starts_with(&expected), "{error}");
    let error = vmrun(&[&bench[..], &["--rounds", "1"]].concat()).error(2);
    assert_eq!(error, "error: a comparison needs --rounds 2 or more\n");
    let error = vmrun(&["bench", FIB, "--diff", "/nowhere/old.json"]).error(1);
    assert!(error.contains("/nowhere/old.json: "), "{error}");
}

/// Ctrl-C ends the measurement after the mode that is being measured, and the files are written.
#[test]
fn ctrl_c_leaves_a_partial_report() {
    // On a busy machine, the start or the first round may take longer.
    let reports = [1, 4, 16, 64].into_iter().filter_map(interrupted_after);
    let report = reports.into_iter().find(|report| report["programs"] != Value::Array(vec![]));
    let report = report.expect("a round was completed");
    let modes = report["programs"][0]["modes"].as_array().expect("there are modes");
    let rounds = |mode: &Value| mode["rounds_ns"].as_array().map(Vec::len);
    assert!(rounds(&modes[0]) > Some(0));
    assert!(modes.iter().all(|mode| rounds(mode) == rounds(&modes[0])), "they are paired");
}

/// The report of a measurement that is interrupted after so many seconds, unless it has not even begun by then.
fn interrupted_after(seconds: u64) -> Option<Value> {
    let folder = Folder::new("bench_interrupted");
    let path = folder.path("r.json");
    let rounds = ["--size", "24", "--rounds", "1000000"];
    let args = [&["bench", FIB, "--json", text_of(&path)][..], &rounds].concat();
    let child = command(&args).spawn().expect("the binary starts");
    std::thread::sleep(std::time::Duration::from_secs(seconds));
    let pid = child.id().to_string();
    let kill = std::process::Command::new("kill").args(["-INT", &pid]).status();
    assert!(kill.expect("there is a kill").success());
    let output = child.wait_with_output().expect("it ends");
    if output.status.signal() == Some(SIGINT) {
        return None;
    }
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("Interrupted: "));
    let report = fs::read_to_string(&path).expect("it is written");
    let report: Value = serde_json::from_str(&report).expect("it is JSON");
    assert_eq!(report["partial"], true);
    Some(report)
}

#[test]
fn what_is_too_short_to_measure_is_an_error() {
    let folder = Folder::new("bench_too_short");
    let source = |rounds: &str| {
        format!(
            "export \"main\" func main
             func main() {{
               local n: i32
               i32.const {rounds} local.set n
             again:
               local.get n i32.const 1 i32.sub local.tee n
               br_if again
               return
             }}"
        )
    };
    let short = folder.write("short.vasm", source("1"));
    let long = folder.write("long.vasm", source("1000000"));
    let alone = vmrun(&["bench", text_of(&short), "--rounds", "1"]).error(1);
    let message = "too short to measure: short; run them with a larger --size\n";
    assert!(alone.ends_with(message), "{alone}");
    let both = vmrun(&["bench", text_of(&short), text_of(&long), "--rounds", "1"]);
    assert!(both.code == 1 && both.stderr.ends_with(message), "{both:?}");
    assert!(both.stdout.contains("| long ") && !both.stdout.contains("short"), "{both:?}");
}
