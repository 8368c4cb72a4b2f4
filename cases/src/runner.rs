//! Runs file tests: compares each section with what is printed, and makes each call in every engine.
//!
//! A printed section of IR is also parsed and printed again, and verified. A call must agree with what
//! the case expects in the interpreter, in the evaluator on slot form, on SSA form by every construction
//! and on slot form made from that, and as native code in every slot mode and by every construction.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use similar::TextDiff;
use slotvm::compiler::OnTheFly;
use slotvm::{
    Compile, Config, Engine, Error, Linker, Module, SlotMode, Store, Tier, TierCompilation,
    TierThresholds, Val,
};
use slotvm_bytecode::text::{self, ParseOptions};
use slotvm_bytecode::verify::Place;
use slotvm_bytecode::{FuncType, Op, ValType, VerifiedModule, builder::ModuleBuilder, verify};
use slotvm_ssa::construction::build::{BuildOptions, SsaOptions};
use slotvm_ssa::construction::promote::{PromoteOptions, Scratch, promote_with};
use slotvm_ssa::ir::Function;
use slotvm_ssa::ir::entity::Block;
use slotvm_ssa::ir::graph::dom_tree;
use slotvm_ssa::ir::verify::{Form, verify as verify_ir};
use slotvm_ssa::ir::{eval, parse, print};
use slotvm_ssa::passes::destruct::destruct;
use slotvm_ssa::pipeline::{self, Style};

use crate::case::{Case, Expected, ExpectedError, Run};
use crate::stages;
use crate::values::{self, Cells};

/// Returns all cases under a file or folder, sorted.
///
/// # Errors
/// Fails if a folder cannot be read.
pub fn find(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut pending = vec![path.to_owned()];
    let mut cases = Vec::new();
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            for entry in fs::read_dir(&path)? {
                pending.push(entry?.path());
            }
        } else if path.extension().is_some_and(|e| e == "vasm" || e == "ssa") {
            cases.push(path);
        }
    }
    cases.sort();
    Ok(cases)
}

/// Runs a case. With `bless`, its sections are replaced by what is printed, unless a call disagrees or
/// they are for another architecture.
///
/// # Errors
/// Returns what is wrong, with the command that runs the case again.
pub fn run(path: &Path, bless: bool) -> Result<(), String> {
    let again = |message: String| {
        format!("{message}\nrun again: cargo run --bin vmrun -- test {}", path.display())
    };
    let text = fs::read_to_string(path).map_err(|e| again(e.to_string()))?;
    let case = Case::parse(&text).map_err(|e| again(e.to_string()))?;
    let is_ir = path.extension().is_some_and(|e| e == "ssa");
    let result = if is_ir { run_ir(&case) } else { run_module(&case) };
    let sections = result.map_err(again)?;
    if bless && case.is_for_this_machine() {
        let blessed = case.with_sections(&sections);
        if blessed != text {
            fs::write(path, blessed).map_err(|e| again(e.to_string()))?;
        }
        return Ok(());
    }
    compare(&case, &sections).map_err(again)
}

fn compare(case: &Case, sections: &[(String, String)]) -> Result<(), String> {
    if !case.has_all_sections() {
        return Err(
            "the sections differ from those that `stages:` lists, or are in another order".into()
        );
    }
    if !case.is_for_this_machine() {
        return Ok(());
    }
    for ((stage, expected), (_, printed)) in case.sections.iter().zip(sections) {
        let [expected, printed] = [expected, printed].map(|text| format!("{}\n", text.trim_end()));
        if expected != printed {
            let diff = TextDiff::from_lines(&expected, &printed);
            return Err(format!("{}", diff.unified_diff().header(stage, "printed")));
        }
    }
    Ok(())
}

// --- Cases of bytecode ---------------------------------------------------------------------------

