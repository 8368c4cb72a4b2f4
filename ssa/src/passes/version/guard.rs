//! The guard of a loop: whether the accesses of all rounds are in bounds.
//!
//! A condition of the guard is that a difference of 64 bits is not negative. The differences are joined by `or`, so that
//! one test of a sign decides. Rounds are below [`GUARDED_ROUNDS_MAX`] and amounts below 2^32, so no sum reaches 2^63. Where the
//! number of rounds is larger, the other conditions may be wrong, but the guard refuses the loop for that number.

use slotvm_bytecode::{Imm, Op, ValType};

use super::affine::{Affine, Step};
use super::conditions::Guard;
use super::rounds::{Reach, Rounds};
use super::value_map::ValueMap;
use super::{GUARDED_MAX, Plan};
use crate::ir::Function;
use crate::ir::entity::{Inst, Loc, Value};

/// The logarithm of the minimum number of the last round of a loop without checks.
const ROUNDS_MIN_LOG2: u32 = 2;
/// The maximum number of rounds of a loop without checks.
const GUARDED_ROUNDS_MAX: i64 = 1 << 30;

/// Accesses with the same address, but for their static offsets.
#[derive(Copy, Clone, Debug)]
pub(super) struct Access {
    pub(super) base: Affine,
    /// The index, and the logarithm of its scale.
    pub(super) index: Option<(Affine, u32)>,
    /// The distance from the address to the end of the farthest byte.
    pub(super) end: u64,
}

impl Access {
    fn operands(&self) -> impl Iterator<Item = Affine> {
        [self.base].into_iter().chain(self.index.map(|(index, _)| index))
    }

    /// The values that the guard needs.
    pub(super) fn values(&self) -> impl Iterator<Item = Value> {
        self.operands().flat_map(|it| [it.value].into_iter().chain(it.step.factor()))
    }
}

/// Adds an access to those that a guard checks. Returns whether the guard will check it.
pub(super) fn add(accesses: &mut Vec<Access>, access: Access, rounds: &Rounds) -> bool {
    if !access.operands().all(|operand| rounds.reaches(operand.step)) {
        return false;
    }
    let is_same = |other: &&mut Access| (other.base, other.index) == (access.base, access.index);
    if let Some(same) = accesses.iter_mut().find(is_same) {
        same.end = same.end.max(access.end);
        return true;
    }
    let has_room = accesses.len() < GUARDED_MAX;
    if has_room {
        accesses.push(access);
    }
    has_room
}

/// One of the two parts of a guard, and a value that is 0 unless this part refuses the loop.
pub(super) struct GuardTest {
    pub(super) insts: Vec<Inst>,
    pub(super) refuses: Value,
}

/// Writes the guard of a loop. `first_round` has the phis of the header as the loop starts.
///
/// The first part refuses loops of few rounds, for which the second one would cost more than their checks do.
pub(super) fn write(
    f: &mut Function,
    plan: &Plan,
    first_round: &mut ValueMap,
    loc: Loc,
) -> [GuardTest; 2] {
    let mut guard = Guard { f, first_round, loc, insts: Vec::new(), refused: None };
    for &inst in &plan.first_round {
        guard.copy(inst);
    }
    let reach = plan.rounds.write(&mut guard);
    let (length, min) = match reach {
        Reach::Rounds(rounds) => (rounds, guard.constant(1 << ROUNDS_MIN_LOG2)),
        Reach::Distance(distance, amount) => (distance, guard.shifted(amount, ROUNDS_MIN_LOG2)),
    };
    let refuses = guard.emit(Op::I64LtU, Imm::NONE, &[length, min], ValType::I32);
    let first = GuardTest { insts: std::mem::take(&mut guard.insts), refuses };

    if let Reach::Rounds(rounds) = reach {
        guard.require_not_negative(rounds);
        let max = guard.constant(GUARDED_ROUNDS_MAX);
        guard.require_at_most(rounds, max);
    }
    let pages = guard.emit(Op::MemorySize, Imm::NONE, &[], ValType::I32);
    let pages = guard.extend(pages, false);
    let bytes = guard.shifted(pages, 16);
    for access in &plan.accesses {
        guard.check(access, reach, bytes);
    }
    let refused = guard.refused.expect("there are conditions");
    let zero = guard.constant(0);
    let refuses = guard.emit(Op::I64LtS, Imm::NONE, &[refused, zero], ValType::I32);
    [first, GuardTest { insts: guard.insts, refuses }]
}

impl Guard<'_> {
    /// Requires that an access is in bounds in all rounds, of a memory of so many bytes.
    fn check(&mut self, access: &Access, reach: Reach, bytes: Value) {
        let mut last = self.last(access.base, reach);
        if let Some((index, scale_log2)) = access.index {
            let mut index_last = self.last(index, reach);
            // No number of rounds may make the shift lose bits.
            self.require_at_most(index_last, bytes);
            if scale_log2 > 0 {
                index_last = self.shifted(index_last, scale_log2);
            }
            last = self.binary(Op::I64Add, last, index_last);
        }
        let end = self.constant(access.end as i64);
        let end = self.binary(Op::I64Add, last, end);
        self.require_at_most(end, bytes);
    }

    /// The largest value of an operand in all rounds, in 64 bits. Requires that it does not pass 0 on the way down; that
    /// it does not pass 2^32 on the way up follows if it is in bounds.
    fn last(&mut self, Affine { value, step }: Affine, reach: Reach) -> Value {
        let first = self.first(value);
        let first = self.extend(first, false);
        let distance = match (step, reach) {
            (Step::NONE, _) => return first,
            (_, Reach::Distance(distance, _)) => distance,
            (Step::Constant(1 | -1), Reach::Rounds(rounds)) => rounds,
            (step, Reach::Rounds(rounds)) => {
                let amount = self.amount(step);
                self.binary(Op::I64Mul, rounds, amount)
            }
        };
        if matches!(step, Step::Constant(step) if step < 0) {
            self.require_at_most(distance, first);
            return first;
        }
        self.binary(Op::I64Add, first, distance)
    }
}
