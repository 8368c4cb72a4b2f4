//! Strips of frames as SVG documents.
//!
//! Texts are wrapped by an estimate of the width of a character, so that a strip is the same on each machine.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::document::{Document, Edge};
use super::film::{Frame, depths};

const INFALLIBLE: &str = "writing to a string succeeds";

/// Pixels for a pixel of the document's drawing, whose blocks are wider and farther apart.
const SCALE: (f64, f64) = (0.7, 0.65);
const BOX: (f64, f64) = (88.0, 36.0);
const TREE_BOX: (f64, f64) = (36.0, 24.0);
const TREE_STEP: (f64, f64) = (48.0, 56.0);
const PADDING: f64 = 12.0;
const GAP: f64 = 10.0;
const LINE_HEIGHT: f64 = 16.0;
const CHAR_WIDTH: f64 = 6.7;
/// The width of a strip, which a page of text has room for, and the least number of frames side by side.
const WIDTH_MAX: f64 = 900.0;
const COLUMNS_MIN: usize = 2;
/// The room around a graph, which marks of phis reach into.
const MARGIN: f64 = 12.0;

/// Colours for light and dark pages. The background is a part of the picture.
const STYLE: &str = "\
text { font: 12px system-ui, 'DejaVu Sans', sans-serif; fill: #1f2328; }
.title { font-size: 14px; font-weight: bold; }
.name { font-weight: bold; text-anchor: middle; }
.note { font-size: 10px; text-anchor: middle; fill: #57606a; }
.foot { font-weight: bold; }
.page { fill: #f6f8fa; }
.frame { fill: #ffffff; stroke: #d0d7de; }
.block rect { fill: #ffffff; stroke: #57606a; }
.dominated rect { fill: #ddf4ff; }
.queued rect { stroke: #9a6700; stroke-width: 2; stroke-dasharray: 5 3; }
.current rect { stroke: #0550ae; stroke-width: 3; stroke-dasharray: none; }
.edge { fill: none; stroke: #8c959f; }
.yes { stroke: #1a7f37; stroke-width: 3; }
.no { stroke: #cf222e; stroke-width: 3; stroke-dasharray: 4 3; }
marker path { fill: context-stroke; }
.phi circle { fill: #1a7f37; }
.phi text { fill: #ffffff; font-weight: bold; text-anchor: middle; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .note { fill: #9198a1; }
  .page { fill: #010409; }
  .frame { fill: #0d1117; stroke: #3d444d; }
  .block rect { fill: #151b23; stroke: #9198a1; }
  .dominated rect { fill: #0c2d6b; }
  .queued rect { stroke: #d29922; }
  .current rect { stroke: #58a6ff; }
  .edge { stroke: #6e7681; }
  .yes { stroke: #3fb950; }
  .no { stroke: #f85149; }
  .phi circle { fill: #238636; }
}
";

type Point = (f64, f64);

/// A strip of frames with a title. With `tree`, its first picture is the dominator tree.
pub(super) fn strip(document: &Document, title: &str, frames: &[Frame], tree: bool) -> String {
    let graph = Places::of(document);
    let width = graph.size.0.max(230.0) + 2.0 * PADDING;
    let n_chars = ((width - 2.0 * PADDING) / CHAR_WIDTH) as usize;
    let mut pictures: Vec<(Vec<String>, String, String)> = vec![];
    if tree {
        let text = "The dominator tree: each block is below its immediate dominator.";
        let picture = dominator_tree(document, width - 2.0 * PADDING);
        pictures.push((wrapped(text, n_chars), picture, "level: the depth of a block".into()));
    }
    for (i, frame) in frames.iter().enumerate() {
        let text = wrapped(&format!("{}. {}", i + 1, frame.text), n_chars);
        pictures.push((text, graph.frame(document, frame), frame.foot.clone()));
    }
    let columns = (((WIDTH_MAX - GAP) / (width + GAP)) as usize).max(COLUMNS_MIN);
    let mut body = String::new();
    let mut y = GAP + 30.0;
    for row in pictures.chunks(columns) {
        let n_lines = row.iter().map(|(text, ..)| text.len()).max().expect("a row has a picture");
        let top = PADDING + n_lines as f64 * LINE_HEIGHT;
        let height = top + graph.size.1 + LINE_HEIGHT + 2.0 * PADDING;
        for (i, (text, picture, foot)) in row.iter().enumerate() {
            let x = GAP + i as f64 * (width + GAP);
            let inner = width - 2.0 * PADDING;
            let mut cell = String::new();
            for (n, line) in text.iter().enumerate() {
                let y = PADDING + LINE_HEIGHT * (n as f64 + 0.6);
                writeln!(cell, "<text x=\"{PADDING}\" y=\"{y:.0}\">{line}</text>")
                    .expect(INFALLIBLE);
            }
            let left = PADDING + (inner - graph.size.0).max(0.0) / 2.0;
            let left = if tree && text[0].starts_with("The dom") { PADDING } else { left };
            let bottom = height - PADDING;
            write!(
                body,
                "<g transform=\"translate({x:.0} {y:.0})\">\n\
                 <rect class=\"frame\" width=\"{width:.0}\" height=\"{height:.0}\" rx=\"6\"/>\n{cell}\
                 <g transform=\"translate({left:.0} {top:.0})\">\n{picture}</g>\n\
                 <text class=\"foot\" x=\"{PADDING}\" y=\"{bottom:.0}\">{foot}</text>\n</g>\n"
            )
            .expect(INFALLIBLE);
        }
        y += height + GAP;
    }
    let page = GAP + columns as f64 * (width + GAP);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{page:.0}\" height=\"{y:.0}\" \
         viewBox=\"0 0 {page:.0} {y:.0}\" role=\"img\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n\
         <defs><marker id=\"arrow\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"8\" \
         markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M 0 1 L 10 5 L 0 9 z\"/></marker></defs>\n\
         <rect class=\"page\" width=\"100%\" height=\"100%\"/>\n\
         <text class=\"title\" x=\"{GAP}\" y=\"26\">{title}</text>\n{body}</svg>\n"
    )
}

/// Breaks a text into lines.
fn wrapped(text: &str, n_chars: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.len() + 1 + word.len() <= n_chars {
            *line += &format!(" {word}");
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// The places of blocks in a frame, which are the same in all frames.
struct Places {
    /// The distance by which scaled points are moved.
    origin: Point,
    /// The middle of each rank of blocks in the document's drawing.
    ranks: Vec<f64>,
    size: Point,
    /// The centres of blocks.
    centres: BTreeMap<u32, Point>,
}

fn scaled((x, y): Point) -> Point {
    (x * SCALE.0, y * SCALE.1)
}

impl Places {
    fn of(document: &Document) -> Places {
        let drawing = document.drawing();
        let nodes: Vec<(u32, Point)> =
            drawing.nodes.iter().map(|node| (node.block, scaled((node.x, node.y)))).collect();
        // Lines may lead around all blocks.
        let bends =
            drawing.edges.iter().flat_map(|edge| &edge.points).map(|&point| scaled(point).0);
        let sides = nodes.iter().flat_map(|(_, (x, _))| [x - BOX.0 / 2.0, x + BOX.0 / 2.0]);
        let xs: Vec<f64> = bends.chain(sides).collect();
        let ys = nodes.iter().flat_map(|(_, (_, y))| [y - BOX.1 / 2.0, y + BOX.1 / 2.0]);
        let ((left, right), (top, bottom)) = (range(xs), range(ys));
        let origin = (left - MARGIN, top - MARGIN);
        let moved = |(x, y): Point| (x - origin.0, y - origin.1);
        Places {
            origin,
            ranks: drawing.nodes.iter().map(|node| node.y).collect(),
            size: (right - left + 2.0 * MARGIN, bottom - top + 2.0 * MARGIN),
            centres: nodes.into_iter().map(|(block, place)| (block, moved(place))).collect(),
        }
    }

    /// The place of a point of an edge. Edges bend at the heights of the upper and lower borders of blocks, which are as
    /// high here as there; only ranks are closer to each other.
    fn moved(&self, (x, y): Point) -> Point {
        let distance = |rank: &&f64| (y - **rank).abs();
        let nearest = self.ranks.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
        let rank = nearest.expect("there is a block");
        let place = scaled((x, *rank));
        (place.0 - self.origin.0, place.1 + y - rank - self.origin.1)
    }

    fn frame(&self, document: &Document, frame: &Frame) -> String {
        let mut out = String::new();
        // Edges that are looked at are above the others.
        let mut edges: Vec<(&Edge, &str)> = vec![];
        for edge in &document.drawing().edges {
            let seen = frame.edges.iter().find(|seen| (seen.0, seen.1) == (edge.from, edge.to));
            let class = seen.map_or("", |seen| if seen.2 { " yes" } else { " no" });
            edges.push((edge, class));
        }
        edges.sort_by_key(|(_, class)| !class.is_empty());
        for (edge, class) in edges {
            let path = self.path(edge);
            writeln!(out, "<path class=\"edge{class}\" d=\"{path}\" marker-end=\"url(#arrow)\"/>")
                .expect(INFALLIBLE);
        }
        let idoms = document.idoms();
        let dominated = |block: u32| {
            let mut above = std::iter::successors(Some(block), |block| idoms.get(block).copied());
            above.any(|block| Some(block) == frame.root)
        };
        for (&block, &centre) in &self.centres {
            let mut class = String::from("block");
            for (is_so, name) in [
                (frame.root.is_some() && dominated(block), " dominated"),
                (frame.queue.contains(&block), " queued"),
                (frame.current == Some(block), " current"),
            ] {
                class += if is_so { name } else { "" };
            }
            let label = document.blocks[block as usize].label.as_deref().unwrap_or_default();
            let notes = [
                (frame.live.contains(&block), "live-in"),
                (frame.writes.contains(&block), "writes"),
            ];
            let notes: Vec<&str> =
                notes.into_iter().filter(|(is_so, _)| *is_so).map(|(_, note)| note).collect();
            out += &boxed(centre, BOX, &class, &format!("b{block} {label}"), &notes.join(", "));
            if frame.phis.contains(&block) {
                let (x, y) = (centre.0 + BOX.0 / 2.0 - 2.0, centre.1 - BOX.1 / 2.0 + 2.0);
                writeln!(
                    out,
                    "<g class=\"phi\"><circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"9\"/><text x=\"{x:.1}\" y=\"{:.1}\">φ</text></g>",
                    y + 4.0
                )
                .expect(INFALLIBLE);
            }
        }
        out
    }

    /// An edge from the border of a block to that of another.
    fn path(&self, edge: &Edge) -> String {
        let points = edge.points.iter().map(|&point| self.moved(point));
        let words: Vec<String> = points.map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        format!("M {}", words.join(" L "))
    }
}

/// The least and the greatest number.
fn range(numbers: impl IntoIterator<Item = f64>) -> (f64, f64) {
    numbers.into_iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, greatest), number| {
        (least.min(number), greatest.max(number))
    })
}

fn boxed(centre: Point, size: Point, class: &str, name: &str, note: &str) -> String {
    let (x, y) = (centre.0 - size.0 / 2.0, centre.1 - size.1 / 2.0);
    let up = if note.is_empty() { 4.0 } else { -2.0 };
    let mut out = format!(
        "<g class=\"{class}\"><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.0}\" height=\"{:.0}\" rx=\"4\"/>\
         <text class=\"name\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        size.0,
        size.1,
        centre.0,
        centre.1 + up,
        name.trim_end()
    );
    if !note.is_empty() {
        let (x, y) = (centre.0, centre.1 + 12.0);
        write!(out, "<text class=\"note\" x=\"{x:.1}\" y=\"{y:.1}\">{note}</text>")
            .expect(INFALLIBLE);
    }
    out + "</g>\n"
}

/// The dominator tree: leaves side by side, other blocks in the middle above their children.
fn dominator_tree(document: &Document, width: f64) -> String {
    let (idoms, depths) = (document.idoms(), depths(document));
    let mut blocks: Vec<u32> = depths.keys().copied().collect();
    blocks.sort_by_key(|block| std::cmp::Reverse(depths[block]));
    let children = |of: u32| idoms.iter().filter(move |(_, idom)| **idom == of).map(|(b, _)| *b);
    // Leaves in preorder have the columns.
    let mut columns: BTreeMap<u32, f64> = BTreeMap::new();
    let mut stack = vec![0];
    let mut n_leaves = 0.0;
    while let Some(block) = stack.pop() {
        let below: Vec<u32> = children(block).collect();
        if below.is_empty() {
            columns.insert(block, n_leaves);
            n_leaves += 1.0;
        }
        stack.extend(below.into_iter().rev());
    }
    for block in blocks {
        let of_children: Vec<f64> = children(block).map(|child| columns[&child]).collect();
        let sum: f64 = of_children.iter().sum();
        columns.entry(block).or_insert(sum / of_children.len() as f64);
    }
    let left = 46.0 + (width - 46.0 - n_leaves * TREE_STEP.0).max(0.0) / 2.0;
    let place = |block: u32| {
        let x = left + (columns[&block] + 0.5) * TREE_STEP.0;
        (x, PADDING + TREE_BOX.1 / 2.0 + depths[&block] as f64 * TREE_STEP.1)
    };
    let mut out = String::new();
    for level in 0..=*depths.values().max().expect("there is an entry") {
        let y = PADDING + TREE_BOX.1 / 2.0 + 4.0 + level as f64 * TREE_STEP.1;
        writeln!(out, "<text x=\"0\" y=\"{y:.0}\">level {level}</text>").expect(INFALLIBLE);
    }
    for (&block, &idom) in &idoms {
        let ((x0, y0), (x1, y1)) = (place(idom), place(block));
        let (y0, y1) = (y0 + TREE_BOX.1 / 2.0, y1 - TREE_BOX.1 / 2.0);
        writeln!(out, "<path class=\"edge\" d=\"M {x0:.1} {y0:.1} L {x1:.1} {y1:.1}\"/>")
            .expect(INFALLIBLE);
    }
    for &block in depths.keys() {
        out += &boxed(place(block), TREE_BOX, "block", &format!("b{block}"), "");
    }
    out
}