fn run_module(case: &Case) -> Result<Vec<(String, String)>, String> {
    let options = ParseOptions { record_lines: true };
    let module = match text::parse_with(&case.input, options) {
        Ok(module) => module,
        Err(error) if error.diagnostics().len() == 1 => {
            return expect_error(case, error.line(), &error.to_string());
        }
        Err(error) => return Err(format!("more than one error:\n{error}")),
    };
    let module = match verify(module) {
        Ok(module) => Arc::new(module),
        Err(error) => {
            let line = match *error.place() {
                Place::Code { line, .. } => line,
                _ => None,
            };
            // An error outside of code has no line, so any line is accepted.
            let expected = case.error.as_ref().map_or(0, |e| e.line);
            return expect_error(case, line.map_or(expected, |l| l as usize), &error.to_string());
        }
    };
    if let Some(ExpectedError { line, text }) = &case.error {
        return Err(format!("line {line}: expected the error {text:?}, but the module verifies"));
    }
    for run in &case.runs {
        check_run(&module, run).map_err(|e| format!("line {}: {e}", run.line))?;
    }
    if !case.idoms.is_empty() {
        let functions = stages::functions(&module, Form::Slots, BuildOptions::default())?;
        let [f] = &functions[..] else {
            return Err("`idom:` requires a case with one function".into());
        };
        check_idoms(case, f)?;
    }
    // Sections must not depend on the lines of the file, so these are not recorded.
    let plain = text::parse(&case.input).map_err(|e| e.to_string())?;
    let plain = Arc::new(verify(plain).map_err(|e| e.to_string())?);
    let mut sections = Vec::new();
    for stage in &case.stages {
        let printed = stages::show(&plain, stage)?;
        if let Some(row) = pipeline::row(stage).filter(|row| row.is_of_ir()) {
            for f in stages::functions_after(&plain, row)? {
                check_text_round_trip(&f)?;
            }
        }
        sections.push((stage.clone(), printed));
    }
    Ok(sections)
}

fn expect_error(case: &Case, line: usize, message: &str) -> Result<Vec<(String, String)>, String> {
    match &case.error {
        Some(expected) if expected.line == line && message.contains(&expected.text) => {
            Ok(Vec::new())
        }
        Some(ExpectedError { line: l, text }) => {
            Err(format!("expected the error {text:?} on line {l}, found on line {line}: {message}"))
        }
        None => Err(message.to_owned()),
    }
}

/// Checks that the annotations state the immediate dominator of every block except the entry, and nothing
/// else.
fn check_idoms(case: &Case, f: &Function) -> Result<(), String> {
    let tree = dom_tree(f);
    let idom = |b: Block| Some((b.to_string(), Block(tree.idom(b.0)?).to_string()));
    let expected: BTreeSet<(String, String)> = f.blocks().filter_map(idom).collect();
    let annotated: BTreeSet<(String, String)> = case.idoms.iter().cloned().collect();
    if annotated == expected && case.idoms.len() == expected.len() {
        return Ok(());
    }
    let pairs = expected.iter().map(|(block, idom)| format!("{block} <- {idom}"));
    Err(format!(
        "wrong immediate dominators; expected\n; idom: {}",
        pairs.collect::<Vec<_>>().join(", ")
    ))
}

fn check_text_round_trip(f: &Function) -> Result<(), String> {
    let text = print::print(f);
    let parsed =
        parse::parse(&text).map_err(|e| format!("printed IR does not parse: {e}\n{text}"))?;
    let again = print::print(&parsed);
    if again == text { Ok(()) } else { Err(format!("printed IR changes:\n{text}\n{again}")) }
}

fn check_run(module: &Arc<VerifiedModule>, run: &Run) -> Result<(), String> {
    let func = (module.n_imported_funcs()..module.n_funcs())
        .find(|&func| module.func_name(func) == run.func)
        .ok_or_else(|| format!("the module defines no function {:?}", run.func))?;
    let args = values::parse_all(&run.args, &module.func_type(func).params)?;
    for (engine, outcome) in outcomes(module, func, &args)? {
        check_outcome(run, &module.func_type(func).results, &outcome)
            .map_err(|e| format!("{engine}: {e}"))?;
    }
    Ok(())
}

/// Results as cells, or the message and code offset of a trap.
type Outcome = Result<Cells, (String, u32)>;

