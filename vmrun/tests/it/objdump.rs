//! `vmrun objdump`.

use serde_json::Value;

use crate::binary::{Folder, vmrun};
use crate::programs;

fn json(args: &[&str]) -> Value {
    let args: Vec<&str> = ["objdump", "--json"].iter().chain(args).copied().collect();
    serde_json::from_str(&vmrun(&args).output()).expect("it is JSON")
}

#[test]
fn instructions_have_addresses_bytes_places_names_and_traps() {
    let text = vmrun(&["objdump", "programs/fib_rec.bc", "--func", "fib"]).output();
    let mut lines = text.lines();
    assert!(lines.next().is_some_and(|line| line.contains("<fib>: function 4, ")), "{text}");
    for line in lines {
        let (address, rest) =
            line.trim_start().split_once(":  ").expect("each line has an address");
        assert!(u64::from_str_radix(address, 16).is_ok(), "{line}");
        let byte = rest.split(' ').next().expect("it has bytes");
        assert!(byte.len() == 2 && u8::from_str_radix(byte, 16).is_ok(), "{line}");
    }
    let call = text.lines().find(|line| line.contains("; @0010 call fib, line 30"));
    assert!(call.is_some_and(|line| line.contains("<fib>, function 4")), "{text}");
    assert!(text.contains("trap: call stack exhausted"), "{text}");
    assert!(text.contains("inlined at @0010"), "{text}");
    assert!(!vmrun(&["objdump", "programs/fib_rec.bc"]).output().contains("User("));
}

#[test]
fn json_has_all_bytes_of_all_functions_in_order() {
    programs::check_all(|program| {
        let path = program.path.with_extension("bc");
        let listing = json(&[path.to_str().expect("UTF-8")]);
        let functions = listing["functions"].as_array().expect("there are functions");
        for function in functions {
            let mut end = 0;
            let mut n_places = 0;
            for inst in function["instructions"].as_array().expect("there are instructions") {
                let at = || format!("{} at {end:#x}: {inst}", function["name"]);
                if inst["offset"] != end {
                    return Err(at());
                }
                let bytes = inst["bytes"].as_str().expect("there are bytes");
                let text = inst["text"].as_str().expect("there is text");
                if bytes.is_empty() || text.is_empty() || text.contains("(bad)") {
                    return Err(at());
                }
                // What Cranelift makes is known to the disassembler.
                if inst["is_data"] == true && inst["trap"].is_string() {
                    return Err(at());
                }
                n_places += inst["places"].as_array().expect("there are places").len();
                end += bytes.len() as u64 / 2;
            }
            if function["bytes"] != end || n_places == 0 {
                return Err(format!("{}: {end} bytes, {n_places} places", function["name"]));
            }
        }
        Ok(())
    });
}

/// A jump table between instructions, and a call of the runtime.
fn table() -> String {
    const N: usize = 12;
    let labels: Vec<String> = (0..N).map(|i| format!("l{i}")).collect();
    let targets: Vec<String> = (0..N)
        .map(|i| format!("l{i}: local.get n i32.const {} i32.mul return", 7 + i * i))
        .collect();
    format!(
        "memory m 1
         export \"main\" func main
         func main(n: i32) -> i32 {{
           local.get n
           br_table [{}] grow
           {}
         grow:
           local.get n memory.grow return
         }}",
        labels.join(", "),
        targets.join("\n")
    )
}

#[test]
fn data_is_no_instructions() {
    let program = Folder::new("objdump_data").write("p.vasm", table());
    let listing = json(&[program.to_str().expect("UTF-8")]);
    let insts = listing["functions"][0]["instructions"].as_array().expect("instructions");
    let is_data = |inst: &&Value| inst["is_data"] == true;
    let data: Vec<&Value> = insts.iter().filter(is_data).collect();
    let n_bytes: usize = data.iter().map(|inst| inst["bytes"].as_str().map_or(0, str::len)).sum();
    // Each entry of the table has four bytes, and the default is one on some machines.
    assert!(matches!(n_bytes / 2, 48 | 52), "{data:?}");
    let first = data[0]["offset"].as_u64();
    assert!(insts.iter().any(|inst| inst["data"].as_u64() == first), "an instruction refers to it");
    // Instructions follow: those of the twelve labels.
    let after = insts.iter().skip_while(|inst| !is_data(inst)).filter(|inst| !is_data(inst));
    let rets = after.filter(|inst| inst["text"] == "ret").count();
    assert!(rets >= 1, "{insts:?}");
    let text = vmrun(&["objdump".as_ref(), program.as_os_str()]).output();
    let calls = text.lines().filter(|line| line.contains("memory.grow")).count();
    assert!(calls >= 1, "a call of the runtime is named by the bytecode: {text}");
}

#[test]
fn functions_that_are_inlined_everywhere_have_code_and_no_address() {
    let source = "export \"main\" func main
        func main() -> i32 { call one return }
        func one() -> i32 { i32.const 1 return }";
    let program = Folder::new("objdump_inlined").write("p.vasm", source);
    let program = program.to_str().expect("UTF-8");
    let text = vmrun(&["objdump", program, "--func", "one"]).output();
    assert!(text.contains("<one>: function 1, ") && text.contains("nothing enters it"), "{text}");
    let listing = json(&[program]);
    assert_eq!(listing["functions"][0]["address"], 0);
    assert_eq!(listing["functions"][1]["address"], Value::Null);
    let error = vmrun(&["objdump", program, "--func", "nope"]).error(2);
    assert!(error.contains("defines no function `nope`; it defines `main`, `one`"), "{error}");
}

#[test]
fn names_of_a_hostile_module_control_no_terminal() {
    let source = "module \"m\\u{1b}\"\nexport \"\\u{1b}[2J\\u{202e}\" func f\nfunc f() { call g return }\nfunc $\"g\\u{1b}[2J\\u{9b}\"() { return }";
    let source = source.replace("call g ", "call $\"g\\u{1b}[2J\\u{9b}\" ");
    let program = Folder::new("objdump_hostile").write("p.vasm", source);
    let program = program.to_str().expect("UTF-8");
    let shown = |c: char| c == '\n' || !c.is_control() && c != '\u{202e}';
    assert!(vmrun(&["objdump", program]).output().chars().all(shown));
    let json = vmrun(&["objdump", "--json", program]).output();
    assert!(json.chars().all(shown), "{json}");
    let json: Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(json["functions"][1]["name"], "g\u{1b}[2J\u{9b}");
}
