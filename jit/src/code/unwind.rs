//! Lets native backtraces pass through native code: those that a host function captures, a panic hook
//! prints or a debugger makes.
//!
//! Every function of ours keeps a frame pointer, which points to the caller's and, after it, the return
//! address ([`crate::lower::isa`]). So one rule finds the caller of all code of a unit, and registering a unit takes
//! the same time whatever its size: where the frame pointer points to is where the caller's is, and so on.
//! It is exact wherever a call returns to, so for all frames but, possibly, an innermost one that was
//! interrupted while it was setting its frame up. It gives no other registers of callers: nothing ever
//! *unwinds* through our frames, panics of host functions stop at them.
//!
//! Unwinders look a pc up in what is registered with the one of the process (libgcc's, as programs for GNU
//! systems have it); elsewhere nothing is registered, and backtraces end at our frames.

use std::ops::{Range, RangeInclusive};

use gimli::write::{
    Address, CallFrameInstruction, CommonInformationEntry, EhFrame, EndianVec,
    FrameDescriptionEntry, FrameTable,
};
use gimli::{Encoding, Format, LittleEndian, Register};

#[cfg(target_arch = "x86_64")]
const FRAME_POINTER: Register = gimli::X86_64::RBP;
#[cfg(target_arch = "x86_64")]
const RETURN_ADDRESS: Register = gimli::X86_64::RA;
#[cfg(target_arch = "aarch64")]
const FRAME_POINTER: Register = gimli::AArch64::X29;
#[cfg(target_arch = "aarch64")]
const RETURN_ADDRESS: Register = gimli::AArch64::X30;

/// The other registers that functions preserve, by their numbers in DWARF: RBX, R12 to R15.
#[cfg(target_arch = "x86_64")]
const PRESERVED: [RangeInclusive<u16>; 2] = [3..=3, 12..=15];
/// The other registers that functions preserve, by their numbers in DWARF: X19 to X28, V8 to V15.
#[cfg(target_arch = "aarch64")]
const PRESERVED: [RangeInclusive<u16>; 2] = [19..=28, 72..=79];

/// Code that unwinders know; when it is dropped, they do not any more.
#[derive(Debug)]
pub(crate) struct Unwinding {
    /// An `.eh_frame` section that describes it, empty if there is no code.
    section: Box<[u8]>,
}

#[cfg(target_env = "gnu")]
unsafe extern "C" {
    fn __register_frame(section: *const u8);
    fn __deregister_frame(section: *const u8);
}

impl Unwinding {
    /// Registers code, which is to stay where it is until the result is dropped.
    pub(crate) fn register(code: &Range<usize>) -> Unwinding {
        // An unwinder may take a description of nothing for a mistake.
        let section = if code.is_empty() { Box::default() } else { section(code) };
        #[cfg(target_env = "gnu")]
        // SAFETY: the section is well-formed and ends with a zero; it stays in its place until it is
        // deregistered. Nothing else describes the code, since addresses in use belong to one unit.
        unsafe {
            if !section.is_empty() {
                __register_frame(section.as_ptr());
            }
        }
        Unwinding { section }
    }
}

impl Drop for Unwinding {
    fn drop(&mut self) {
        #[cfg(target_env = "gnu")]
        // SAFETY: it was registered, and is deregistered here only.
        unsafe {
            if !self.section.is_empty() {
                __deregister_frame(self.section.as_ptr());
            }
        }
    }
}

/// The rule by which callers of code are found.
fn rule() -> CommonInformationEntry {
    let encoding = Encoding { format: Format::Dwarf32, version: 1, address_size: 8 };
    let mut cie = CommonInformationEntry::new(encoding, 1, -8, RETURN_ADDRESS);
    cie.add_instruction(CallFrameInstruction::Cfa(FRAME_POINTER, 16));
    cie.add_instruction(CallFrameInstruction::Offset(FRAME_POINTER, -16));
    cie.add_instruction(CallFrameInstruction::Offset(RETURN_ADDRESS, -8));
    cie
}

/// The rule for debuggers, which ask for other registers, too, and take what no rule is about for unchanged: those that
/// functions preserve are not known.
pub(crate) fn rule_for_debuggers() -> CommonInformationEntry {
    let mut cie = rule();
    for register in PRESERVED.iter().flat_map(Clone::clone) {
        cie.add_instruction(CallFrameInstruction::Undefined(Register(register)));
    }
    cie
}

fn section(code: &Range<usize>) -> Box<[u8]> {
    let mut table = FrameTable::default();
    let cie = table.add_cie(rule());
    let start = Address::Constant(code.start as u64);
    table.add_fde(cie, FrameDescriptionEntry::new(start, code.len() as u32));
    let mut section = EhFrame(EndianVec::new(LittleEndian));
    table.write_eh_frame(&mut section).expect("memory takes all that is written");
    let mut section = section.0.into_vec();
    // What unwinders stop at.
    section.extend([0; 4]);
    section.into_boxed_slice()
}
