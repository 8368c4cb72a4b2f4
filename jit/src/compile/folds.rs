//! Folded loads: the load that an instruction of machine code does, where trap codes alone do not tell.
//!
//! Back ends fold a load into the instruction that uses its value. The machine code then has the load's trap code and the
//! location of the user. There are fewer codes than loads in large functions, so loads have them in turn
//! ([`traps::load_of`]). The user tells loads with one code apart: the folded one is among its operands, or theirs.
//!
//! Works on optimised CLIF, just before it becomes machine code, in these steps:
//! 1. `fence` puts a fence after a load if an instruction could have folded it or another one with the same code. No
//!    load is folded across a fence.
//! 2. [`Folds::number`] numbers all instructions, as their source locations. So a location leads to one instruction,
//!    and from it to the location that it had.
//! 3. [`Folds::loc`] looks for the load.
//!
//! Relies on back ends that fold only loads of the same block, through at most `FOLD_DISTANCE_MAX` instructions.
//! Linear in the function.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Function, Inst, InstBuilder, SourceLoc, TrapCode};
use slotvm_ssa::ir::entity::Loc;

use crate::lower::hot_loop::{is_marked, loc_of};
use crate::lower::traps;

/// The maximum number of instructions between one and the load that is folded into it, itself included.
const FOLD_DISTANCE_MAX: usize = 6;
/// The maximum number of instructions that are looked at for one.
const FOLD_INSTS_MAX: usize = 64;

/// The instructions of a function by number.
pub(super) struct Folds {
    first: u32,
    insts: Vec<(Inst, SourceLoc)>,
}

impl Folds {
    /// Makes the loads of optimised CLIF distinct, and numbers its instructions.
    pub(super) fn number(clif: &mut Function) -> Folds {
        fence(clif);
        // Locations are kept relative to the first one.
        let first = clif.params.base_srcloc().bits();
        let mut folds = Folds { first, insts: Vec::new() };
        for inst in insts_of(clif) {
            let number = first + folds.insts.len() as u32;
            folds.insts.push((inst, clif.srcloc(inst)));
            clif.set_srcloc(inst, SourceLoc::new(number));
        }
        folds
    }

    /// The location of what may trap with a code in machine code of the instruction with a number.
    pub(super) fn loc(&self, clif: &Function, number: u32, code: Option<TrapCode>) -> Option<Loc> {
        let (inst, loc) = self.insts[(number - self.first) as usize];
        let load = code.filter(|&code| traps::load_of(code).is_some());
        let loc = match load {
            Some(code) => {
                let mut found = Vec::new();
                let mut loads = loads(clif, inst, &mut found);
                let load = loads.find(|&load| load_code(clif, load) == Some(code));
                debug_assert!(load.is_some(), "a folded load is an operand");
                let of_load = |load| self.insts[(clif.srcloc(load).bits() - self.first) as usize].1;
                load.map_or(loc, of_load)
            }
            None => loc,
        };
        (!loc.is_default()).then(|| loc_of(loc.bits()))
    }

    /// Whether the instruction with a number is marked.
    pub(super) fn is_marked(&self, number: u32) -> bool {
        let (_, loc) = self.insts[(number - self.first) as usize];
        !loc.is_default() && is_marked(loc.bits())
    }
}

/// All instructions in the order of the layout.
fn insts_of(clif: &Function) -> Vec<Inst> {
    clif.layout.blocks().flat_map(|block| clif.layout.block_insts(block)).collect()
}

/// Puts fences after loads that an instruction could not tell from another one.
fn fence(clif: &mut Function) {
    let mut ambiguous = Vec::new();
    let (mut found, mut codes) = (Vec::new(), Vec::new());
    for inst in insts_of(clif) {
        let loads = loads(clif, inst, &mut found);
        codes.clear();
        codes.extend(loads.filter_map(|load| Some((load_code(clif, load)?, load))));
        codes.sort_unstable_by_key(|&(code, load)| (code.as_raw(), load));
        codes.dedup();
        let is_same = |pair: &&[(TrapCode, Inst)]| pair[0].0 == pair[1].0;
        ambiguous.extend(codes.windows(2).filter(is_same).map(|pair| pair[0].1));
    }
    ambiguous.sort_unstable();
    ambiguous.dedup();
    for load in ambiguous {
        FuncCursor::new(clif).after_inst(load).ins().sequence_point();
    }
}

/// The loads that a back end may fold into an instruction, or the instruction itself, if it is a load; the nearest
/// first. `found` is memory to work in.
fn loads<'a>(
    clif: &'a Function,
    root: Inst,
    found: &'a mut Vec<(Inst, usize)>,
) -> impl Iterator<Item = Inst> + use<'a> {
    let block = clif.layout.inst_block(root);
    found.clear();
    found.push((root, 0));
    let mut next = 0;
    while let Some(&(inst, depth)) = found.get(next)
        && found.len() < FOLD_INSTS_MAX
    {
        next += 1;
        if depth == FOLD_DISTANCE_MAX || clif.dfg.insts[inst].opcode().can_load() {
            continue;
        }
        let operands = clif.dfg.inst_args(inst).iter();
        let makers = operands.filter_map(|&value| clif.dfg.value_def(value).inst());
        let here = makers.filter(|&maker| clif.layout.inst_block(maker) == block);
        found.extend(here.map(|maker| (maker, depth + 1)));
    }
    let is_load = move |&inst: &Inst| clif.dfg.insts[inst].opcode().can_load();
    found.iter().map(|&(inst, _)| inst).filter(is_load)
}

/// The trap code of a load, if it is one of those in turn.
fn load_code(clif: &Function, load: Inst) -> Option<TrapCode> {
    let flags = clif.dfg.insts[load].memflags()?;
    let code = clif.dfg.mem_flags[flags].trap_code()?;
    traps::load_of(code).map(|_| code)
}
