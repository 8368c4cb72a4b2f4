use super::*;
use crate::construction::build::BuildOptions;
use crate::ir::entity::Edge;
use crate::tools::samples::{module, slot_forms};

/// A function with one of each kind of immediate and operand. It does not verify.
const ALL_KINDS: &str = "\
func f3 $\"odd \\\"name\\\\ é;\"(v0: i64, v1: i32, v2: externref) -> (i64, f32) {
  enter f3 at 2, 5: cell 0, frame, block < f7 after 18: cell 12 < f9 after 0:
  slot s0.n: i64 = local 0
  slot stack12: f32 = stack 12
  slot stack12_i32.$\"a;b\": i32 = stack 12
  slot inlined3.x.y: f64 = inlined 3 kept @0002
b0:                                     ; @0000
  stack.push 12                         ; @0000
  v3 = frame.push 16                    ; @0000
  fuel 7                                ; @0000
  slot.set s0.n, v0                     ; @0000
  v4 = slot.get stack12                 ; @0002
  v5.i = i32.const -5                   ; @0003
  v6 = i64.const -9223372036854775808   ; @0004
  v7 = f32.const -nan:0x400001          ; @0005
  v8 = f64.const 1.5e-300               ; @0006
  v9 = f64.const -inf                   ; f4@0010 < @0007
  v10 = i32.load v1                     ; f4@0010 < f5@0001 < @0007
  v11 = i64.load8_s_indexed v1+v5.i*4   ; @0008
  f32.store v1+16, v7                   ; @0009
  f64.store_indexed v1+v5.i*8+24, v8    ; @000a
  v12: i64, v13: f32 = call f2(v0, v1)  ; @000b
  call f9()                             ; @000c
  v14: i32 = call_indirect type1 t0(v5.i)  ; @000d
  v15 = select v12, v6, v14             ; @000e
  v16: f64 = global.get g1              ; @000f
  global.set g2, v15                    ; @0010
  v17 = ref.null funcref                ; @0011
  v18 = ref.func f3                     ; @0012
  v19 = ref.is_null v2                  ; @0013
  v20: funcref = table.get t0, v1       ; @0014
  table.set t0, v1, v20                 ; @0015
  v21 = table.size t0                   ; @0016
  v22 = table.grow t0, v17, v1          ; @0017
  fuel.bulk 3, v1                       ; @0018
  table.fill t0, v1, v18, v1            ; @0018
  table.copy t0, t1, v1, v1, v1         ; @0019
  table.init elem0, t1, v1, v1, v1      ; @001a
  elem.drop elem0                       ; @001b
  v23 = memory.size                     ; @001c
  v24 = memory.grow v23                 ; @001d
  memory.init data2, v1, v1, v1         ; @001e
  data.drop data2                       ; @001f
  br_table v1, [b1(v0), b2, b1(v6)], b3(v4, v0)  ; @1234
b1(v25: i64):                           ; label 2 @0020
  frame.pop 16                          ; @0020
  stack.pop 12                          ; @0020
  return v25, v4                        ; @0020
b2:                                     ; @0030
  v26.$\"\\\";\" = i64.eqz v0               ; @0030
  br_if v26.$\"\\\";\", b1(v0), b3(v4, v0)  ; @0031
b3(v27: f32, v28: i64):                 ; label 0 @0040
  return_call_indirect type0 t1(v28, v1)  ; @0041
b4:                                     ; @0050
  return_call f2(v0, v1)                ; @0050
b5:                                     ; @0051
  br_table v1, [], b6                   ; @0051
b6:                                     ; @0052
  unreachable                           ; @0052
}
";

#[test]
fn all_kinds_of_instructions_round_trip() {
    let f = parse(ALL_KINDS).unwrap();
    assert_eq!(f.to_string(), ALL_KINDS);
    assert_eq!(f.name, "odd \"name\\ é;");
    assert_eq!(f.edge_args(Edge(3)), [Value(4), Value(0)]);
    assert_eq!(f.label(Block(1)), Some(2));
    assert_eq!(f.block_offset(Block(1)), 0x20);
    let names = [Value(5), Value(26), Value(0)].map(|value| f.value_name(value));
    assert_eq!(names, [Some("i"), Some("\";"), None]);
    let names = [0, 1, 2, 3].map(|slot| f.slot_name(Slot(slot)));
    assert_eq!(names, [Some("n"), None, Some("a;b"), Some("x.y")]);
}

