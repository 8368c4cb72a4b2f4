//! Handlers of integers with two results. These lie in the cell `a` and the one after it, and in no accumulator.

use slotvm_bytecode::Op;
use slotvm_bytecode::numeric::ops::I64Add;
use slotvm_bytecode::pairs::{Pair, ops};

use crate::interp::dispatch::{Dispatch, handlers};
use crate::interp::operands::Operand;
use crate::interp::regs::Regs;
use crate::steps::instr::Instr;
use crate::steps::state::{Handler, State};

impl<D> Regs<D> {
    #[inline(always)]
    fn set_pair(&self, [first, second]: [u64; 2]) {
        let a = self.instr().a;
        self.set(a, first);
        // The translator gives a pair two cells in a row, so there is a cell after `a`.
        self.set(a + 1, second);
    }
}

handlers! {
    /// `a = b op right`.
    fn pair<N: Pair, R: Operand>(r) {
        let right = R::get::<I64Add, D>(&r);
        r.set_pair(N::eval([r.get(r.instr().b), right, 0, 0]));
        r.next(R::SLOTS)
    }

    /// `a = op b, x, y` and the cell that the next slot names.
    fn wide_pair<N: Pair>(r) {
        let i = r.instr();
        let last = r.get(r.slot(1).a);
        r.set_pair(N::eval([r.get(i.b), r.get(i.x()), r.get(i.y()), last]));
        r.next(2)
    }

    /// `a = b op right`, where the right operand is in the next slot or in the cell that it names. Then branches by `c` if
    /// the second result is not zero, which is not written.
    fn pair_branch<N: Pair, R: Operand>(r) {
        let right = R::get::<I64Add, D>(&r);
        let [result, flag] = N::eval([r.get(r.instr().b), right, 0, 0]);
        r.set(r.instr().a, result);
        if flag != 0 { r.branch(r.instr().c as i32) } else { r.next(2) }
    }
}

/// Chooses among handlers that are made for one operation and one kind of right operand each.
macro_rules! choose {
    ($op:ident: $handler:ident: $($name:ident)*) => {
        match $op {
            $(Op::$name => $handler::<ops::$name, R, D>,)*
            _ => unreachable!("`{}` has no such form", $op.mnemonic()),
        }
    };
}

pub(super) fn of_pair<R: Operand, D: Dispatch>(op: Op) -> Handler {
    choose!(op: pair:
        I64MulWideS I64MulWideU
        I32AddOverflowS I32AddOverflowU I32SubOverflowS I32SubOverflowU I32MulOverflowS I32MulOverflowU
        I64AddOverflowS I64AddOverflowU I64SubOverflowS I64SubOverflowU I64MulOverflowS I64MulOverflowU)
}

pub(super) fn of_wide_pair<D: Dispatch>(op: Op) -> Handler {
    match op {
        Op::I64Add128 => wide_pair::<ops::I64Add128, D>,
        _ => wide_pair::<ops::I64Sub128, D>,
    }
}

pub(super) fn of_pair_branch<R: Operand, D: Dispatch>(op: Op) -> Handler {
    choose!(op: pair_branch:
        I32AddOverflowS I32AddOverflowU I32SubOverflowS I32SubOverflowU I32MulOverflowS I32MulOverflowU
        I64AddOverflowS I64AddOverflowU I64SubOverflowS I64SubOverflowU I64MulOverflowS I64MulOverflowU)
}
