//! The outcome of promotion for each local and operand of a function: its path, or why it has none.
//!
//! Promotion itself only counts ([`PromotionReport`]). [`locals`] returns more afterwards,
//! from the scratch memory of the promotion.
//!
//! As in LLVM's `isAllocaPromotable`, a local can be promoted if all that happens to its address is plain
//! reads and writes of its whole value. The verifier of bytecode decides that, since the layout of frames
//! follows from it: [`Storage`] holds the first use that is anything else.

use std::fmt::{self, Write};

use slotvm_bytecode::inst::CodeReader;
use slotvm_bytecode::printable::counted;
use slotvm_bytecode::verified::{EscapeReason, Storage};
use slotvm_bytecode::{Op, ValType, VerifiedModule};

use super::{PromotionReport, Scratch};
use crate::construction::construct::{SlotPath, TooLarge};
use crate::ir::entity::Slot;
use crate::ir::graph::title;
use crate::ir::names::{shown_local_name, write_suffix};
use crate::ir::{Function, SlotOrigin};

/// The outcome of promotion for a local, or for an operand that survives its block.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct LocalReport {
    /// The local or operand.
    pub origin: SlotOrigin,
    /// Its slot, unless it has none.
    pub slot: Option<Slot>,
    /// The type of its value.
    pub ty: ValType,
    /// Its place after promotion.
    pub fate: Fate,
    /// The number of its phis.
    pub n_phis: usize,
    /// The number of its `slot.get`s removed.
    pub n_gets: usize,
    /// The number of its `slot.set`s removed.
    pub n_sets: usize,
}

/// The place of a local after promotion.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The local became values.
    Promoted(SlotPath),
    /// Still in its slot, with all others of the function, since promotion would exceed a limit.
    Left(TooLarge),
    /// Still in its slot, since registers are short: [`mod@crate::passes::pressure`].
    Kept {
        /// The code offset of the loop with more values than registers.
        at: u32,
    },
    /// The local stays in linear memory, as in the bytecode, since its address escapes.
    Escapes {
        /// The code offset of the first use of the address other than a plain access.
        at: u32,
        /// The instruction there.
        by: Op,
        /// The reason why it is not a plain access.
        reason: EscapeReason,
    },
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fate::Promoted(path) => write!(f, "promoted: {}", path.message()),
            Fate::Left(too_large) => write!(f, "left in its slot: {too_large}"),
            Fate::Kept { at } => {
                write!(f, "left in its slot: values outnumber registers in the loop at @{at:04x}")
            }
            Fate::Escapes { at, by, reason } => {
                let (reason, by) = (reason.message(), by.mnemonic());
                write!(f, "in memory: {reason}, `{by}` at @{at:04x}")
            }
        }
    }
}

/// Reports the outcome for each local of a function, and then for each operand that survives its block.
///
/// `func` is a function of `module` after the promotion that returned `report`, which was the last one with
/// `scratch`.
///
/// # Panics
/// Panics if the module does not define the function, or the scratch memory is of another one.
pub fn locals(
    func: &Function,
    module: &VerifiedModule,
    report: &PromotionReport,
    scratch: &Scratch,
) -> Vec<LocalReport> {
    let mut slots = slots(func, report, scratch).into_iter();
    let mut escaping = escaping(func, module).into_iter().peekable();
    let n_locals = module.body(func.func).expect("the module defines the function").locals.len();
    let mut locals = Vec::with_capacity(n_locals);
    for i in 0..n_locals as u32 {
        let escapes = escaping.next_if(|local| local.origin == SlotOrigin::Local(i));
        let local = escapes.or_else(|| slots.next());
        locals.push(local.expect("a promotable local has a slot"));
    }
    locals.extend(slots);
    locals
}

