//! Meaning of texts: details that the round trip does not cover.

use slotvm_bytecode::module::{
    BranchHint, ElemItems, Func, ImportCall, ImportKind, SegmentMode, Shape, ShapeId, SourcePlace,
};
use slotvm_bytecode::text::{self, ParseOptions, PrintError, Printer};
use slotvm_bytecode::{CodeReader, FuncType, Module, ValType, decode, encode, verify};

use crate::{check_round_trip, parse};

/// Returns the code of a function with this body.
fn code_of(body: &str) -> Vec<u8> {
    let around = "memory mem 1 table t funcref 1 table u funcref 1 data d \"\" elem e func";
    let module = parse(&format!("{around}\nfunc f(x: i32) {{ {body}\n}}"));
    module.funcs[0].code.clone()
}

/// The lines of a function, which have neither file nor column.
fn lines(func: &Func) -> Vec<(u32, u32)> {
    let line = |&(offset, place): &(u32, SourcePlace)| {
        assert_eq!(place, SourcePlace::line(place.line));
        (offset, place.line)
    };
    func.lines.iter().map(line).collect()
}

#[test]
fn operands_that_are_left_out_are_zero() {
    for (short, long) in [
        ("call_indirect (i32)", "call_indirect 0 t"),
        ("call_indirect (i32) -> (), u", "call_indirect (i32), 1"),
        ("table.get", "table.get t"),
        ("table.copy", "table.copy t, t"),
        ("table.init e", "table.init e, t"),
        ("memory.size", "memory.size mem"),
        ("memory.copy", "memory.copy mem mem"),
        ("memory.init d", "memory.init d 0"),
        ("i32.load", "i32.load mem 0"),
        ("i32.load 8", "i32.load 0 8"),
        ("i32.load_indexed 4, 8", "i32.load_indexed mem, 4, 8"),
        ("i32.load_indexed 4", "i32.load_indexed mem 4 0"),
        ("i32.load_indexed 4 8", "i32.load_indexed 0 4 8"),
    ] {
        assert_eq!(code_of(short), code_of(long), "{short}");
    }
}

#[test]
fn optional_operands_end_at_the_line_and_before_labels() {
    let module = parse(
        "func f() { table.size
         0: table.size 1: i32.load 2(i32): i32.load 4
         l: memory.size m(i32): drop }",
    );
    let offsets: Vec<u32> = module.funcs[0].labels.iter().map(|label| label.offset).collect();
    assert_eq!(offsets, [2, 4, 7, 10, 12]);
}

#[test]
fn literals_are_cells() {
    assert_eq!(code_of("i32.const 'a' i64.const '\\n'"), code_of("i32.const 97 i64.const 10"));
    assert_eq!(code_of("i32.const 0xffff_ffff"), code_of("i32.const -1"));
    assert_eq!(code_of("f64.const 16"), code_of("f64.const 0x10"));
    assert_eq!(code_of("f32.const nan"), code_of("f32.const nan:0x400000"));
}

#[test]
fn types_and_shapes_are_numbered_by_first_use() {
    use ValType::{F32, F64, I64};
    let module = parse(
        "import \"m\" \"f\" func f(i64)
         func g() { call_indirect (f32) -> f64 call_indirect (i64)
         l(i64, f32): m(i64): n(i64, f64): }
         func h(f32) -> f64 {}",
    );
    let types = [FuncType::new([I64], []), FuncType::new([], []), FuncType::new([F32], [F64])];
    assert_eq!(module.types, types);
    let shape = |parent, ty| Shape { parent: ShapeId(parent), ty };
    assert_eq!(module.shapes, [shape(0, I64), shape(1, F32), shape(1, F64)]);
    let shapes: Vec<u32> = module.funcs[0].labels.iter().map(|label| label.shape.0).collect();
    assert_eq!(shapes, [2, 1, 3]);
}

