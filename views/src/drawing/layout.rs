//! Places of boxes and edges of a directed graph, in ranks from top to bottom.
//!
//! Steps:
//! 1. A depth-first search finds the edges that lead back; they are laid out the other way round. What is left has no
//!    cycle, and the rank of a box is the length of the longest path to it.
//! 2. An edge that passes ranks gets a point in each of them. Boxes and points are the *items* of a rank.
//! 3. Sweeps down and up sort the items of each rank by the mean place of their neighbours. The order with the fewest
//!    crossings is kept.
//! 4. Sweeps move items towards the mean of their neighbours as far as the order allows.
//!
//! The result depends on the graph alone. Takes time in proportion to items and edges, times a logarithm.

use thiserror::Error;

/// The maximum number of points of edges.
pub(super) const POINTS_MAX: usize = 200_000;
/// Distances in pixels.
const RANK_GAP: f64 = 56.0;
const ITEM_GAP: f64 = 24.0;
const MARGIN: f64 = 16.0;
/// The width that an edge takes in a rank that it passes.
const POINT_WIDTH: f64 = 4.0;
/// Sweeps of sorting and of moving.
const SORT_SWEEPS: usize = 12;
const MOVE_SWEEPS: usize = 24;

/// A graph with too many long edges.
#[derive(Debug, Error)]
#[error(
    "the graph is too large to draw: its edges pass more than {POINTS_MAX} ranks in total; --dot has no limit"
)]
pub(crate) struct TooLarge;

/// A place, in pixels from the left and from the top.
pub(crate) type Point = (f64, f64);

/// The places of all boxes and edges.
pub(crate) struct Layout {
    pub(crate) size: Point,
    /// The left upper corner of each box.
    pub(crate) boxes: Vec<Point>,
    /// The points of each edge from its source to its destination. Two points in a row with the same abscissa are on a
    /// vertical part of it.
    pub(crate) edges: Vec<Vec<Point>>,
}

/// Lays out boxes of these sizes. Each edge is a source and a destination; no two are the same.
pub(crate) fn layout(sizes: &[Point], edges: &[(usize, usize)]) -> Result<Layout, TooLarge> {
    let (down, order) = turn_back_edges(sizes.len(), edges);
    let ranks = ranks(sizes.len(), &down, &order);
    let mut items = Items::new(sizes, &down, ranks)?;
    items.sort(&order);
    items.place();
    Ok(items.finish(sizes, edges, &down))
}

/// The edges that lead to other boxes, with those that lead back the other way round; and the boxes, each after the
/// sources of these edges.
fn turn_back_edges(
    n: usize,
    edges: &[(usize, usize)],
) -> (Vec<Option<(usize, usize)>>, Vec<usize>) {
    let mut succs = vec![Vec::new(); n];
    for (number, &(from, _)) in edges.iter().enumerate() {
        succs[from].push(number);
    }
    let mut down = vec![None; edges.len()];
    let (mut is_seen, mut is_left) = (vec![false; n], vec![false; n]);
    let mut postorder = Vec::with_capacity(n);
    for root in 0..n {
        if std::mem::replace(&mut is_seen[root], true) {
            continue;
        }
        let mut path = vec![(root, 0)];
        while let Some((at, next)) = path.last_mut() {
            let Some(&edge) = succs[*at].get(*next) else {
                is_left[*at] = true;
                postorder.push(*at);
                path.pop();
                continue;
            };
            *next += 1;
            let (from, to) = edges[edge];
            let leads_back = is_seen[to] && !is_left[to];
            down[edge] = match () {
                () if from == to => None,
                () if leads_back => Some((to, from)),
                () => Some((from, to)),
            };
            if !std::mem::replace(&mut is_seen[to], true) {
                path.push((to, 0));
            }
        }
    }
    postorder.reverse();
    (down, postorder)
}

/// The length of the longest path to each box.
fn ranks(n: usize, down: &[Option<(usize, usize)>], order: &[usize]) -> Vec<usize> {
    let mut succs = vec![Vec::new(); n];
    down.iter().flatten().for_each(|&(from, to)| succs[from].push(to));
    let mut ranks = vec![0; n];
    for &from in order {
        for &to in &succs[from] {
            ranks[to] = ranks[to].max(ranks[from] + 1);
        }
    }
    ranks
}

/// The boxes, by number, then the points of edges.
struct Items {
    /// The items of each rank from left to right.
    ranks: Vec<Vec<usize>>,
    /// The rank of each item.
    rank_of: Vec<usize>,
    /// The neighbours in the rank above and in the rank below.
    above: Vec<Vec<usize>>,
    below: Vec<Vec<usize>>,
    widths: Vec<f64>,
    /// The middle of each item.
    x: Vec<f64>,
    /// The points of each edge, downwards.
    points: Vec<Vec<usize>>,
}

