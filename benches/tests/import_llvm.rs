//! The import of LLVM IR beside `opt -passes=mem2reg` on C programs: the same variables are promoted, and
//! have the same phis.
//!
//! `cargo` fetches the sources, clang compiles them; where one of these or `opt` is missing the tests are
//! reported as ignored, with the reason. The main loop of Lua is always compared, SQLite with
//! `SLOTVM_FULL=1`.
//!
//! LLVM removes phis that bring one value only, so ours are folded in the same way. Where one of the
//! operands is undefined, as is a C variable without an initial value, LLVM may fold or not, depending
//! on what it knows of the other operands: both is right here.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use slotvm_benches::llvm_ir::{self, Imported};
use slotvm_benches::slot_graph::{Access, Written};
use slotvm_filetests::opt::{LlvmFunction, Opt, functions};
use slotvm_filetests::packages::{LUA_MAIN_LOOP, PackageFile, SQLITE_SOURCE};
use slotvm_ssa::construction::construct::{
    self, ConstructOptions, Scratch, SlotProgram, SsaForm, UNDEF, construct,
};

/// The oldest clang whose text is understood.
const CLANG_VERSION_MIN: u32 = 14;
/// Before any optimisation, with the names of variables, which LLVM gives to phis.
const CLANG_ARGS: &[&str] = &[
    "-O0",
    "-Xclang",
    "-disable-O0-optnone",
    "-fno-discard-value-names",
    "-w",
    "-S",
    "-emit-llvm",
];

fn main() -> ExitCode {
    let is_full = std::env::var("SLOTVM_FULL").as_deref() == Ok("1");
    let mut files = vec![LUA_MAIN_LOOP];
    files.extend(is_full.then_some(SQLITE_SOURCE));
    let trial = |file: PackageFile| {
        Trial::ignorable_test(file.path, move || {
            let (opt, module) = match prepare(file) {
                Ok(prepared) => prepared,
                Err(reason) => return Ok(Completion::ignored_with(reason)),
            };
            let text = std::fs::read_to_string(&module).map_err(|error| error.to_string())?;
            let promoted = opt.run_on_file("mem2reg", &module)?;
            let counts = check(&text, &promoted).map_err(Failed::from)?;
            println!("LLVM {}, {}: {counts}", opt.version, file.path);
            Ok(Completion::Completed)
        })
    };
    libtest_mimic::run(&Arguments::from_args(), files.into_iter().map(trial).collect()).exit_code()
}

/// LLVM, and the file of a module that clang has made of a source.
fn prepare(file: PackageFile) -> Result<(Opt, PathBuf), String> {
    let opt = Opt::find()?;
    let clang = clang(opt.version)?;
    let source = file.fetch()?;
    let module = source.with_extension("ll");
    let mut command = Command::new(clang);
    command.args(CLANG_ARGS).arg(&source).arg("-o").arg(&module).stdin(Stdio::null());
    let output = command.output().map_err(|error| format!("{clang}: {error}"))?;
    match output.status.success() {
        true => Ok((opt, module)),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// A clang whose text an `opt` of this version reads.
fn clang(version_max: u32) -> Result<&'static str, String> {
    let fits = |version: u32| (CLANG_VERSION_MIN..=version_max).contains(&version);
    let found = ["clang-19", "clang"].into_iter().find(|name| version(name).is_some_and(fits));
    found
        .ok_or_else(|| format!("cannot find clang of version {CLANG_VERSION_MIN} to {version_max}"))
}

/// The major version of a clang, if it is one.
fn version(program: &str) -> Option<u32> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (_, version) = text.split_once("clang version ")?;
    version.split('.').next()?.parse().ok()
}

/// Numbers of things compared.
#[derive(Default)]
struct Counts {
    n_functions: usize,
    n_slots: usize,
    /// Variables that LLVM promotes later than at first sight, and their phis.
    n_later_variables: usize,
    n_later_phis: usize,
    /// The phis that we place.
    n_phis: usize,
    /// Those of them that LLVM folds since all operands are one value, and those with an undefined operand
    /// that it folds and that it keeps although all others are one value.
    n_folded: usize,
    n_folded_with_undefined: usize,
    n_kept_with_undefined: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_folded = self.n_folded + self.n_folded_with_undefined;
        write!(
            f,
            "{} functions, {} slots ({} more that LLVM promotes later, with {} phis); {} phis, of which LLVM \
             folds {} with equal operands and {} with equal or undefined ones; the other {} are LLVM's, {} of \
             them with an undefined operand and else equal ones",
            self.n_functions,
            self.n_slots,
            self.n_later_variables,
            self.n_later_phis,
            self.n_phis,
            self.n_folded,
            self.n_folded_with_undefined,
            self.n_phis - n_folded,
            self.n_kept_with_undefined,
        )
    }
}

/// Compares all functions of a module with what LLVM has promoted.
fn check(module: &str, promoted: &str) -> Result<Counts, String> {
    let (before, after) = (functions(module)?, functions(promoted)?);
    let mut counts = Counts::default();
    let mut scratch = Scratch::default();
    let mut imported = llvm_ir::functions(module);
    for (before, after) in before.iter().zip(&after) {
        let function = imported.next().ok_or("too few functions are imported")?;
        let function = function.map_err(|error| error.to_string())?;
        check_function(&function, before, after, &mut scratch, &mut counts)
            .map_err(|error| format!("@{}: {error}", before.name))?;
    }
    let is_all = before.len() == after.len() && imported.next().is_none();
    is_all.then_some(counts).ok_or_else(|| "the numbers of functions differ".to_owned())
}

