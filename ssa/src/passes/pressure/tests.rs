use super::*;
use crate::construction::build::BuildOptions;
use crate::construction::promote::{Scratch, promote};
use crate::ir::parse::parse;
use crate::ir::print::print;
use crate::ir::verify::{Form, verify};
use crate::tools::samples::{module, random_functions, slot_form, slot_forms, walk};
use crate::tools::testing::Rng;

/// A loop of `n_used` locals that each round uses, and of `n_rare` that one of its eight targets uses; the target
/// calls if asked to.
fn interpreter(ty: &str, n_used: usize, n_rare: usize, calls: bool) -> String {
    let locals =
        |name: &str, n| (0..n).map(|i| format!(" local {name}{i}: {ty}\n")).collect::<String>();
    let add =
        |name: &str, i| format!("local.get {name}{i} {ty}.const 1 {ty}.add local.set {name}{i}\n");
    let all = |name: &str, n| (0..n).map(|i| add(name, i)).collect::<String>();
    let call = if calls { "call g" } else { "" };
    format!(
        "func g() {{ return }}
        func f(n: i32) -> {ty} {{
          {}{}
        again:
          {}
          local.get n i32.eqz br_if done
          local.get n i32.const 1 i32.sub local.set n
          local.get n i32.const 7 i32.and
          br_table [rare, again, again2, again3, again4, again5, again6] again
        again2: br again
        again3: br again
        again4: br again
        again5: br again
        again6: br again
        rare:
          {}
          {call}
          br again
        done:
          {ty}.const 0 {}{} return
        }}",
        locals("u", n_used),
        locals("r", n_rare),
        all("u", n_used),
        all("r", n_rare),
        (0..n_used).map(|i| format!("local.get u{i} {ty}.add ")).collect::<String>(),
        (0..n_rare).map(|i| format!("local.get r{i} {ty}.add ")).collect::<String>(),
    )
}

/// The numbers of the locals that are kept.
fn kept(source: &str) -> Vec<usize> {
    kept_with(source, PreservedRegisters::X86_64)
}

/// Likewise, on a machine with these registers.
fn kept_with(source: &str, preserved: PreservedRegisters) -> Vec<usize> {
    let module = module(source);
    let mut f = slot_form(&module, 1, &BuildOptions::default());
    let report = pressure(&mut f, &module, preserved, &mut Analyses::default());
    verify(&f, Form::Slots, &module).unwrap_or_else(|violation| panic!("{violation}\n{f}"));
    let kept: Vec<usize> = (0..f.slots.len()).filter(|&i| f.slots[i].kept.is_some()).collect();
    assert_eq!(report.n_kept, kept.len());
    kept
}

#[test]
fn rarely_used_locals_stay_in_memory_where_a_loop_calls() {
    // Local 0 counts the rounds, and each round uses it.
    assert_eq!(kept(&interpreter("i64", 2, 4, true)), [3, 4]);
    assert_eq!(kept(&interpreter("i64", 4, 4, true)), [5, 6, 7, 8]);
    assert_eq!(kept(&interpreter("i64", 2, 2, true)), []);
    assert_eq!(kept(&interpreter("i64", 9, 0, true)), []);
    assert_eq!(kept(&interpreter("i64", 4, 4, false)), []);
    // A cold call preserves all.
    let cold = interpreter("i64", 4, 4, true);
    let cold = cold.replace("func g() { return }", "import \"env\" \"g\" cold func g()");
    assert_eq!(kept(&cold), []);
    // No call preserves a register of a float.
    assert_eq!(kept(&interpreter("f64", 1, 2, true)), [2, 3]);
}

#[test]
fn locals_of_an_unlikely_side_are_rarely_used() {
    // Each other round calls, or few do.
    let source = interpreter("i64", 4, 4, true);
    let (before, rest) = source.split_once("br_table").expect("it has a table");
    let (_, rest) = rest.split_once("again6: br again").expect("it has targets");
    let source = format!("{before} br_if again {rest}");
    assert_eq!(kept(&source), []);
    let hinted = |hint: &str| source.replace("br_if again", &format!("{hint} br_if again"));
    assert_eq!(kept(&hinted(".likely")), [5, 6, 7, 8]);
    assert_eq!(kept(&hinted(".unlikely")), []);
}

#[test]
fn a_machine_with_more_registers_keeps_more() {
    let kept = |source: &str| kept_with(source, PreservedRegisters::AARCH64);
    assert_eq!(kept(&interpreter("i64", 4, 4, true)), []);
    assert_eq!(kept(&interpreter("i64", 4, 7, true)).len(), 2);
    assert_eq!(kept(&interpreter("f64", 1, 2, true)), []);
    assert_eq!(kept(&interpreter("f64", 2, 8, true)).len(), 2);
}

#[test]
fn promotion_leaves_kept_slots_alone() {
    let module = module(&interpreter("i64", 2, 4, true));
    let mut f = slot_form(&module, 1, &BuildOptions::default());
    let full = promote(&mut f.clone(), &mut Scratch::default());
    pressure(&mut f, &module, PreservedRegisters::default(), &mut Analyses::default());
    let text = print(&f);
    assert!(text.contains("slot s3: i64 = local 3 kept @"), "{text}");
    assert_eq!(print(&parse(&text).expect("it is valid")), text);
    let mut ssa = f.clone();
    let report = promote(&mut ssa, &mut Scratch::default());
    verify(&ssa, Form::Ssa, &module).unwrap_or_else(|violation| panic!("{violation}\n{ssa}"));
    assert_eq!((report.n_kept, full.n_kept), (2, 0));
    assert!(report.n_phis < full.n_phis && report.n_gets < full.n_gets);
    let g = slot_form(&module, 0, &BuildOptions::default());
    let end = |f: &Function, n| walk(&module, vec![g.clone(), f.clone()], &[n], 0);
    for n in [0, 1, 20] {
        assert_eq!(end(&ssa, n), end(&f, n), "{ssa}");
    }
}

#[test]
fn random_functions_do_the_same_with_any_slots_kept() {
    let mut rng = Rng(17);
    let mut n_accesses = 0;
    for _ in 0..300 {
        let module = random_functions(&mut rng);
        // Only fuel ends them all.
        let options = BuildOptions { fuel: true, ..BuildOptions::default() };
        let before = slot_forms(&module, &options);
        let mut after = before.clone();
        for f in &mut after {
            f.slots.iter_mut().for_each(|slot| slot.kept = rng.one_in(2).then_some(0));
            promote(f, &mut Scratch::default());
            verify(f, Form::Ssa, &module).unwrap_or_else(|violation| panic!("{violation}\n{f}"));
            n_accesses += usize::from(f.has_slot_accesses());
        }
        for arg in [0, 3, 6] {
            let expected = walk(&module, before.clone(), &[arg], 0);
            assert_eq!(walk(&module, after.clone(), &[arg], 0), expected);
        }
    }
    assert!(n_accesses > 100, "{n_accesses}");
}
