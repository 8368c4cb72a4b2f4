//! The loop nesting forest, also of irreducible graphs.
//!
//! A *loop* is a strongly connected set of blocks with at least one edge inside, found like this: each
//! strongly connected component of the reachable graph (not counting single blocks without an edge to
//! themselves) is an outermost loop. Its *header* is the block at which the depth-first search from the
//! entry enters it; inside a reducible loop this is the block that dominates it. The loops inside a
//! loop are the components of what remains of it without its header.
//!
//! A loop that is entered at blocks other than its header is *irreducible*. Which block is the header,
//! and what the loops inside are, depends there on the order of successors.
//!
//! The algorithm is Tarjan's of "Testing Flow Graph Reducibility" (1974), as completed by Havlak,
//! "Nesting of Reducible and Irreducible Loops" (1997), and made near linear by Ramalingam,
//! "Identifying Loops in Almost Linear Time" (1999): headers are tried innermost first, in descending
//! order of the search; the blocks of a loop are found backwards from the edges that lead back to the
//! header, and then united with it. The search backwards must not leave the blocks below the header, so
//! an edge becomes visible only once the header at hand is at or above the nearest common ancestor of
//! its ends in the search's tree. No recursion.

use crate::graphs::cfg::ControlFlow;
use crate::graphs::ids::Loop;
use crate::graphs::search::{NONE, Search};
use crate::graphs::steps::step;

/// The loops of a graph, numbered in preorder of the forest: a loop comes before those inside it.
#[derive(Clone, Debug, Default)]
pub struct LoopForest {
    /// The innermost loop of a block, or [`NONE`].
    innermost: Vec<u32>,
    loops: Vec<LoopData>,
    /// The reachable blocks in postorder of the search that finds the loops.
    postorder: Vec<u32>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct LoopData {
    header: u32,
    /// The loop around it, or [`NONE`].
    parent: u32,
    /// The number of loops around it, itself included.
    depth: u32,
    /// One past the last loop inside it.
    end: u32,
    is_irreducible: bool,
}

/// Memory of the computation, to be reused from graph to graph. Except `numbers`, everything is indexed
/// by search number.
#[derive(Clone, Debug, Default)]
pub struct LoopScratch {
    search: Search,
    numbers: Vec<u32>,
    edges: Vec<EdgeData>,
    /// The first of the edges that lead back to a block.
    back_edges: Vec<u32>,
    /// The first of the edges whose ends have a block as nearest common ancestor.
    hidden_edges: Vec<u32>,
    /// The first of the visible edges that enter a block or the loop united with it.
    visible_edges: Vec<u32>,
    /// Union-find: towards the ancestor that the search has not left yet; then towards the header of
    /// the outermost loop found so far.
    links: Vec<u32>,
    /// The header of the innermost loop around a block, other than the block itself.
    headers: Vec<u32>,
    /// The header of the outermost loop that an edge enters by jumping to a block inside it.
    entered: Vec<u32>,
    body: Vec<u32>,
    /// The loop of a header.
    loop_of: Vec<u32>,
}

#[derive(Copy, Clone, Debug)]
struct EdgeData {
    src: u32,
    dst: u32,
    /// The next edge of the list that it is in.
    next: u32,
}

impl LoopForest {
    /// The loops of a graph.
    pub fn new(cfg: &impl ControlFlow) -> LoopForest {
        let mut forest = LoopForest::default();
        forest.compute(cfg, &mut LoopScratch::default());
        forest
    }

    /// Makes this the loops of a graph, in existing memory.
    pub fn compute(&mut self, cfg: &impl ControlFlow, scratch: &mut LoopScratch) {
        scratch.start(cfg);
        let Search { vertices, postorder, .. } = &scratch.search;
        self.postorder.clear();
        self.postorder.extend(postorder.iter().map(|&v| vertices[v as usize]));
        scratch.sort_edges(cfg);
        scratch.find_loops();
        self.number_loops(scratch);
        self.find_irreducible(scratch);
    }

