//! The drawing of the blocks of all stages.
//!
//! There is one drawing for all stages: the graph with the blocks and edges of each of them is laid out once, so a
//! block has the same place in all. [`crate::drawing`] finds the places. Loops need no single back edge or header, so
//! irreducible ones are drawn like others.
//!
//! A function of many blocks is drawn by its loops: the outermost level with a node for each loop, and a level for each
//! loop.

use std::collections::{BTreeMap, VecDeque};

use super::document::{Edge, Graph, Level, Node};
use crate::drawing::{Layout, Point, layout};

/// The number of blocks from which loops are drawn on levels of their own.
pub(super) const FLAT_BLOCKS_MAX: usize = 200;
/// The depth of loops from which on they are drawn on the level of the loop around them.
const LOOP_DEPTH_MAX: usize = 64;
/// The width and height of a node, which the page draws.
const NODE_SIZE: Point = (118.0, 36.0);

/// The graph of all stages.
#[derive(Debug, Default)]
pub(super) struct Union {
    /// The number of blocks.
    pub(super) n_blocks: usize,
    /// Edges, each once.
    pub(super) edges: Vec<(u32, u32)>,
    /// The innermost loop of each block.
    pub(super) innermost: Vec<Option<u32>>,
    /// The header and the parent of each loop; parents come first.
    pub(super) loops: Vec<(u32, Option<u32>)>,
}

/// Draws the blocks.
pub(super) fn draw(union: &Union) -> Graph {
    if union.n_blocks <= FLAT_BLOCKS_MAX {
        let nodes = (0..union.n_blocks as u32).map(|block| (block, None)).collect();
        return Graph { levels: vec![draw_level(None, nodes, &union.edges)] };
    }
    // Level 0 is the function, level i + 1 is loop i. A loop that is too deep has no level of its own.
    let n_levels = union.loops.len() + 1;
    let mut depths = vec![0; n_levels];
    let mut shown_on: Vec<usize> = (0..n_levels).collect();
    for level in 1..n_levels {
        let parent = union.loops[level - 1].1.map_or(0, |i| i as usize + 1);
        depths[level] = depths[parent] + 1;
        if depths[level] > LOOP_DEPTH_MAX {
            shown_on[level] = shown_on[parent];
        }
    }
    let parent_of = |level: usize| union.loops[level - 1].1.map_or(0, |i| i as usize + 1);
    let level_of =
        |block: u32| shown_on[union.innermost[block as usize].map_or(0, |i| i as usize + 1)];
    let mut nodes: Vec<Vec<(u32, Option<u32>)>> = vec![vec![]; n_levels];
    for block in 0..union.n_blocks as u32 {
        nodes[level_of(block)].push((block, None));
    }
    for level in (1..n_levels).filter(|&level| shown_on[level] == level) {
        let header = union.loops[level - 1].0;
        nodes[parent_of(level)].push((header, Some(level as u32)));
    }
    // An edge is drawn on the innermost level that has both of its ends, between the nodes that stand for them.
    let mut edges: Vec<Vec<(u32, u32)>> = vec![vec![]; n_levels];
    for &(from, to) in &union.edges {
        let (mut a, mut b) = (level_of(from), level_of(to));
        let (mut shown_from, mut shown_to) = (from, to);
        while a != b {
            if depths[a] >= depths[b] {
                shown_from = union.loops[a - 1].0;
                a = parent_of(a);
            } else {
                shown_to = union.loops[b - 1].0;
                b = parent_of(b);
            }
        }
        edges[a].push((shown_from, shown_to));
    }
    let drawn = nodes.into_iter().zip(&mut edges).enumerate().map(|(level, (nodes, edges))| {
        edges.sort_unstable();
        edges.dedup();
        draw_level(level.checked_sub(1).map(|i| union.loops[i].0), nodes, edges)
    });
    Graph { levels: drawn.collect() }
}

/// Draws a level: its nodes, each a block and the level that it opens, and edges between them.
fn draw_level(header: Option<u32>, nodes: Vec<(u32, Option<u32>)>, edges: &[(u32, u32)]) -> Level {
    let places: BTreeMap<u32, usize> =
        nodes.iter().enumerate().map(|(i, &(block, _))| (block, i)).collect();
    let edges: Vec<(usize, usize)> =
        edges.iter().filter_map(|(a, b)| Some((*places.get(a)?, *places.get(b)?))).collect();
    let sizes = vec![NODE_SIZE; nodes.len()];
    let drawing = layout(&sizes, &edges).unwrap_or_else(|_| straight(&sizes, &edges));
    let node = |(&(block, level), &corner): (&(u32, Option<u32>), &Point)| {
        let (x, y) = rounded(centre(corner));
        Node { block, level, x, y }
    };
    let edge = |(&(from, to), points): (&(usize, usize), &Vec<Point>)| Edge {
        from: nodes[from].0,
        to: nodes[to].0,
        points: points.iter().map(|&point| rounded(point)).collect(),
        back: drawing.boxes[from].1 >= drawing.boxes[to].1,
    };
    let (width, height) = rounded(drawing.size);
    Level {
        header,
        width,
        height,
        edges: edges.iter().zip(&drawing.edges).map(edge).collect(),
        nodes: nodes.iter().zip(&drawing.boxes).map(node).collect(),
    }
}

/// Lays out a graph whose edges pass too many ranks by the tree of a breadth-first search, whose edges pass none, and
/// draws edges straight.
fn straight(sizes: &[Point], edges: &[(usize, usize)]) -> Layout {
    let mut succs = vec![vec![]; sizes.len()];
    for &(from, to) in edges {
        succs[from].push(to);
    }
    let mut was_found = vec![false; sizes.len()];
    let mut tree = vec![];
    for start in 0..sizes.len() {
        let mut queue = VecDeque::from_iter((!was_found[start]).then_some(start));
        was_found[start] = true;
        while let Some(node) = queue.pop_front() {
            for &succ in &succs[node] {
                if !std::mem::replace(&mut was_found[succ], true) {
                    tree.push((node, succ));
                    queue.push_back(succ);
                }
            }
        }
    }
    let mut drawing = layout(sizes, &tree).expect("edges lead from one rank to the next");
    let line = |&(from, to): &(usize, usize)| [from, to].map(|i| centre(drawing.boxes[i])).to_vec();
    drawing.edges = edges.iter().map(line).collect();
    drawing
}

fn centre((x, y): Point) -> Point {
    (x + NODE_SIZE.0 / 2.0, y + NODE_SIZE.1 / 2.0)
}

fn rounded((x, y): Point) -> (i32, i32) {
    (x.round() as i32, y.round() as i32)
}
