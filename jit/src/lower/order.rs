//! In which order blocks are filled and sealed, and which edges leave loops.

use slotvm_ssa::cfg::Cfg;
use slotvm_ssa::dominators::DomTree;
use slotvm_ssa::entity::{Block, Edge};
use slotvm_ssa::ir::Function;

/// The blocks in reverse postorder: a block stands behind its dominators, and in reducible graphs
/// behind all its predecessors but those of back edges.
pub(super) fn reverse_postorder(func: &Function) -> Vec<Block> {
    let mut visited = vec![false; func.n_blocks()];
    let mut postorder = Vec::with_capacity(func.n_blocks());
    visited[Function::ENTRY.index()] = true;
    let mut stack = vec![(Function::ENTRY, func.succ_edges(Function::ENTRY))];
    while let Some((block, edges)) = stack.last_mut() {
        let Some(edge) = edges.next() else {
            postorder.push(*block);
            stack.pop();
            continue;
        };
        let succ = func.edge_dst(edge);
        if !visited[succ.index()] {
            visited[succ.index()] = true;
            stack.push((succ, func.succ_edges(succ)));
        }
    }
    postorder.reverse();
    postorder
}

/// Finds the moment at which all predecessors of a block are filled.
pub(super) struct Sealing {
    /// In-edges whose sources are not filled yet, by block.
    open_edges: Vec<u32>,
}

impl Sealing {
    pub(super) fn new(func: &Function) -> Sealing {
        let n_preds = |block| func.pred_edges(block).len() as u32;
        Sealing { open_edges: func.blocks().map(n_preds).collect() }
    }

    /// Notes that a block is filled, and seals those of its successors of which it was the last
    /// predecessor that was not.
    pub(super) fn filled(&mut self, func: &Function, block: Block, mut seal: impl FnMut(Block)) {
        for edge in func.succ_edges(block) {
            let succ = func.edge_dst(edge);
            let open = &mut self.open_edges[succ.index()];
            *open -= 1;
            if *open == 0 {
                seal(succ);
            }
        }
    }
}

/// How deep blocks are nested in natural loops.
///
/// A natural loop is a header and the blocks from which one of its back edges can be reached without
/// passing the header; loops with one header are one loop. Cycles with several entries are none.
pub(super) struct LoopDepths {
    dominators: DomTree,
    /// The number of loops that a block is in.
    depths: Vec<u32>,
    is_header: Vec<bool>,
}

impl LoopDepths {
    pub(super) fn new(func: &Function) -> LoopDepths {
        let succs = |block| func.succ_edges(block).map(|edge| func.edge_dst(edge).0);
        let cfg = Cfg::new(Function::ENTRY.0, func.blocks().map(succs));
        let dominators = DomTree::semi_nca(&cfg);
        let loops = Loops::find(func, &dominators);
        let mut depths = vec![0; func.n_blocks()];
        let mut is_header = vec![false; func.n_blocks()];
        for block in func.blocks().map(Block::index) {
            // A header dominates its loop, so the depth of the loop around is known by now.
            depths[block] = match loops.loop_of[block] {
                NONE => 0,
                header if header as usize == block => {
                    is_header[block] = true;
                    let outer = loops.outer[block];
                    1 + if outer == NONE { 0 } else { depths[outer as usize] }
                }
                header => depths[header as usize],
            };
        }
        LoopDepths { dominators, depths, is_header }
    }

    /// The number of loops that both ends of an edge are in.
    ///
    /// All loops around the destination have the source in them too, since a loop is entered at its
    /// header only; but for the destination's own loop, if the edge enters that one.
    pub(super) fn common_depth(&self, func: &Function, edge: Edge) -> u32 {
        let (src, dst) = (func.edge_src(edge), func.edge_dst(edge));
        let enters = self.is_header[dst.index()] && !self.dominators.dominates(dst.0, src.0);
        self.depths[dst.index()] - u32::from(enters)
    }
}

const NONE: u32 = u32::MAX;

/// Loops, named by their headers.
struct Loops {
    /// The innermost loop of a block.
    loop_of: Vec<u32>,
    /// The loop around a loop.
    outer: Vec<u32>,
    /// A loop around a loop, or itself: shortcuts to the outermost one found so far.
    shortcuts: Vec<u32>,
}

impl Loops {
    /// Walks backwards from the back edges of each header, inner loops first, and passes over loops
    /// that it has found already.
    fn find(func: &Function, dominators: &DomTree) -> Loops {
        let n = func.n_blocks();
        let none = || vec![NONE; n];
        let mut loops =
            Loops { loop_of: none(), outer: none(), shortcuts: (0..n as u32).collect() };
        let mut work = Vec::new();
        for header in func.blocks().rev().map(|block| block.0) {
            loops.push_preds(func, dominators, header, header, &mut work);
            if !work.is_empty() && loops.loop_of[header as usize] == NONE {
                loops.loop_of[header as usize] = header;
            }
            while let Some(block) = work.pop() {
                let entry = loops.absorb(block, header);
                if let Some(entry) = entry {
                    loops.push_preds(func, dominators, header, entry, &mut work);
                }
            }
        }
        loops
    }

    /// Pushes the predecessors of a block that a header dominates.
    fn push_preds(
        &self,
        func: &Function,
        dominators: &DomTree,
        header: u32,
        block: u32,
        work: &mut Vec<u32>,
    ) {
        let preds = func.pred_edges(Block(block)).iter().map(|&edge| func.edge_src(edge).0);
        work.extend(preds.filter(|&pred| dominators.dominates(header, pred)));
    }

    /// Puts a block, or the outermost loop that it is in, into the loop of a header. Gives the block
    /// at which what was put there is entered, or `None` if it was there already.
    fn absorb(&mut self, block: u32, header: u32) -> Option<u32> {
        let innermost = self.loop_of[block as usize];
        if innermost == NONE {
            self.loop_of[block as usize] = header;
            return Some(block);
        }
        let outermost = self.outermost(innermost);
        if outermost == header {
            return None;
        }
        self.outer[outermost as usize] = header;
        self.shortcuts[outermost as usize] = header;
        Some(outermost)
    }

    fn outermost(&mut self, header: u32) -> u32 {
        let mut at = header;
        loop {
            let up = self.shortcuts[at as usize];
            if up == at {
                return at;
            }
            self.shortcuts[at as usize] = self.shortcuts[up as usize];
            at = up;
        }
    }
}
