//! Debug information of machine code that is not placed.
//!
//! Code has it if Cranelift's setting `unwind_info` is on, which [`Config::debug_info`](crate::Config::debug_info) sets. It is
//! not kept with code that is saved.

use std::ops::Range;

use cranelift_codegen::CompiledCode;
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::isa::unwind::UnwindInfo;
use cranelift_codegen::isa::unwind::systemv;
use gimli::write::CommonInformationEntry;

use crate::code::pctable::{Place, PlaceId};

/// The debug information of a function. Offsets count from its start.
#[derive(Clone, Debug)]
pub(crate) struct DebugCode {
    /// The function, in the module's index space; none for trampolines.
    pub(crate) func: Option<u32>,
    /// The common start of all rules to find callers.
    pub(crate) cie: CommonInformationEntry,
    /// The rules for the function, and for what is appended to it, each with the code that it is for.
    pub(crate) frames: Vec<(Range<u32>, systemv::UnwindInfo)>,
    /// The places of the code, from an offset up to that of the next entry, ascending. The first one is that of the
    /// prologue; [`PlaceId::NONE`] is code of no place.
    pub(crate) lines: Vec<(u32, PlaceId)>,
    /// The places that `lines` refers to.
    pub(crate) places: Vec<Place>,
    /// The locals that are somewhere, in ascending order.
    pub(crate) locals: Vec<DebugLocal>,
}

/// The whereabouts of a local with a name.
#[derive(Clone, Debug)]
pub(crate) struct DebugLocal {
    /// Its number in the function.
    pub(crate) local: u32,
    /// The code in which it is somewhere. The first entry counts where several have the same code.
    pub(crate) at: Vec<(Range<u32>, Location)>,
}

/// The place of a value.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// A register, by its number in DWARF.
    Register(u16),
    /// Memory at this distance from the canonical frame address.
    Frame(i64),
}

impl DebugCode {
    /// The rules to find callers, and nothing else. `None` if the machine's settings do not ask for it.
    pub(crate) fn new(compiled: &CompiledCode, isa: &dyn TargetIsa) -> Option<Box<DebugCode>> {
        if !isa.flags().unwind_info() {
            return None;
        }
        let cie = isa.create_systemv_cie().expect("machines with 64 bits have rules of DWARF");
        let frames = match compiled.create_unwind_info(isa).expect("all registers have numbers") {
            Some(UnwindInfo::SystemV(info)) => vec![(0..compiled.code_buffer().len() as u32, info)],
            // It has the rule of all other code.
            _ => Vec::new(),
        };
        let (lines, places, locals) = (Vec::new(), Vec::new(), Vec::new());
        Some(Box::new(DebugCode { func: None, cie, frames, lines, places, locals }))
    }

    /// Adds the rules for code that is appended at an offset.
    pub(crate) fn append(&mut self, offset: u32, appended: &DebugCode) {
        let frames = appended.frames.iter().cloned();
        self.frames
            .extend(frames.map(|(code, info)| (code.start + offset..code.end + offset, info)));
    }
}
