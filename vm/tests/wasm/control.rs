//! Structured control as labels and branches.

use crate::{flat, import};

/// Checks the translation of the body of the only function, which takes `i32`, `i64`, `f32`. The result is
/// one line, without the declarations of locals: labels precede their instructions.
#[track_caller]
fn check(results: &str, body: &str, expected: &str) {
    let wat = format!("(module (func (param i32 i64 f32) {results} {body}))");
    let found = flat(&import(&wat));
    let (_, found) = found.split_once("{; ").expect("the function has a body");
    let found = found.strip_suffix("; }").expect("the function ends");
    assert_eq!(found, expected, "{wat}");
}

#[test]
fn a_body_returns_at_its_end() {
    check("", "", "return");
    check("(result i64)", "local.get 1", "local.get 1; return");
    check("(result i64)", "local.get 1 return", "local.get 1; return");
    check("(result i64)", "local.get 1 br 0", "local.get 1; br 0; 0(i64):; return");
    check("", "nop nop", "return");
}

#[test]
fn blocks_have_labels_where_branches_go_to_them() {
    check("", "block end", "return");
    check("", "block br 0 end", "br 0; 0:; return");
    check("", "block local.get 0 br_if 0 end", "local.get 0; br_if 0; 0:; return");
    // A branch to the body's end and one to a block that ends there share a label.
    let two = "block local.get 0 br_if 0 local.get 0 br_if 1 end";
    check("", two, "local.get 0; br_if 0; local.get 0; br_if 0; 0:; return");
}

#[test]
fn results_of_blocks_are_operands_at_the_label() {
    let body = "block (result i64) local.get 1 local.get 0 br_if 0 end";
    check("(result i64)", body, "local.get 1; local.get 0; br_if 0; 0(i64):; return");
    let body = "i32.const 1 block (result i64 f32) local.get 1 local.get 2 br 0 end drop drop";
    let code = "i32.const 1; local.get 1; local.get 2; br 0; 0(i32, i64, f32):; drop; drop; return";
    check("(result i32)", body, code);
}

#[test]
fn parameters_of_blocks_are_operands_already() {
    let body = "local.get 1 block (param i64) (result i32) i32.wrap_i64 local.get 0 br_if 0 end";
    let code = "local.get 1; i32.wrap_i64; local.get 0; br_if 0; 0(i32):; return";
    check("(result i32)", body, code);
}

#[test]
fn loops_have_their_label_at_the_start() {
    check("", "loop end", "0:; return");
    check("", "loop br 0 end", "0:; br 0");
    check("", "loop local.get 0 br_if 0 end", "0:; local.get 0; br_if 0; return");
    let body = "local.get 1 loop (param i64) (result i64) local.get 0 br_if 0 end";
    check("(result i64)", body, "local.get 1; 0(i64):; local.get 0; br_if 0; return");
    // The results of a loop need not be its parameters.
    let body = "local.get 1 loop (param i64) (result f32) drop local.get 1 local.get 0 br_if 0 \
                drop local.get 2 end";
    let code = "local.get 1; 0(i64):; drop; local.get 1; local.get 0; br_if 0; drop; local.get 2; \
                return";
    check("(result f32)", body, code);
}

#[test]
fn an_if_branches_to_its_other_arm() {
    check("", "local.get 0 if end", "local.get 0; i32.eqz; br_if 0; 0:; return");
    let body = "local.get 0 if nop else nop end";
    check("", body, "local.get 0; i32.eqz; br_if 0; br 0; 0:; return");
    let body = "local.get 0 if (result i64) local.get 1 else i64.const 2 end";
    let code = "local.get 0; i32.eqz; br_if 0; local.get 1; br 1; 0:; i64.const 2; 1(i64):; return";
    check("(result i64)", body, code);
    // Without a second arm, the parameters are the results.
    let body = "local.get 1 local.get 0 if (param i64) (result i64) i64.eqz i64.extend_i32_u end";
    let code = "local.get 1; local.get 0; i32.eqz; br_if 0; i64.eqz; i64.extend_i32_u; 0(i64):; \
                return";
    check("(result i64)", body, code);
}