#[test]
fn imports_are_marked() {
    let text = "import \"m\" \"leaf\" leaf func leaf(f64) -> i32\nimport \"m\" \"g\" func g()\n\
        import \"m\" \"h\" cold func h()\n";
    let module = parse(text);
    let calls = module.imports.iter().map(|import| match import.kind {
        ImportKind::Func(_, call) => call,
        _ => panic!("an import that is no function"),
    });
    assert_eq!(
        calls.collect::<Vec<_>>(),
        [ImportCall::Leaf, ImportCall::Ordinary, ImportCall::Cold]
    );
    let printed = text::print(&module).unwrap();
    assert!(printed.starts_with("import \"m\" \"leaf\" leaf func leaf(f64) -> i32\n"), "{printed}");
    assert_eq!(parse(&printed), module);
    assert_eq!(decode(&encode(&module)).unwrap(), module);
    let verified = verify(module).unwrap();
    assert_eq!(
        [0, 1, 2].map(|func| verified.import_call(func)),
        [ImportCall::Leaf, ImportCall::Ordinary, ImportCall::Cold]
    );
}

#[test]
fn tables_are_printed_only_if_first_use_gives_others() {
    let natural = "func f(i64) { 0(i64, i32): }";
    let unused = format!("type 0 = (i64) -> ()\ntype 1 = () -> ()\n{natural}");
    let swapped = format!("shape 1 = (0 i32)\nshape 2 = (0 i64)\n{natural}");
    let has_tables = |source: &str| {
        let printed = text::print(&parse(source)).expect("the code decodes");
        (printed.contains("type "), printed.contains("shape "))
    };
    assert_eq!(has_tables(natural), (false, false));
    assert_eq!(has_tables(&unused), (true, false));
    assert_eq!(has_tables(&swapped), (false, true));
}

/// Deep stacks at many labels, long types and long names are not printed again and again.
#[test]
fn the_size_of_the_text_is_linear() {
    let name = "n".repeat(10_000);
    let module = parse(&format!("func {name}() {{ {} }}", "call 0 ".repeat(1_000)));
    let printed = text::print(&module).expect("the code decodes");
    assert!(printed.len() < 50_000, "{} bytes", printed.len());
    assert_eq!(parse(&printed), module);

    let depth = 3_000;
    let mut source = String::from("func f() {\n");
    for label in 0..depth {
        let below = if label == 0 { String::new() } else { format!("#{label} ") };
        source += &format!("{label}({below}i64): nop\n");
    }
    let module = parse(&(source + "return }"));
    let printed = text::print(&module).expect("the code decodes");
    assert!(printed.len() < 100 * depth, "{} bytes", printed.len());
    assert_eq!(parse(&printed), module);

    let params = vec!["i64"; 1_000].join(", ");
    let source: String = (0..1_000).map(|i| format!("func {i} type 0 {{}}\n")).collect();
    let module = parse(&format!("type 0 = ({params}) -> ()\n{source}"));
    let printed = text::print(&module).expect("the code decodes");
    assert!(printed.len() < 100_000, "{} bytes", printed.len());
    assert_eq!(parse(&printed), module);
}

#[test]
fn locals_of_one_type_make_one_run() {
    let module = parse("func f(a: i64) { local b: i64, i64 local 3 i64, c: i32, 0 i64, 2 i32 }");
    assert_eq!(module.funcs[0].locals, [(5, ValType::I64), (3, ValType::I32)]);
    assert_eq!(module.names.local(0, 1), Some("b"));
    assert_eq!(module.names.local(0, 6), Some("c"));
}

#[test]
fn a_segment_without_elements_ends_before_the_next_item() {
    let module = parse(
        "elem a func
         elem b funcref
         func f() {}
         elem c func f,
           f elem d declared func",
    );
    let lengths: Vec<usize> = module.elems.iter().map(|elem| elem.items.len()).collect();
    assert_eq!(lengths, [0, 0, 2, 0]);
    assert_eq!(module.elems[1].items, ElemItems::Exprs(Vec::new()));
    assert_eq!(module.elems[3].mode, SegmentMode::Declared);
}

