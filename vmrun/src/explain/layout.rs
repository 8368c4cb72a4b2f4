//! The drawing of the blocks of all stages.
//!
//! There is one drawing for all stages: the graph with the blocks and edges of each of them is laid out once, so a
//! block has the same place in all. It is drawn in layers, after Sugiyama, Tagawa and Toda, "Methods for Visual
//! Understanding of Hierarchical System Structures" (1981): an edge leads to a later layer, except those that close
//! loops; edges over several layers pass through points in between; the layers are put in an order with few crossings
//! by medians (Gansner, Koutsofios, North, Vo, "A Technique for Drawing Directed Graphs" (1993), section 3); then nodes
//! move towards their neighbours. Loops need no single back edge or header here, so irreducible ones are drawn like
//! others.
//!
//! A function of many blocks is drawn by its loops: the outermost level with a node for each loop, and a level for each
//! loop. All steps are linear in the points of a level but for sorting; edges that would pass through too many points
//! are drawn straight.

use super::document::{Edge, Graph, Level, Node};

/// The number of blocks from which loops are drawn on levels of their own.
pub(super) const FLAT_BLOCKS_MAX: usize = 200;
/// The depth of loops from which on they are drawn on the level of the loop around them.
const LOOP_DEPTH_MAX: usize = 64;
/// The maximum number of points in between on the edges of a level.
const POINTS_MAX: usize = 20_000;
/// The number of times that all layers are put in order, and that their nodes are moved.
const N_ROUNDS: usize = 8;
/// The distances of neighbours in a layer, and of layers.
const NODE_DISTANCE: i32 = 150;
const POINT_DISTANCE: i32 = 24;
const LAYER_DISTANCE: i32 = 72;
const MARGIN: i32 = 90;

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
    let mut places = std::collections::BTreeMap::new();
    for (i, &(block, _)) in nodes.iter().enumerate() {
        places.insert(block, i);
    }
    let edges: Vec<(usize, usize)> = edges
        .iter()
        .filter_map(|(from, to)| Some((*places.get(from)?, *places.get(to)?)))
        .collect();
    let drawing = Drawing::new(nodes.len(), &edges);
    let (width, height) = drawing.size();
    let position = |point: usize| (drawing.x[point], drawing.y(point));
    let nodes: Vec<Node> = nodes
        .iter()
        .enumerate()
        .map(|(i, &(block, level))| {
            let (x, y) = position(i);
            Node { block, level, x, y }
        })
        .collect();
    let edges = edges
        .iter()
        .zip(&drawing.paths)
        .map(|(&(from, to), path)| Edge {
            from: nodes[from].block,
            to: nodes[to].block,
            points: path.iter().map(|&point| position(point)).collect(),
            back: drawing.layers[from] >= drawing.layers[to],
        })
        .collect();
    Level { header, width, height, nodes, edges }
}

/// Points in layers: first the nodes, then the points that long edges pass through.
struct Drawing {
    n_nodes: usize,
    /// The layer of each point.
    layers: Vec<usize>,
    /// The points of each layer, from left to right.
    rows: Vec<Vec<usize>>,
    /// The points of each edge, its ends included.
    paths: Vec<Vec<usize>>,
    /// The neighbours of each point in the layer above, and in the one below.
    above: Vec<Vec<usize>>,
    below: Vec<Vec<usize>>,
    x: Vec<i32>,
}

impl Drawing {
    fn new(n_nodes: usize, edges: &[(usize, usize)]) -> Drawing {
        let layers = assign_layers(n_nodes, edges);
        let n_rows = layers.iter().max().map_or(0, |&layer| layer + 1);
        let mut rows = vec![vec![]; n_rows];
        for (node, &layer) in layers.iter().enumerate() {
            rows[layer].push(node);
        }
        let mut drawing = Drawing {
            n_nodes,
            layers,
            rows,
            paths: vec![],
            above: vec![vec![]; n_nodes],
            below: vec![vec![]; n_nodes],
            x: vec![],
        };
        for &(from, to) in edges {
            drawing.add_edge(from, to);
        }
        drawing.order_rows();
        drawing.place();
        drawing
    }

    /// Adds an edge with the points that it passes through. One that leads backwards is drawn from its target, and one
    /// within a layer has none.
    fn add_edge(&mut self, from: usize, to: usize) {
        let is_back = self.layers[from] > self.layers[to];
        let (top, bottom) = if is_back { (to, from) } else { (from, to) };
        let mut path = vec![top];
        let between = self.layers[top] + 1..self.layers[bottom];
        if self.layers.len() - self.n_nodes + between.len() <= POINTS_MAX {
            for layer in between {
                let point = self.layers.len();
                self.layers.push(layer);
                self.rows[layer].push(point);
                self.above.push(vec![]);
                self.below.push(vec![]);
                path.push(point);
            }
        }
        path.push(bottom);
        for pair in path.windows(2).filter(|pair| self.layers[pair[0]] + 1 == self.layers[pair[1]])
        {
            self.below[pair[0]].push(pair[1]);
            self.above[pair[1]].push(pair[0]);
        }
        if is_back {
            path.reverse();
        }
        self.paths.push(path);
    }

