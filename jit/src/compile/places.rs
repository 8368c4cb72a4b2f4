//! The tables that lead from a pc of machine code to its trap and to the bytecode that it was made from.
//!
//! Relies on source locations of CLIF that are [`Loc`]s of the function, and on trap codes of [`crate::lower::traps`].

use cranelift_codegen::{CompiledCode, MachSrcLoc};
use slotvm_ssa::ir::Function;
use slotvm_ssa::ir::entity::Loc;
use slotvm_ssa::pipeline::PassSet;

use crate::code::machine_code::{FinalizedReloc, MachineCode};
use crate::code::pctable::{Place, PlaceId, TrapReason};
use crate::compile::budget::Work;
use crate::compile::folds::Folds;
use crate::compile::listing::{
    BytecodePlace, CodeCall, CodeFrame, CodeRange, CodeRelocation, CodeTarget, CodeTrap,
    FunctionCode,
};
use crate::lower::hot_loop::loc_of;
use crate::lower::{LowerOptions, Lowered, Trapping, traps};

/// Takes over the code with its tables of traps and calls.
pub(super) fn machine_code(
    compiled: &CompiledCode,
    clif: &cranelift_codegen::ir::Function,
    function: &Function,
    lowered: &Lowered,
    folds: Option<&Folds>,
    options: &LowerOptions,
) -> MachineCode {
    let srclocs = compiled.buffer.get_srclocs_sorted();
    let mut places = Places::new(function);
    let place = |offset: u32, trap: Option<cranelift_codegen::ir::TrapCode>| {
        let bits = || bits_at(srclocs, offset);
        let loc = match (folds, trap.and_then(traps::load_of)) {
            (Some(folds), _) => bits().and_then(|number| folds.loc(clif, number, trap)),
            (None, Some(load)) => Some(lowered.load_locs[load]),
            (None, None) => bits().map(loc_of),
        };
        places.place(loc)
    };
    let reason = |code| match options.trapping {
        Trapping::Signals => {
            Some(traps::trap_code_of(code).map_or(TrapReason::HostError, TrapReason::Guest))
        }
        // What could fault is never executed, or never with operands for which it does.
        Trapping::Calls => None,
    };
    let mut code = MachineCode::new(compiled, clif, &*options.isa, reason, place);
    code.resolve_own_calls(function.func);
    debug_assert!(code.traps.is_sorted_by(|a, b| a.offset < b.offset), "one trap for each pc");
    code.places = places.places;
    code
}

/// The machine code with what its parts mean, for tools.
pub(super) fn listing(
    compiled: &CompiledCode,
    clif: &cranelift_codegen::ir::Function,
    function: &Function,
    folds: Option<&Folds>,
    code: &MachineCode,
    (passes, work): (PassSet, Work),
) -> FunctionCode {
    let places_of = |id: PlaceId| {
        let place = |id: PlaceId| code.places.get(id.0 as usize);
        let chain = std::iter::successors(place(id), |inner| place(inner.inlined_at));
        chain.map(|&Place { func, offset, .. }| BytecodePlace { func, offset }).collect()
    };
    let ranges = compiled.buffer.get_srclocs_sorted().iter().filter_map(|range| {
        let bits = (!range.loc.is_default()).then(|| range.loc.bits())?;
        let loc = match folds {
            Some(folds) => folds.loc(clif, bits, None)?,
            None => loc_of(bits),
        };
        let chain = std::iter::successors(Some(loc), |loc| function.locs[loc.index()].inlined_at);
        let places = chain.map(|loc| {
            let data = function.locs[loc.index()];
            BytecodePlace { func: data.func, offset: data.offset }
        });
        Some(CodeRange { code: range.start..range.end, places: places.collect() })
    });
    let traps = code.traps.iter().map(|site| CodeTrap {
        offset: site.offset,
        reason: match site.reason {
            TrapReason::Guest(code) => Some(code),
            TrapReason::HostError => None,
        },
        places: places_of(site.place),
    });
    let calls = code
        .calls
        .iter()
        .map(|site| CodeCall { return_offset: site.offset, places: places_of(site.place) });
    // Calls of the function itself are resolved already, and should be named like others.
    let relocations = compiled.buffer.relocs().iter();
    let mut relocations: Vec<CodeRelocation> = relocations
        .map(|reloc| {
            let reloc = FinalizedReloc::new(reloc, clif);
            let (offset, kind, addend) = reloc.field();
            let target = reloc.func().map_or_else(CodeTarget::Runtime, CodeTarget::Func);
            CodeRelocation { offset, kind, target, addend }
        })
        .collect();
    relocations.sort_by_key(|reloc| reloc.offset);
    FunctionCode {
        func: function.func,
        module_offset: None,
        bytes: code.bytes.clone(),
        frame: frame(compiled, clif),
        ranges: ranges.collect(),
        relocations,
        traps: traps.collect(),
        calls: calls.collect(),
        passes,
        work,
    }
}

