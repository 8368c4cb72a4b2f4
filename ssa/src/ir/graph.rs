//! The control-flow graph and the dominator tree, as text and as Graphviz DOT.
//!
//! Both are those of the slot form: reachable blocks in dominator-tree preorder.

use std::fmt::Write;

use slotvm_bytecode::printable::Printable;

use crate::graphs::cfg::Cfg;
use crate::graphs::dominators::DomTree;
use crate::ir::Function;
use crate::ir::entity::Block;
use crate::ir::print::write_block_origin;

/// The control-flow graph of a function: for each block its successors, label and bytecode offset.
pub fn print_cfg(f: &Function, dot: bool) -> String {
    let succs = |b: Block| f.succ_edges(b).map(|e| f.edge_dst(e));
    if dot {
        return print_dot(f, f.blocks().flat_map(|b| succs(b).map(move |succ| (b, succ))));
    }
    print_lines(f, |b| {
        let list: Vec<String> = succs(b).map(|succ| succ.to_string()).collect();
        format!("-> {}", if list.is_empty() { "-".to_owned() } else { list.join(" ") })
    })
}

/// The dominator tree of a function: for each block its immediate dominator and its depth.
pub fn print_dom(f: &Function, dot: bool) -> String {
    let tree = dom_tree(f);
    let idom = |b: Block| tree.idom(b.0).map(Block);
    if dot {
        return print_dot(f, f.blocks().filter_map(|b| Some((idom(b)?, b))));
    }
    print_lines(f, |b| {
        let idom = idom(b).map_or("-".to_owned(), |idom| idom.to_string());
        format!("idom {idom} level {}", tree.level(b.0).expect("all blocks are reachable"))
    })
}

/// The control-flow graph of a function, by the numbers of its blocks.
pub fn control_flow(f: &Function) -> Cfg {
    let succs = f.blocks().map(|b| f.succ_edges(b).map(|e| f.edge_dst(e).0));
    Cfg::new(Function::ENTRY.0, succs)
}

/// The dominator tree of a function, by the numbers of its blocks.
pub fn dom_tree(f: &Function) -> DomTree {
    DomTree::semi_nca(&control_flow(f))
}

/// Prints a line for each block: its description, then its origin.
fn print_lines(f: &Function, what: impl Fn(Block) -> String) -> String {
    let mut out = format!("{}\n", format!("func f{} {}", f.func, Printable(&f.name)).trim_end());
    for b in f.blocks() {
        writeln!(out, "  {b} {}  ; {}", what(b), origin(f, b)).expect(INFALLIBLE);
    }
    out
}

/// All nodes, then all edges.
fn print_dot(f: &Function, edges: impl Iterator<Item = (Block, Block)>) -> String {
    let mut out = format!(
        "digraph \"{}\" {{\n  node [shape=box];\n",
        escaped(&Printable(&f.name).to_string())
    );
    for b in f.blocks() {
        writeln!(out, "  {b} [label=\"{b} {}\"];", escaped(&origin(f, b))).expect(INFALLIBLE);
    }
    for (from, to) in edges {
        writeln!(out, "  {from} -> {to};").expect(INFALLIBLE);
    }
    out.push_str("}\n");
    out
}

const INFALLIBLE: &str = "writing to a string succeeds";

fn origin(f: &Function, b: Block) -> String {
    let mut out = String::new();
    write_block_origin(&mut out, f, b);
    out
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}
