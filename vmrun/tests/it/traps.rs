//! Traps of verified modules: in every engine, the program ends with exit code 134 and a message that names
//! the place, and nothing else goes wrong.

use crate::binary::{ENGINES, Folder, vmrun, vmrun_line};

const SOURCE: &str = "\
module \"traps\"
memory mem 1 1
table t funcref 3 3
elem e t at i32.const 0 func recurse
export \"main\" func main
export \"recurse\" func recurse
export \"load\" func load
export \"store\" func store
export \"load_indexed\" func load_indexed
export \"store_indexed\" func store_indexed
export \"divide\" func divide
export \"remainder\" func remainder
export \"call_entry\" func call_entry
export \"truncate\" func truncate
export \"stop\" func stop
export \"fill\" func fill
export \"spin\" func spin
func main(n: i32) -> i32 { local.get n i32.const 0
call divide return }                                    ; line 19
func recurse(n: i64) -> i64 {
  local.get n  i64.const 1  i64.add
  call recurse                                          ; line 22
  i64.const 1  i64.add  return
}
func load(p: i32) -> i32 { local.get p
i32.load return }                                       ; line 26
func store(p: i32) { local.get p i64.const 7
i64.store 8 return }                                    ; line 28
func load_indexed(b: i32, i: i32) -> i64 { local.get b local.get i
i64.load_indexed 8 16 return }                          ; line 30
func store_indexed(b: i32, i: i32) { local.get b local.get i i32.const 1
i32.store8_indexed 1 0xffffffff return }                ; line 32
func divide(a: i32, b: i32) -> i32 { local.get a local.get b
i32.div_s return }                                      ; line 34
func remainder(a: i64, b: i64) -> i64 { local.get a local.get b
i64.rem_u return }                                      ; line 36
func call_entry(i: i32) { local.get i
call_indirect () -> () return }                         ; line 38
func truncate(x: f64) -> i32 { local.get x
i32.trunc_f64_s return }                                ; line 40
func stop() {
unreachable }                                           ; line 42
func fill(p: i32, n: i32) { local.get p i32.const 0 local.get n
memory.fill return }                                    ; line 44
func spin() {
again: br again }                                       ; line 46
";

/// Options, the message, and the line of the place.
const CASES: &[(&str, &str, u32)] = &[
    ("--invoke recurse 0", "call stack exhausted", 21),
    ("--invoke load 65533", "out of bounds memory access", 26),
    ("--invoke load -1", "out of bounds memory access", 26),
    ("--invoke store 65529", "out of bounds memory access", 28),
    ("--invoke load_indexed 0xffffffff 0xffffffff", "out of bounds memory access", 30),
    ("--invoke load_indexed 0xfffffff0 0", "out of bounds memory access", 30),
    // These would wrap to address 0 in 32 bits.
    ("--invoke load_indexed 0 0x1ffffffe", "out of bounds memory access", 30),
    ("--invoke load_indexed 0xffffffe8 1", "out of bounds memory access", 30),
    ("--invoke store_indexed 0xffffffff 0xffffffff", "out of bounds memory access", 32),
    ("--invoke store_indexed 1 0", "out of bounds memory access", 32),
    ("--invoke divide 1 0", "integer division by zero", 34),
    ("--invoke divide -2147483648 -1", "integer overflow", 34),
    ("--invoke remainder 1 0", "integer division by zero", 36),
    ("--invoke call_entry 0", "indirect call to a function of another type", 38),
    ("--invoke call_entry 1", "indirect call to a null table entry", 38),
    ("--invoke call_entry 3", "out of bounds table access", 38),
    ("--invoke call_entry -1", "out of bounds table access", 38),
    ("--invoke truncate nan", "invalid conversion to integer", 40),
    ("--invoke truncate 1e10", "integer overflow", 40),
    ("--invoke stop", "unreachable executed", 42),
    ("--invoke fill 65536 1", "out of bounds memory access", 44),
    ("--invoke spin --fuel 1000", "all fuel consumed", 46),
];

#[test]
fn every_trap_names_its_place_in_every_engine() {
    let folder = Folder::new("traps");
    let program = folder.write("traps.vasm", SOURCE);
    for &(options, message, line) in CASES {
        let func = options.split(' ').nth(1).expect("a function is invoked");
        for engine in ENGINES {
            let error = vmrun_line(&program, &format!("{options} {engine}")).error(134);
            let context = format!("{options} {engine}\n{error}");
            let mut lines = error.lines();
            assert_eq!(lines.next(), Some(format!("error: {message}").as_str()), "{context}");
            let place = lines.next().expect("a place follows");
            assert!(place.starts_with(&format!("    at traps!{func} (offset 0x")), "{context}");
            let file = program.display();
            assert!(place.ends_with(&format!(", {file}:{line})")), "{context}");
        }
    }
}