/// The layout of the frame.
fn frame(compiled: &CompiledCode, clif: &cranelift_codegen::ir::Function) -> CodeFrame {
    let Some(layout) = compiled.buffer.frame_layout() else { return CodeFrame::default() };
    let ranges = clif.sized_stack_slots.iter().map(|(slot, data)| {
        let start = layout.stackslots[slot].offset;
        start..start + data.size
    });
    let slots = ranges.reduce(|all, slot| all.start.min(slot.start)..all.end.max(slot.end));
    CodeFrame { bytes: layout.frame_to_fp_offset, slots: slots.unwrap_or_default() }
}

/// The bits of the source location of the instruction at a code offset. The prologue has none.
fn bits_at(srclocs: &[MachSrcLoc<cranelift_codegen::Final>], offset: u32) -> Option<u32> {
    let after = srclocs.partition_point(|range| range.start <= offset);
    let range = &srclocs[after.checked_sub(1)?];
    (offset < range.end && !range.loc.is_default()).then(|| range.loc.bits())
}

/// Collects the locations that tables mention.
pub(super) struct Places<'a> {
    function: &'a Function,
    /// Number in `places`, by location.
    numbers: Vec<PlaceId>,
    /// Number of the function's start.
    start: PlaceId,
    places: Vec<Place>,
    /// A location and those of the calls around it that have no number yet.
    unnumbered: Vec<Loc>,
}

impl<'a> Places<'a> {
    pub(super) fn new(function: &'a Function) -> Places<'a> {
        let numbers = vec![PlaceId::NONE; function.locs.len()];
        let (places, unnumbered) = (Vec::new(), Vec::new());
        Places { function, numbers, start: PlaceId::NONE, places, unnumbered }
    }

    /// The places that have numbers, in their order.
    pub(super) fn into_list(self) -> Vec<Place> {
        self.places
    }

    fn push(&mut self, place: Place) -> PlaceId {
        self.places.push(place);
        PlaceId(self.places.len() as u32 - 1)
    }

    /// The number of a location; without one, of the function's start.
    pub(super) fn place(&mut self, loc: Option<Loc>) -> PlaceId {
        let Some(loc) = loc else {
            if self.start == PlaceId::NONE {
                let inlined_at = PlaceId::NONE;
                self.start = self.push(Place { func: self.function.func, offset: 0, inlined_at });
            }
            return self.start;
        };
        // The calls around come first, outermost first.
        self.unnumbered.push(loc);
        while let Some(&loc) = self.unnumbered.last()
            && self.numbers[loc.index()] == PlaceId::NONE
            && let Some(outer) = self.function.locs[loc.index()].inlined_at
        {
            self.unnumbered.push(outer);
        }
        while let Some(loc) = self.unnumbered.pop() {
            if self.numbers[loc.index()] == PlaceId::NONE {
                let data = self.function.locs[loc.index()];
                let outer = data.inlined_at.map_or(PlaceId::NONE, |at| self.numbers[at.index()]);
                let place = Place { func: data.func, offset: data.offset, inlined_at: outer };
                self.numbers[loc.index()] = self.push(place);
            }
        }
        self.numbers[loc.index()]
    }
}
