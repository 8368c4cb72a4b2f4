use super::*;
use crate::construction::build::BuildOptions;
use crate::tools::samples::{THE_SWAP, module, slot_forms};

/// A machine for the slot form of a module, instantiated.
fn machine<'a>(module: &'a VerifiedModule, imports: Imports<'a>, options: Options) -> Machine<'a> {
    let build = BuildOptions {
        fuel: options.fuel.is_some(),
        stack_cells: options.stack_cells.is_some(),
        polls: options.polls.is_some(),
        waits: false,
    };
    let mut machine = Machine::new(module, slot_forms(module, &build), imports, options);
    machine.instantiate().expect("the module instantiates");
    machine
}

fn exported(module: &VerifiedModule, name: &str) -> u32 {
    module.module().names.funcs.iter().find(|(_, n)| n == name).expect("the name exists").0
}

/// Calls the function `f` of a module without imports.
fn call(source: &str, args: &[u128]) -> Result<Vec<u128>, Trap> {
    let module = module(source);
    machine(&module, Imports::default(), Options::default()).call(exported(&module, "f"), args)
}

fn trap(code: TrapCode, func: u32, offset: u32) -> Trap {
    Trap { code, number: None, func, offset }
}

const FIB: &str = "func f(n: i64) -> i64 {
        local.get n  i64.const 2  i64.lt_s  br_if base
        local.get n  i64.const 1  i64.sub  call f
        local.get n  i64.const 2  i64.sub  call f
        i64.add  return
      base:
        local.get n  return }";

#[test]
fn recursion_and_arithmetic() {
    assert_eq!(call(FIB, &[20]), Ok(vec![6765]));
}

#[test]
fn operands_on_the_stack_across_blocks() {
    let source = "func f(n: i64) -> i64 {
            i64.const 0
          loop(i64):
            local.get n  i64.eqz  br_if end
            local.get n  i64.add
            local.get n  i64.const 1  i64.sub  local.set n
            br loop
          end(i64):
            return }";
    assert_eq!(call(source, &[100]), Ok(vec![5050]));
}

#[test]
fn shuffles_and_multiple_results() {
    let source = "func f(a: i64, b: i64, c: i64) -> (i64, i64, i64, i64) {
            local.get a local.get b local.get c  rot  over  br end
          end(i64, i64, i64, i64):
            swap return }";
    // b c a, then over: b c a c, then swap: b c c a.
    assert_eq!(call(source, &[1, 2, 3]), Ok(vec![2, 3, 3, 1]));
}

#[test]
fn loads_and_stores_extend_and_check() {
    let source = "memory m 1
        data d at i32.const 0 \"\\x80\\xff\\x01\\x02\"
        func f(p: i32, i: i32) -> (i32, i64, i32, i64) {
            local.get p  i32.load8_s
            local.get p  i64.load16_s
            local.get p  i32.load16_u 2
            local.get p  local.get i  i64.load8_u_indexed 2
            return }";
    let results = call(source, &[0, 1]).unwrap();
    assert_eq!(results, [0xffff_ff80, 0xffff_ffff_ffff_ff80, 0x0201, 1]);
    // The sum of base and index does not wrap.
    assert_eq!(call(source, &[0, u32::MAX.into()]).unwrap_err().code, TrapCode::MemoryOutOfBounds);
    assert_eq!(call(source, &[65535, 0]), Err(trap(TrapCode::MemoryOutOfBounds, 0, 7)));
}

#[test]
fn traps_have_places() {
    let divide = "func g() { return } func f(a: i32, b: i32) -> i32 {
        local.get a local.get b i32.div_s return }";
    assert_eq!(call(divide, &[7, 0]), Err(trap(TrapCode::IntegerDivisionByZero, 1, 4)));
    let minus_one = u128::from(u32::MAX);
    let overflow = call(divide, &[1 << 31, minus_one]);
    assert_eq!(overflow, Err(trap(TrapCode::IntegerOverflow, 1, 4)));
    assert_eq!(call("func f() { unreachable }", &[]), Err(trap(TrapCode::Unreachable, 0, 0)));
    let custom = Trap { number: Some(7), ..trap(TrapCode::Custom, 0, 1) };
    assert_eq!(call("func f() { nop trap 7 }", &[]), Err(custom));
}