fn check_function(
    function: &Imported<'_>,
    before: &LlvmFunction<'_>,
    after: &LlvmFunction<'_>,
    scratch: &mut Scratch,
    counts: &mut Counts,
) -> Result<(), String> {
    let slot_numbers: HashMap<&str, u32> = function.slots.iter().copied().zip(0..).collect();
    let remaining = variables(after);
    if let Some(slot) = function.slots.iter().find(|slot| remaining.contains(*slot)) {
        return Err(format!("LLVM does not promote %{slot}"));
    }
    counts.n_functions += 1;
    counts.n_slots += function.slots.len();
    let all = variables(before);
    counts.n_later_variables += all.len() - remaining.len() - function.slots.len();

    // LLVM's new phis have the names of their variables and a number; by block and slot.
    let mut llvms = HashSet::new();
    let mut n_old_phis = 0;
    for (block, name) in phi_names(after) {
        let variable = name.strip_prefix('%').and_then(|name| name.rsplit_once('.'));
        match variable.filter(|(variable, _)| all.contains(variable)) {
            None => n_old_phis += 1,
            Some((variable, _)) => match slot_numbers.get(variable) {
                Some(&slot) => drop(llvms.insert((block, slot))),
                None => counts.n_later_phis += 1,
            },
        }
    }
    if function.n_phis != n_old_phis {
        return Err(format!("{} phis were there, not {}", n_old_phis, function.n_phis));
    }

    let program = program(function);
    let form = construct(&program, &ConstructOptions::default(), scratch);
    let form = form.map_err(|error| error.to_string())?;
    let is_folded = folded(&program, &form, |_| false);
    let is_folded_without_undefined = folded(&program, &form, |value| value == UNDEF);
    counts.n_phis += form.phis().len();
    for (i, phi) in form.phis().iter().enumerate() {
        let is_llvms = llvms.remove(&(phi.block, phi.slot));
        let count = match (is_llvms, is_folded[i], is_folded_without_undefined[i]) {
            (true, false, false) => continue,
            (false, true, _) => &mut counts.n_folded,
            (false, false, true) => &mut counts.n_folded_with_undefined,
            (true, false, true) => &mut counts.n_kept_with_undefined,
            _ => {
                let slot = function.slots[phi.slot as usize];
                return Err(format!("LLVM's phis of %{slot} in block {} differ", phi.block));
            }
        };
        *count += 1;
    }
    match llvms.iter().next() {
        Some((block, slot)) => Err(format!("only LLVM has a phi of slot {slot} in block {block}")),
        None => Ok(()),
    }
}

/// The variables of the entry block, without the `%`.
fn variables<'t>(f: &LlvmFunction<'t>) -> HashSet<&'t str> {
    let variable = |line: &&'t str| line.strip_prefix('%')?.split_once(" = alloca ");
    let entry = f.blocks.iter().take(1);
    entry.flat_map(|block| block.rest.iter().filter_map(variable)).map(|(name, _)| name).collect()
}

/// Block and name of all phis.
fn phi_names<'f>(f: &'f LlvmFunction<'_>) -> impl Iterator<Item = (u32, &'f str)> {
    let blocks = (0..).zip(&f.blocks);
    blocks.flat_map(|(i, block)| block.phis.iter().map(move |phi| (i, phi.name)))
}

/// The function for construction: equal operands of writes are one value.
fn program(function: &Imported<'_>) -> SlotProgram {
    let graph = &function.graph;
    let n_reads = graph.n_reads() as u32;
    let mut reads = 0..n_reads;
    let mut written = function.written.iter();
    let mut numbers = HashMap::new();
    let lists: Vec<Vec<construct::Access>> = (0..graph.n_blocks() as u32)
        .map(|block| {
            let access = |access: &Access| match *access {
                Access::Read { slot } => {
                    let value = reads.next().expect("all reads are counted");
                    construct::Access::Read { slot, value }
                }
                Access::Write { slot, value } => {
                    let operand = *written.next().expect("each write writes something");
                    let n = numbers.len() as u32;
                    let value = match value {
                        Written::Read(read) => read,
                        Written::New => n_reads + *numbers.entry(operand).or_insert(n),
                    };
                    construct::Access::Write { slot, value }
                }
            };
            graph.accesses(block).iter().map(access).collect()
        })
        .collect();
    let n_values = n_reads + numbers.len() as u32;
    SlotProgram::new(graph.cfg.clone(), graph.n_slots, n_values, lists)
}

/// The phis that fold to one value: all operands are that value, or the phi itself, or do not count.
fn folded(program: &SlotProgram, form: &SsaForm, is_ignored: fn(u32) -> bool) -> Vec<bool> {
    let first = program.n_values();
    let mut values: Vec<Option<u32>> = vec![None; form.phis().len()];
    let resolve = |values: &[Option<u32>], mut value: u32| {
        while value != UNDEF
            && let Some(phi) = value.checked_sub(first)
            && let Some(to) = values[phi as usize]
        {
            value = to;
        }
        value
    };
    loop {
        let mut has_changed = false;
        for (i, phi) in form.phis().iter().enumerate() {
            if values[i].is_some() {
                continue;
            }
            let operands = form.operands(i).map(|operand| resolve(&values, operand));
            let mut others = operands.filter(|&value| value != phi.value && !is_ignored(value));
            let value = others.next().unwrap_or(UNDEF);
            if others.all(|other| other == value) {
                values[i] = Some(value);
                has_changed = true;
            }
        }
        if !has_changed {
            return values.iter().map(Option::is_some).collect();
        }
    }
}