#[test]
fn slots_are_numbered_as_locals() {
    let text = "func f0(v0: i64) {\n  slot s4: i64 = local 6\n  slot s1: i32 = local 9\nb0:\n  slot.set s4.x, v0\n  return\n}";
    let expected = "\
func f0(v0: i64) {
  slot s6: i64 = local 6
  slot s9: i32 = local 9
b0:                                     ; @0000
  slot.set s6, v0                       ; @0000
  return                                ; @0000
}
";
    assert_eq!(parse(text).unwrap().to_string(), expected);
}

#[test]
fn inlined_locations_are_chains() {
    let f = parse(ALL_KINDS).unwrap();
    let at = |loc: Loc| f.locs[loc.index()];
    let inst =
        f.insts(Function::ENTRY).iter().find(|&&inst| f.opcode(inst).mnemonic() == "i32.load");
    let inner = at(f.loc(*inst.unwrap()));
    let middle = at(inner.inlined_at.unwrap());
    let outer = at(middle.inlined_at.unwrap());
    let places = [inner, middle, outer].map(|loc| (loc.func, loc.offset));
    assert_eq!(places, [(4, 0x10), (5, 1), (3, 7)]);
    assert_eq!(outer.inlined_at, None);
}

#[test]
fn slot_form_round_trips() {
    let source = "
        import \"env\" \"take\" func take(i32)
        memory m 1
        frame_stack 1024 4096
        func loop(n: i64) -> i64 {
            i64.const 0
          again(i64):
            local.get n  i64.add
            local.get n  i64.const 1  i64.sub  local.tee n
            i64.eqz  br_if done  br again
          done(i64):
            return }
        func escape(a: i32) { local.addr a  call take  return }";
    let module = module(source);
    let options = BuildOptions { fuel: true, stack_cells: true, polls: true, waits: false };
    let functions = slot_forms(&module, &options);
    let text: String = functions.iter().map(Function::to_string).collect();
    let parsed = parse_all(&text).unwrap();
    assert_eq!(parsed.iter().map(Function::to_string).collect::<String>(), text);
    for f in &parsed {
        assert_eq!(crate::ir::verify::verify(f, crate::ir::verify::Form::Slots, &module), Ok(()));
    }
}

#[test]
fn people_may_write_loosely() {
    let text = "
        ; a comment
        func f0 (v7 : i64)->i64{
          b0 :          ; the entry
          v9=i64.add v7 , v7   ; doubles
          br b1( v9 )
          b1(v8:i64):
          return v8
        }
        ; behind";
    let expected = "\
func f0(v0: i64) -> i64 {
b0:                                     ; @0000
  v1 = i64.add v0, v0                   ; @0000
  br b1(v1)                             ; @0000
b1(v2: i64):                            ; @0000
  return v2                             ; @0000
}
";
    assert_eq!(parse(text).unwrap().to_string(), expected);
}

fn in_body(line: &str) -> String {
    format!("func f0(v0: i64) {{\n  slot s0: i64 = local 0\nb0:\n{line}\n  return\n}}\n")
}

fn error(text: &str) -> String {
    parse(text).map(|f| f.to_string()).expect_err(text).to_string()
}