#[test]
fn branches_out_of_an_if_go_behind_it() {
    let body = "local.get 0 if (result i64) local.get 1 br 0 else i64.const 2 end";
    let code = "local.get 0; i32.eqz; br_if 0; local.get 1; br 1; 0:; i64.const 2; 1(i64):; return";
    check("(result i64)", body, code);
    check("", "local.get 0 if br 0 end", "local.get 0; i32.eqz; br_if 0; br 0; 0:; return");
    // If neither arm continues, nothing follows them.
    let body = "local.get 0 if unreachable else return end";
    check("", body, "local.get 0; i32.eqz; br_if 0; unreachable; 0:; return");
    let body = "local.get 0 if unreachable end i32.const 1 drop";
    check("", body, "local.get 0; i32.eqz; br_if 0; unreachable; 0:; i32.const 1; drop; return");
}

#[test]
fn branches_drop_operands_that_the_target_does_not_know() {
    check("", "block i32.const 1 br 0 end", "i32.const 1; br_keep 0 0; 0:; return");
    let body = "block (result i64) i32.const 1 f32.const 2 local.get 1 br 0 end";
    let code = "i32.const 1; f32.const 2.0; local.get 1; br_keep 0 1; 0(i64):; return";
    check("(result i64)", body, code);
    // The operands below the block stay.
    let body = "local.get 2 block i32.const 1 br 0 end";
    check("(result f32)", body, "local.get 2; i32.const 1; br_keep 0 0; 0(f32):; return");
    let body = "local.get 2 block (result i64) i32.const 1 local.get 1 br 0 end drop";
    let code = "local.get 2; i32.const 1; local.get 1; br_keep 0 1; 0(f32, i64):; drop; return";
    check("(result f32)", body, code);
    check("", "loop i32.const 1 br 0 end", "0:; i32.const 1; br_keep 0 0");
}

#[test]
fn conditional_branches_that_drop_go_by_way_of_one_that_keeps() {
    let body = "block i32.const 1 local.get 0 br_if 0 drop end";
    let code = "i32.const 1; local.get 0; br_if 0; drop; br 1; 0(i32):; br_keep 1 0; 1:; return";
    check("", body, code);
    // All branches with the same stack share a detour.
    let branch = "i32.const 1 local.get 1 local.get 0 br_if 0 drop drop";
    let body = format!("block (result i64) {branch} {branch} i64.const 3 br 0 end");
    let emitted = "i32.const 1; local.get 1; local.get 0; br_if 0; drop; drop";
    let code = format!(
        "{emitted}; {emitted}; i64.const 3; br 1; 0(i32, i64):; br_keep 1 1; 1(i64):; return"
    );
    check("(result i64)", &body, &code);
    let other = "f32.const 1 local.get 1 local.get 0 br_if 0 drop drop";
    let body = format!("block (result i64) {branch} {other} unreachable end");
    let code = format!(
        "{emitted}; f32.const 1.0; local.get 1; local.get 0; br_if 0; drop; drop; unreachable; \
         0(f32, i64):; br_keep 2 1; 1(i32, i64):; br_keep 2 1; 2(i64):; return"
    );
    // The first branch goes to the second detour.
    check("(result i64)", &body, &code.replacen("br_if 0", "br_if 1", 1));
}

#[test]
fn code_that_keeps_for_a_loop_stands_behind_it() {
    let body = "loop i32.const 1 local.get 0 br_if 0 drop end";
    let code =
        "0:; i32.const 1; local.get 0; br_if 1; drop; br 2; 1(i32):; br_keep 0 0; 2:; return";
    check("", body, code);
    let body = "loop i32.const 1 local.get 0 br_if 0 unreachable end";
    let code = "0:; i32.const 1; local.get 0; br_if 1; unreachable; 1(i32):; br_keep 0 0";
    check("", body, code);
}

#[test]
fn a_table_goes_to_labels_or_by_way_of_code_that_drops() {
    check("", "block local.get 0 br_table 0 end", "local.get 0; br_table [] 0; 0:; return");
    let body = "block block local.get 0 br_table 0 1 2 0 end nop end";
    check("", body, "local.get 0; br_table [0, 0, 0] 0; 0:; return");
    // One detour for each depth that needs it, however often the table names that depth.
    let body = "block i32.const 5 block local.get 0 br_table 0 1 0 1 1 end drop end";
    let code = "i32.const 5; local.get 0; br_table [0, 1, 0, 1] 1; 0(i32):; drop; br 2; \
                1(i32):; br_keep 2 0; 2:; return";
    check("", body, code);
    let body = "block (result i64) i32.const 5 local.get 1 local.get 0 br_table 0 0 end";
    let code = "i32.const 5; local.get 1; local.get 0; br_table [0] 0; \
                0(i32, i64):; br_keep 1 1; 1(i64):; return";
    check("(result i64)", body, code);
}