#[test]
fn endless_recursion_overflows_the_stack() {
    let source = "func f() { call f return }";
    assert_eq!(call(source, &[]), Err(trap(TrapCode::StackOverflow, 0, 0)));
    let module = module(source);
    let options = Options { stack_cells: Some(10), ..Options::default() };
    let mut machine = machine(&module, Imports::default(), options);
    assert_eq!(machine.call(0, &[]), Err(trap(TrapCode::StackOverflow, 0, 0)));
    assert_eq!(machine.stack_cells(), Some(10));
}

#[test]
fn tail_calls_need_no_stack() {
    let source = "func f(n: i64) -> i64 {
            local.get n  i64.eqz  br_if end
            local.get n  i64.const 1  i64.sub  return_call f
          end:
            i64.const 42  return }";
    let module = module(source);
    // One frame is a local, two operands and the overhead.
    let options = Options { stack_cells: Some(7), ..Options::default() };
    let mut machine = machine(&module, Imports::default(), options);
    assert_eq!(machine.call(0, &[1_000_000]), Ok(vec![42]));
    assert_eq!(machine.stack_cells(), Some(7));
}

#[test]
fn fuel_is_charged_by_block_and_by_length() {
    let source = "memory m 1
        func f(n: i32) {
            i32.const 0  i32.const 1  local.get n  memory.fill
            br end
          end:
            return }";
    let module = module(source);
    let fill = exported(&module, "f");
    let mut machine =
        machine(&module, Imports::default(), Options { fuel: Some(16), ..Options::default() });
    assert_eq!(machine.call(fill, &[640]), Ok(vec![]));
    assert_eq!(machine.fuel(), Some(0), "five instructions, 640 >> 6, one instruction");
    machine.set_fuel(Some(14));
    let place = trap(TrapCode::OutOfFuel, 0, 6);
    assert_eq!(machine.call(fill, &[641 + 63]), Err(place), "11 are not left");
    assert_eq!(machine.fuel(), Some(9), "only the block was charged");
    assert_eq!(machine.memory()[..2], [1, 1]);
    machine.set_fuel(Some(4));
    assert_eq!(machine.call(fill, &[0]), Err(trap(TrapCode::OutOfFuel, 0, 0)));
    assert_eq!(machine.fuel(), Some(4));
}

#[test]
fn polls_interrupt_blocks_and_bulk_operations() {
    let source = "memory m 100
        data d \"ab\"
        table t funcref 400000
        func f(n: i32) {
          again:
            local.get n  i32.eqz  br_if fill
            local.get n  i32.const 1  i32.sub  local.set n
            br again
          fill:
            i32.const 0  i32.const 7  i32.const 3000000  memory.fill
            return }
        func copy(dst: i32, src: i32, len: i32) {
            local.get dst  local.get src  local.get len  memory.copy  return }
        func table(len: i32) {
            i32.const 1  ref.func f  local.get len  table.fill t
            return }";
    let module = module(source);
    let funcs = ["f", "copy", "table"].map(|name| exported(&module, name));
    let mut machine =
        machine(&module, Imports::default(), Options { polls: Some(0), ..Options::default() });
    let interrupted = |func: usize, offset| Err(trap(TrapCode::Interrupted, funcs[func], offset));
    let mut call = |func: usize, args: &[u128], polls| {
        machine.set_polls(Some(polls));
        let result = machine.call(funcs[func], args);
        (result, machine.polls(), machine.memory().to_vec(), machine.tables()[0].elems.clone())
    };
    // The entry is where the loop starts; it polls once more than it goes round.
    assert_eq!(call(0, &[5], 0).0, interrupted(0, 0));
    assert_eq!(call(0, &[5], 5).0, interrupted(0, 0));
    // 3,000,000 bytes are three pieces.
    let (end, _, memory, _) = call(0, &[5], 6);
    assert_eq!(end, interrupted(0, 23));
    assert_eq!(memory.iter().filter(|&&byte| byte == 7).count(), 1 << 20);
    let (end, polls, memory, _) = call(0, &[5], 8);
    assert_eq!((end, polls), (Ok(vec![]), Some(0)));
    assert_eq!(memory.iter().filter(|&&byte| byte == 7).count(), 3_000_000);
    // Overlapping copies begin with what would be overwritten: here, with the end.
    let (end, _, memory, _) = call(1, &[1, 0, 3_000_000], 2);
    assert_eq!(end, interrupted(1, 6));
    assert_eq!(memory.iter().filter(|&&byte| byte == 7).count(), 3_000_001);
    let (end, _, memory, _) = call(1, &[0, 2_999_000, 3_000_000], 3);
    assert_eq!(end, Ok(vec![]));
    assert_eq!(memory.iter().filter(|&&byte| byte == 7).count(), 1_002);
    let (end, _, _, table) = call(2, &[300_000], 2);
    assert_eq!(end, interrupted(2, 6));
    assert_eq!(table.iter().filter(|&&elem| elem != 0).count(), 2 << 17);
}

