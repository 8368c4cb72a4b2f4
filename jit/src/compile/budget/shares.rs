//! The budget of a module, and the share of it that each function has.

use slotvm_bytecode::{FuncType, VerifiedModule};
use slotvm_ssa::ir::Function;

/// Points for each byte that was given for the functions of a module up to [`SMALL_BYTES`]: 40 ms for each KB.
/// More than twice as much is promised: an estimate is right within a small factor only.
const NS_PER_BYTE: u64 = 40_000_000 / 1024;
/// Time for each byte beyond: 4 ms for each KB, of the 10 ms that are promised.
const NS_PER_BYTE_BEYOND: u64 = 4_000_000 / 1024;
/// Bytes of a module that count in full.
const SMALL_BYTES: u64 = 64 << 10;
/// No module counts as smaller than this.
const MODULE_BYTES_MIN: u64 = 4 << 10;
/// The memory of any module; 128 MiB are promised.
const MEMORY_BYTES: u64 = 58 << 20;
/// The memory that each byte adds, of 1,024 that are promised.
const MEMORY_BYTES_PER_BYTE: u64 = 520;

/// Parameters and results of a wide type.
const WIDE_MIN: usize = 64;
/// A share of a module's budget.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// Points.
    pub(super) time: u64,
    pub(super) bytes: u64,
    /// Whether the module has types of so many parameters and results that their operands are to be
    /// counted before anything is made of them.
    pub(crate) has_wide_types: bool,
}

/// The budget of a module.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    /// Those given for the functions.
    pub(super) module_bytes: u64,
    pub(super) time: u64,
    pub(super) memory: u64,
    has_wide_types: bool,
}

impl Budget {
    /// Returns the budget for a module's size.
    pub(crate) fn new(module: &VerifiedModule) -> Budget {
        let funcs = module.n_imported_funcs()..module.n_funcs();
        let module_bytes: u64 = funcs.map(|func| func_bytes(module, func)).sum();
        let types = &module.module().types;
        let is_wide = |ty: &FuncType| ty.params.len() + ty.results.len() > WIDE_MIN;
        Budget::of_bytes(module_bytes, types.iter().any(is_wide))
    }

    pub(super) fn of_bytes(module_bytes: u64, has_wide_types: bool) -> Budget {
        Budget {
            module_bytes,
            time: time(module_bytes),
            memory: MEMORY_BYTES + module_bytes * MEMORY_BYTES_PER_BYTE,
            has_wide_types,
        }
    }

    /// The bytes that were given for the functions of the module.
    pub(crate) fn module_bytes(&self) -> u64 {
        self.module_bytes
    }

    /// Returns the rest after functions have taken some points.
    pub(super) fn less(&self, drawn: u64) -> Budget {
        Budget { time: self.time.saturating_sub(drawn), ..*self }
    }

    /// The share of a function. Functions are compiled one after the other, or few at a time, and give
    /// their memory back: each may have all of it.
    pub(crate) fn share(&self, module: &VerifiedModule, func: u32) -> Share {
        let time = u128::from(self.time) * u128::from(func_bytes(module, func))
            / u128::from(self.module_bytes.max(1));
        let (bytes, has_wide_types) = (self.memory, self.has_wide_types);
        Share { time: time as u64, bytes, has_wide_types }
    }
}

impl Share {
    /// The rest after some points were taken.
    pub(super) fn less(self, drawn: u64) -> Share {
        Share { time: self.time.saturating_sub(drawn), ..self }
    }

    /// The share of a function that is handed over in slot form: that of a module with nothing else. An
    /// instruction counts as much as one of bytecode with an operand.
    pub(crate) fn of_slot_form(function: &Function) -> Share {
        const BYTES_PER_INST: u64 = 3;
        let budget = Budget::of_bytes(function.n_insts() as u64 * BYTES_PER_INST, false);
        Share { time: budget.time, bytes: budget.memory, has_wide_types: false }
    }
}

/// Points of time for a number of bytes of a module.
pub(super) fn time(module_bytes: u64) -> u64 {
    let counted = module_bytes.max(MODULE_BYTES_MIN);
    let beyond = counted.saturating_sub(SMALL_BYTES);
    (counted - beyond) * NS_PER_BYTE + beyond * NS_PER_BYTE_BEYOND
}

/// The bytes that were given for a function: those it is a translation of, or what it takes in a binary
/// module, at least.
fn func_bytes(module: &VerifiedModule, func: u32) -> u64 {
    if let Some(bytes) = module.source_bytes(func) {
        return bytes.into();
    }
    let func = module.func(func).expect("the module defines the function");
    // A label has an offset and a shape; a body a length, a type, and two counts.
    (func.code.len() + 2 * func.labels.len() + 4) as u64
}
