//! Machine code that is not placed, of functions that may call each other.

use std::ops::Range;

use cranelift_codegen::binemit::Reloc;
use cranelift_codegen::ir::{self, DebugTag, ExternalName, Function};
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::{
    CompiledCode, FinalizedMachReloc, FinalizedRelocTarget, MachBufferDebugTagList, MachDebugTagPos,
};
use cranelift_module::{ModuleReloc, ModuleRelocTarget};

use crate::code::debug_code::DebugCode;
use crate::code::error::CodeError;
use crate::code::pctable::{CallSite, PcTable, Place, PlaceId, RootSite, TrapReason, TrapSite};

/// An instruction whose address is to be a multiple of a power of two, or the first such address after it that the
/// alignment of the code permits.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Anchor {
    /// The offset of the instruction.
    pub(crate) offset: u32,
    /// The power of two.
    pub(crate) boundary: u32,
}

impl Anchor {
    /// The largest boundary: the bytes of a line of the instruction cache.
    pub(crate) const LINE_BYTES: u32 = 64;
}

impl Default for Anchor {
    /// The start of the code.
    fn default() -> Anchor {
        Anchor { offset: 0, boundary: 16 }
    }
}

/// The namespace of the names by which code calls functions of its unit.
pub(crate) const FUNC_NAMESPACE: u32 = 0;

/// The namespace of the names by which code calls what is appended to it: [`MachineCode::append`].
pub(crate) const KEEPER_NAMESPACE: u32 = 1;

/// The machine code of one function, not yet placed.
#[derive(Default)]
pub(crate) struct MachineCode {
    /// The instructions.
    pub(crate) bytes: Vec<u8>,
    /// The alignment of the code's address in bytes, a power of two.
    pub(crate) alignment: u64,
    /// The instruction that is to be aligned.
    pub(crate) anchor: Anchor,
    /// Uses of the addresses of other functions; names of [`FUNC_NAMESPACE`] are functions of
    /// the unit.
    pub(crate) relocs: Vec<FinalizedReloc>,
    /// Offsets count from the start of the function.
    pub(crate) traps: Vec<TrapSite>,
    /// Offsets count from the start of the function.
    pub(crate) calls: Vec<CallSite>,
    /// The places that the place ids of `traps` and `calls` refer to.
    pub(crate) places: Vec<Place>,
    /// The calls at which references wait. Offsets count from the start of the function.
    pub(crate) roots: Vec<RootSite>,
    /// Whether there are addresses of this process in the code.
    pub(crate) has_addresses: bool,
    /// The debug information, if debuggers are to have it.
    pub(crate) debug: Option<Box<DebugCode>>,
}

/// A relocation whose target does not need the function that it comes from.
pub(crate) struct FinalizedReloc(ModuleReloc);

impl FinalizedReloc {
    pub(crate) fn new(reloc: &FinalizedMachReloc, func: &Function) -> FinalizedReloc {
        let name = match &reloc.target {
            FinalizedRelocTarget::ExternalName(ExternalName::User(name)) => {
                let name = &func.params.user_named_funcs()[*name];
                let known = [FUNC_NAMESPACE, KEEPER_NAMESPACE].contains(&name.namespace);
                assert!(known, "native code names functions only");
                ModuleRelocTarget::user(name.namespace, name.index)
            }
            FinalizedRelocTarget::ExternalName(ExternalName::LibCall(libcall)) => {
                ModuleRelocTarget::LibCall(*libcall)
            }
            target => unreachable!("the lowering makes no relocation to {target:?}"),
        };
        let (offset, kind, addend) = (reloc.offset, reloc.kind, reloc.addend);
        FinalizedReloc(ModuleReloc { offset, kind, name, addend })
    }

    /// The code offset of what depends on the address, the kind of relocation, and the addend.
    pub(crate) fn field(&self) -> (u32, String, i64) {
        let ModuleReloc { offset, kind, addend, .. } = &self.0;
        (*offset, kind.to_string(), *addend)
    }

    /// The function that is meant, by its number.
    ///
    /// # Errors
    /// Fails with the name of a function of the runtime, which has no number.
    pub(crate) fn func(&self) -> Result<u32, String> {
        match &self.0.name {
            ModuleRelocTarget::User { namespace: FUNC_NAMESPACE, index } => Ok(*index),
            ModuleRelocTarget::User { namespace: KEEPER_NAMESPACE, .. } => Err("keeper".to_owned()),
            ModuleRelocTarget::LibCall(libcall) => Err(libcall.to_string()),
            other => Err(other.to_string()),
        }
    }