#[test]
fn the_backtrace_names_the_callers() {
    let folder = Folder::new("backtrace");
    let program = folder.write("traps.vasm", SOURCE);
    for engine in ENGINES {
        let error = vmrun_line(&program, &format!("{engine} -- 7")).error(134);
        let file = program.display();
        let expected = format!(
            "error: integer division by zero\n    \
             at traps!divide (offset 0x0004, {file}:34)\n    \
             at traps!main (offset 0x0004, {file}:19)\n"
        );
        assert_eq!(error, expected, "{engine}");
    }
}

#[test]
fn endless_recursion_has_a_backtrace_of_five_lines() {
    let folder = Folder::new("recursion");
    let program = folder.write("traps.vasm", SOURCE);
    for engine in ENGINES {
        let error = vmrun_line(&program, &format!("--invoke recurse 0 {engine}")).error(134);
        let lines: Vec<&str> = error.lines().collect();
        let [_, innermost, caller, repeated, omitted] = lines[..] else { panic!("{error}") };
        let at = |offset, line| {
            format!("    at traps!recurse (offset {offset}, {}:{line})", program.display())
        };
        assert_eq!(innermost, at("0x0000", 21), "{engine}");
        assert_eq!(caller, at("0x0005", 22), "{engine}");
        assert_eq!(repeated, "    ... 98 times more", "{engine}");
        assert!(omitted.starts_with("    ... ") && omitted.ends_with(" more frames"), "{error}");
    }
}

#[test]
fn the_deterministic_stack_ends_at_the_same_depth_in_every_engine() {
    let folder = Folder::new("deterministic_stack");
    let source = "export \"down\" func down
        func down(n: i32) -> i32 {
            local.get n i32.eqz br_if end
            local.get n i32.const 1 i32.sub call down i32.const 1 i32.add return
          end:
            i32.const 0 return
        }";
    let program = folder.write("down.vasm", source);
    // A call costs 4 cells, its local, and the two operands that are the most it has at a time.
    let (calls, cells) = (20_000, 7);
    let limit = format!("--deterministic-stack {}", calls * cells);
    for engine in [&ENGINES[..], &["", "--lazy"]].concat() {
        for _ in 0..2 {
            let down =
                |n: i32| vmrun_line(&program, &format!("--invoke down {n} {limit} {engine}"));
            assert_eq!(down(calls - 1).output(), format!("{}\n", calls - 1), "{engine}");
            let error = down(calls).error(134);
            assert!(error.contains("call stack exhausted"), "{engine}: {error}");
        }
    }
}

#[test]
fn what_was_printed_before_a_trap_is_shown() {
    let folder = Folder::new("printed_before_a_trap");
    let source = "import \"env\" \"print_i32\" func print(i32)\n\
                  export \"main\" func main\n\
                  func main() { i32.const 42 call print unreachable }";
    let program = folder.write("p.vasm", source);
    for engine in ENGINES {
        let ran = vmrun_line(&program, engine);
        assert_eq!((ran.code, ran.stdout.as_str()), (134, "42"), "{engine}: {ran:?}");
    }
}

#[test]
fn traps_of_the_program_show_its_message_and_the_source() {
    let folder = Folder::new("custom_trap");
    let source = "name trap 7 \"no such key\"\n\
                  name file 1 \"main.wend\"\n\
                  export \"main\" func main\n\
                  func main() { .line 12:5, 1 call look .line 13, 1 return }\n\
                  func look() { .line 3:14 trap 7 }";
    let text = folder.write("p.vasm", source);
    let binary = folder.path("p.bc");
    vmrun(&["asm".as_ref(), text.as_os_str(), "-o".as_ref(), binary.as_os_str()]).output();
    for program in [text, binary] {
        for engine in ENGINES {
            let error = vmrun_line(&program, engine).error(134);
            let expected = "error: no such key (trap 7)\n    \
                            at look (offset 0x0000, line 3:14)\n    \
                            at main (offset 0x0000, main.wend:12:5)\n";
            assert_eq!(error, expected, "{engine}");
        }
    }
}
