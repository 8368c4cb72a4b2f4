//! Counts beside machine code.
//!
//! An instruction of machine code has the count of the instruction of the IR that it comes from: the executions of the
//! blocks that have it. Where a pass has copied that into several blocks, each copy has the sum of their counts. What comes
//! from no instruction of the IR, such as saving registers, has no count.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use slotvm::compiler::{BytecodePlace, FunctionCode, FunctionCounts};

use super::listing::{self, MARGIN};
use slotvm_views::disassembly::NativeInst;

/// The machine code of a function: address, instruction, and the place that it comes from. `ir` is the text of the
/// function as it was lowered.
pub fn render(
    code: &FunctionCode,
    insts: &[NativeInst],
    ir: &str,
    counts: &FunctionCounts,
) -> String {
    let by_place = counts_by_place(ir, counts);
    let mut text = String::new();
    let mut before = None;
    for inst in insts {
        let place = place_text(code.places_at(inst.code.start), code.func);
        let count = by_place.get(place.as_str()).copied().filter(|_| !inst.is_data);
        // A count stands where it changes.
        let margin = match count.filter(|_| count != before) {
            Some(count) => format!("{count:>12}         "),
            None => MARGIN.to_owned(),
        };
        before = count;
        let line = format!("{margin}{:>6x}  {:<44} {place}", inst.code.start, inst.text);
        writeln!(text, "{}", line.trim_end()).expect("a string takes it");
    }
    text
}

/// The executions of the instructions of the IR, by the place after `;` in its text.
fn counts_by_place<'t>(ir: &'t str, counts: &FunctionCounts) -> HashMap<&'t str, u64> {
    // The instructions of one block that come from one place are executed together.
    let mut blocks_of: HashMap<&str, BTreeSet<u32>> = HashMap::new();
    let mut block = None;
    for line in ir.lines() {
        if let Some(next) = listing::block_of(line) {
            block = Some(next);
        } else if let (Some(block), Some((_, place))) = (block, line.rsplit_once("; ")) {
            blocks_of.entry(place.trim()).or_default().insert(block);
        }
    }
    let sum = |blocks: BTreeSet<u32>| blocks.iter().map(|&b| listing::count(counts, b)).sum();
    blocks_of.into_iter().map(|(place, blocks)| (place, sum(blocks))).collect()
}

/// A place as the text of the IR writes it: `f2@0006 < @0016`.
fn place_text(places: &[BytecodePlace], func: u32) -> String {
    let text = |place: &BytecodePlace| {
        let of = if place.func == func { String::new() } else { format!("f{}", place.func) };
        format!("{of}@{:04x}", place.offset)
    };
    places.iter().map(text).collect::<Vec<_>>().join(" < ")
}