    /// Puts the points of each layer in the order of the medians of their neighbours, downwards and upwards in turn.
    fn order_rows(&mut self) {
        let mut ranks = vec![0; self.layers.len()];
        let rank = |rows: &[Vec<usize>], ranks: &mut Vec<usize>| {
            for row in rows {
                row.iter().enumerate().for_each(|(i, &point)| ranks[point] = i);
            }
        };
        rank(&self.rows, &mut ranks);
        for round in 0..N_ROUNDS {
            let downwards = round % 2 == 0;
            for i in 0..self.rows.len() {
                let layer = if downwards { i } else { self.rows.len() - 1 - i };
                let neighbours = if downwards { &self.above } else { &self.below };
                let key = |point: usize| {
                    let mut all: Vec<usize> = neighbours[point].iter().map(|&n| ranks[n]).collect();
                    all.sort_unstable();
                    // A point without neighbours stays where it is.
                    all.get(all.len() / 2).copied().unwrap_or(ranks[point])
                };
                let mut row: Vec<(usize, usize)> =
                    self.rows[layer].iter().map(|&point| (key(point), point)).collect();
                row.sort_by_key(|&(key, _)| key);
                self.rows[layer] = row.into_iter().map(|(_, point)| point).collect();
                rank(&self.rows[layer..=layer], &mut ranks);
            }
        }
    }

    /// Gives each point its place in its layer: as close to the middle of its neighbours as the points beside it allow.
    fn place(&mut self) {
        self.x = vec![0; self.layers.len()];
        for row in &self.rows {
            let mut x = 0;
            for (i, &point) in row.iter().enumerate() {
                x += if i == 0 { 0 } else { distance(self.n_nodes, row[i - 1], point) };
                self.x[point] = x;
            }
            // Rows start out centred.
            row.iter().for_each(|&point| self.x[point] -= x / 2);
        }
        for round in 0..2 * N_ROUNDS {
            let downwards = round % 2 == 0;
            for i in 0..self.rows.len() {
                let layer = if downwards { i } else { self.rows.len() - 1 - i };
                let neighbours = if downwards { &self.above } else { &self.below };
                move_row(&mut self.x, &self.rows[layer], neighbours, self.n_nodes);
            }
        }
        let left = self.x.iter().min().copied().unwrap_or(0);
        self.x.iter_mut().for_each(|x| *x += MARGIN - left);
    }

    fn y(&self, point: usize) -> i32 {
        MARGIN / 2 + self.layers[point] as i32 * LAYER_DISTANCE
    }

    fn size(&self) -> (i32, i32) {
        let width = self.x.iter().max().map_or(0, |&x| x + MARGIN);
        (width, MARGIN + (self.rows.len().max(1) as i32 - 1) * LAYER_DISTANCE)
    }
}

/// Moves the points of a layer towards the middle of their neighbours, in their order.
fn move_row(x: &mut [i32], row: &[usize], neighbours: &[Vec<usize>], n_nodes: usize) {
    let wanted: Vec<i32> = row
        .iter()
        .map(|&point| {
            let mut all: Vec<i32> = neighbours[point].iter().map(|&n| x[n]).collect();
            all.sort_unstable();
            match all.len() {
                0 => x[point],
                n => (all[(n - 1) / 2] + all[n / 2]) / 2,
            }
        })
        .collect();
    // The mean of the leftmost and the rightmost places that keep the distances.
    let gap = |i: usize| distance(n_nodes, row[i - 1], row[i]);
    let mut rightmost = wanted.clone();
    for i in 1..row.len() {
        rightmost[i] = rightmost[i].max(rightmost[i - 1] + gap(i));
    }
    let mut leftmost = wanted;
    for i in (1..row.len()).rev() {
        leftmost[i - 1] = leftmost[i - 1].min(leftmost[i] - gap(i));
    }
    for (i, &point) in row.iter().enumerate() {
        x[point] = (leftmost[i] + rightmost[i]) / 2;
    }
}

/// The distance of two neighbours in a layer.
fn distance(n_nodes: usize, left: usize, right: usize) -> i32 {
    match (left < n_nodes, right < n_nodes) {
        (true, true) => NODE_DISTANCE,
        (false, false) => POINT_DISTANCE,
        _ => (NODE_DISTANCE + POINT_DISTANCE) / 2,
    }
}

/// The layer of each node: one after all nodes that an edge comes from, except for the edges that close a cycle in a
/// depth-first search.
fn assign_layers(n_nodes: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut succs = vec![vec![]; n_nodes];
    for &(from, to) in edges {
        succs[from].push(to);
    }
    let postorder = postorder(&succs);
    let mut positions = vec![0; n_nodes];
    for (i, &node) in postorder.iter().rev().enumerate() {
        positions[node] = i;
    }
    let mut layers = vec![0; n_nodes];
    for &node in postorder.iter().rev() {
        for &succ in succs[node].iter().filter(|&&succ| positions[succ] > positions[node]) {
            layers[succ] = layers[succ].max(layers[node] + 1);
        }
    }
    layers
}

/// The nodes in the order in which a depth-first search leaves them. It starts at the nodes in their order, and goes to
/// the last successor first, so that the first one comes next in reverse.
fn postorder(succs: &[Vec<usize>]) -> Vec<usize> {
    let mut order = Vec::with_capacity(succs.len());
    let mut was_visited = vec![false; succs.len()];
    for start in 0..succs.len() {
        if was_visited[start] {
            continue;
        }
        was_visited[start] = true;
        let mut stack = vec![(start, succs[start].len())];
        while let Some((node, n_left)) = stack.last_mut() {
            if *n_left == 0 {
                order.push(*node);
                stack.pop();
                continue;
            }
            *n_left -= 1;
            let succ = succs[*node][*n_left];
            if !was_visited[succ] {
                was_visited[succ] = true;
                stack.push((succ, succs[succ].len()));
            }
        }
    }
    order
}
