//! The tables of `docs/bytecode.md` are up to date. `BLESS=1` rewrites them.

use std::fmt::Write;
use std::path::Path;

use slotvm_bytecode::builder::ModuleBuilder;
use slotvm_bytecode::decode::DecodeRule;
use slotvm_bytecode::section::Section;
use slotvm_bytecode::verify::Rule;
use slotvm_bytecode::{Op, TrapCode, ValType, encode, limits, reference};

/// Returns a Markdown table.
fn table(head: [&str; 2], rows: impl Iterator<Item = (String, &'static str)>) -> String {
    let mut out = format!("| {} | {} |\n|---|---|\n", head[0], head[1]);
    for (name, doc) in rows {
        writeln!(out, "| `{name}` | {doc} |").expect("writing to a string cannot fail");
    }
    out
}

fn traps() -> String {
    let rows = TrapCode::ALL.into_iter().map(|code| (format!("{code:?}"), code.message()));
    table(["code", "message"], rows)
}

fn verifier_rules() -> String {
    table(["rule", "demand"], Rule::ALL.iter().map(|rule| (rule.name().to_owned(), rule.doc())))
}

fn decoder_rules() -> String {
    let rows = DecodeRule::ALL.iter().map(|rule| (rule.name().to_owned(), rule.doc()));
    table(["rule", "demand"], rows)
}

fn all_limits() -> String {
    let mut out = String::from("| limit | value | of what |\n|---|---|---|\n");
    for (name, max, doc) in limits::ALL {
        writeln!(out, "| `{name}` | {max} | {doc} |").expect("writing to a string cannot fail");
    }
    out
}

/// Returns a listing of the bytes of a module, section by section.
fn example() -> String {
    let mut module = ModuleBuilder::new();
    let inc = module.declare_func("", &[ValType::I32], &[ValType::I32]);
    let mut f = module.define(inc);
    f.local_get(f.param(0)).i32_const(1).op(Op::I32Add).ret();
    f.finish().expect("no mistakes");
    module.export_func("inc", inc);
    let bytes = encode(&module.finish().expect("no mistakes"));

    let mut out = String::from("```text\n");
    let mut line = |bytes: &[u8], what: &str| {
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(out, "{:42} {what}", hex.join(" ")).expect("writing to a string cannot fail");
    };
    line(&bytes[..8], "magic, version");
    let mut rest = &bytes[8..];
    while let [id, length, behind @ ..] = rest {
        let section = Section::from_tag(*id).expect("a section");
        line(&rest[..2 + usize::from(*length)], section.name());
        rest = &behind[usize::from(*length)..];
    }
    out + "```\n"
}

/// Replaces the text between the markers of `chapter`.
fn replace(text: &str, chapter: &str, contents: &str) -> String {
    let marks = [format!("<!-- {chapter}: begin -->\n"), format!("<!-- {chapter}: end -->")];
    let (before, rest) = text.split_once(&marks[0]).expect("the chapter begins");
    let (_, behind) = rest.split_once(&marks[1]).expect("the chapter ends");
    format!("{before}{}\n{contents}\n{}{behind}", marks[0], marks[1])
}

#[test]
fn the_tables_of_the_specification_are_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/bytecode.md");
    let written = std::fs::read_to_string(&path).expect("the specification can be read");
    let mut current = written.clone();
    for (chapter, contents) in [
        ("opcodes", reference()),
        ("traps", traps()),
        ("rules", verifier_rules()),
        ("form", decoder_rules()),
        ("example", example()),
        ("limits", all_limits()),
    ] {
        current = replace(&current, chapter, &contents);
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, current).expect("the specification can be written");
    } else {
        assert!(written == current, "docs/bytecode.md is not current: run with BLESS=1");
    }
}