#[test]
fn frames_in_memory_are_zeroed_and_given_back() {
    let source = "memory m 1
        frame_stack 1024 64
        func f(n: i32) -> i32 {
            local a: i32
            local.addr a  call bump  drop
            local.addr a  call bump
            return }
        func bump(p: i32) -> i32 {
            local.get p  local.get p  i32.load  i32.const 1  i32.add  i32.store
            local.get p  i32.load  return }
        func deep() { local a: i32  local.addr a  i32.const 1  i32.add  drop  call deep  return }";
    let module = module(source);
    let mut machine = machine(&module, Imports::default(), Options::default());
    assert_eq!(machine.call(0, &[0]), Ok(vec![2]));
    assert_eq!(machine.call(0, &[0]), Ok(vec![2]), "the frame is zeroed again");
    assert_eq!(machine.memory()[1080], 2, "the frame stack grows downwards from its end");
    let overflow = machine.call(2, &[]);
    assert_eq!(overflow, Err(trap(TrapCode::FrameStackOverflow, 2, 0)));
    assert_eq!(machine.frame_sp(), 1088, "a trap gives the frames back");
}

#[test]
fn tables_and_indirect_calls() {
    let source = "table t funcref 4 6
        elem e t at i32.const 1 func one, two
        func f(i: i32) -> i64 { local.get i  call_indirect () -> i64, t  return }
        func tail(i: i32) -> i64 { local.get i  return_call_indirect () -> i64, t }
        func one() -> i64 { i64.const 1 return }
        func two() -> i32 { i32.const 2 return }
        func grow() -> (i32, i32, i32) {
            ref.func one  i32.const 2  table.grow t
            ref.null funcref  i32.const 1  table.grow t
            table.size t  return }";
    let module = module(source);
    let mut machine = machine(&module, Imports::default(), Options::default());
    for f in [0, 1] {
        assert_eq!(machine.call(f, &[1]), Ok(vec![1]));
        let codes = [0, 2, 4].map(|i| machine.call(f, &[i]).unwrap_err());
        let expected =
            [TrapCode::IndirectCallToNull, TrapCode::BadSignature, TrapCode::TableOutOfBounds];
        assert_eq!(codes, expected.map(|code| trap(code, f, 2)));
    }
    assert_eq!(machine.call(4, &[]), Ok(vec![4, u32::MAX.into(), 6]));
    assert_eq!(machine.call(0, &[5]), Ok(vec![1]));
    assert_eq!(machine.tables()[0].elems, [0, 3, 4, 0, 3, 3]);
}