#[test]
fn source_lines_come_from_directives_or_from_the_text() {
    let source = "func f() {\n  nop nop\n\n  nop\n  return }
        func g() { .line 7 nop\n .line 7 return }";
    assert_eq!(lines(&parse(source).funcs[0]), []);
    let options = ParseOptions { record_lines: true };
    let module = text::parse_with(source, options).expect("the text is valid");
    assert_eq!(lines(&module.funcs[0]), [(0, 2), (2, 4), (3, 5)]);
    assert_eq!(lines(&module.funcs[1]), [(0, 7)]);
    assert_eq!(module.funcs[0].line_at(1), Some(2));
    let module = parse("func f() { .line 1 .line 2 nop .line 3 .line 2 nop }");
    assert_eq!(lines(&module.funcs[0]), [(0, 2)]);
}

#[test]
fn source_places_have_columns_and_files() {
    let source = "name file 1 \"main.wend\" name file 9 \"a b.c\"
        func f() { .line 7:12, 1 nop .line 7:14, 1 nop .line 7, 9 nop .line 0 nop .line 7:14 at 4 return }";
    let module = parse(source);
    let places: Vec<_> = module.funcs[0].lines.clone();
    let place = |file, line, column| SourcePlace { file, line, column };
    let expected =
        [place(1, 7, 12), place(1, 7, 14), place(9, 7, 0), SourcePlace::NONE, place(0, 7, 14)];
    assert_eq!(places, (0..).zip(expected).collect::<Vec<_>>());
    assert_eq!(module.funcs[0].place_at(1), Some(place(1, 7, 14)));
    assert_eq!(module.funcs[0].place_at(3), None);
    assert_eq!((module.names.file(9), module.names.file(0)), (Some("a b.c"), None));
    let printed = text::print(&module).expect("it can be printed");
    assert!(
        printed.contains("  .line 7:12, 1\n") && printed.contains("  .line 7, 9\n"),
        "{printed}"
    );
    assert_eq!(parse(&printed), module);
    let bytes = encode(&module);
    assert_eq!(decode(&bytes), Ok(module));
    // Without files and columns, the section is that of lines.
    assert!(
        bytes.len() > encode(&parse(&source.replace(":12, 1", "").replace(":14, 1", ""))).len()
    );
}

#[test]
fn branches_have_hints() {
    let source = "func f(n: i32) {
        top: local.get n .unlikely br_if out
        local.get n br_if out
        local.get n .line 7 .likely over: br_if top .unlikely at 6
        out: return }";
    let module = parse(source);
    let hints = [(2, BranchHint::Unlikely), (10, BranchHint::Likely), (6, BranchHint::Unlikely)];
    assert_eq!(module.funcs[0].hints, hints);
    assert_eq!(parse(&text::print(&module).unwrap()), module);
    let mut module = parse(&source.replace(".unlikely at 6", ""));
    assert_eq!(module.funcs[0].hint_at(10), Some(BranchHint::Likely));
    assert_eq!([0, 6, 11].map(|offset| module.funcs[0].hint_at(offset)), [None; 3]);
    check_round_trip(&module);
    let printed = text::print(&module).expect("it can be printed");
    assert!(
        printed.contains("  .unlikely\n  br_if out\n") && !printed.contains(" at "),
        "{printed}"
    );
    // Hints that no verified module has.
    module.funcs[0].hints = [0, 2, 2, 9, 5, 99].map(|at| (at, BranchHint::Likely)).to_vec();
    assert_eq!(parse(&text::print(&module).unwrap()), module);
    assert_eq!(text::print(&module).unwrap().matches(".likely at ").count(), 4);
}

