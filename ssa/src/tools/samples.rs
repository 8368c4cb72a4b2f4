//! Modules for the tests, from text.

use std::cell::RefCell;
use std::fmt::Write;
use std::rc::Rc;

use slotvm_bytecode::{TrapCode, VerifiedModule, text};

use crate::construction::build::{BuildOptions, BuildScratch, build};
use crate::construction::promote::{Scratch, promote};
use crate::graphs::cfg::ControlFlow;
use crate::ir::Function;
use crate::ir::edit::renumber;
use crate::ir::eval::{HostCall, Imports, Machine, Options, Trap};
use crate::ir::parse::parse;
use crate::ir::verify::effects::Effects;
use crate::ir::verify::{Form, verify};
use crate::tools::testing::{Rng, random_numbered_graph};

/// A loop whose phis exchange their values in each round; the first parameter is the number of rounds.
pub(crate) const THE_SWAP: &str = "func f0(v0: i64, v1: i64, v2: i64) -> (i64, i64) {
        b0:
          br b1(v0, v1, v2)
        b1(v3: i64, v4: i64, v5: i64):
          v6 = i64.const 1
          v7 = i64.sub v3, v6
          v8 = i64.eqz v7
          br_if v8, b2(v5, v4), b1(v7, v5, v4)
        b2(v9: i64, v10: i64):
          return v9, v10
        }";

/// The module with this text.
pub(crate) fn module(source: &str) -> VerifiedModule {
    let module = text::parse(source).unwrap_or_else(|error| panic!("{error}"));
    slotvm_bytecode::verify::verify(module).unwrap_or_else(|error| panic!("{error}"))
}

/// The slot form of a function, verified.
pub(crate) fn slot_form(module: &VerifiedModule, func: u32, options: &BuildOptions) -> Function {
    let f = build(module, func, options, &mut BuildScratch::default());
    verify(&f, Form::Slots, module).unwrap_or_else(|violation| panic!("{violation}\n{f}"));
    f
}

/// The SSA form of the first function of the module with this text.
pub(crate) fn ssa(source: &str) -> Function {
    let mut f = slot_form(&module(source), 0, &BuildOptions::default());
    promote(&mut f, &mut Scratch::default());
    f
}

/// The blocks that a pass leaves of a function in SSA form, without locations, and the report of the pass. The text
/// may have its blocks in any order. The function is verified before and after, and its effects are compared.
pub(crate) fn blocks_after<R>(text: &str, pass: impl FnOnce(&mut Function) -> R) -> (String, R) {
    let mut f = parse(text).unwrap_or_else(|error| panic!("{error}"));
    let params = f.ty.params.iter().enumerate().map(|(i, ty)| format!("p{i}: {}", ty.name()));
    let results: Vec<&str> = f.ty.results.iter().map(|ty| ty.name()).collect();
    let params = params.collect::<Vec<_>>().join(", ");
    let results = results.join(", ");
    let module = module(&format!("memory m 1\nfunc f({params}) -> ({results}) {{ unreachable }}"));
    let check = |f: &Function| {
        verify(f, Form::Ssa, &module).unwrap_or_else(|violation| panic!("{violation}\n{f}"));
    };
    renumber(&mut f);
    check(&f);
    let effects = Effects::of(&f);
    let report = pass(&mut f);
    check(&f);
    effects.check(&f).unwrap_or_else(|violation| panic!("{violation}\n{f}"));
    let text = crate::ir::print::print(&f);
    let lines = text.lines().skip(1).map(|line| line.split(';').next().unwrap_or("").trim());
    (lines.filter(|line| *line != "}").collect::<Vec<_>>().join("; "), report)
}

/// The options of the build, from none to all charges.
pub(crate) const BUILDS: [BuildOptions; 2] = [
    BuildOptions { fuel: false, stack_cells: false, polls: false, waits: false },
    BuildOptions { fuel: true, stack_cells: true, polls: true, waits: false },
];

/// The behaviour of a program: the values that it shows, and the end of each call with the fuel left.
pub(crate) type Run = (Vec<u128>, Vec<(Result<Vec<u128>, Trap>, Option<u64>)>);

/// Runs the last function of a module in these functions' code, once on each list of arguments. The host shows up to 200
/// values.
pub(crate) fn run(
    module: &VerifiedModule,
    functions: Vec<Function>,
    calls: &[Vec<u128>],
    options: &Options,
) -> Run {
    let shown = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&shown);
    let host = Box::new(move |call: HostCall<'_>| {
        log.borrow_mut().extend(call.args);
        if log.borrow().len() > 200 { Err(TrapCode::Unreachable) } else { Ok(vec![]) }
    });
    let imports = Imports { host, globals: Vec::new() };
    let mut machine = Machine::new(module, functions, imports, options.clone());
    machine.instantiate().expect("the module instantiates");
    let main = module.n_funcs() - 1;
    let ends = calls.iter().map(|args| (machine.call(main, args), machine.fuel())).collect();
    drop(machine);
    (Rc::into_inner(shown).expect("the machine is gone").into_inner(), ends)
}

/// A list of one argument for each of these.
pub(crate) fn args(args: &[u128]) -> Vec<Vec<u128>> {
    args.iter().map(|&arg| vec![arg]).collect()
}

