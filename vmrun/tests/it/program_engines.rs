//! Properties that only internal interfaces show: all engines agree on the programs and kernels with fuel,
//! the evaluator agrees with the interpreter, and the programs have their intended shapes.

use std::sync::Arc;

use slotvm::compiler::{Effort, FunctionInfo, OnTheFly};
use slotvm::{Engine, Module, SlotMode, Tier};
use slotvm_bytecode::{TrapCode, VerifiedModule};
use slotvm_filetests::slot_accesses;
use slotvm_ssa::construction::build::{BuildOptions, BuildScratch, build};
use slotvm_ssa::construction::promote::{self, promote};
use slotvm_ssa::graphs::cfg::Cfg;
use slotvm_ssa::graphs::loops::LoopForest;
use slotvm_ssa::ir::Function;
use slotvm_ssa::ir::verify::{Form, verify};

use crate::kernels;
use crate::programs::{self, Outcome, check_all};

/// The fuel of programs in the evaluator, which is slow. It runs each program with a size for which this fuel
/// suffices, if there is one.
const EVALUATOR_FUEL: u64 = 2_000_000;

/// Checks all programs and kernels, with their default sizes.
fn check_all_with_sizes(check: impl Fn(&Arc<VerifiedModule>, i32) -> Result<(), String> + Sync) {
    check_all(|program| {
        let module = program.verified();
        check(&module, programs::default_size(&module)?)
    });
    kernels::check_all(|kernel| check(&kernel.verified(), kernel.size("default-size")?));
}

/// Halves a size until the program needs at most this much fuel.
fn size_for_fuel(
    module: &Arc<VerifiedModule>,
    mut size: i32,
    fuel: u64,
) -> Result<(i32, Outcome), String> {
    let engine = programs::engine(Tier::Interpreter, SlotMode::default(), true);
    loop {
        match programs::run(&engine, module, size, Some(fuel)) {
            Ok(outcome) if outcome.exit_code == 0 => return Ok((size, outcome)),
            Ok(outcome) => return Err(format!("size {size}: exit code {}", outcome.exit_code)),
            Err(error) if error.trap_code() == Some(TrapCode::OutOfFuel) && size > 0 => size /= 2,
            Err(error) => return Err(format!("size {size}: {error}")),
        }
    }
}

/// Engines of native code by name: of all slot modes, and of SSA form straight from bytecode, plain and
/// simplified on the way; and without signals, where slots are in memory and where they are not.
fn native_engines(consume_fuel: bool) -> Vec<(String, Engine)> {
    let in_mode =
        |slots: SlotMode| (slots.to_string(), programs::engine(Tier::Jit, slots, consume_fuel));
    let on_the_fly = |is_simplified| {
        let options =
            OnTheFly { fold: is_simplified, copies: is_simplified, ..OnTheFly::default() };
        (format!("{options:?}"), programs::engine_on_the_fly(options, consume_fuel))
    };
    let without_signals = |slots: SlotMode| {
        let engine = programs::engine_without_signals(slots, consume_fuel);
        (format!("{slots}, without signals"), engine)
    };
    let mut engines: Vec<_> = SlotMode::ALL.into_iter().map(in_mode).collect();
    engines.extend([false, true].map(on_the_fly));
    engines.extend([SlotMode::Memory, SlotMode::Ssa].map(without_signals));
    engines
}

/// Checks that native code with fuel has the interpreter's output and leaves the same fuel.
#[test]
fn native_with_fuel() {
    let engines = native_engines(true);
    check_all_with_sizes(|module, default_size| {
        let (size, expected) = size_for_fuel(module, default_size, EVALUATOR_FUEL)?;
        for (name, engine) in &engines {
            let outcome = programs::run(engine, module, size, Some(EVALUATOR_FUEL))
                .map_err(|error| error.to_string())?;
            if outcome != expected {
                return Err(format!("with size {size}, {name}: {outcome:?}, not {expected:?}"));
            }
        }
        Ok(())
    });
}

/// Compares a form of a program, made from the slot form, with the interpreter: output and fuel.
fn check_evaluation(
    module: &Arc<VerifiedModule>,
    default_size: i32,
    form: Form,
    transform: impl Fn(&mut Function),
) -> Result<(), String> {
    let (size, expected) = size_for_fuel(module, default_size, EVALUATOR_FUEL)?;
    let options = BuildOptions { fuel: true, ..BuildOptions::default() };
    let mut scratch = BuildScratch::default();
    let mut functions = Vec::new();
    for func in module.n_imported_funcs()..module.n_funcs() {
        let mut f = build(module, func, &options, &mut scratch);
        transform(&mut f);
        verify(&f, form, &**module).map_err(|violation| violation.to_string())?;
        functions.push(f);
    }
    let outcome = programs::evaluate(module, functions, size, Some(EVALUATOR_FUEL))
        .map_err(|trap| trap.to_string())?;
    if outcome == expected {
        return Ok(());
    }
    Err(format!("with size {size}, evaluated: {outcome:?}, interpreted: {expected:?}"))
}

