//! Known faults of wasmi 2.0.0, found by comparison; wasmtime behaves as specified.

use slotvm_bytecode::module::{ImportKind, Module};
use slotvm_bytecode::{CodeReader, Inst, Op};

/// Whether it may crash.
pub(crate) fn may_crash(module: &Module) -> bool {
    may_tail_call_host(module) || stores_lanes_far_off(module)
}

/// Whether a function of the host may be called by a tail call. It then loses its stack pointer.
fn may_tail_call_host(module: &Module) -> bool {
    let n_imported =
        module.imports.iter().filter(|import| matches!(import.kind, ImportKind::Func(..))).count();
    n_imported > 0
        && insts(module).flatten().any(|inst| match inst.op {
            Op::ReturnCall => (inst.imm.low() as usize) < n_imported,
            Op::ReturnCallIndirect => true,
            _ => false,
        })
}

/// Whether a lane of 8 or 16 bits is stored at an offset of more than 16 bits. It then does not read the
/// instruction as it has written it.
fn stores_lanes_far_off(module: &Module) -> bool {
    insts(module).flatten().any(|inst| {
        matches!(inst.op, Op::V128Store8Lane | Op::V128Store16Lane)
            && inst.imm.offset() > u32::from(u16::MAX)
    })
}

/// Whether a `select` tests a comparison with zero or null. It fuses the two, and then takes the condition from
/// its register even if what was compared is a local.
pub(crate) fn may_select_by_wrong_condition(module: &Module) -> bool {
    let compares = |op| matches!(op, Op::I32Eqz | Op::I32Eq | Op::I32Ne | Op::RefIsNull);
    insts(module).any(|func| {
        let ops: Vec<Op> = func.map(|inst| inst.op).collect();
        ops.windows(2).any(|pair| compares(pair[0]) && pair[1] == Op::Select)
    })
}

/// The instructions of each function.
fn insts(module: &Module) -> impl Iterator<Item = impl Iterator<Item = Inst>> {
    module.funcs.iter().map(|func| {
        let mut reader = CodeReader::new(&func.code, 0);
        std::iter::from_fn(move || {
            (!reader.is_at_end()).then(|| reader.read().expect("the import writes instructions"))
        })
    })
}