/// The slot forms of all functions that the module defines, made with one scratch memory.
pub(crate) fn slot_forms(module: &VerifiedModule, options: &BuildOptions) -> Vec<Function> {
    let mut scratch = BuildScratch::default();
    let funcs = module.n_imported_funcs()..module.n_funcs();
    funcs.map(|func| build(module, func, options, &mut scratch)).collect()
}

/// A random module whose function `f` goes through a random graph as the host's `next` says, and shows
/// the host what its locals hold.
pub(crate) fn random_walk(rng: &mut Rng) -> VerifiedModule {
    let n = 1 + rng.below(10);
    let (cfg, _) = random_numbered_graph(rng, n);
    let n_locals = 1 + rng.below(4);
    let mut text = String::from(
        "import \"env\" \"next\" func next() -> i32
        import \"env\" \"show\" func show(i64)
        func f(x0: i64, x1: i64) {\n",
    );
    for local in 0..n_locals {
        writeln!(text, "local x{}: i64", local + 2).expect("strings take everything");
    }
    for block in 0..cfg.n_blocks() as u32 {
        let mut lines = vec![format!("b{block}:")];
        for _ in 0..rng.below(6) {
            let mut local = || format!("x{}", rng.below(n_locals + 2));
            let (a, b) = (local(), local());
            lines.push(match rng.below(5) {
                0 | 1 => format!("local.get {a} call show"),
                2 => format!("i64.const {} local.set {a}", rng.below(3)),
                3 => format!("local.get {a} local.set {b}"),
                _ => format!("local.get {a} local.get {b} i64.add local.set {a}"),
            });
        }
        let succs: Vec<String> = cfg.succs(block).iter().map(|succ| format!("b{succ}")).collect();
        lines.push(match &succs[..] {
            [] => "return".to_owned(),
            [succ] => format!("br {succ}"),
            [taken, other] => format!("call next br_if {taken} br {other}"),
            [default, indexed @ ..] => {
                format!("call next br_table [{}] {default}", indexed.join(", "))
            }
        });
        text.push_str(&lines.join("\n"));
        text.push('\n');
    }
    text.push('}');
    module(&text)
}

/// A random module of functions that show numbers to the host, loop, and call each other. Only fuel ends them all.
pub(crate) fn random_functions(rng: &mut Rng) -> VerifiedModule {
    let mut text = String::from("import \"env\" \"show\" func show(i64)\n");
    for number in 0..1 + rng.below(6) {
        random_function(rng, &mut text, number);
    }
    module(&text)
}

/// Writes a function that shows some numbers, calls some of the functions before it and itself, and returns.
fn random_function(rng: &mut Rng, text: &mut String, number: u32) {
    writeln!(text, "func f{number}(a: i64) -> i64 {{\n local b: i64\n local c: i64")
        .expect("strings take everything");
    let n_blocks = 1 + rng.below(4);
    for block in 0..n_blocks {
        writeln!(text, "l{block}:").expect("strings take everything");
        for _ in 0..rng.below(4) {
            let local = ["a", "b", "c"][rng.below(3) as usize];
            let callee = rng.below(number + 1);
            match rng.below(6) {
                0 => writeln!(text, "local.get {local} call show"),
                1 => writeln!(text, "local.get {local} i64.const 1 i64.add local.set b"),
                2 => writeln!(text, "local.get a local.get b i64.xor local.set c"),
                3 => writeln!(text, "i64.const 1000 local.get {local} i64.div_u local.set c"),
                _ => writeln!(
                    text,
                    "local.get {local} i64.const 1 i64.sub call f{callee} local.set {local}"
                ),
            }
            .expect("strings take everything");
        }
        let callee = rng.below(number + 1);
        let target = rng.below(n_blocks);
        match rng.below(5) {
            0 => writeln!(text, "local.get b return"),
            1 => writeln!(text, "local.get a i64.const 1 i64.sub return_call f{callee}"),
            2 => writeln!(text, "br l{target}"),
            _ => writeln!(text, "local.get a i64.const 3 i64.and i64.eqz br_if l{target}"),
        }
        .expect("strings take everything");
    }
    text.push_str("last:\nlocal.get c return\n}\n");
}

/// Runs the last function on these arguments in these functions' code. Returns the calls and values that the host
/// sees, and the end, which comes at the latest when all fuel is consumed or one poll too many is made. The choices
/// of `next` depend on the seed alone.
pub(crate) fn walk(
    module: &VerifiedModule,
    functions: Vec<Function>,
    args: &[u128],
    seed: u64,
) -> (Vec<u128>, Result<Vec<u128>, Trap>) {
    let shown = Rc::new(RefCell::new(Vec::new()));
    let (mut rng, mut n_choices) = (Rng(seed), 0);
    let log = Rc::clone(&shown);
    let host = Box::new(move |call: HostCall<'_>| match call.args {
        [] if n_choices == 50 => Err(TrapCode::Unreachable),
        [] => {
            n_choices += 1;
            Ok(vec![rng.below(4).into()])
        }
        args => {
            log.borrow_mut().extend(args);
            Ok(vec![])
        }
    });
    let imports = Imports { host, globals: Vec::new() };
    let options = Options { fuel: Some(2_000), polls: Some(20), ..Options::default() };
    let mut machine = Machine::new(module, functions, imports, options);
    machine.instantiate().expect("the module instantiates");
    let end = machine.call(module.n_funcs() - 1, args).map_err(|trap| Trap { offset: 0, ..trap });
    drop(machine);
    (Rc::into_inner(shown).expect("the machine is gone").into_inner(), end)
}