#[test]
fn slot_form_evaluated() {
    check_all_with_sizes(|module, size| check_evaluation(module, size, Form::Slots, |_| ()));
}

#[test]
fn ssa_form_evaluated() {
    check_all_with_sizes(|module, size| {
        check_evaluation(module, size, Form::Ssa, |f| {
            promote(f, &mut promote::Scratch::default());
        })
    });
}

/// Checks that no program is too large for its slot mode. Functions that are too large are compiled in
/// another way, which would make comparisons of modes meaningless. Likewise, no function may be too large for
/// SSA construction straight from bytecode, since it would be promoted instead.
#[test]
fn every_program_stays_in_its_mode() {
    let engines = native_engines(false);
    let promotes = SlotMode::Ssa.to_string();
    check_all_with_sizes(|module, _| {
        for (name, engine) in &engines {
            let compiled = Module::from_verified(engine, Arc::clone(module))
                .map_err(|error| error.to_string())?;
            let has_code = |func: u32| compiled.functions().iter().any(|f| f.func == func);
            let entered = module.can_be_entered();
            let mut defined = module.n_imported_funcs()..module.n_funcs();
            if let Some(func) = defined.find(|&func| entered[func as usize] && !has_code(func)) {
                return Err(format!("{name}: `{}` has no code", module.func_name(func)));
            }
            let falls_back = |f: &&FunctionInfo| {
                let is_promoted = f.promotion.is_some();
                f.work.effort != Effort::AsAsked || is_promoted != name.starts_with(&promotes)
            };
            if let Some(function) = compiled.functions().into_iter().find(falls_back) {
                return Err(format!("{name}: `{}` is too large for the mode", function.name));
            }
        }
        Ok(())
    });
}

#[test]
fn promoted_code_accesses_no_slot() {
    check_all_with_sizes(|module, _| match slot_accesses::check_module(module)? {
        0 => Err("has no slots at all".into()),
        _ => Ok(()),
    });
}

#[test]
fn every_program_says_what_it_shows_and_how_to_measure_it() {
    check_all(|program| {
        let header: Vec<&str> =
            program.source.lines().take_while(|line| line.starts_with(';')).collect();
        if !header.iter().any(|line| line.starts_with("; Shows: ")) {
            return Err("the comment at the top does not say what it shows".into());
        }
        if !header.iter().any(|line| line.starts_with("; bench-size: ")) {
            return Err("the comment at the top has no bench-size".into());
        }
        let default = programs::default_size(&program.verified())?;
        match program.bench_size() {
            Some(size) if size >= default => Ok(()),
            size => Err(format!("bench-size {size:?} is less than the default size {default}")),
        }
    });
}

/// The functions of a module that have a loop with several entries.
fn irreducible_funcs(module: &VerifiedModule) -> Vec<String> {
    (module.n_imported_funcs()..module.n_funcs())
        .filter(|&func| {
            let body = module.body(func).expect("the function is defined here");
            let succs = (0..body.blocks.len()).map(|block| body.succs(block).iter().copied());
            let loops = LoopForest::new(&Cfg::new(0, succs));
            loops.loops().any(|it| loops.is_irreducible(it))
        })
        .map(|func| module.func_name(func))
        .collect()
}

#[test]
fn only_goto_makes_irreducible_loops() {
    check_all(|program| {
        let expected: &[&str] = match program.name.as_str() {
            "irreducible" => &["duff", "halves", "scan"],
            _ => &[],
        };
        let found = irreducible_funcs(&program.verified());
        if found == expected { Ok(()) } else { Err(format!("found {found:?}")) }
    });
}

#[test]
fn address_taken_has_locals_that_escape_and_locals_that_do_not() {
    let all = programs::all();
    let program = all.iter().find(|program| program.name == "address_taken");
    let module = program.expect("the program is there").verified();
    let body = |name| {
        let export = module.module().export(name).expect("the function is exported");
        module.body(export.index).expect("the function is defined here")
    };
    assert_eq!(body("gcd").frame_bytes, 16, "x1 and y1 escape");
    assert_eq!(body("swapped").frame_bytes, 0, "a and b do not");
    assert_eq!(body("swapped").direct.len(), 6, "they are accessed directly");
}
