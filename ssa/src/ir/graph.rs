//! The control-flow graph and the dominator tree of a function, as text, as Graphviz DOT, and as a drawing.
//!
//! Blocks are those of the function, in dominator-tree preorder.

use std::fmt::Write;

use slotvm_bytecode::printable::Printable;

use crate::graphs::cfg::Cfg;
use crate::graphs::dominators::DomTree;
use crate::graphs::loops::LoopForest;
use crate::ir::Function;
use crate::ir::entity::Block;
use crate::ir::print::{BlockText, print_blocks, write_block_origin};

/// The control-flow graph of a function: for each block its successors, label and bytecode offset.
pub fn print_cfg(f: &Function) -> String {
    print_lines(f, |b| format!("-> {}", list(f.succ_edges(b).map(|e| f.edge_dst(e)))))
}

/// The dominator tree of a function: for each block its immediate dominator and its depth.
pub fn print_dom(f: &Function) -> String {
    let tree = dom_tree(f);
    print_lines(f, |b| {
        let idom = list(tree.idom(b.0).map(Block));
        format!("idom {idom} level {}", tree.level(b.0).expect("all blocks are reachable"))
    })
}

/// A graph of a function's blocks, to be drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawing {
    /// The name of the function, which may hold any characters.
    pub name: String,
    /// The blocks, by number. Those of unreachable code do not exist.
    pub nodes: Vec<Node>,
    /// Source and destination of each edge. Equal edges occur once.
    pub edges: Vec<(usize, usize)>,
}

/// A block of a [`Drawing`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The block with its parameters and its origin, then its instructions. No line has a control character.
    pub lines: Vec<String>,
    /// The part of the block in loops.
    pub role: Role,
}

/// The part of a block in loops.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// Not the header of a loop.
    Plain,
    /// The header of a loop.
    Header,
    /// The header of a loop that is entered at other blocks as well.
    IrreducibleHeader,
}

impl Drawing {
    /// The control-flow graph.
    pub fn of_cfg(f: &Function) -> Drawing {
        let succs = |b: Block| f.succ_edges(b).map(move |e| (b.index(), f.edge_dst(e).index()));
        Drawing::new(f, f.blocks().flat_map(succs).collect())
    }

    /// The dominator tree.
    pub fn of_dom(f: &Function) -> Drawing {
        let tree = dom_tree(f);
        let edge = |b: Block| Some((tree.idom(b.0)? as usize, b.index()));
        Drawing::new(f, f.blocks().filter_map(edge).collect())
    }

    fn new(f: &Function, mut edges: Vec<(usize, usize)>) -> Drawing {
        edges.sort_unstable();
        edges.dedup();
        let loops = LoopForest::new(&control_flow(f));
        let role = |b: Block| match loops.innermost(b.0).filter(|_| loops.is_header(b.0)) {
            None => Role::Plain,
            Some(of) if loops.is_irreducible(of) => Role::IrreducibleHeader,
            Some(_) => Role::Header,
        };
        let node = |(b, BlockText { params, insts }): (Block, BlockText)| {
            let mut lines = vec![format!("{b}{params}: {}", origin(f, b))];
            lines.extend(insts);
            Node { lines, role: role(b) }
        };
        let nodes = f.blocks().zip(print_blocks(f)).map(node).collect();
        Drawing { name: f.name.clone(), nodes, edges }
    }

    /// The graph in Graphviz DOT: all blocks, then all edges. Headers of loops are blue, of irreducible ones red.
    pub fn to_dot(&self) -> String {
        let name = escaped(&Printable(&self.name).to_string());
        let mut out =
            format!("digraph \"{name}\" {{\n  node [shape=box, fontname=\"monospace\"];\n");
        for (b, node) in self.nodes.iter().enumerate() {
            // `\l` ends a line that stands at the left.
            let label: String =
                node.lines.iter().map(|line| format!("{}\\l", escaped(line))).collect();
            let colour = match node.role {
                Role::Plain => "",
                Role::Header => ", color=blue",
                Role::IrreducibleHeader => ", color=red",
            };
            writeln!(out, "  b{b} [label=\"{label}\"{colour}];").expect(INFALLIBLE);
        }
        for (from, to) in &self.edges {
            writeln!(out, "  b{from} -> b{to};").expect(INFALLIBLE);
        }
        out.push_str("}\n");
        out
    }
}

/// The control-flow graph of a function, by the numbers of its blocks.
pub fn control_flow(f: &Function) -> Cfg {
    let mut graph = Cfg::default();
    rebuild_control_flow(f, &mut graph);
    graph
}

/// The same, in the memory of another graph.
pub(crate) fn rebuild_control_flow(f: &Function, graph: &mut Cfg) {
    let succ_starts = f.blocks.iter().map(|block| block.first_edge);
    let succs = f.edges.iter().map(|edge| edge.dst.0);
    let preds = f.pred_edges.iter().map(|edge| f.edges[edge.index()].src.0);
    graph.rebuild_from_rows(succ_starts, succs, &f.pred_starts, preds);
}

/// The dominator tree of a function, by the numbers of its blocks.
pub fn dom_tree(f: &Function) -> DomTree {
    DomTree::semi_nca(&control_flow(f))
}

/// The first line of a list: the function.
pub(crate) fn title(f: &Function) -> String {
    format!("func f{} {}", f.func, Printable(&f.name)).trim_end().to_owned()
}

/// Prints a line for each block: its description, then its origin.
pub(crate) fn print_lines(f: &Function, what: impl Fn(Block) -> String) -> String {
    let mut out = format!("{}\n", title(f));
    for b in f.blocks() {
        writeln!(out, "  {b} {}  ; {}", what(b), origin(f, b)).expect(INFALLIBLE);
    }
    out
}

/// Names separated by spaces, or `-` if there are none.
pub(crate) fn list<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    if items.is_empty() { "-".to_owned() } else { items.join(" ") }
}

const INFALLIBLE: &str = "writing to a string succeeds";

/// The label and the code offset of a block.
pub(crate) fn origin(f: &Function, b: Block) -> String {
    let mut out = String::new();
    write_block_origin(&mut out, f, b);
    out
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}