impl Items {
    fn new(
        sizes: &[Point],
        down: &[Option<(usize, usize)>],
        rank_of: Vec<usize>,
    ) -> Result<Items, TooLarge> {
        let length = |&(from, to): &(usize, usize)| rank_of[to] - rank_of[from] - 1;
        if down.iter().flatten().map(length).sum::<usize>() > POINTS_MAX {
            return Err(TooLarge);
        }
        let n = sizes.len();
        let mut items = Items {
            ranks: Vec::new(),
            rank_of,
            above: vec![Vec::new(); n],
            below: vec![Vec::new(); n],
            widths: sizes.iter().map(|size| size.0).collect(),
            x: Vec::new(),
            points: Vec::with_capacity(down.len()),
        };
        for edge in down {
            let points = edge.map_or(Vec::new(), |(from, to)| items.add_edge(from, to));
            items.points.push(points);
        }
        Ok(items)
    }

    /// Adds the points of an edge, and returns them.
    fn add_edge(&mut self, from: usize, to: usize) -> Vec<usize> {
        let mut points = Vec::new();
        let mut last = from;
        for rank in self.rank_of[from] + 1..self.rank_of[to] {
            let point = self.rank_of.len();
            self.rank_of.push(rank);
            self.widths.push(POINT_WIDTH);
            self.above.push(Vec::new());
            self.below.push(Vec::new());
            self.link(last, point);
            points.push(point);
            last = point;
        }
        self.link(last, to);
        points
    }

    fn link(&mut self, above: usize, below: usize) {
        self.below[above].push(below);
        self.above[below].push(above);
    }

    /// Orders the items of all ranks.
    fn sort(&mut self, order: &[usize]) {
        let n_ranks = self.rank_of.iter().max().map_or(0, |rank| rank + 1);
        self.ranks = vec![Vec::new(); n_ranks];
        let points = self.points.iter().flatten().copied();
        for item in order.iter().copied().chain(points) {
            self.ranks[self.rank_of[item]].push(item);
        }
        let mut places = vec![0.0; self.rank_of.len()];
        self.note_places(&mut places);
        let mut best = (self.n_crossings(&places), self.ranks.clone());
        for sweep in 0..SORT_SWEEPS {
            let goes_down = sweep % 2 == 0;
            for step in 0..n_ranks {
                let rank = if goes_down { step } else { n_ranks - 1 - step };
                let neighbours = if goes_down { &self.above } else { &self.below };
                let key = |&item: &usize| mean(&neighbours[item], &places).unwrap_or(places[item]);
                self.ranks[rank].sort_by(|a, b| key(a).total_cmp(&key(b)));
                for (place, &item) in self.ranks[rank].iter().enumerate() {
                    places[item] = place as f64;
                }
            }
            let n_crossings = self.n_crossings(&places);
            if n_crossings < best.0 {
                best = (n_crossings, self.ranks.clone());
            }
        }
        self.ranks = best.1;
    }

    fn note_places(&self, places: &mut [f64]) {
        for items in &self.ranks {
            items.iter().enumerate().for_each(|(place, &item)| places[item] = place as f64);
        }
    }

    /// The number of pairs of edges between neighbouring ranks that cross: inversions, counted by a Fenwick tree.
    fn n_crossings(&self, places: &[f64]) -> usize {
        let mut n_crossings = 0;
        for (rank, items) in self.ranks.iter().enumerate() {
            let width = self.ranks.get(rank + 1).map_or(0, Vec::len);
            let mut tree = vec![0; width + 1];
            let mut n_seen = 0;
            for &item in items {
                let mut ends: Vec<usize> =
                    self.below[item].iter().map(|&below| places[below] as usize).collect();
                ends.sort_unstable();
                for &end in &ends {
                    n_crossings += n_seen - sum_up_to(&tree, end + 1);
                }
                for end in ends {
                    add(&mut tree, end + 1);
                    n_seen += 1;
                }
            }
        }
        n_crossings
    }

    /// Places the items of all ranks from left to right.
    fn place(&mut self) {
        self.x = vec![0.0; self.rank_of.len()];
        for items in &self.ranks {
            let mut left = 0.0;
            for &item in items {
                self.x[item] = left + self.widths[item] / 2.0;
                left += self.widths[item] + ITEM_GAP;
            }
        }
        for sweep in 0..MOVE_SWEEPS {
            for step in 0..self.ranks.len() {
                let rank = if sweep % 2 == 0 { step } else { self.ranks.len() - 1 - step };
                self.move_rank(rank);
            }
        }
    }