    /// Numbers the loops in preorder, in the order of their headers in the search.
    fn number_loops(&mut self, scratch: &mut LoopScratch) {
        let LoopScratch { search, numbers, back_edges, headers, loop_of, .. } = scratch;
        let n = search.vertices.len();
        let is_header = |v: usize| back_edges[v] != NONE;
        // The number of loops in each loop; a header follows the headers around it.
        let sizes = &mut scratch.links;
        sizes.clear();
        sizes.resize(n, 1);
        for v in (0..n).rev().filter(|&v| is_header(v)) {
            if headers[v] != NONE {
                sizes[headers[v] as usize] += sizes[v];
            }
        }
        // The next free number inside each loop.
        let free = &mut scratch.body;
        free.clear();
        free.resize(n, 0);
        let mut next_outermost = 0;
        let unknown = LoopData { header: 0, parent: NONE, depth: 1, end: 0, is_irreducible: false };
        self.loops.clear();
        self.loops.resize((0..n).filter(|&v| is_header(v)).count(), unknown);
        loop_of.clear();
        loop_of.resize(n, NONE);
        for v in (0..n).filter(|&v| is_header(v)) {
            let mut data = LoopData { header: search.vertices[v], ..unknown };
            let place = match headers[v] {
                NONE => &mut next_outermost,
                around => {
                    data.parent = loop_of[around as usize];
                    data.depth = self.loops[data.parent as usize].depth + 1;
                    &mut free[around as usize]
                }
            };
            let number = *place;
            *place += sizes[v];
            data.end = *place;
            free[v] = number + 1;
            loop_of[v] = number;
            self.loops[number as usize] = data;
        }
        self.innermost.clear();
        self.innermost.extend(numbers.iter().map(|&v| match v {
            NONE => NONE,
            v if is_header(v as usize) => loop_of[v as usize],
            v if headers[v as usize] == NONE => NONE,
            v => loop_of[headers[v as usize] as usize],
        }));
    }

    /// Marks the loops that are entered at other blocks than their headers.
    fn find_irreducible(&mut self, scratch: &mut LoopScratch) {
        let LoopScratch { numbers, headers, entered, loop_of, links: outermost, .. } = scratch;
        // The header of the outermost loop that is entered by the same edge as a loop.
        outermost.clear();
        outermost.resize(self.loops.len(), NONE);
        for (&header, &entered) in headers.iter().zip(&*entered) {
            if entered != NONE {
                // The innermost loop of which the block is not the header.
                let outermost = &mut outermost[loop_of[header as usize] as usize];
                *outermost = entered.min(*outermost);
            }
        }
        for number in (0..self.loops.len()).rev() {
            let data = &mut self.loops[number];
            if outermost[number] != NONE {
                data.is_irreducible = true;
                if outermost[number] < numbers[data.header as usize] {
                    let parent = data.parent as usize;
                    outermost[parent] = outermost[parent].min(outermost[number]);
                }
            }
        }
    }

    /// The reachable blocks in reverse postorder of a depth-first search that looks at successors in their order: a
    /// block comes after its dominators and, except for back edges of reducible loops, after its predecessors.
    pub fn reverse_postorder(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.postorder.iter().rev().copied()
    }

    /// The number of loops; their numbers are below it.
    pub fn n_loops(&self) -> usize {
        self.loops.len()
    }

    /// All loops: a loop comes before those inside it.
    pub fn loops(&self) -> impl DoubleEndedIterator<Item = Loop> + use<> {
        (0..self.loops.len() as u32).map(Loop)
    }

    /// The innermost loop that a block is in.
    #[inline]
    pub fn innermost(&self, block: u32) -> Option<Loop> {
        let number = self.innermost[block as usize];
        (number != NONE).then_some(Loop(number))
    }

    /// The number of loops that a block is in.
    #[inline]
    pub fn depth_of_block(&self, block: u32) -> u32 {
        self.innermost(block).map_or(0, |innermost| self.depth(innermost))
    }

    /// Whether a block is the header of a loop.
    pub fn is_header(&self, block: u32) -> bool {
        self.innermost(block).is_some_and(|innermost| self.header(innermost) == block)
    }

    /// Whether a block is in a loop.
    #[inline]
    pub fn contains(&self, around: Loop, block: u32) -> bool {
        let inner = self.innermost[block as usize];
        around.0 <= inner && inner < self.loops[around.index()].end
    }

    /// The header of a loop.
    #[inline]
    pub fn header(&self, of: Loop) -> u32 {
        self.loops[of.index()].header
    }

    /// The innermost loop around a loop.
    pub fn parent(&self, of: Loop) -> Option<Loop> {
        let parent = self.loops[of.index()].parent;
        (parent != NONE).then_some(Loop(parent))
    }

    /// The number of loops around a loop, itself included.
    #[inline]
    pub fn depth(&self, of: Loop) -> u32 {
        self.loops[of.index()].depth
    }