fn check_outcome(run: &Run, types: &[ValType], outcome: &Outcome) -> Result<(), String> {
    match (&run.expected, outcome) {
        (Expected::Results(expected), Ok(cells)) => {
            if values::parse_all(expected, types)? == *cells {
                return Ok(());
            }
            let found = values::print_all(cells, types);
            Err(format!("{}(…) returned {found}, expected {}", run.func, expected.join(", ")))
        }
        (Expected::Trap { message, offset }, Err((m, o))) if message == m && offset == o => Ok(()),
        (_, Ok(cells)) => Err(format!("returned {}", values::print_all(cells, types))),
        (_, Err((message, offset))) => Err(format!("trapped: {message} @{offset:04x}")),
    }
}

fn outcomes(
    module: &Arc<VerifiedModule>,
    func: u32,
    args: &Cells,
) -> Result<Vec<(String, Outcome)>, String> {
    let mut outcomes = Vec::new();
    for (form, functions) in forms(module)? {
        outcomes.push((format!("evaluator on {form}"), evaluate(module, functions, func, args)));
    }
    for (engine, config) in configs() {
        outcomes.push((engine, execute(&config, module, func, args)?));
    }
    Ok(outcomes)
}

/// The functions of a module in all forms, by name.
fn forms(module: &VerifiedModule) -> Result<Vec<(String, Vec<Function>)>, String> {
    let build = BuildOptions::default();
    let mut forms = Vec::new();
    for row in pipeline::TABLE.iter().filter(|row| row.is_of_ir()) {
        forms.push((
            format!("the function after {}", row.name),
            stages::functions_after(module, row)?,
        ));
    }
    for construction in stages::constructions() {
        let promotion = PromoteOptions { construction, ..PromoteOptions::default() };
        let functions = stages::functions_with(module, Some(promotion), build)?;
        forms.push((format!("{} SSA form", construction.name()), functions));
    }
    let on_the_fly = stages::functions_on_the_fly(module, &SsaOptions::default())?;
    forms.push(("SSA form straight from bytecode".to_owned(), on_the_fly));
    // SSA form that no pass has changed.
    let mut taken_out = stages::functions(module, Form::Ssa, build)?;
    for f in &mut taken_out {
        destruct(f);
        verify_ir(f, Form::Slots, module).map_err(|v| v.to_string())?;
    }
    forms.push(("slot form made from SSA form".to_owned(), taken_out));
    Ok(forms)
}

/// The interpreter and all configurations of native code, by name.
fn configs() -> Vec<(String, Config)> {
    let mut configs = Vec::new();
    let mut add = |name: String, set: &dyn Fn(&mut Config) -> &mut Config| {
        configs.push((name, set(Config::new().tier(Tier::Jit)).clone()));
    };
    add("interpreter".to_owned(), &|config| config.tier(Tier::Interpreter));
    for mode in SlotMode::ALL {
        add(format!("native code, {mode}"), &|config| config.slots(mode));
        let name = format!("native code without signals, {mode}");
        add(name, &|config| config.slots(mode).signals_based_traps(false));
    }
    // The following configurations use mode `ssa`, which is the default.
    add("native code, lazily".to_owned(), &|config| config.compile(Compile::Lazy));
    for n in [1, 2] {
        let thresholds = TierThresholds { calls: n, rounds: n };
        add(format!("all tiers from {n} on"), &|config| {
            config.tier(Tier::Auto).tier_thresholds(Some(thresholds));
            config.tier_compilation(TierCompilation::Synchronous)
        });
    }
    for construction in stages::constructions() {
        let promotion = PromoteOptions { construction, ..PromoteOptions::default() };
        let name = format!("native code, {} SSA form", construction.name());
        add(name, &|config| config.promotion(promotion));
    }
    let name = "native code, SSA form straight from bytecode".to_owned();
    add(name, &|config| config.on_the_fly(OnTheFly::default()));
    configs
}

fn evaluate(module: &VerifiedModule, functions: Vec<Function>, func: u32, args: &Cells) -> Outcome {
    let mut machine =
        eval::Machine::new(module, functions, eval::Imports::default(), eval::Options::default());
    let result = machine.instantiate().and_then(|()| machine.call(func, args));
    result.map_err(|trap| {
        let message = match trap.number {
            Some(number) => module.module().custom_trap(number).to_string(),
            None => trap.code.to_string(),
        };
        (message, trap.offset)
    })
}