    /// Moves the items of a rank towards the mean of their neighbours. Of the placements that push items to the right
    /// and to the left where they would overlap, the mean has neither overlap nor preference.
    fn move_rank(&mut self, rank: usize) {
        let items = &self.ranks[rank];
        let wanted = |&item: &usize| {
            let around: Vec<usize> =
                self.above[item].iter().chain(&self.below[item]).copied().collect();
            mean(&around, &self.x).unwrap_or(self.x[item])
        };
        let wanted: Vec<f64> = items.iter().map(wanted).collect();
        let distance =
            |i: usize| (self.widths[items[i]] + self.widths[items[i + 1]]) / 2.0 + ITEM_GAP;
        let mut right = wanted.clone();
        for i in 1..items.len() {
            right[i] = right[i].max(right[i - 1] + distance(i - 1));
        }
        let mut left = wanted;
        for i in (1..items.len()).rev() {
            left[i - 1] = left[i - 1].min(left[i] - distance(i - 1));
        }
        for (i, &item) in items.iter().enumerate() {
            self.x[item] = f64::midpoint(left[i], right[i]);
        }
    }

    /// The result, from the middles of the items.
    fn finish(
        mut self,
        sizes: &[Point],
        edges: &[(usize, usize)],
        down: &[Option<(usize, usize)>],
    ) -> Layout {
        let lefts = self.x.iter().zip(&self.widths).map(|(x, width)| x - width / 2.0);
        let shift = MARGIN - lefts.fold(f64::INFINITY, f64::min).min(f64::MAX);
        self.x.iter_mut().for_each(|x| *x += shift);
        let rights = self.x.iter().zip(&self.widths).map(|(x, width)| x + width / 2.0);
        // An edge from a box to itself stands out to the right.
        let width = rights.fold(0.0, f64::max) + ITEM_GAP + MARGIN;
        let mut tops = Vec::with_capacity(self.ranks.len());
        let mut y = MARGIN;
        for items in &self.ranks {
            let heights = items.iter().filter_map(|&item| sizes.get(item)).map(|size| size.1);
            let height = heights.fold(0.0, f64::max);
            tops.push((y, y + height));
            y += height + RANK_GAP;
        }
        let corner = |(item, size): (usize, &Point)| {
            (self.x[item] - size.0 / 2.0, tops[self.rank_of[item]].0)
        };
        let boxes: Vec<Point> = sizes.iter().enumerate().map(corner).collect();
        let ports = Ports::new(&self, down, sizes, &boxes);
        let path = |(edge, &(from, to)): (usize, &(usize, usize))| match down[edge] {
            None => loop_at(boxes[from], sizes[from]),
            Some((above, _)) => {
                let mut path = vec![ports.bottoms[edge]];
                for &point in &self.points[edge] {
                    let (top, bottom) = tops[self.rank_of[point]];
                    path.extend([(self.x[point], top), (self.x[point], bottom)]);
                }
                path.push(ports.tops[edge]);
                if above == to {
                    path.reverse();
                }
                debug_assert!(above == from || above == to, "an edge starts or ends above");
                path
            }
        };
        let edges = edges.iter().enumerate().map(path).collect();
        Layout { size: (width, y - RANK_GAP + MARGIN), boxes, edges }
    }
}

/// The points where edges touch boxes, spread over their bottoms and tops in the order of where the edges lead.
struct Ports {
    bottoms: Vec<Point>,
    tops: Vec<Point>,
}

impl Ports {
    fn new(
        items: &Items,
        down: &[Option<(usize, usize)>],
        sizes: &[Point],
        boxes: &[Point],
    ) -> Ports {
        let mut ports =
            Ports { bottoms: vec![(0.0, 0.0); down.len()], tops: vec![(0.0, 0.0); down.len()] };
        let (mut outs, mut ins) = (vec![Vec::new(); sizes.len()], vec![Vec::new(); sizes.len()]);
        for (edge, ends) in down.iter().enumerate() {
            if let &Some((above, below)) = ends {
                let points = &items.points[edge];
                outs[above].push((items.x[*points.first().unwrap_or(&below)], edge));
                ins[below].push((items.x[*points.last().unwrap_or(&above)], edge));
            }
        }
        for (number, (&(x, y), &(width, height))) in boxes.iter().zip(sizes).enumerate() {
            let sides =
                [(&mut outs, &mut ports.bottoms, y + height), (&mut ins, &mut ports.tops, y)];
            for (edges, places, y) in sides {
                let edges = &mut edges[number];
                edges.sort_by(|a, b| a.0.total_cmp(&b.0));
                let part = width / (edges.len() + 1) as f64;
                for (i, &(_, edge)) in edges.iter().enumerate() {
                    places[edge] = (x + part * (i + 1) as f64, y);
                }
            }
        }
        ports
    }
}