    /// Whether a loop is entered at other blocks than its header.
    pub fn is_irreducible(&self, of: Loop) -> bool {
        self.loops[of.index()].is_irreducible
    }
}

impl LoopScratch {
    fn start(&mut self, cfg: &impl ControlFlow) {
        self.search.run(cfg, &mut self.numbers);
        let n = self.search.vertices.len();
        self.edges.clear();
        self.body.clear();
        for table in [
            &mut self.back_edges,
            &mut self.hidden_edges,
            &mut self.visible_edges,
            &mut self.headers,
            &mut self.entered,
        ] {
            table.clear();
            table.resize(n, NONE);
        }
        self.reset_links();
    }

    fn reset_links(&mut self) {
        self.links.clear();
        self.links.extend(0..self.search.vertices.len() as u32);
    }

    /// The representative of a block's set; halves the path to it.
    fn find(&mut self, mut v: u32) -> u32 {
        while self.links[v as usize] != v {
            step();
            let up = self.links[self.links[v as usize] as usize];
            self.links[v as usize] = up;
            v = up;
        }
        v
    }

    /// Sorts the edges into those that lead back to an ancestor in the search's tree, by that
    /// ancestor, and the others, by the nearest common ancestor of their ends (Tarjan's offline
    /// algorithm: blocks are united with their parents as the search leaves them).
    fn sort_edges(&mut self, cfg: &impl ControlFlow) {
        for i in 0..self.search.postorder.len() {
            let src = self.search.postorder[i];
            for &succ in cfg.succs(self.search.vertices[src as usize]) {
                let dst = self.numbers[succ as usize];
                let ancestor = self.find(dst);
                // The search has not left its target: it is an ancestor, or the block itself.
                let is_back = ancestor == dst && self.links[dst as usize] == dst;
                let list = if is_back { &mut self.back_edges } else { &mut self.hidden_edges };
                let next = std::mem::replace(&mut list[ancestor as usize], self.edges.len() as u32);
                self.edges.push(EdgeData { src, dst, next });
            }
            self.links[src as usize] = self.search.parents[src as usize];
        }
        self.reset_links();
    }

    /// Finds the loop of each header, innermost first.
    fn find_loops(&mut self) {
        for header in (0..self.search.vertices.len() as u32).rev() {
            self.show_edges(header);
            let mut edge = self.back_edges[header as usize];
            while edge != NONE {
                let EdgeData { src, next, .. } = self.edges[edge as usize];
                self.add_to_body(src, header);
                edge = next;
            }
            while let Some(block) = self.body.pop() {
                let mut edge = self.visible_edges[block as usize];
                while edge != NONE {
                    let EdgeData { src, next, .. } = self.edges[edge as usize];
                    self.add_to_body(src, header);
                    edge = next;
                }
            }
        }
    }

    /// Makes the edges visible whose ends have this nearest common ancestor.
    fn show_edges(&mut self, ancestor: u32) {
        let mut edge = self.hidden_edges[ancestor as usize];
        while edge != NONE {
            step();
            let EdgeData { dst, next, .. } = self.edges[edge as usize];
            let target = self.find(dst);
            if target != dst {
                // The edge enters all loops around its target that were found so far, except for
                // one whose header its target is.
                let entered = &mut self.entered[dst as usize];
                *entered = target.min(*entered);
            }
            let visible = &mut self.visible_edges[target as usize];
            self.edges[edge as usize].next = std::mem::replace(visible, edge);
            edge = next;
        }
    }

