//! Compares modules instruction by instruction: the printed slot form, promoted by `opt -passes=mem2reg`,
//! with the printed SSA form.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use slotvm_bytecode::{VerifiedModule, decode, verify, wasm};
use slotvm_cases::stages;
use slotvm_filetests::generate::case_of_seed;
use slotvm_filetests::opt::{Opt, functions};
use slotvm_filetests::seeds;
use slotvm_ssa::construction::build::BuildOptions;
use slotvm_ssa::ir::verify::Form;
use slotvm_ssa::tools::llvm::Printer;

use crate::folding::{Counts, compare};

/// Number of modules for one run of `opt`.
const BATCH_MODULES: usize = 200;
/// Number of generated modules in an ordinary run of the tests.
const SEEDS_USUAL: u64 = 300;

/// All programs and kernels of the repository.
pub(crate) fn check_programs(opt: Opt) -> Result<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs");
    let mut paths = Vec::new();
    for folder in [folder.clone(), folder.join("wasm")] {
        let entries =
            folder.read_dir().map_err(|error| format!("{}: {error}", folder.display()))?;
        let of_entry = |entry: std::io::Result<std::fs::DirEntry>| Some(entry.ok()?.path());
        let is_module = |path: &PathBuf| path.extension().is_some_and(|e| e == "bc" || e == "wasm");
        paths.extend(entries.filter_map(of_entry).filter(is_module));
    }
    paths.sort();
    assert!(!paths.is_empty(), "there are programs");
    check_modules(opt, paths.iter().map(|path| (path.display().to_string(), load(path))))
}

fn load(path: &Path) -> VerifiedModule {
    let bytes = std::fs::read(path).expect("the file is there");
    let module = match path.extension() {
        Some(extension) if extension == "wasm" => wasm::import(&bytes).expect("it is imported"),
        _ => decode(&bytes).expect("it decodes"),
    };
    verify(module).expect("it verifies")
}

/// Generated modules, with fuel and the accounting of the call stack.
pub(crate) fn check_generated(opt: Opt) -> Result<String, String> {
    let module = |seed| verify(case_of_seed(seed).module).expect("generated modules verify");
    let seeds = 0..seeds::count_or(SEEDS_USUAL);
    check_modules(opt, seeds.map(|seed| (format!("seed {seed}"), module(seed))))
}

fn check_modules(
    opt: Opt,
    modules: impl Iterator<Item = (String, VerifiedModule)>,
) -> Result<String, String> {
    let mut counts = Counts::default();
    let mut modules = modules.peekable();
    while modules.peek().is_some() {
        let mut batch = Batch::default();
        for (name, module) in modules.by_ref().take(BATCH_MODULES) {
            batch.add(name, &module)?;
        }
        batch.check(opt, &mut counts)?;
    }
    Ok(counts.to_string())
}

/// Several modules as one, in both forms. Names of functions begin with the number of their module.
#[derive(Default)]
struct Batch {
    names: Vec<String>,
    /// Number of functions of each module.
    n_functions: Vec<usize>,
    slots: String,
    ssa: String,
    declarations: BTreeSet<String>,
}

impl Batch {
    fn add(&mut self, name: String, module: &VerifiedModule) -> Result<(), String> {
        let number = self.names.len();
        let rename = |text: String| {
            let text = text.replace("@f", &format!("@m{number}.f"));
            let text = text.replace("@\"f", &format!("@\"m{number}.f"));
            text.replace("@slotvm.", &format!("@m{number}.slotvm."))
        };
        let mut printer = Printer::new(module);
        let is_odd = number % 2 == 1;
        let options =
            BuildOptions { fuel: is_odd, stack_cells: is_odd, polls: is_odd, waits: false };
        let unnamed = |form| {
            let mut functions = stages::functions(module, form, options)?;
            // Values are named by promotion, which LLVM does not do.
            functions.iter_mut().for_each(|f| f.names = None);
            Ok::<_, String>(functions)
        };
        let slots = unnamed(Form::Slots)?;
        self.slots.extend(slots.iter().map(|f| rename(printer.define(f))));
        let ssa = unnamed(Form::Ssa)?;
        self.ssa.extend(ssa.iter().map(|f| rename(printer.define(f))));
        // Both forms call the same functions, and intrinsics belong to no module.
        let declarations = printer.declarations();
        self.declarations.extend(declarations.lines().map(|line| rename(line.to_owned())));
        self.names.push(name);
        self.n_functions.push(slots.len());
        Ok(())
    }

    fn check(&self, opt: Opt, counts: &mut Counts) -> Result<(), String> {
        let declarations: Vec<&str> = self.declarations.iter().map(String::as_str).collect();
        let declarations = declarations.join("\n");
        let run = |passes, text: &str| opt.run(passes, &format!("{text}\n{declarations}\n"));
        let llvms = run("verify,function(mem2reg)", &self.slots)?;
        // LLVM reads and writes ours too, so that constants look the same.
        let ours = run("verify", &self.ssa)?;
        let (ours, llvms) = (functions(&ours)?, functions(&llvms)?);
        let names = self.names.iter().zip(&self.n_functions);
        let names: Vec<&str> =
            names.flat_map(|(name, &n)| std::iter::repeat_n(name.as_str(), n)).collect();
        if ours.len() != names.len() || llvms.len() != names.len() {
            return Err(format!("{}, {} and {}", names.len(), ours.len(), llvms.len()));
        }
        for ((ours, llvms), name) in ours.iter().zip(&llvms).zip(names) {
            compare(ours, llvms, counts)
                .map_err(|error| format!("{name}, @{}, {error}", ours.name))?;
        }
        Ok(())
    }
}
