//! The debug information of a function: the places of its code, and those of its locals.
//!
//! A local with a name is where its slot is, or a value that has its name from it: see `ssa/src/ir/names.rs`. Cranelift
//! follows values that the lowering has labelled with the number of a local, and says where they are as long as they live.

use std::collections::BTreeMap;
use std::ops::Range;

use cranelift_codegen::ir::Function as ClifFunction;
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::{CompiledCode, LabelValueLoc};
use slotvm_ssa::ir::Function;
use slotvm_ssa::ir::entity::Loc;

use crate::code::debug_code::{DebugCode, DebugLocal, Location};
use crate::code::pctable::PlaceId;
use crate::compile::folds::Folds;
use crate::compile::places::Places;
use crate::lower::Lowered;
use crate::lower::hot_loop::loc_of;

/// Bytes between the frame pointer and the canonical frame address: the caller's frame pointer and the return address.
const FP_TO_CFA_BYTES: i64 = 16;

/// Adds to the debug information of code what the function that it was made from says.
pub(super) fn describe(
    debug: &mut DebugCode,
    compiled: &CompiledCode,
    isa: &dyn TargetIsa,
    (clif, folds): (&ClifFunction, Option<&Folds>),
    function: &Function,
    lowered: &Lowered,
) {
    debug.func = Some(function.func);
    let loc = |bits: u32| match folds {
        Some(folds) => folds.loc(clif, bits, None),
        None => Some(loc_of(bits)),
    };
    let prologue_end = describe_lines(debug, compiled, function, loc);
    let code = prologue_end..compiled.buffer.data().len() as u32;
    let mut locals: BTreeMap<u32, Vec<(Range<u32>, Location)>> = BTreeMap::new();
    for (label, ranges) in &compiled.value_labels_ranges {
        let location = |loc| match loc {
            LabelValueLoc::Reg(reg) => {
                let number = isa.map_regalloc_reg_to_dwarf(reg);
                Location::Register(number.expect("registers that are allocated have numbers"))
            }
            LabelValueLoc::CFAOffset(offset) => Location::Frame(offset),
        };
        let at = ranges.iter().map(|range| (range.start..range.end, location(range.loc)));
        locals.entry(label.as_u32()).or_default().extend(at);
    }
    // Parameters are not there before they are written, so the values come first.
    for &(local, slot, offset) in &lowered.locals_in_frame {
        let layout = compiled.buffer.frame_layout().expect("code has a frame layout");
        let below_fp = layout.frame_to_fp_offset - layout.stackslots[slot].offset;
        let place = Location::Frame(i64::from(offset) - i64::from(below_fp) - FP_TO_CFA_BYTES);
        locals.entry(local).or_default().push((code.clone(), place));
    }
    debug.locals = locals.into_iter().map(|(local, at)| DebugLocal { local, at }).collect();
}

/// Adds the places of the code. Returns the offset of the first instruction that has one, where the prologue ends.
fn describe_lines(
    debug: &mut DebugCode,
    compiled: &CompiledCode,
    function: &Function,
    loc: impl Fn(u32) -> Option<Loc>,
) -> u32 {
    let mut places = Places::new(function);
    let mut lines = vec![(0, places.place(None))];
    let mut add = |offset, place| {
        if lines.last().is_some_and(|&(_, last)| last != place) {
            lines.push((offset, place));
        }
    };
    let (mut end, mut prologue_end) = (None, 0);
    let ranges = compiled.buffer.get_srclocs_sorted().iter();
    for range in ranges.filter(|range| !range.loc.is_default() && range.start < range.end) {
        match end {
            None => prologue_end = range.start,
            Some(end) if end < range.start => add(end, PlaceId::NONE),
            Some(_) => {}
        }
        add(
            range.start,
            loc(range.loc.bits()).map_or(PlaceId::NONE, |loc| places.place(Some(loc))),
        );
        end = Some(range.end);
    }
    if let Some(end) = end {
        add(end, PlaceId::NONE);
    }
    (debug.lines, debug.places) = (lines, places.into_list());
    prologue_end
}
