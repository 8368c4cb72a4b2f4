//! Finds out whether the compiler has made jumps of the calls at the end of handlers.

use std::ptr;
use std::sync::OnceLock;

use slotvm_bytecode::Op;

use super::dispatch::Tail;
use super::handlers::table::{self, AddressIn, Dest, HandlerCode, In, RightIn, StoredIn};
use crate::stack;
use crate::steps::instr::Instr;
use crate::steps::state::{Handler, State};

/// Whether handlers of the form [`Tail`] leave nothing on the stack. It is found out once.
pub(crate) fn tail_calls_are_jumps() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| samples().all(is_a_jump))
}

/// Instructions whose handlers go on at the next one or the one after, with the operands that [`is_a_jump`] gives them: of
/// each kind of handler some.
fn samples() -> impl Iterator<Item = HandlerCode> {
    use HandlerCode::*;
    let binary = [Op::I32Add, Op::I32DivS, Op::I64RemU, Op::F64Mul, Op::F64Min, Op::I64Rotl];
    let unary = [Op::I32Clz, Op::F32Nearest, Op::I64TruncF64S, Op::F64ConvertI64U];
    let branches = [Op::I32LtS, Op::I64GeU, Op::F64Lt];
    let others = [
        AddScaled(In::Acc, Dest::Cell),
        CanonicalF32,
        CanonicalF64,
        ShortConst,
        ShortConstU,
        LongConst,
        Copy,
        Select(In::Cell, Dest::Acc),
        Swap,
        Store(4, StoredIn::Short, AddressIn::Plain(In::Acc)),
        Store(8, StoredIn::Cell, AddressIn::Fixed),
        MemorySize,
        Br,
        FarBegin,
        VectorOp(Op::I8x16Swizzle),
        VectorOp(Op::F32x4Nearest),
        VectorOp(Op::I16x8ReplaceLane),
        VectorOp(Op::I32x4Bitmask),
        SelectWide,
        Pair(Op::I64MulWideS, RightIn::Cell),
        Pair(Op::I32MulOverflowU, RightIn::Long),
        WidePair(Op::I64Sub128),
        PairBranch(Op::I64MulOverflowS, RightIn::Cell),
        LoadWide(AddressIn::Plain(In::Cell)),
        StoreWide(AddressIn::Fixed),
    ];
    let binary = binary.into_iter().flat_map(|op| {
        let rights = [RightIn::Cell, RightIn::Short];
        rights.into_iter().map(move |right| Binary(op, In::Acc, right, Dest::Cell))
    });
    let branches = branches.into_iter().map(|op| BranchIf(op, In::Cell, RightIn::Acc, true));
    let unary = unary.into_iter().map(|op| Unary(op, In::Cell, Dest::Cell));
    others.into_iter().chain(binary).chain(branches).chain(unary)
}

/// Whether the handler of an instruction leaves nothing on the stack.
fn is_a_jump(code: HandlerCode) -> bool {
    let handler = table::of::<Tail>(code);
    let end = || Instr::new(stack_pointer as Handler as *const (), 0, 0, 0);
    // All operands are 1: cells, constants, addresses and distances.
    let instr = Instr::new(handler as *const (), 1, 1, 1);
    at_end(&[instr, end(), end()]) == at_end(&[end(), end(), end()])
}

/// Returns the stack pointer of the handler [`stack_pointer`] at the end of code.
#[inline(never)]
fn at_end(code: &[Instr; 3]) -> usize {
    let (mut cells, mut memory) = ([1u64; 4], [0u8; 64]);
    let mut state = State::EMPTY;
    let first = code.as_ptr();
    // SAFETY: the handlers of `samples` touch nothing but the cells that operands name or that follow those, the memory, and `far` of the
    // state. They go on at the next slot or the one after, which are instructions.
    unsafe {
        let handler = std::mem::transmute::<*const (), Handler>((*first).handler());
        let (cells, memory) = (cells.as_mut_ptr(), memory.as_mut_ptr());
        handler(first, cells, memory, 64, &raw mut state, 1, 1.0).addr()
    }
}

/// A handler that returns an address in its own frame.
///
/// # Safety
/// None; a handler is unsafe by its type.
#[inline(never)]
unsafe fn stack_pointer(
    _: *const Instr,
    _: *mut u64,
    _: *mut u8,
    _: usize,
    _: *mut State,
    _: u64,
    _: f64,
) -> *const Instr {
    ptr::without_provenance(stack::here())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optimised_builds_without_debug_assertions_jump() {
        assert!(tail_calls_are_jumps() || cfg!(debug_assertions));
    }
}