#[test]
fn segments_are_copied_and_dropped() {
    let source = "memory m 1 2
        table t funcref 2
        data d \"abcd\"
        elem e func f
        func f() -> i32 {
            i32.const 10  i32.const 1  i32.const 2  memory.init d
            i32.const 1  i32.const 0  i32.const 1  table.init e t
            i32.const 11  i32.const 10  i32.const 2  memory.copy
            data.drop d  elem.drop e
            i32.const 0  i32.const 0  i32.const 0  memory.init d
            i32.const 1  memory.grow  drop
            i32.const 1  memory.grow  return }
        func init(n: i32) { i32.const 0  i32.const 0  local.get n  memory.init d  return }
        func table_init(n: i32) { i32.const 0  i32.const 0  local.get n  table.init e t  return }";
    let module = module(source);
    let mut machine = machine(&module, Imports::default(), Options::default());
    assert_eq!(machine.call(0, &[]), Ok(vec![u32::MAX.into()]));
    assert_eq!(&machine.memory()[9..14], b"\0bbc\0");
    assert_eq!(machine.memory().len(), 2 << 16);
    assert_eq!(machine.tables()[0].elems, [0, 1]);
    assert_eq!(machine.call(1, &[1]).unwrap_err().code, TrapCode::MemoryOutOfBounds);
    assert_eq!(machine.call(2, &[1]).unwrap_err().code, TrapCode::TableOutOfBounds);
}

#[test]
fn the_host_sees_arguments_and_memory() {
    let source = "import \"env\" \"sum\" func sum(i32, i32) -> i64
        import \"env\" \"base\" global base i64
        memory m 1
        data d at i32.const 4 \"\\x01\\x02\\x03\"
        global last: mut i64 = global.get base i64.const 1 i64.add
        func f(n: i32) -> i64 {
            i32.const 4  local.get n  call sum  global.set last
            global.get last  return }
        start init
        func init() { i32.const 7  i32.const 9  i32.store8  return }";
    let module = module(source);
    let imports = Imports {
        host: Box::new(|call| {
            let (start, len) = (call.args[0] as usize, call.args[1] as usize);
            let bytes = call.memory.get(start..start + len).ok_or(TrapCode::MemoryOutOfBounds)?;
            Ok(vec![bytes.iter().map(|&byte| u128::from(byte)).sum()])
        }),
        globals: vec![100],
    };
    let mut machine = machine(&module, imports, Options::default());
    assert_eq!(machine.globals(), [100, 101]);
    assert_eq!(machine.call(1, &[4]), Ok(vec![15]));
    assert_eq!(machine.globals(), [100, 15]);
    assert_eq!(machine.call(1, &[1 << 20]), Err(trap(TrapCode::MemoryOutOfBounds, 1, 4)));
    assert_eq!(machine.call(0, &[5, 1]), Ok(vec![2]), "an imported function can be called too");
}

#[test]
fn a_trap_of_the_host_is_at_the_call_that_waits_for_it() {
    let source = "import \"env\" \"host\" func host()
        func outer() { nop  call tail  return }
        func tail() { nop  nop  return_call host }";
    let module = module(source);
    let imports =
        Imports { host: Box::new(|_| Err(TrapCode::IntegerOverflow)), globals: Vec::new() };
    let mut machine = machine(&module, imports, Options::default());
    let (outer, tail) = (exported(&module, "outer"), exported(&module, "tail"));
    assert_eq!(machine.call(outer, &[]), Err(trap(TrapCode::IntegerOverflow, outer, 1)));
    // A tail call leaves no function that could wait.
    assert_eq!(machine.call(tail, &[]), Err(trap(TrapCode::IntegerOverflow, 0, 0)));
}

#[test]
fn segments_that_do_not_fit_stop_instantiation() {
    let source = "memory m 1
        data a at i32.const 0 \"x\"
        data b at i32.const 65535 \"xy\"
        func f() { return }";
    let module = module(source);
    let functions = slot_forms(&module, &BuildOptions::default());
    let mut machine = Machine::new(&module, functions, Imports::default(), Options::default());
    assert_eq!(machine.instantiate(), Err(trap(TrapCode::MemoryOutOfBounds, 0, 0)));
    assert_eq!(machine.memory()[0], b'x', "what was written before stays");
}