/// Reports the outcome for each slot. The arguments are those of [`locals`].
pub fn slots(func: &Function, report: &PromotionReport, scratch: &Scratch) -> Vec<LocalReport> {
    let mut n_phis = vec![0; func.slots.len()];
    phis(report, scratch).iter().for_each(|&(_, slot)| n_phis[slot.index()] += 1);
    let slots = (0..).map(Slot).zip(&func.slots).map(|(id, slot)| {
        let mut local = LocalReport {
            origin: slot.origin,
            slot: Some(id),
            ty: slot.ty,
            fate: Fate::Promoted(SlotPath::Dead),
            n_phis: n_phis[id.index()],
            n_gets: 0,
            n_sets: 0,
        };
        if let Some(too_large) = report.too_large {
            local.fate = Fate::Left(too_large);
        } else if let Some(at) = slot.kept {
            local.fate = Fate::Kept { at };
        } else {
            local.fate = Fate::Promoted(scratch.finder.path(&scratch.log, id));
            (local.n_gets, local.n_sets) = scratch.log.n_accesses(id);
        }
        local
    });
    slots.collect()
}

/// Reports the locals of a function without slots, since their addresses escape.
///
/// # Panics
/// Panics if the module does not define the function.
pub fn escaping(func: &Function, module: &VerifiedModule) -> Vec<LocalReport> {
    let body = module.body(func.func).expect("the module defines the function");
    let escapes = (0..).zip(&body.locals).filter_map(|(i, local)| match local.storage {
        Storage::Promotable => None,
        Storage::Escapes { at, reason, .. } => Some(LocalReport {
            origin: SlotOrigin::Local(i),
            slot: None,
            ty: local.ty,
            fate: Fate::Escapes { at, by: op_at(module, func.func, at), reason },
            n_phis: 0,
            n_gets: 0,
            n_sets: 0,
        }),
    });
    escapes.collect()
}

/// The phis that a promotion has placed, each a block and a slot. The arguments are those of [`locals`].
pub fn phis<'s>(report: &PromotionReport, scratch: &'s Scratch) -> &'s [(u32, Slot)] {
    // The list is that of an earlier promotion if there was none to place.
    if report.n_phis > 0 { &scratch.finder.sites } else { &[] }
}

/// The name of a local or operand and its type, as texts write them: `s2.x: i64`.
pub fn text_of(
    func: &Function,
    slots: &[String],
    module: &VerifiedModule,
    local: &LocalReport,
) -> String {
    let mut text = match (local.slot, local.origin) {
        (Some(slot), _) => slots[slot.index()].clone(),
        (None, SlotOrigin::Local(number)) => {
            let mut text = format!("s{number}");
            let name = shown_local_name(module, func.func, number);
            write_suffix(&mut text, name.filter(|_| func.names.is_some()));
            text
        }
        (None, SlotOrigin::Stack(_) | SlotOrigin::Inlined(_)) => unreachable!("these have slots"),
    };
    text += &format!(": {}", local.ty);
    text
}

/// The operation at an offset of verified code.
fn op_at(module: &VerifiedModule, func: u32, offset: u32) -> Op {
    let code = &module.func(func).expect("the module defines the function").code;
    CodeReader::new(code, offset).read().expect("verified code decodes").op
}

/// The promotion of a function as text: one summary line, then one for each local and operand. The
/// arguments are those of [`locals`].
pub fn print(
    func: &Function,
    module: &VerifiedModule,
    report: &PromotionReport,
    scratch: &Scratch,
) -> String {
    let mut out = title(func);
    let slots = func.slot_texts();
    let n_slots = counted(report.n_slots as u64, "slot", "slots");
    let [n_phis, n_gets, n_sets] = accesses(report.n_phis, report.n_gets, report.n_sets);
    writeln!(out, "  ; {n_slots}, {n_phis} placed, {n_gets} and {n_sets} removed")
        .expect(INFALLIBLE);
    for local in locals(func, module, report, scratch) {
        let name = text_of(func, &slots, module, &local);
        let LocalReport { fate, n_phis, n_gets, n_sets, .. } = local;
        write!(out, "  {name:<18} {fate}").expect(INFALLIBLE);
        if let Fate::Promoted(_) = fate {
            let counts = accesses(n_phis, n_gets, n_sets).join(", ");
            write!(out, "; {counts}").expect(INFALLIBLE);
        }
        out.push('\n');
    }
    out
}

/// Numbers of phis, reads and writes.
fn accesses(n_phis: usize, n_gets: usize, n_sets: usize) -> [String; 3] {
    [(n_phis, "phi"), (n_gets, "read"), (n_sets, "write")]
        .map(|(n, one)| counted(n as u64, one, &format!("{one}s")))
}

const INFALLIBLE: &str = "writing to a string succeeds";

#[cfg(test)]
mod tests;
