use slotvm_bytecode::{Imm, Op, ValType};

use super::*;
use crate::ir::parse::parse;
use crate::ir::verify::{Form, verify};
use crate::tools::samples::module;

const DIAMOND: &str = "func f0(v0: i32) -> (i32) {
    b0:
      v1 = i32.const 7
      br_if v0, b1(v1), b1(v0)
    b1(v2: i32):
      v3 = i32.div_s v0, v2
      return v3
    }";

fn function() -> Function {
    parse(DIAMOND).unwrap_or_else(|error| panic!("{error}"))
}

/// The blocks of a valid function, without locations.
fn text(f: &Function) -> String {
    let module = module("func f(a: i32) -> (i32) { unreachable }");
    verify(f, Form::Ssa, &module).unwrap_or_else(|violation| panic!("{violation}\n{f}"));
    let text = crate::ir::print::print(f);
    let lines = text.lines().skip(1).map(|line| line.split(';').next().unwrap_or("").trim());
    lines.filter(|line| *line != "}").collect::<Vec<_>>().join("; ")
}

fn insts(f: &Function, block: u32) -> Vec<Inst> {
    f.insts(Block(block)).to_vec()
}

#[test]
fn without_edits_nothing_moves() {
    let mut f = function();
    let before = format!("{f:?}");
    Editor::new(&mut f).finish();
    assert_eq!(format!("{f:?}"), before);
}

#[test]
fn instructions_are_inserted_and_removed() {
    let mut f = function();
    let mut editor = Editor::new(&mut f);
    let loc = editor.func().loc(editor.insts(Block(1))[0]);
    let one = Opcode::Op(Op::I32Const);
    let (a, b) = (
        editor.make_inst(one, Imm(1), &[], &[ValType::I32], loc),
        editor.make_inst(one, Imm(2), &[], &[ValType::I32], loc),
    );
    editor.insert(Block(1), 1, &[a]);
    editor.insert(Block(1), 0, &[b]);
    let result = editor.func().result(a);
    let ret = *editor.insts(Block(1)).last().expect("there is a terminator");
    editor.set_operand(ret, 0, result);
    assert_eq!(editor.retain_insts(Block(1), |_, inst| inst != b), 1);
    editor.finish();
    let expected = "b0:; v1 = i32.const 7; br_if v0, b1(v1), b1(v0); b1(v2: i32):; \
                    v3 = i32.div_s v0, v2; v4 = i32.const 1; return v4";
    assert_eq!(text(&f), expected);
}

#[test]
fn values_stand_for_others() {
    let mut f = function();
    let mut editor = Editor::new(&mut f);
    editor.replace_value(Value(2), Value(1));
    editor.replace_value(Value(1), Value(0));
    assert_eq!(editor.resolve(Value(2)), Value(0));
    editor.retain_params(Block(1), &[false]);
    editor.finish();
    let expected = "b0:; v1 = i32.const 7; br_if v0, b1, b1; b1:; v2 = i32.div_s v0, v0; return v2";
    assert_eq!(text(&f), expected);
}

#[test]
fn edges_are_split_one_by_one() {
    let mut f = function();
    let mut editor = Editor::new(&mut f);
    let edges: Vec<Edge> = editor.in_edges(Block(1)).to_vec();
    assert_eq!(edges.len(), 2);
    let loc = editor.func().loc(editor.insts(Block(0))[0]);
    let block = editor.split_edge(edges[1], loc);
    assert_eq!((editor.src(edges[1]), editor.dst(edges[1])), (Block(0), block));
    let inner = editor.out_edges(block).next().expect("it branches on");
    assert_eq!(editor.in_edges(Block(1)), [edges[0], inner]);
    editor.finish();
    let expected = "b0:; v1 = i32.const 7; br_if v0, b2(v1), b1; b1:; br b2(v0); b2(v2: i32):; \
                    v3 = i32.div_s v0, v2; return v3";
    assert_eq!(text(&f), expected);
}

#[test]
fn blocks_without_a_path_to_them_go() {
    let mut f = parse(
        "func f0(v0: i32) -> (i32) {
        b0:
          br_if v0, b2, b1
        b1:
          v1 = i32.const 1
          return v1
        b2:
          v2 = i32.const 2
          return v2
        }",
    )
    .unwrap_or_else(|error| panic!("{error}"));
    let mut editor = Editor::new(&mut f);
    let edge = editor.out_edges(Block(0)).next().expect("there are two");
    let kept = editor.dst(edge);
    editor.keep_edge(Block(0), edge);
    editor.remove_unreachable();
    assert_eq!(editor.order(), [Block(0), kept]);
    editor.finish();
    assert_eq!(text(&f), "b0:; br b1; b1:; v1 = i32.const 2; return v1");
}