fn execute(
    config: &Config,
    module: &Arc<VerifiedModule>,
    func: u32,
    args: &Cells,
) -> Result<Outcome, String> {
    let engine = Engine::new(config).map_err(|e| e.to_string())?;
    let compiled = Module::from_verified(&engine, Arc::clone(module)).map_err(|e| e.to_string())?;
    let mut store = Store::new(&engine, ());
    let instance =
        Linker::new(&engine).instantiate(&mut store, &compiled).map_err(|e| e.to_string())?;
    let func = instance.func_at(&store, func);
    let FuncType { params, results } = func.ty(&store);
    let params: Vec<Val> =
        params.iter().zip(args).map(|(&ty, &cell)| values::val(ty, cell)).collect();
    let mut vals: Vec<Val> = results.iter().map(|&ty| Val::default_for(ty)).collect();
    match func.call(&mut store, &params, &mut vals) {
        Ok(()) => Ok(Ok(vals.iter().map(values::cell).collect())),
        Err(Error::Trap(trap)) => Ok(Err((trap.message(), trap.offset))),
        Err(error) => Err(error.to_string()),
    }
}

// --- Cases of IR ------------------------------------------------------------------------------------

/// Runs a case of text IR, a function in slot form or SSA form. Slot form is also promoted. The function may
/// call itself and use a memory of one page; its module has nothing else. Errors of the IR verifier have no
/// line, so `error:` may be on any line, preferably the offending one.
fn run_ir(case: &Case) -> Result<Vec<(String, String)>, String> {
    let mut f = match parse::parse(&case.input) {
        Ok(f) => f,
        Err(error) => return expect_error(case, error.line, &error.to_string()),
    };
    f.func = 0;
    let module = module_around(&f.ty)?;
    let form = if f.has_slot_accesses() { Form::Slots } else { Form::Ssa };
    if let Err(violation) = verify_ir(&f, form, &module) {
        let line = case.error.as_ref().map_or(0, |e| e.line);
        return expect_error(case, line, &violation.to_string());
    }
    if let Some(ExpectedError { line, text }) = &case.error {
        return Err(format!("line {line}: expected the error {text:?}, but the function verifies"));
    }
    if !case.idoms.is_empty() {
        check_idoms(case, &f)?;
    }
    let mut forms = vec![f.clone()];
    if form == Form::Slots {
        let mut scratch = Scratch::default();
        for construction in stages::constructions() {
            let mut ssa = f.clone();
            let options = PromoteOptions { construction, ..PromoteOptions::default() };
            promote_with(&mut ssa, options, &mut scratch);
            verify_ir(&ssa, Form::Ssa, &module).map_err(|v| v.to_string())?;
            forms.push(ssa);
        }
    }
    for row in pipeline::TABLE.iter().filter(|row| row.is_of_ir()) {
        forms.push(pipeline::after(row, f.clone(), &module).map_err(|error| error.to_string())?);
    }
    for run in &case.runs {
        let args = values::parse_all(&run.args, &f.ty.params)?;
        for form in &forms {
            let outcome = evaluate(&module, vec![form.clone()], 0, &args);
            check_outcome(run, &f.ty.results, &outcome)
                .map_err(|e| format!("line {}: evaluator: {e}", run.line))?;
        }
    }
    let mut sections = Vec::new();
    for stage in &case.stages {
        let shown = pipeline::show_from(&f, &module, stage, &mut Style::Text);
        let shown = shown.map_err(|error| error.to_string())?;
        sections.push((stage.clone(), shown));
    }
    for form in &forms {
        check_text_round_trip(form)?;
    }
    Ok(sections)
}

/// A module whose only function has this type, for the evaluator.
fn module_around(ty: &FuncType) -> Result<VerifiedModule, String> {
    let mut builder = ModuleBuilder::new();
    builder.memory("memory", 1, Some(1));
    let func = builder.declare_func("f", &ty.params, &ty.results);
    let mut body = builder.define(func);
    body.op(Op::Unreachable);
    body.finish().map_err(|e| e.to_string())?;
    let module = builder.finish().map_err(|e| e.to_string())?;
    verify(module).map_err(|e| e.to_string())
}
