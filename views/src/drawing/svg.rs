//! The drawing of a graph as an SVG document.

use std::fmt::Write;

use slotvm_bytecode::printable::Printable;
use slotvm_ssa::ir::graph::{Drawing, Node, Role};

use super::layout::{Layout, Point, TooLarge, layout};

/// Pixels of a character and of a line.
const CHAR_WIDTH: f64 = 7.3;
const LINE_HEIGHT: f64 = 16.0;
const PADDING: f64 = 8.0;
/// Longer lines are cut.
const LINE_CHARS_MAX: usize = 120;

/// Colours for light and dark pages, and a font whose characters all have one width.
const STYLE: &str = "\
text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #1f2328; white-space: pre; }
.head { font-weight: bold; }
rect { fill: #ffffff; stroke: #57606a; }
.page { fill: #ffffff; stroke: none; }
.header rect { stroke: #0550ae; stroke-width: 2; }
.irreducible rect { stroke: #cf222e; stroke-width: 2; }
path { fill: none; stroke: #57606a; }
.back { stroke: #0550ae; }
marker path { fill: context-stroke; stroke: none; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  rect { fill: #161b22; stroke: #8b949e; }
  .page { fill: #0d1117; }
  .header rect { stroke: #58a6ff; }
  .irreducible rect { stroke: #ff7b72; }
  path { stroke: #8b949e; }
  .back { stroke: #58a6ff; }
}
";

/// Draws a graph: its blocks with their instructions, and its edges. Edges that lead upwards are blue, as are headers of
/// loops; those of irreducible loops are red.
pub fn svg(drawing: &Drawing) -> Result<String, impl std::error::Error + use<>> {
    let texts: Vec<Vec<String>> = drawing.nodes.iter().map(lines).collect();
    let sizes: Vec<Point> = texts.iter().map(|lines| size(lines)).collect();
    let Layout { size, boxes, edges } = layout(&sizes, &drawing.edges)?;
    let mut out = String::new();
    let name = escaped(&Printable(&drawing.name).to_string());
    let (width, height) = size;
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">\n<title>{name}</title>\n\
         <style>\n{STYLE}</style>\n\
         <defs><marker id=\"arrow\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"8\" \
         markerHeight=\"8\" orient=\"auto\"><path d=\"M 0 1 L 10 5 L 0 9 z\"/></marker></defs>\n\
         <rect class=\"page\" width=\"100%\" height=\"100%\"/>\n"
    );
    for (path, &(from, to)) in edges.iter().zip(&drawing.edges) {
        let leads_up = path[0].1 > path[path.len() - 1].1;
        let class = if leads_up { " class=\"back\"" } else { "" };
        let path = path_data(path);
        let _ = writeln!(
            out,
            "<path{class} d=\"{path}\" marker-end=\"url(#arrow)\"><title>b{from} to b{to}</title></path>"
        );
    }
    for (number, (&(x, y), (width, height))) in boxes.iter().zip(sizes).enumerate() {
        let class = match drawing.nodes[number].role {
            Role::Plain => "block",
            Role::Header => "block header",
            Role::IrreducibleHeader => "block irreducible",
        };
        let _ = writeln!(
            out,
            "<g class=\"{class}\" id=\"b{number}\"><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\" rx=\"3\"/>"
        );
        for (i, line) in texts[number].iter().enumerate() {
            let class = if i == 0 { " class=\"head\"" } else { "" };
            let (x, y) = (x + PADDING, y + PADDING + LINE_HEIGHT * (i as f64 + 0.75));
            let line = escaped(line);
            let _ = writeln!(out, "<text{class} x=\"{x:.1}\" y=\"{y:.1}\">{line}</text>");
        }
        out.push_str("</g>\n");
    }
    out.push_str("</svg>\n");
    Ok::<String, TooLarge>(out)
}

/// The lines of a block, cut to their greatest length.
fn lines(node: &Node) -> Vec<String> {
    let cut = |line: &String| match line.char_indices().nth(LINE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.clone(),
    };
    node.lines.iter().map(cut).collect()
}

fn size(lines: &[String]) -> Point {
    let n_chars = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let width = n_chars as f64 * CHAR_WIDTH + 2.0 * PADDING;
    (width, lines.len() as f64 * LINE_HEIGHT + 2.0 * PADDING)
}

/// A line through points: straight where two have the same abscissa or ordinate, and otherwise a curve that starts and
/// ends vertically.
fn path_data(points: &[Point]) -> String {
    let mut data = format!("M {:.1} {:.1}", points[0].0, points[0].1);
    for pair in points.windows(2) {
        let ((x, y), (to_x, to_y)) = (pair[0], pair[1]);
        let _ = match x == to_x || y == to_y {
            true => write!(data, " L {to_x:.1} {to_y:.1}"),
            false => {
                let middle = f64::midpoint(y, to_y);
                write!(data, " C {x:.1} {middle:.1} {to_x:.1} {middle:.1} {to_x:.1} {to_y:.1}")
            }
        };
    }
    data
}

/// Text for XML. It has no control characters.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(c),
        }
    }
    out
}