#[test]
fn a_table_goes_to_loops() {
    let body = "loop block i32.const 7 local.get 0 br_table 0 1 2 end end";
    let code = "0:; i32.const 7; local.get 0; br_table [1, 3] 5; 1(i32):; br_keep 2 0; 2:; br 4; \
                3(i32):; br_keep 0 0; 4:; br 6; 5(i32):; br_keep 6 0; 6:; return";
    check("", body, code);
}

#[test]
fn returns_drop_what_is_below_the_results() {
    check("", "i32.const 1 return", "i32.const 1; return");
    let body = "i32.const 1 local.get 1 return";
    check("(result i64)", body, "i32.const 1; local.get 1; return");
    check("", "i32.const 1 br 0", "i32.const 1; br_keep 0 0; 0:; return");
}

#[test]
fn tail_calls_drop_what_is_below_the_parameters() {
    let wat = "(module (table 1 funcref) (type $t (func (param i64)))
        (func $f (param i64) i32.const 1 local.get 0 return_call $f)
        (func (param i64) i32.const 1 local.get 0 i32.const 0 return_call_indirect (type $t))
        (func (param i64) local.get 0 i32.const 0 return_call_indirect (type $t)))";
    let code = flat(&import(wat));
    for expected in [
        "{; i32.const 1; local.get 0; return_call f; }",
        "{; i32.const 1; local.get 0; i32.const 0; return_call_indirect (i64); }",
        "{; local.get 0; i32.const 0; return_call_indirect (i64); }",
    ] {
        assert!(code.contains(expected), "{expected}\n{code}");
    }
}

#[test]
fn code_that_nothing_reaches_is_left_out() {
    check("(result i64)", "unreachable", "unreachable");
    check("(result i64)", "unreachable i32.add drop", "unreachable");
    check("", "return i32.const 1 drop", "return");
    check("", "loop br 0 i32.const 1 drop end", "0:; br 0");
    let tables = "block local.get 0 br_table 0 0 drop i64.add drop br_table 0 0 end";
    check("", tables, "local.get 0; br_table [0] 0; 0:; return");
    // Blocks of every kind, with a balanced stack inside.
    let blocks =
        "return block loop unreachable if else block end end br 2 end unreachable if end end";
    check("", blocks, "return");
    // Unreachable branches make no label a target.
    check("", "block return br 0 end i32.const 1 drop", "return");
    // An unreachable arm, next to a reachable one.
    let arm = "local.get 0 if (result i64) return block (result i64) i64.const 1 end \
               else local.get 1 end drop";
    check("", arm, "local.get 0; i32.eqz; br_if 0; return; 0:; local.get 1; drop; return");
    // The code after a block continues where a branch leaves the block.
    let out = "block local.get 0 br_if 0 unreachable i32.add drop end i32.const 1 drop";
    check("", out, "local.get 0; br_if 0; unreachable; 0:; i32.const 1; drop; return");
    // The code of a function that tail-calls itself ends there.
    let wat = "(module (func $f return_call $f i32.const 1 drop))";
    assert_eq!(flat(&import(wat)), "func f() {; return_call f; }");
}

#[test]
fn an_if_that_nothing_reaches_vanishes_with_both_arms() {
    check("", "return if block br 0 end else loop br 0 end end", "return");
    check("", "unreachable if (result i32) i32.const 1 else i32.const 2 end drop", "unreachable");
}

#[test]
fn selects_keep_no_type() {
    let body = "local.get 1 i64.const 2 local.get 0 select (result i64)";
    check("(result i64)", body, "local.get 1; i64.const 2; local.get 0; select; return");
    let body = "local.get 2 f32.const 2 local.get 0 select";
    check("(result f32)", body, "local.get 2; f32.const 2.0; local.get 0; select; return");
}
