//! The machine code of one function for tools that show it, in builds with and without native code.
//!
//! The code has what its instructions come from, what its relocations name, and where it can trap. Taking instructions
//! apart is left to a disassembler.

use std::ops::Range;

use slotvm_bytecode::TrapCode;
use slotvm_ssa::pipeline::PassSet;

use crate::compile::budget::Work;

/// The machine code of one function; see [`Module::machine_code`](crate::Module::machine_code).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FunctionCode {
    /// The number of the function in the module's index space.
    pub func: u32,
    /// The distance in bytes from the start of the module's native code to that of the function. `None` if code is not
    /// placed together: functions are compiled when they are first called, or their code is kept.
    pub module_offset: Option<u64>,
    /// The instructions, with jump tables between and constants after them. If there is a [`module_offset`](FunctionCode::module_offset),
    /// these are the bytes that run. Otherwise the bytes of relocations are not yet those that run.
    pub bytes: Vec<u8>,
    /// The native frame.
    pub frame: CodeFrame,
    /// Origins of the code, in ascending order of code offset. They do not overlap. Code that no range covers, such as
    /// the prologue, comes from no instruction of the bytecode.
    pub ranges: Vec<CodeRange>,
    /// The uses of addresses that were not known when the function was compiled, in ascending order of code offset.
    pub relocations: Vec<CodeRelocation>,
    /// The instructions that can trap, in ascending order of code offset.
    pub traps: Vec<CodeTrap>,
    /// The calls, in ascending order of return offset.
    pub calls: Vec<CodeCall>,
    /// The effort level that the code was made with. From
    /// [`Effort::SlotsInMemory`](crate::compiler::Effort::SlotsInMemory) on it is made of the slot form, whatever the slot mode.
    pub work: Work,
    /// The passes that the function went through: of those that were asked for, the ones that have something to do in an
    /// engine like this, and that leave the function within its budget of compile time.
    pub passes: PassSet,
}

/// The native frame of a function, from where the stack pointer points in the body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeFrame {
    /// The bytes below the frame pointer.
    pub bytes: u32,
    /// Offsets from the stack pointer of the slots in memory and of areas for results. What is elsewhere in the frame
    /// are arguments on the stack, spilled values and saved registers.
    pub slots: Range<u32>,
}

/// A place in the bytecode of a module.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct BytecodePlace {
    /// The number of the function in the module's index space.
    pub func: u32,
    /// The offset of the instruction in the function's bytecode.
    pub offset: u32,
}

/// Machine code that comes from one instruction of the bytecode.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeRange {
    /// The code offsets in the function.
    pub code: Range<u32>,
    /// The instruction, and the calls that it was inlined at, innermost first. Never empty.
    pub places: Vec<BytecodePlace>,
}

/// A use of an address that was not known when the function was compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeRelocation {
    /// The code offset of the bytes that depend on the address.
    pub offset: u32,
    /// The kind of relocation, in the words of the code generator.
    pub kind: String,
    /// The address that is meant.
    pub target: CodeTarget,
    /// The number that is added to the address.
    pub addend: i64,
}

/// The meaning of an address in machine code.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CodeTarget {
    /// A function of the module, by its number in the module's index space.
    Func(u32),
    /// A function of the runtime, by name.
    Runtime(String),
}

/// An instruction of machine code that can trap.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeTrap {
    /// The code offset of the instruction.
    pub offset: u32,
    /// The reason of the trap. `None`: a host function has failed, and its error is raised here.
    pub reason: Option<TrapCode>,
    /// The instruction of the bytecode that traps, and the calls that it was inlined at, innermost first.
    pub places: Vec<BytecodePlace>,
}

/// A call in machine code.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeCall {
    /// The code offset that the call returns to.
    pub return_offset: u32,
    /// The instruction of the bytecode that calls, and the calls that it was inlined at, innermost first.
    pub places: Vec<BytecodePlace>,
}

impl FunctionCode {
    /// The instruction of the bytecode that the code at an offset comes from, and the calls that it was inlined at,
    /// innermost first. Empty if it comes from none.
    pub fn places_at(&self, offset: u32) -> &[BytecodePlace] {
        let after = self.ranges.partition_point(|range| range.code.start <= offset);
        match after.checked_sub(1).map(|i| &self.ranges[i]) {
            Some(range) if range.code.contains(&offset) => &range.places,
            _ => &[],
        }
    }

    /// The traps of the instruction that takes up a range of code offsets.
    pub fn traps_in(&self, code: Range<u32>) -> &[CodeTrap] {
        let first = self.traps.partition_point(|trap| trap.offset < code.start);
        let end = self.traps.partition_point(|trap| trap.offset < code.end);
        &self.traps[first..end.max(first)]
    }

    /// The relocations in the instruction that takes up a range of code offsets.
    pub fn relocations_in(&self, code: Range<u32>) -> &[CodeRelocation] {
        let first = self.relocations.partition_point(|reloc| reloc.offset < code.start);
        let end = self.relocations.partition_point(|reloc| reloc.offset < code.end);
        &self.relocations[first..end.max(first)]
    }
}
