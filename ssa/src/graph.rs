//! The control-flow graph and the dominator tree, as text and as Graphviz DOT.
//!
//! Both are those of the slot form: reachable blocks in dominator-tree preorder.

use std::fmt::Write;

use crate::cfg::Cfg;
use crate::dominators::DomTree;
use crate::entity::Block;
use crate::ir::Function;
use slotvm_bytecode::VerifiedModule;

/// The control-flow graph of a function: for each block its bytecode offset, label and successors.
pub fn print_cfg(module: &VerifiedModule, f: &Function, dot: bool) -> String {
    let mut out = String::new();
    let succs = |b: Block| f.succ_edges(b).map(|e| f.edge_dst(e));
    if dot {
        writeln!(out, "digraph \"{}\" {{\n  node [shape=box];", escaped(&f.name))
            .expect(INFALLIBLE);
        for b in f.blocks() {
            let name = escaped(&describe(module, f, b));
            writeln!(out, "  {b} [label=\"{b} {name}\"];").expect(INFALLIBLE);
            for succ in succs(b) {
                writeln!(out, "  {b} -> {succ};").expect(INFALLIBLE);
            }
        }
        out.push_str("}\n");
    } else {
        writeln!(out, "func f{} {}", f.func, f.name).expect(INFALLIBLE);
        for b in f.blocks() {
            let list: Vec<String> = succs(b).map(|succ| succ.to_string()).collect();
            let list = if list.is_empty() { "-".to_owned() } else { list.join(" ") };
            writeln!(out, "  {b} -> {list}  ; {}", describe(module, f, b)).expect(INFALLIBLE);
        }
    }
    out
}

/// The dominator tree of a function: for each block its immediate dominator and its depth.
pub fn print_dom(module: &VerifiedModule, f: &Function, dot: bool) -> String {
    let succs = f.blocks().map(|b| f.succ_edges(b).map(|e| f.edge_dst(e).0));
    let tree = DomTree::semi_nca(&Cfg::new(0, succs));
    let mut out = String::new();
    if dot {
        writeln!(out, "digraph \"{}\" {{\n  node [shape=box];", escaped(&f.name))
            .expect(INFALLIBLE);
        for b in f.blocks() {
            let name = escaped(&describe(module, f, b));
            writeln!(out, "  {b} [label=\"{b} {name}\"];").expect(INFALLIBLE);
            if let Some(idom) = tree.idom(b.0) {
                writeln!(out, "  {} -> {b};", Block(idom)).expect(INFALLIBLE);
            }
        }
        out.push_str("}\n");
    } else {
        writeln!(out, "func f{} {}", f.func, f.name).expect(INFALLIBLE);
        for b in f.blocks() {
            let idom = tree.idom(b.0).map_or("-".to_owned(), |idom| Block(idom).to_string());
            let level = tree.level(b.0).expect("all blocks are reachable");
            let what = describe(module, f, b);
            writeln!(out, "  {b} idom {idom} level {level}  ; {what}").expect(INFALLIBLE);
        }
    }
    out
}

const INFALLIBLE: &str = "writing to a string succeeds";

fn describe(module: &VerifiedModule, f: &Function, b: Block) -> String {
    let offset = f.block_offset(b);
    match f.label(b) {
        Some(label) => match module.module().names.label(f.func, label) {
            Some(name) => format!("@{offset:04x} {name}"),
            None => format!("@{offset:04x} label {label}"),
        },
        None => format!("@{offset:04x}"),
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}
