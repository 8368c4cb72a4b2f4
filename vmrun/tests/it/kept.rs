//! Programs whose native code is kept: `vmrun compile` and `vmrun --cache`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::binary::{Folder, Ran, command};
use crate::programs::check_all;

/// Runs the binary for a user whose caches are in a folder.
fn vmrun_of(caches: &Path, args: &[impl AsRef<OsStr>]) -> Ran {
    let output = command(args).env("XDG_CACHE_HOME", caches).output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("it writes UTF-8");
    Ran {
        code: output.status.code().expect("no signal ends it"),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

fn text_of(path: &Path) -> &str {
    path.to_str().expect("the path is UTF-8")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("it is there");
    let paths = entries.map(|entry| entry.expect("it can be listed").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "vmc")).collect()
}

#[test]
fn programs_do_the_same_with_code_that_was_kept() {
    check_all(|program| {
        let folder = Folder::new(&format!("kept_{}", program.name));
        let binary = program.path.with_extension("bc");
        let caches = folder.path("caches");
        let expected = fs::read_to_string(program.path.with_extension("expected"));
        let expected = expected.map_err(|error| error.to_string())?;
        let check = |way: &str, args: &[&str]| match vmrun_of(&caches, args) {
            Ran { code: 0, stdout, stderr } if stdout == expected && stderr.is_empty() => Ok(()),
            ran => Err(format!("{way}: {ran:?}")),
        };
        let compiled = folder.path("program.vmc");
        vmrun_of(&caches, &["compile", text_of(&binary), "-o", text_of(&compiled)]).output();
        for options in [&[][..], &["--jit"], &["--lazy"]] {
            check("compiled", &[&[text_of(&compiled)], options].concat())?;
        }
        for options in [&[][..], &["--jit"], &["--lazy"], &["--slots", "memory"]] {
            for source in [&binary, &program.path] {
                for _ in 0..2 {
                    let all = [&[text_of(source), "--cache"], options].concat();
                    check(&format!("cached {options:?}"), &all)?;
                }
            }
        }
        // At least one for each slot mode.
        match files(&caches.join("slotvm")).len() {
            n @ ..2 => Err(format!("{n} files")),
            _ => Ok(()),
        }
    });
}

const PROGRAM: &str = "programs/n_queens.bc";

#[test]
fn a_compiled_program_is_for_the_same_engine_and_user() {
    let folder = Folder::new("kept_compiled");
    let (compiled, caches) = (folder.path("n_queens.vmc"), folder.path("caches"));
    // Without `--output`, it is written beside the program.
    let program = folder.path("n_queens.bc");
    fs::copy(crate::binary::root().join(PROGRAM), &program).expect("it can be copied");
    vmrun_of(&caches, &["compile", text_of(&program)]).output();
    let run = |options: &[&str]| {
        vmrun_of(&caches, &[&[text_of(&compiled)], options, &["--", "6"]].concat())
    };
    let expected = vmrun_of(&caches, &[PROGRAM, "--", "6"]).output();
    assert_eq!(run(&[]).output(), expected);
    let refused = |options: &[&str], reason: &str| {
        let error = run(options).error(1);
        assert_eq!(error, format!("error: {}: {reason}\n", compiled.display()));
    };
    let other = "a precompiled module for another engine: its";
    refused(&["--fuel", "1000000"], &format!("{other} fuel is false, not true"));
    refused(&["--slots", "memory"], &format!("{other} opt_level is speed, not none"));
    refused(&["--interp"], "the engine makes no native code");

    // It can be compiled for other runs.
    let others = ["--fuel 1000000", "--timeout 1m", "--deterministic-stack 1000000"];
    for options in [&["--slots memory", "--passes -inline"], &others[..]].concat() {
        let words: Vec<&str> = options.split(' ').collect();
        let of_compile = if words[1].starts_with('1') { &words[..1] } else { &words[..] };
        let asked = [&["compile", PROGRAM, "-o", text_of(&compiled)], of_compile].concat();
        vmrun_of(&caches, &asked).output();
        assert_eq!(run(&words).output(), expected, "{options}");
        let error = run(&[]).error(1);
        assert!(error.contains(other), "{options}: {error}");
    }
    vmrun_of(&caches, &["compile", text_of(&program)]).output();

    let changed = "a precompiled module that was changed, or that has another key";
    let good = fs::read(&compiled).expect("it is there");
    let mut bad = good.clone();
    bad[100] ^= 1;
    fs::write(&compiled, &bad).expect("it can be written");
    refused(&[], changed);
    fs::write(&compiled, &good[..good.len() - 1]).expect("it can be written");
    refused(&[], "a precompiled module that is cut off");
    fs::write(&compiled, &good).expect("it can be written");
    let of_other = vmrun_of(&folder.path("others"), &[&compiled]).error(1);
    assert_eq!(of_other, format!("error: {}: {changed}\n", compiled.display()));

    let overwritten = vmrun_of(&caches, &["compile", PROGRAM, "-o", PROGRAM]).error(2);
    assert!(overwritten.contains("would be overwritten"), "{overwritten}");
    let broken = folder.write("broken.wasm", "\0asm\x01\0\0\0\x01");
    let error = vmrun_of(&caches, &["compile", text_of(&broken)]).error(1);
    assert!(error.starts_with(&format!("error: {}: ", broken.display())), "{error}");
    let again = vmrun_of(&caches, &["compile", text_of(&compiled), "-o", "none"]).error(1);
    assert!(again.contains("a precompiled module, which has to be"), "{again}");
    // Other commands take no compiled programs.
    let error = vmrun_of(&caches, &["dis", text_of(&compiled)]).error(1);
    assert!(error.contains("precompiled"), "{error}");
}

#[test]
fn caches_are_where_the_user_wants_them() {
    let folder = Folder::new("kept_caches");
    let caches = folder.path("caches");
    let run = |options: &[&str]| vmrun_of(&caches, &[&[PROGRAM], options, &["--", "6"]].concat());
    let expected = run(&["--jit"]).output();
    assert!(!caches.exists(), "without the option there is no cache");
    assert_eq!(run(&["--jit", "--cache"]).output(), expected);
    assert_eq!(files(&caches.join("slotvm")).len(), 1);
    let other = folder.path("other");
    let option = format!("--cache={}", other.display());
    assert_eq!(run(&["--jit", &option]).output(), expected);
    assert_eq!(files(&other).len(), 1);
    // The file that is there is used: nothing is compiled.
    let times = run(&["--jit", &option, "--time"]);
    assert_eq!(times.stdout, expected);
    assert!(times.stderr.contains("load") && !times.stderr.contains("asm"), "{}", times.stderr);
    let file = folder.write("file", "");
    let error = run(&[&format!("--cache={}", file.display())]).error(1);
    assert!(error.starts_with(&format!("error: cannot use {} as a cache: ", file.display())));
    assert!(run(&["--cache", "--interp"]).error(2).contains("cannot be used with"));
}