#[test]
fn nans_are_canonical_on_request() {
    let source = "func f(a: f64) -> f64 { local.get a  f64.sqrt  return }";
    let module = module(source);
    let options = Options { canonical_nans: true, ..Options::default() };
    let mut machine = machine(&module, Imports::default(), options);
    let nan = 0xfff8_0000_0000_1234;
    assert_eq!(machine.call(0, &[nan]), Ok(vec![0x7ff8_0000_0000_0000]));
    assert_eq!(machine.call(0, &[4.0_f64.to_bits().into()]), Ok(vec![2.0_f64.to_bits().into()]));
}

#[test]
fn phis_are_parallel() {
    let module = module(
        "func f(n: i64, a: i64, b: i64) -> (i64, i64) {
        local.get a  local.get b  return }",
    );
    let f = crate::ir::parse::parse(THE_SWAP).unwrap();
    assert_eq!(crate::ir::verify::verify(&f, crate::ir::verify::Form::Ssa, &module), Ok(()));
    let mut machine = Machine::new(&module, vec![f], Imports::default(), Options::default());
    assert_eq!(machine.call(0, &[1, 10, 20]), Ok(vec![20, 10]));
    assert_eq!(machine.call(0, &[2, 10, 20]), Ok(vec![10, 20]));
    assert_eq!(machine.call(0, &[5, 10, 20]), Ok(vec![20, 10]));
}

#[test]
fn br_table_falls_to_the_default() {
    let source = "func f(n: i32) -> i64 {
            local.get n  br_table [a, b] c
          a: i64.const 10 return
          b: i64.const 11 return
          c: i64.const 12 return }";
    let results = [0, 1, 2, 1 << 31].map(|n| call(source, &[n]).unwrap()[0]);
    assert_eq!(results, [10, 11, 12, 12]);
}

/// The imports of the module's files are those that its documentation lists. Tests may compare it with
/// others.
#[test]
fn only_data_and_decoding_are_shared() {
    const SHARED: [&str; 20] = [
        // The opcode table, immediates and traps.
        "Op",
        "Imm",
        "TrapCode",
        // Modules as data.
        "VerifiedModule",
        "FuncType",
        "ValType",
        "limits",
        "module",
        "ConstExpr",
        "Elem",
        "ElemItems",
        "SegmentMode",
        "ImportKind",
        "MemoryType",
        "TableType",
        "PAGE_BYTES",
        // The sizes of the pieces in which bulk operations work: constants.
        "cost",
        "PIECE_BYTES_MAX",
        "PIECE_ELEMS_MAX",
        // The decoder, for constant expressions.
        "CodeReader",
    ];
    let mut files = vec![std::path::PathBuf::from("src/ir/eval.rs")];
    let mut folders = vec![std::path::PathBuf::from("src/ir/eval")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the folder is there") {
            let path = entry.expect("the entry can be read").path();
            match path.file_stem().and_then(|stem| stem.to_str()) {
                Some("tests") => {}
                _ if path.is_dir() => folders.push(path),
                _ => files.push(path),
            }
        }
    }
    assert!(files.len() >= 11, "{files:?}");
    let mut n_imports = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).expect("the file can be read");
        let text = text.split("mod tests {").next().expect("there is a first part");
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let code = code.collect::<Vec<_>>().join("\n");
        assert!(!code.contains("slotvm_runtime"), "{file:?}");
        for import in code.split("slotvm_bytecode::").skip(1) {
            let path = import.split(';').next().expect("an import ends");
            // `inst::vector` reads the 16 bytes of a constant.
            let path = path.replace("inst::vector", "");
            for name in path.split(|c: char| !c.is_alphanumeric() && c != '_') {
                assert!(name.is_empty() || SHARED.contains(&name), "{file:?} uses {name}");
                n_imports += 1;
            }
        }
    }
    assert!(n_imports > SHARED.len());
}