    /// Unites what a block was united with, unless it is the header or was so already, with a header.
    fn add_to_body(&mut self, block: u32, header: u32) {
        step();
        let block = self.find(block);
        if block != header {
            self.links[block as usize] = header;
            self.headers[block as usize] = header;
            self.body.push(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs::cfg::Cfg;
    use crate::graphs::steps::within;
    use crate::tools::testing::{Bits, Rng, all_graphs, families, random_graph, reachable, size};

    /// A loop by the definition: its blocks and its header, and those of the loop around it.
    type Expected = (Bits, u32, Bits);

    /// The blocks that can be reached from a block by edges inside a set, by at least one edge.
    fn reachable_inside(cfg: &Cfg, from: u32, inside: Bits) -> Bits {
        let inner = |block: &u32| inside >> block & 1 == 1;
        cfg.succs(from)
            .iter()
            .filter(|block| inner(block))
            .fold(0, |set, &block| set | reachable(cfg, block, !inside))
    }

    /// Collects the loops inside a set, by the definition.
    fn loops_inside(cfg: &Cfg, order: &[u32], set: Bits, around: Bits, loops: &mut Vec<Expected>) {
        let mut rest = set;
        // In the order of the search, the first block of each component is its header.
        for &block in order {
            if rest >> block & 1 == 0 {
                continue;
            }
            let reached = reachable_inside(cfg, block, set);
            let back = |&b: &u32| reachable_inside(cfg, b, set) >> block & 1 == 1;
            let component = (0..cfg.n_blocks() as u32)
                .filter(|&b| reached >> b & 1 == 1)
                .filter(back)
                .fold(0, |set: Bits, b| set | 1 << b);
            if component != 0 {
                loops.push((component, block, around));
                loops_inside(cfg, order, component & !(1 << block), component, loops);
            }
            rest &= !(component | 1 << block);
        }
    }

    fn check(cfg: &Cfg, forest: &LoopForest) {
        let n = cfg.n_blocks() as u32;
        let mut search = Search::default();
        search.run(cfg, &mut vec![]);
        let live = reachable(cfg, cfg.entry(), 0);
        let mut expected = vec![];
        loops_inside(cfg, &search.vertices, live, 0, &mut expected);

        let blocks = |number| {
            (0..n).filter(|&b| forest.contains(number, b)).fold(0, |set: Bits, b| set | 1 << b)
        };
        let mut found: Vec<Expected> = vec![];
        for number in forest.loops() {
            let around = forest.parent(number).map_or(0, blocks);
            found.push((blocks(number), forest.header(number), around));
            let depth = forest.parent(number).map_or(0, |parent| forest.depth(parent));
            assert_eq!(forest.depth(number), depth + 1);
            let is_entered = (0..n).any(|b| {
                live & !blocks(number) & 1 << b != 0
                    && cfg
                        .succs(b)
                        .iter()
                        .any(|&succ| succ != forest.header(number) && forest.contains(number, succ))
            });
            assert_eq!(forest.is_irreducible(number), is_entered, "{number} in {cfg:?} {forest:?}");
        }
        for b in 0..n {
            let depth = expected.iter().filter(|(blocks, ..)| blocks >> b & 1 == 1).count();
            assert_eq!(forest.depth_of_block(b) as usize, depth);
            assert_eq!(forest.is_header(b), expected.iter().any(|&(_, header, _)| header == b));
        }
        // What cannot be reached once a block is left out is dominated by it.
        let order: Vec<u32> = forest.reverse_postorder().collect();
        assert_eq!(order.iter().fold(0, |set: Bits, &b| set | 1 << b), live);
        for (place, &b) in order.iter().enumerate() {
            let after = order[place..].iter().fold(0, |set: Bits, &b| set | 1 << b);
            let dominated = live & !reachable(cfg, cfg.entry(), 1 << b);
            assert_eq!(dominated & !after, 0, "{b} in {cfg:?}");
        }
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "{cfg:?}");
    }

    #[test]
    fn loops_match_the_definition_on_all_small_graphs() {
        for n in 1..=4 {
            for cfg in all_graphs(n) {
                check(&cfg, &LoopForest::new(&cfg));
            }
        }
    }

    #[test]
    fn loops_match_the_definition_on_random_graphs() {
        let mut rng = Rng(21);
        let (mut forest, mut scratch) = (LoopForest::default(), LoopScratch::default());
        let mut n_irreducible = 0;
        for _ in 0..20_000 {
            let n = 1 + rng.below(14);
            let cfg = random_graph(&mut rng, n);
            forest.compute(&cfg, &mut scratch);
            check(&cfg, &forest);
            n_irreducible += forest.loops().filter(|&it| forest.is_irreducible(it)).count();
        }
        assert!(n_irreducible > 1_000, "{n_irreducible}");
    }

    #[test]
    fn loop_exits_of_a_nest() {
        let forest = LoopForest::new(&crate::tools::testing::nest(3));
        assert_eq!(forest.n_loops(), 3);
        assert_eq!((forest.depth_of_block(3), forest.depth_of_block(4)), (3, 3));
        assert_eq!((forest.depth_of_block(6), forest.depth_of_block(7)), (1, 0));
        let contains = |number, block| forest.contains(Loop(number), block);
        assert!(contains(0, 6) && !contains(1, 6) && !contains(0, 7));
    }

    #[test]
    fn steps_on_large_families_are_near_linear() {
        for (name, cfg) in families(400_000) {
            let forest = within(8 * size(&cfg), name, || LoopForest::new(&cfg));
            match name {
                "nest" => assert_eq!(forest.depth(forest.loops().next_back().unwrap()), 200_000),
                "ladder" => assert_eq!(forest.n_loops(), 399_998),
                "irreducible" => assert!(forest.is_irreducible(Loop(0))),
                _ => assert_eq!(forest.n_loops(), 0, "{name}"),
            }
        }
    }
}
