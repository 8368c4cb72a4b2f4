//! The page: one HTML file with the document, its reader and its style in it.
//!
//! The document is compressed and written in Base64, so that a function of 20,000 instructions stays small; the page
//! unpacks it by `DecompressionStream`. Nothing of a program is written as HTML: its names are in the document, and the
//! reader sets text only.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::document::Document;

const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
/// The parts of the reader, in their order.
const SCRIPTS: [&str; 6] = [
    include_str!("page/model.js"),
    include_str!("page/columns.js"),
    include_str!("page/graph.js"),
    include_str!("page/films.js"),
    include_str!("page/ledger.js"),
    include_str!("page/page.js"),
];

/// Writes the page of a document.
pub fn page(document: &Document) -> String {
    let json = document.json();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(json.as_bytes()).expect("writing to memory succeeds");
    let packed = encoder.finish().expect("writing to memory succeeds");
    TEMPLATE
        .replace("/*STYLE*/", STYLE)
        .replace("/*SCRIPT*/", &SCRIPTS.join("\n"))
        .replace("DOCUMENT", &STANDARD.encode(&packed))
}