#[test]
fn errors_point_at_line_and_column() {
    let cases = [
        ("  i64.frob v0", "4:3: expected an instruction"),
        ("  local.get 0", "4:3: local.get exists only in bytecode"),
        ("  v1 = i64.add v0, v3", "4:20: v3 is not defined"),
        ("  v1 = i64.add v0 v0", "4:19: expected `,`"),
        ("  v0 = i64.add v0, v0", "4:3: v0 is defined twice"),
        ("  i64.add v0, v0", "4:3: i64.add has 1 results, not 0"),
        ("  v1: i64 = i64.add v0, v0", "4:3: unexpected type; i64.add determines it"),
        ("  v1 = global.get g0", "4:3: expected `: ` and the type of v1"),
        ("  v1 = global.get 0", "4:19: expected a global such as `g0`"),
        ("  v1 = slot.get s1", "4:17: s1 is not defined"),
        ("  slot.set s0.$\"x, v0", "4:15: unterminated name; expected a closing quote"),
        ("  slot.set l0, v0", "4:12: expected a slot such as `s0`"),
        ("  br b1.x", "4:6: expected a block such as `b1`"),
        ("  v1. = i64.add v0, v0", "4:7: expected a name"),
        ("  v1 = i32.const 4294967296", "4:18: expected a number in range"),
        ("  v1 = f64.const 1.0.0", "4:18: malformed float"),
        ("  v1 = i32.load_indexed v0+v0*3", "4:31: expected a scale: 1, 2, 4 or 8"),
        ("  v1 = ref.null i64", "4:17: expected a reference type"),
        (
            "  v1 = select v9, v9, v9",
            "4:8: the first operand determines the type and must be defined before",
        ),
        ("  br b1", "4:6: b1 is not defined"),
        ("  br b0(v0)\nb1(v1: i64):\n  br b1", "6:6: b1 takes 1 operands, not 0"),
        ("  br", "4:5: expected a block such as `b1`"),
        ("b2:", "4:1: expected b1: blocks are numbered in order"),
        ("b1(v1: i63):", "4:8: expected a type"),
        ("  call f1(v0", "4:13: expected `,`"),
        ("  unreachable here", "4:15: expected a value such as `v1`"),
        ("  slot s1: i64 = local 1", "4:3: expected an instruction"),
        ("}", "5:3: expected nothing after the function"),
    ];
    for (line, expected) in cases {
        let message = error(&in_body(line));
        assert_eq!(message, expected, "{line}");
    }
}

#[test]
fn labels_have_names_or_numbers() {
    let text = "\
func f0() {
b0:                                     ; @0000
  br b1                                 ; @0000
b1:                                     ; label loop @0001
  br b2                                 ; @0001
b2:                                     ; label 1 @0002
  br b3                                 ; @0002
b3:                                     ; label $\"a \\\"; b\" @0003
  return                                ; @0003
}
";
    let f = parse(text).expect("it parses");
    assert_eq!(f.to_string(), text);
    assert_eq!(f.label(Block(2)), Some(1));
    assert_eq!(f.block_offset(Block(3)), 3);
}

#[test]
fn errors_outside_of_blocks() {
    assert_eq!(error(""), "1:1: expected a function");
    assert_eq!(error("func f0() {\n}"), "2:2: expected the block `b0`");
    assert_eq!(error("func f0() {\nb0:\n  return\n"), "4:1: expected `}`");
    assert_eq!(error("func 0() {"), "1:6: expected a function such as `f3`");
    assert_eq!(error("func f0 $\"a() {"), "1:9: unterminated name; expected a closing quote");
    assert_eq!(error("func f0 $\"\\x\"() {"), "1:11: expected two hexadecimal digits after `\\x`");
    assert_eq!(
        error("func f0() {\n  slot s1: i64 = local 0\n  slot s1: i64 = local 1"),
        "3:8: s1 is defined twice"
    );
    assert_eq!(error("func f0() {\n  return"), "2:3: expected `slot`");
    assert_eq!(
        error("func f0() {\nb0(v0: i64):"),
        "2:1: unexpected parameters of the entry; expected them after the function's name"
    );
}

#[test]
fn damaged_text_gives_an_error_or_a_function() {
    let module = module("memory m 1 table t funcref 1 func f(a: i64) { return }");
    let check = |text: &str| {
        if let Ok(f) = parse(text) {
            // Nor does the verifier panic. It refuses the whole text, too.
            assert!(
                crate::ir::verify::verify(&f, crate::ir::verify::Form::Slots, &module).is_err()
            );
            // What can be parsed can be printed, and what is printed is canonical.
            let printed = f.to_string();
            assert_eq!(parse(&printed).unwrap().to_string(), printed);
        }
    };
    for end in (0..ALL_KINDS.len()).filter(|&end| ALL_KINDS.is_char_boundary(end)) {
        check(&ALL_KINDS[..end]);
    }
    for (i, c) in ALL_KINDS.char_indices() {
        for replacement in ["", "v", "9", "\"", "\n"] {
            let rest = &ALL_KINDS[i + c.len_utf8()..];
            check(&format!("{}{replacement}{rest}", &ALL_KINDS[..i]));
        }
    }
}