#[test]
fn edges_enter_other_blocks() {
    let mut f = parse(
        "func f0(v0: i32) -> (i32) {
        b0:
          br_if v0, b2(v0), b1
        b1:
          br b2(v0)
        b2(v1: i32):
          br b3
        b3:
          return v0
        }",
    )
    .unwrap_or_else(|error| panic!("{error}"));
    renumber(&mut f);
    let mut editor = Editor::new(&mut f);
    let [taken, other] = editor.out_edges(Block(0)).collect::<Vec<_>>()[..] else { panic!() };
    let (empty, join) = (editor.dst(other), editor.dst(taken));
    assert_eq!([empty, join].map(|block| editor.n_in_edges(block)), [1, 2]);
    editor.redirect_edge(other, join, &[Value(0)]);
    assert_eq!([empty, join].map(|block| editor.n_in_edges(block)), [0, 3]);
    editor.remove_block(empty);
    assert_eq!((editor.n_in_edges(join), editor.in_edges(join)), (2, &[taken, other][..]));
    let last = editor.only_out_edge(join).map(|edge| editor.dst(edge)).expect("it is `br`");
    editor.redirect_edge(taken, last, &[]);
    assert_eq!((editor.args(taken).len(), editor.n_in_edges(last)), (0, 2));
    editor.finish();
    let expected = "b0:; br_if v0, b2, b1(v0); b1(v1: i32):; br b2; b2:; return v0";
    assert_eq!(text(&f), expected);
}

#[test]
fn a_block_takes_over_its_only_successors() {
    let mut f = parse(
        "func f0(v0: i32) -> (i32) {
        b0:
          br b1(v0)
        b1(v1: i32):
          v2 = i32.div_s v1, v0
          br b2(v2, v1)
        b2(v3: i32, v4: i32):
          v5 = i32.add v3, v4
          br_if v5, b3(v5), b3(v4)
        b3(v6: i32):
          return v6
        }",
    )
    .unwrap_or_else(|error| panic!("{error}"));
    let mut editor = Editor::new(&mut f);
    editor.merge_successor(Block(0));
    editor.merge_successor(Block(0));
    assert_eq!((editor.insts(Block(0)).len(), editor.out_edges(Block(0)).len()), (3, 2));
    assert_eq!(editor.only_out_edge(Block(0)), None);
    editor.finish();
    let expected = "b0:; v1 = i32.div_s v0, v0; v2 = i32.add v1, v0; br_if v2, b1(v2), b1(v0); \
                    b1(v3: i32):; return v3";
    assert_eq!(text(&f), expected);
}

#[test]
fn pure_instructions_become_others() {
    let mut f = function();
    let mut editor = Editor::new(&mut f);
    let constant = editor.insts(Block(0))[0];
    editor.rewrite(constant, Opcode::Op(Op::I32Add), &[Value(0), Value(0)]);
    editor.finish();
    assert!(text(&f).starts_with("b0:; v1 = i32.add v0, v0; br_if"), "{f}");
}

/// Asserts that an edit panics and names the reason.
fn refused(reason: &str, edit: impl FnOnce(&mut Editor<'_>) + std::panic::UnwindSafe) {
    let mut f = function();
    let panic = std::panic::catch_unwind(move || edit(&mut Editor::new(&mut f)));
    let message = panic.expect_err("the edit is refused");
    let message = message.downcast_ref::<String>().expect("the message has places");
    assert!(message.contains(reason), "{message}");
}

#[test]
fn effects_stay_in_their_order() {
    let f = function();
    let [div, ret] = insts(&f, 1)[..] else { panic!("two instructions") };
    refused("has ordered effects", |editor| {
        editor.retain_insts(Block(1), |_, inst| inst != div);
    });
    refused("effects of b1 would change", |editor| editor.set_insts(Block(1), &[ret, div]));
    refused("effects of b0 would change", |editor| editor.insert(Block(0), 0, &[div]));
    refused("has ordered effects", |editor| editor.fold(ret, 0));
    refused("has ordered effects", |editor| editor.rewrite(div, Opcode::Op(Op::I32Add), &[]));
    refused("b1 is reachable", |editor| editor.remove_block(Block(1)));
    refused("may not enter the entry", |editor| editor.redirect_edge(Edge(0), Block(0), &[]));
    refused("has ordered effects", |editor| {
        let loc = editor.func().loc(ret);
        editor.make_inst(Opcode::Op(Op::Unreachable), Imm::NONE, &[], &[], loc);
    });
}

/// Edits cost what they change: a function of many blocks is not copied for one of them.
#[test]
fn lists_that_shrink_stay_where_they_are() {
    let mut f = function();
    let mut editor = Editor::new(&mut f);
    let before = editor.func().layout.len();
    let constant = editor.insts(Block(0))[0];
    editor.replace_value(Value(1), Value(0));
    editor.retain_insts(Block(0), |_, inst| inst != constant);
    assert_eq!(editor.func().layout.len(), before);
    editor.finish();
    assert_eq!(f.layout.len(), before - 1);
}