    /// All of it as text.
    #[cfg(all(test, feature = "parallel-compilation"))]
    pub(crate) fn describe(&self) -> String {
        let ModuleReloc { offset, kind, name, addend } = &self.0;
        format!("{offset} {kind:?} {name:?} {addend}")
    }

    /// The relocation for a unit whose first function has this number.
    pub(super) fn in_unit(&self, first_func: u32) -> ModuleReloc {
        let mut reloc = self.0.clone();
        if let ModuleRelocTarget::User { index, .. } = &mut reloc.name {
            *index -= first_func;
        }
        reloc
    }
}

impl MachineCode {
    /// Converts the code that Cranelift compiled for a function. `reason` returns what a trap code means, or
    /// that the instruction never traps. `place` returns the place in the bytecode of the instruction at a code
    /// offset, which has the trap code given if it can trap; whoever has numbered the places adds their list.
    pub(crate) fn new(
        compiled: &CompiledCode,
        func: &Function,
        isa: &dyn TargetIsa,
        mut reason: impl FnMut(ir::TrapCode) -> Option<TrapReason>,
        mut place: impl FnMut(u32, Option<ir::TrapCode>) -> PlaceId,
    ) -> MachineCode {
        let buffer = &compiled.buffer;
        let mut traps: Vec<TrapSite> = buffer
            .traps()
            .iter()
            .filter_map(|trap| {
                let reason = reason(trap.code)?;
                let place = place(trap.offset, Some(trap.code));
                Some(TrapSite { offset: trap.offset, reason, place })
            })
            .collect();
        // Out-of-line traps come after the ones found so far.
        traps.sort_by_key(|site| site.offset);
        let mut calls: Vec<CallSite> = buffer
            .call_sites()
            .map(|call| CallSite { offset: call.ret_addr, place: place(call.ret_addr - 1, None) })
            .collect();
        calls.sort_by_key(|site| site.offset);
        MachineCode {
            bytes: compiled.code_buffer().to_vec(),
            alignment: u64::from(buffer.alignment),
            anchor: Anchor::default(),
            relocs: buffer.relocs().iter().map(|reloc| FinalizedReloc::new(reloc, func)).collect(),
            traps,
            places: Vec::new(),
            roots: root_sites(compiled, func, &calls),
            calls,
            has_addresses: false,
            debug: DebugCode::new(compiled, isa),
        }
    }
}

/// Those of some calls, in the order of their offsets, that bear the list of a safepoint, as the lowering has tagged them.
///
/// Cranelift gives the tags of a call to all that it makes of the call: to instructions before, at their start, and to the
/// call itself, at its end. What an end belongs to is the last call before: after it, arguments are taken off the stack, and
/// results from there.
fn root_sites(compiled: &CompiledCode, func: &Function, calls: &[CallSite]) -> Vec<RootSite> {
    let layout = || compiled.buffer.frame_layout().expect("code has a frame layout");
    let site = |tags: MachBufferDebugTagList<'_>| {
        let &[DebugTag::User(list), DebugTag::StackSlot(slot)] = tags.tags else {
            unreachable!("the lowering tags calls only with lists")
        };
        let (layout, data) = (layout(), &func.sized_stack_slots[slot]);
        let n_before = calls.partition_point(|call| call.offset <= tags.offset);
        RootSite {
            offset: calls[n_before - 1].offset,
            list,
            n_cells: data.size / size_of::<u64>() as u32,
            below: layout.frame_to_fp_offset - layout.stackslots[slot].offset,
        }
    };
    let tags = compiled.buffer.debug_tags().filter(|tags| tags.pos == MachDebugTagPos::Post);
    let mut sites: Vec<RootSite> = tags.map(site).collect();
    sites.sort_by_key(|site| site.offset);
    sites
}

impl MachineCode {
    /// The code of a function that nothing enters.
    pub(crate) fn none() -> MachineCode {
        MachineCode { alignment: 1, ..MachineCode::default() }
    }

