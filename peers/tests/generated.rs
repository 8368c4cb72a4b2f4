//! slotvm agrees with wasmtime and wasmi on generated modules.
//!
//! `SLOTVM_GENERATED=23000` runs that many seeds, nine tenths of which give a module. `-- --nocapture` shows the
//! statistics.

use slotvm_filetests::choices::random_bytes;
use slotvm_filetests::seeds;
use slotvm_peers::{End, Program, Value, check, check_program, check_seeds};

/// Seeds that every run of the tests checks.
const SEEDS_USUAL: u64 = 1_000;

#[test]
fn engines_agree_on_the_modules_of_seeds() {
    let n = seeds::count_or(SEEDS_USUAL);
    let survey = check_seeds(0..n).unwrap_or_else(|report| panic!("{report}"));
    println!("{survey}");
    // The modules are what they are for.
    if n >= SEEDS_USUAL {
        assert!(survey.n_modules as u64 * 10 >= n * 8, "too few are modules: {survey}");
        assert!(survey.n_calls >= survey.n_modules * 5, "too few calls: {survey}");
        assert!(survey.n_returned * 2 >= survey.n_calls, "too few return: {survey}");
        assert!(
            survey.n_with_host_calls * 5 >= survey.n_modules,
            "too few call the host: {survey}"
        );
        assert!(survey.n_without_wasmi * 10 <= survey.n_modules, "too few in wasmi: {survey}");
    }
}

/// The entry point of the fuzz target accepts any bytes.
#[test]
fn any_bytes_can_be_checked() {
    for bytes in [vec![], vec![0; 8], vec![0xff; 300], (0..=255).collect(), random_bytes(1, 2_000)]
    {
        if let Err(difference) = check(&bytes) {
            panic!("{difference}");
        }
    }
}

/// A store of a lane that wasmi takes for another instruction, or for none.
#[test]
fn modules_that_crash_wasmi_run_without_it() {
    for (offset, without_wasmi) in [(65_535, false), (65_536, true)] {
        let text = format!(
            r#"(module (memory 2)
              (func (export "f") (param v128) (result i32)
                i32.const 0  local.get 0  v128.store8_lane offset={offset} 1
                i32.const 0  i32.load8_u offset={offset}))"#
        );
        let program = Program::new(wat::parse_str(text).expect("valid"), 0).expect("supported");
        let facts = check_program(&program).expect("the others agree");
        assert!(matches!(facts.ends[1], End::Returned(_)), "{:?}", facts.ends);
        assert_eq!(facts.without_wasmi, without_wasmi, "{offset}");
    }
}

/// Faults that were found are those that are known.
#[test]
fn a_known_fault_of_wasmi_is_told_from_others() {
    let text = r#"
        (module
          (func (export "f") (result i32) (local i32 i32)
            local.get 0  i32.const 5  i32.add  local.set 1
            i32.const 1  i32.const 2  local.get 0  i32.eqz  select))"#;
    let program = Program::new(wat::parse_str(text).expect("valid"), 0).expect("supported");
    let facts = check_program(&program).expect("nobody else has the fault");
    assert_eq!(facts.ends[1], End::Returned(vec![Value::I32(1)]));
    let fault = facts.fault_of_wasmi.expect("wasmi has it");
    assert!(fault.message.ends_with("returned [I32(2)] instead of returned [I32(1)]"), "{fault}");
}