#[test]
fn traps_have_numbers_and_messages() {
    let module = parse(
        "func f() { trap 7 } name trap 4294967295 \"too \\\"late\\\"\" name trap 7 \"no such key\"
         func g() { trap 0xffffffff } name trap 8 \"no such key\"",
    );
    assert_eq!(module.funcs[0].trap_number_at(0), Some(7));
    assert_eq!(module.funcs[0].trap_number_at(1), None);
    assert_eq!(module.funcs[0].trap_number_at(2), None);
    assert_eq!(module.funcs[1].trap_number_at(0), Some(u32::MAX));
    let shown = [7, u32::MAX, 9].map(|number| module.custom_trap(number).to_string());
    assert_eq!(shown, ["no such key (trap 7)", "too \"late\" (trap 4294967295)", "trap 9"]);
    let printed = text::print(&module).expect("it can be printed");
    assert_eq!(parse(&printed), module);
    assert_eq!(decode(&encode(&module)), Ok(module.clone()));
    verify(module).expect("it is valid");
}

#[test]
fn words_with_a_meaning_can_be_names() {
    let module = parse(
        "global mut: mut i64 = i64.const 1
         func start(data: i64) -> i64 { local i64: i64, local: i32
         nop: local.get data
         func(i64): call start global.set mut return
         table(f32): label: call drop
         over(i64, i32): call_indirect(#1 i64): call_indirect (i64) drop: }
         func drop() {} start start elem nan declared func func, start
         func func() { call_indirect (i64) -> i64 }",
    );
    let printed = text::print(&module).expect("the code decodes");
    assert_eq!(parse(&printed), module);
    assert_eq!(module.funcs[0].labels.len(), 7);
}

#[test]
fn offsets_can_be_shown() {
    let module = parse("func f() -> i64 { i64.const 1\nl(i64): return }");
    let text = Printer::new(&module).func(0).text(text::PrintOptions { offsets: true });
    let text = text.expect("the code decodes");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1], format!("{:<40}; @0000", "  i64.const 1"));
    assert_eq!(lines[3], format!("{:<40}; @0002", "  return"));
}

#[test]
fn one_instruction_can_be_printed() {
    let module = parse("func f(n: i64) { l: local.get n\nbr_table [l, 7] l }");
    let printer = Printer::new(&module);
    let func = printer.func(0);
    let mut reader = CodeReader::new(&module.funcs[0].code, 0);
    assert_eq!(func.inst(reader.read().expect("the code decodes")), "local.get n");
    assert_eq!(func.inst(reader.read().expect("the code decodes")), "br_table [l, 7] l");
}

#[test]
fn code_that_is_no_code_is_named() {
    let mut module = parse("import \"m\" \"f\" func f() func g() { nop nop }\nfunc 2() {}");
    module.funcs[0].code.push(0xff);
    let error = text::print(&module).expect_err("0xff is no opcode");
    assert_eq!(error.to_string(), "function 1 `g`, offset 0x0002: unknown opcode 0xff");
    assert!(matches!(error, PrintError::Code { func: 1, offset: 2, .. }));

    let mut module = parse("global g: i64 = i64.const 5");
    module.globals[0].init.code.pop();
    let error = text::print(&module).expect_err("the constant is cut off");
    let expected = "constant expression of global 0, offset 0: unexpected end of input";
    assert_eq!(error.to_string(), expected);
}

/// Large texts assemble in linear time, with stack that does not grow with the input.
#[test]
fn large_texts_are_assembled() {
    let n = 50_000;
    let mut source = String::new();
    for i in 0..n {
        source += &format!("func f{i}() {{ call f{} return }}\n", (i * 7 + 1) % n);
    }
    source += "func many() {\n";
    for i in 0..n {
        source += &format!("l{i}: i32.const {i} br_if l{}\n", (i * 3 + 2) % n);
    }
    source += "return }\n";
    let module = parse(&source);
    assert_eq!(parse(&text::print(&module).expect("the code decodes")), module);
    verify(module).expect("the module is valid");
    for open in ["(", "[", "{", "func f(", "func f() { l(", "elem e funcref ["] {
        assert!(text::parse(&open.repeat(100_000)).is_err());
    }
    assert_eq!(parse(""), Module::default());
}