    /// Resolves calls of the function itself, which is the one with this number: their distance does not depend on where
    /// the function is placed.
    pub(crate) fn resolve_own_calls(&mut self, func: u32) {
        let bytes = &mut self.bytes;
        self.relocs.retain(|FinalizedReloc(reloc)| match reloc.name {
            ModuleRelocTarget::User { namespace: FUNC_NAMESPACE, index } if index == func => {
                !resolve_own(bytes, reloc, 0)
            }
            _ => true,
        });
    }

    /// Appends code, which the function calls by this number in [`KEEPER_NAMESPACE`], and resolves these calls.
    ///
    /// # Errors
    /// Fails if the function is so large that one of them cannot reach it.
    ///
    /// # Panics
    /// Panics if that code can trap by an instruction or depends on other code.
    pub(crate) fn append(&mut self, number: u32, code: &MachineCode) -> Result<(), CodeError> {
        assert!(code.relocs.is_empty() && code.traps.is_empty(), "it only calls by addresses");
        let start = u32::try_from(self.bytes.len()).map_err(|_| CodeError::TooLarge)?;
        let own = |name: &ModuleRelocTarget| match name {
            ModuleRelocTarget::User { namespace, index } => {
                (*namespace, *index) == (KEEPER_NAMESPACE, number)
            }
            _ => false,
        };
        let bytes = &mut self.bytes;
        self.relocs.retain(|FinalizedReloc(reloc)| {
            !own(&reloc.name) || !resolve_own(bytes, reloc, start.into())
        });
        if self.relocs.iter().any(|FinalizedReloc(reloc)| own(&reloc.name)) {
            return Err(CodeError::TooLarge);
        }
        self.bytes.extend_from_slice(&code.bytes);
        self.calls.extend(code.calls.iter().map(|site| site.moved(start, 0)));
        self.alignment = self.alignment.max(code.alignment);
        if let (Some(debug), Some(appended)) = (&mut self.debug, &code.debug) {
            debug.append(start, appended);
        }
        Ok(())
    }

    /// Whether the code is the same wherever it is placed, with any other, in any process.
    pub(crate) fn is_kept_as_it_is(&self) -> bool {
        self.relocs.is_empty() && !self.has_addresses
    }

    /// Code that was placed, without relocations, with its table.
    ///
    /// # Safety
    /// The range is of code that stays meanwhile.
    pub(super) unsafe fn of_placed(
        table: &PcTable,
        code: &Range<usize>,
        how: Placing,
    ) -> MachineCode {
        let start = std::ptr::with_exposed_provenance::<u8>(code.start);
        // SAFETY: the memory provider makes pages of code readable. `to_machine_code` of the unit or arena that owns these
        // calls this, which keeps them meanwhile.
        let bytes = unsafe { std::slice::from_raw_parts(start, code.len()) }.to_vec();
        let (traps, calls, places) = table.part(code);
        let Placing { alignment, anchor } = how;
        let roots = table.roots_of(code);
        let code = MachineCode { bytes, traps, calls, places, roots, ..MachineCode::default() };
        MachineCode { alignment, anchor, ..code }
    }

    /// The alignment that the code is to have.
    pub(crate) fn placing(&self) -> Placing {
        Placing { alignment: self.alignment, anchor: self.anchor }
    }

    /// The functions that the code calls or refers to, by their numbers; some repeatedly.
    pub(crate) fn callees(&self) -> impl Iterator<Item = u32> + '_ {
        self.relocs.iter().filter_map(|reloc| reloc.func().ok())
    }
}

/// Resolves a call of what has this offset in the code that it is in. Returns whether it could.
fn resolve_own(code: &mut [u8], reloc: &ModuleReloc, target: i64) -> bool {
    let at = reloc.offset as usize;
    let field = &mut code[at..at + 4];
    let distance = target + reloc.addend - i64::from(reloc.offset);
    let resolved = match reloc.kind {
        Reloc::X86CallPCRel4 => i32::try_from(distance).ok().map(|distance| distance as u32),
        // 26 bits of the instruction, which counts instructions.
        Reloc::Arm64Call if (-(1 << 27)..1 << 27).contains(&distance) => {
            let inst = u32::from_le_bytes([field[0], field[1], field[2], field[3]]);
            Some(inst | (distance >> 2) as u32 & 0x03ff_ffff)
        }
        _ => None,
    };
    if let Some(resolved) = resolved {
        field.copy_from_slice(&resolved.to_le_bytes());
    }
    resolved.is_some()
}

/// The alignment of code.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Placing {
    pub(super) alignment: u64,
    anchor: Anchor,
}
