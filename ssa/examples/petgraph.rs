//! The algorithms on a graph of the crate petgraph.
//!
//! A [`Csr`] of petgraph hands out the successors of a node as a slice, which is what [`ControlFlow`]
//! asks for; a second one with all edges reversed does so for predecessors. (It holds no duplicate
//! edges; a graph with duplicate edges needs lists of its own.)
//!
//! The function is a worked example of texts on SSA construction, which computes Fibonacci numbers:
//! six variables, an early return, and a loop.

use petgraph::csr::Csr;
use slotvm_ssa::graphs::certificate::certify;
use slotvm_ssa::graphs::cfg::ControlFlow;
use slotvm_ssa::graphs::dominators::DomTree;
use slotvm_ssa::graphs::frontier::Frontiers;
use slotvm_ssa::graphs::idf::{Placement, Pruning, SitePlacer};
use slotvm_ssa::graphs::ids::{Loop, Slot};
use slotvm_ssa::graphs::loops::LoopForest;
use slotvm_ssa::graphs::slot_blocks::SlotBlocks;

/// A graph and its reverse.
struct Graph {
    forward: Csr<(), ()>,
    backward: Csr<(), ()>,
}

impl Graph {
    fn new(mut edges: Vec<(u32, u32)>) -> Graph {
        let sorted = |edges: &mut Vec<(u32, u32)>| {
            edges.sort_unstable();
            Csr::from_sorted_edges(edges).expect("sorted, without duplicates")
        };
        let forward = sorted(&mut edges);
        let mut reversed = edges.iter().map(|&(src, dst)| (dst, src)).collect();
        Graph { forward, backward: sorted(&mut reversed) }
    }
}

impl ControlFlow for Graph {
    fn n_blocks(&self) -> usize {
        self.forward.node_count()
    }

    fn entry(&self) -> u32 {
        0
    }

    fn succs(&self, block: u32) -> &[u32] {
        self.forward.neighbors_slice(block)
    }

    fn preds(&self, block: u32) -> &[u32] {
        self.backward.neighbors_slice(block)
    }
}

const BLOCKS: [&str; 7] =
    ["entry", "if.then", "if.end", "return", "while.cond", "while.body", "while.end"];
const EDGES: [(&str, &str); 8] = [
    ("entry", "if.then"),
    ("entry", "if.end"),
    ("if.then", "return"),
    ("if.end", "while.cond"),
    ("while.cond", "while.body"),
    ("while.cond", "while.end"),
    ("while.body", "while.cond"),
    ("while.end", "return"),
];
const VARIABLES: [&str; 6] = ["n", "a", "b", "i", "c", "retval"];
/// Block and variable of each store, and of each load that comes before any store of its block.
const STORES: [(&str, &str); 11] = [
    ("entry", "n"),
    ("entry", "a"),
    ("entry", "b"),
    ("entry", "i"),
    ("entry", "c"),
    ("if.then", "retval"),
    ("while.body", "c"),
    ("while.body", "b"),
    ("while.body", "a"),
    ("while.body", "i"),
    ("while.end", "retval"),
];
const LOADS: [(&str, &str); 7] = [
    ("return", "retval"),
    ("while.cond", "i"),
    ("while.cond", "n"),
    ("while.body", "b"),
    ("while.body", "a"),
    ("while.body", "i"),
    ("while.end", "b"),
];

fn number(names: &[&str], name: &str) -> u32 {
    names.iter().position(|&other| other == name).expect("the name is there") as u32
}

fn names(blocks: impl IntoIterator<Item = u32>) -> String {
    let mut names: Vec<&str> = blocks.into_iter().map(|block| BLOCKS[block as usize]).collect();
    names.sort_unstable();
    names.join(" ")
}

fn main() {
    let block = |name| number(&BLOCKS, name);
    let access = |&(name, variable)| (block(name), Slot(number(&VARIABLES, variable)));
    let graph = Graph::new(EDGES.map(|(src, dst)| (block(src), block(dst))).to_vec());
    let slots =
        SlotBlocks::new(VARIABLES.len(), STORES.iter().map(access), LOADS.iter().map(access));

    let tree = DomTree::semi_nca(&graph);
    certify(&graph, |block| tree.idom(block)).expect("this is the dominator tree");
    let frontiers = Frontiers::new(&graph, &tree).expect("seven blocks have small frontiers");
    for &block in tree.preorder() {
        let idom = tree.idom(block).map_or("nothing", |idom| BLOCKS[idom as usize]);
        let frontier = names(frontiers.of(block).iter().copied());
        println!("{} below {idom}, frontier {{{frontier}}}", BLOCKS[block as usize]);
    }
    assert_eq!(tree.idom(block("return")), Some(block("entry")));
    assert_eq!(tree.idom(block("while.end")), Some(block("while.cond")));
    assert_eq!(names(frontiers.of(block("while.cond")).iter().copied()), "return while.cond");
    assert_eq!(frontiers.of(block("while.end")), [block("return")]);

    let loops = LoopForest::new(&graph);
    let body: Vec<u32> = (0..BLOCKS.len() as u32).filter(|&b| loops.contains(Loop(0), b)).collect();
    println!("loop of {{{}}}", names(body.iter().copied()));
    assert_eq!((loops.n_loops(), names(body)), (1, "while.body while.cond".into()));
    assert_eq!(loops.header(Loop(0)), block("while.cond"));

    // Minimal form has nine phis, four of which are needed.
    let mut placer = SitePlacer::default();
    for (pruning, expected) in [
        (
            Pruning::None,
            [
                "",
                "return while.cond",
                "return while.cond",
                "return while.cond",
                "return while.cond",
                "return",
            ],
        ),
        (Pruning::Full, ["", "while.cond", "while.cond", "while.cond", "", "return"]),
    ] {
        placer
            .place(&graph, &tree, &slots, pruning, Placement::Auto)
            .expect("only sets of frontiers can be too large");
        for ((slot, variable), expected) in (0..).map(Slot).zip(VARIABLES).zip(expected) {
            let of_slot = placer.sites().iter().filter(|site| site.1 == slot);
            let sites = names(of_slot.map(|site| site.0));
            println!("{pruning:?}: phis of {variable} in {{{sites}}}");
            assert_eq!(sites, expected);
        }
    }
}