/// The path of an edge from a box to itself, at its right side.
fn loop_at((x, y): Point, (width, height): Point) -> Vec<Point> {
    let (right, out) = (x + width, x + width + ITEM_GAP / 2.0);
    vec![
        (right, y + height * 0.75),
        (out, y + height * 0.75),
        (out, y + height * 0.25),
        (right, y + height * 0.25),
    ]
}

/// The mean of the numbers of some items.
fn mean(items: &[usize], numbers: &[f64]) -> Option<f64> {
    let sum: f64 = items.iter().map(|&item| numbers[item]).sum();
    (!items.is_empty()).then(|| sum / items.len() as f64)
}

/// The sum of the first entries of a Fenwick tree.
fn sum_up_to(tree: &[usize], mut n: usize) -> usize {
    let mut sum = 0;
    while n > 0 {
        sum += tree[n];
        n &= n - 1;
    }
    sum
}

/// Adds one to an entry of a Fenwick tree, counted from 1.
fn add(tree: &mut [usize], mut i: usize) {
    while i < tree.len() {
        tree[i] += 1;
        i += i & i.wrapping_neg();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The layout of boxes of one size, which no edge passes through and which do not overlap.
    fn check(n: usize, edges: &[(usize, usize)]) -> Layout {
        let sizes = vec![(100.0, 40.0); n];
        let layout = layout(&sizes, edges).expect("it is not too large");
        for (i, a) in layout.boxes.iter().enumerate() {
            assert!(a.0 >= MARGIN && a.0 + 100.0 <= layout.size.0 - MARGIN, "{a:?}");
            assert!(a.1 >= MARGIN && a.1 + 40.0 <= layout.size.1 - MARGIN + 1e-6, "{a:?}");
            for b in &layout.boxes[..i] {
                let is_apart = (a.0 - b.0).abs() >= 100.0 || (a.1 - b.1).abs() >= 40.0;
                assert!(is_apart, "boxes overlap: {a:?}, {b:?}");
            }
        }
        for (path, &(from, to)) in layout.edges.iter().zip(edges) {
            let (first, last) = (path[0], path[path.len() - 1]);
            for (end, of) in [(first, from), (last, to)] {
                let (x, y) = layout.boxes[of];
                let touches = (x..=x + 100.0).contains(&end.0) && (y..=y + 40.0).contains(&end.1);
                assert!(touches, "edge {from} -> {to} ends at {end:?}, box {of} is at {x}, {y}");
            }
        }
        layout
    }

    #[test]
    fn a_diamond_is_symmetric() {
        let layout = check(4, &[(0, 1), (0, 2), (1, 3), (2, 3)]);
        let [top, left, right, bottom] = layout.boxes[..] else { panic!("four boxes") };
        assert!(top.1 < left.1 && left.1 == right.1 && right.1 < bottom.1);
        assert!((top.0 - bottom.0).abs() < 1.0 && (left.0 + right.0 - 2.0 * top.0).abs() < 1.0);
    }

    #[test]
    fn loops_lead_upwards() {
        let layout = check(3, &[(0, 1), (1, 1), (1, 2), (2, 0)]);
        let back = &layout.edges[3];
        assert!(back[0].1 > back[back.len() - 1].1, "{back:?}");
    }

    #[test]
    fn graphs_without_blocks_or_edges_are_laid_out() {
        check(0, &[]);
        check(1, &[]);
        check(3, &[(2, 1)]);
    }

    /// Edges to the next block, and to some others near and far, back as well.
    fn tangle(n: usize) -> Vec<(usize, usize)> {
        let mut seed = 1_u32;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) as usize % below
        };
        let mut edges: Vec<(usize, usize)> = (1..n).map(|to| (to - 1, to)).collect();
        edges.extend((0..n).map(|from| (from, (from + random(20)).saturating_sub(8).min(n - 1))));
        edges.sort_unstable();
        edges.dedup();
        edges
    }

    #[test]
    fn a_thousand_blocks_take_no_long_time() {
        let edges = tangle(1_000);
        let start = std::time::Instant::now();
        let first = check(1_000, &edges);
        assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
        assert_eq!(first.boxes, check(1_000, &edges).boxes);
    }

    #[test]
    fn graphs_of_too_long_edges_are_refused() {
        let n = 2_000;
        let mut edges: Vec<(usize, usize)> = (1..n).map(|to| (to - 1, to)).collect();
        edges.extend((1..n - 1).map(|from| (0, from + 1)));
        let error = layout(&vec![(10.0, 10.0); n], &edges).err().expect("it is too large");
        assert!(error.to_string().contains("too large to draw"), "{error}");
    }
}
