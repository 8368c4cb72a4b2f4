//! The operands that a function's instructions have in slot form beyond what its bytecode takes bytes for.
//!
//! They are counted in one pass over the bytecode, and only if somebody asks.

use std::cell::OnceCell;

use slotvm_bytecode::{Inst, Op, VerifiedModule, limits};

/// The maximum number of operands and results in the slot form of a function, over all instructions. It
/// keeps memory in proportion: a call of two bytes may have a thousand of each, and a return of one byte
/// a thousand operands. Each operand from another block takes a code generator 300 bytes. Two million
/// ordinary instructions are below the limit.
pub const SLOT_FORM_OPERANDS_MAX: u64 = 1 << 24;

/// Operands and results of an instruction that neither calls nor leaves the function, with
/// the instructions that charge for it or stand in for it.
const PER_INST: u64 = 8;
/// The same for an operand that a branch keeps, which is read from a slot and written to one.
const PER_KEPT: u64 = 2 * PER_INST;
const PER_CALL: u64 = PER_INST + (limits::PARAMS_MAX + limits::RESULTS_MAX) as u64;
/// The most that one instruction has.
const MOST: u64 = PER_INST + PER_KEPT * limits::KEPT_OPERANDS_MAX as u64;
const _: () = assert!(PER_CALL <= MOST);

/// Counts of a function's operands.
#[derive(Debug)]
pub struct OperandCounts<'m> {
    module: &'m VerifiedModule,
    func: u32,
    counted: OnceCell<Counted>,
}

#[derive(Debug, Default)]
struct Counted {
    n_kept: u64,
    n_wide: u64,
}

impl<'m> OperandCounts<'m> {
    /// Those of a function that the module defines.
    pub fn new(module: &'m VerifiedModule, func: u32) -> OperandCounts<'m> {
        OperandCounts { module, func, counted: OnceCell::new() }
    }

    /// Whether [`build`](super::build()) may be called: the function has at most [`SLOT_FORM_OPERANDS_MAX`] operands and
    /// results. Other functions can only be interpreted.
    ///
    /// # Panics
    /// Panics if the function is imported.
    pub fn is_buildable(&self) -> bool {
        let body = self.module.body(self.func).expect("the function is defined in the module");
        let n_insts: u64 = body.blocks.iter().map(|block| u64::from(block.cost)).sum();
        if n_insts.saturating_mul(MOST) <= SLOT_FORM_OPERANDS_MAX {
            return true;
        }
        PER_INST * n_insts + PER_KEPT * self.n_kept() + self.n_wide() <= SLOT_FORM_OPERANDS_MAX
    }

    /// The number of operands that the branches of the function keep above dropped ones, in total.
    ///
    /// # Panics
    /// Panics if the function is imported.
    pub fn n_kept(&self) -> u64 {
        self.counted().n_kept
    }

    /// The number of parameters and results of all calls of the function, and of its own at each `return`.
    ///
    /// # Panics
    /// Panics if the function is imported.
    pub fn n_wide(&self) -> u64 {
        self.counted().n_wide
    }

    fn counted(&self) -> &Counted {
        self.counted.get_or_init(|| {
            let (module, func) = (self.module, self.func);
            let body = module.body(func).expect("the function is defined in the module");
            let mut counted = Counted::default();
            for (_, inst) in body.blocks.iter().flat_map(|block| module.insts(func, block)) {
                counted.add(inst, module, func);
            }
            counted
        })
    }
}

impl Counted {
    fn add(&mut self, Inst { op, imm }: Inst, module: &VerifiedModule, func: u32) {
        let ty = match op {
            Op::BrKeep => {
                self.n_kept += u64::from(imm.high());
                return;
            }
            Op::Call | Op::ReturnCall => module.func_type(imm.low()),
            Op::CallIndirect | Op::ReturnCallIndirect => &module.module().types[imm.low() as usize],
            Op::Return => module.func_type(func),
            _ => return,
        };
        self.n_wide += (ty.params.len() + ty.results.len()) as u64;
    }
}

/// Whether a function that the module defines has a slot form: see [`OperandCounts::is_buildable`].
///
/// # Panics
/// Panics if the function is imported.
pub fn is_buildable(module: &VerifiedModule, func: u32) -> bool {
    OperandCounts::new(module, func).is_buildable()
}
