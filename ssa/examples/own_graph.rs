//! The algorithms on the control-flow graph of a compiler that has its own IR.
//!
//! A graph only has to implement [`ControlFlow`]. This one keeps named blocks in a vector, each with its
//! code. Blocks may have arbitrary numbers; here the entry is not even block 0.
//!
//! The function is one of the worked examples of texts on SSA construction: a variable `a`, two ways to
//! go, a loop in the one and a diamond in the other, all of which meet in `bb8`.
//!
//! ```text
//! Entry ── bb1 ─┬─ bb2 ⇄ bb3 ────────┬─ bb8 ── End
//!               └─ bb4 ─┬─ bb5 ─┬─ bb7 ┘
//!                       └─ bb6 ─┘
//! ```

use slotvm_ssa::graphs::cfg::ControlFlow;
use slotvm_ssa::graphs::dominators::DomTree;
use slotvm_ssa::graphs::frontier::Frontiers;
use slotvm_ssa::graphs::idf::{Placement, Pruning, SitePlacer};
use slotvm_ssa::graphs::ids::Slot;
use slotvm_ssa::graphs::loops::LoopForest;
use slotvm_ssa::graphs::slot_blocks::SlotBlocks;

/// An access of a variable in the code of a block; other code does not matter here.
enum Op {
    Load(u32),
    Store(u32),
}

/// A block of the compiler's IR.
struct Block {
    name: &'static str,
    succs: Vec<u32>,
    preds: Vec<u32>,
    code: Vec<Op>,
}

/// A function of the compiler's IR.
struct Function {
    blocks: Vec<Block>,
    entry: u32,
    n_variables: usize,
}

impl ControlFlow for Function {
    fn n_blocks(&self) -> usize {
        self.blocks.len()
    }

    fn entry(&self) -> u32 {
        self.entry
    }

    fn succs(&self, block: u32) -> &[u32] {
        &self.blocks[block as usize].succs
    }

    fn preds(&self, block: u32) -> &[u32] {
        &self.blocks[block as usize].preds
    }
}

impl Function {
    /// Blocks with the names of their successors and their code.
    fn new(entry: &str, blocks: Vec<(&'static str, &[&str], Vec<Op>)>) -> Function {
        let number = |name: &str| {
            blocks.iter().position(|block| block.0 == name).expect("a block has this name") as u32
        };
        let entry = number(entry);
        let succs: Vec<Vec<u32>> = blocks
            .iter()
            .map(|(_, targets, _)| targets.iter().map(|name| number(name)).collect())
            .collect();
        let mut preds = vec![vec![]; blocks.len()];
        for (block, targets) in (0..).zip(&succs) {
            for &target in targets {
                preds[target as usize].push(block);
            }
        }
        let blocks = blocks.into_iter().zip(succs).zip(preds);
        let blocks =
            blocks.map(|(((name, _, code), succs), preds)| Block { name, succs, preds, code });
        Function { blocks: blocks.collect(), entry, n_variables: 1 }
    }

    /// The blocks that store to each variable, and those that load it before they store.
    fn slot_blocks(&self) -> SlotBlocks {
        let (mut stores, mut loads) = (vec![], vec![]);
        for (number, block) in (0..).zip(&self.blocks) {
            let mut stored = vec![];
            for op in &block.code {
                match *op {
                    Op::Load(variable) if !stored.contains(&variable) => {
                        loads.push((number, Slot(variable)));
                    }
                    Op::Load(_) => {}
                    Op::Store(variable) => stored.push(variable),
                }
            }
            stores.extend(stored.into_iter().map(|variable| (number, Slot(variable))));
        }
        SlotBlocks::new(self.n_variables, stores, loads)
    }

    fn names(&self, blocks: &[u32]) -> String {
        let mut names: Vec<&str> =
            blocks.iter().map(|&block| self.blocks[block as usize].name).collect();
        names.sort_unstable();
        names.join(" ")
    }
}

fn worked_example() -> Function {
    use Op::{Load, Store};
    let a = 0;
    Function::new(
        "Entry",
        vec![
            ("End", &[], vec![]),
            ("bb8", &["End"], vec![Load(a)]),
            ("bb7", &["bb8"], vec![Load(a)]),
            ("bb6", &["bb7"], vec![Load(a), Store(a)]),
            ("bb5", &["bb7"], vec![Load(a), Store(a)]),
            ("bb4", &["bb5", "bb6"], vec![]),
            ("bb3", &["bb2", "bb8"], vec![Load(a), Store(a)]),
            ("bb2", &["bb3"], vec![Load(a), Store(a)]),
            ("bb1", &["bb2", "bb4"], vec![Store(a)]),
            ("Entry", &["bb1"], vec![]),
        ],
    )
}

fn main() {
    let function = worked_example();
    let tree = DomTree::semi_nca(&function);
    let frontiers = Frontiers::new(&function, &tree).expect("ten blocks have small frontiers");
    let loops = LoopForest::new(&function);
    let mut placer = SitePlacer::default();
    placer
        .place(&function, &tree, &function.slot_blocks(), Pruning::Full, Placement::Auto)
        .expect("only sets of frontiers can be too large");

    println!("block  idom   frontier  loop depth");
    let mut lines = vec![];
    for &block in tree.preorder() {
        let name = function.blocks[block as usize].name;
        let idom = tree.idom(block).map_or(String::new(), |idom| function.names(&[idom]));
        let frontier = function.names(frontiers.of(block));
        let line = format!("{name:6} {idom:6} {frontier:9} {}", loops.depth_of_block(block));
        println!("{line}");
        lines.push(line);
    }
    let sites: Vec<u32> = placer.sites().iter().map(|&(block, _)| block).collect();
    println!("phis of a: {}", function.names(&sites));

    lines.sort_unstable();
    let expected = [
        "End    bb8              0",
        "Entry                   0",
        "bb1    Entry            0",
        "bb2    bb1    bb2 bb8   1",
        "bb3    bb2    bb2 bb8   1",
        "bb4    bb1    bb8       0",
        "bb5    bb4    bb7       0",
        "bb6    bb4    bb7       0",
        "bb7    bb4    bb8       0",
        "bb8    bb1              0",
    ];
    assert_eq!(lines, expected);
    assert_eq!(function.names(&sites), "bb2 bb7 bb8");
}
