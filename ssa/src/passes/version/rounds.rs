//! The test that ends a loop, and the last round that can begin.
//!
//! The test stands at the end of the latch or of the header, so each round that another one follows has passed it. It
//! compares a value that changes by the same amount in each round with one that stays the same. Rounds are counted from
//! 0: the last one that can begin is the number of rounds in a row that pass the test.
//!
//! That number is a quotient. Where the amount is no constant, only the distance is computed that the counter goes at
//! most, which suffices for addresses that change by the same amount.

use slotvm_bytecode::Op;

use super::affine::{Step, Values};
use super::conditions::Guard;
use crate::ir::Function;
use crate::ir::entity::{Block, Edge, Value};
use crate::ir::irop::Opcode;

/// The maximum number of `i32.eqz` around a comparison. Passes leave one; many loops may share a chain of them.
const NEGATIONS_MAX: usize = 3;

/// The maximum amount of a counter that changes by no constant.
const AMOUNT_MAX: i64 = 1 << 30;

/// The test with which a round goes on.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Rounds {
    /// The value that changes.
    counter: Value,
    /// The amount by which it changes.
    step: Step,
    /// The value that it is compared with; 0 if there is none.
    limit: Option<Value>,
    relation: Relation,
}

/// How far a loop goes at most, as the guard computes it. Of loops that the guard refuses, the values are anything.
#[derive(Copy, Clone, Debug)]
pub(super) enum Reach {
    /// The number of the last round that can begin.
    Rounds(Value),
    /// The distance that values with the step of the counter go. The other value is that step, in 64 bits.
    Distance(Value, Value),
}

/// The relation of the counter to the limit.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Relation {
    Equal,
    NotEqual,
    Less(Order),
    Greater(Order),
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Order {
    is_signed: bool,
    or_equal: bool,
}

impl Relation {
    /// The relation that holds when this one does not.
    fn negated(self) -> Relation {
        let or = |order: Order| Order { or_equal: !order.or_equal, ..order };
        match self {
            Relation::Equal => Relation::NotEqual,
            Relation::NotEqual => Relation::Equal,
            Relation::Less(order) => Relation::Greater(or(order)),
            Relation::Greater(order) => Relation::Less(or(order)),
        }
    }

    /// The relation with its sides exchanged.
    fn swapped(self) -> Relation {
        match self {
            Relation::Less(order) => Relation::Greater(order),
            Relation::Greater(order) => Relation::Less(order),
            same => same,
        }
    }

    fn of(op: Op) -> Option<Relation> {
        let order = |is_signed, or_equal| Order { is_signed, or_equal };
        Some(match op {
            Op::I32Eq => Relation::Equal,
            Op::I32Ne => Relation::NotEqual,
            Op::I32LtS => Relation::Less(order(true, false)),
            Op::I32LtU => Relation::Less(order(false, false)),
            Op::I32LeS => Relation::Less(order(true, true)),
            Op::I32LeU => Relation::Less(order(false, true)),
            Op::I32GtS => Relation::Greater(order(true, false)),
            Op::I32GtU => Relation::Greater(order(false, false)),
            Op::I32GeS => Relation::Greater(order(true, true)),
            Op::I32GeU => Relation::Greater(order(false, true)),
            _ => return None,
        })
    }
}

impl Rounds {
    /// Finds the test of a loop that was analysed.
    pub(super) fn find(
        f: &Function,
        values: &Values,
        blocks: &[Block],
        latch: Edge,
    ) -> Option<Rounds> {
        let places = [f.edge_src(latch), blocks[0]];
        places.into_iter().find_map(|block| Rounds::at(f, values, blocks, block))
    }

    /// The test at the end of a block, if it is one.
    fn at(f: &Function, values: &Values, blocks: &[Block], block: Block) -> Option<Rounds> {
        let branch = f.terminator(block);
        if f.opcode(branch) != Opcode::Op(Op::BrIf) {
            return None;
        }
        let mut stays =
            f.succ_edges(block).map(|edge| blocks.binary_search(&f.edge_dst(edge)).is_ok());
        let (Some(if_true), Some(if_false)) = (stays.next(), stays.next()) else { return None };
        if if_true == if_false {
            return None;
        }
        let (relation, a, b) = compared(f, values, f.operands(branch)[0]);
        let relation = if if_true { relation } else { relation.negated() };
        let is_invariant = |value: Value| values.step(value) == Some(Step::NONE);
        let rounds = |counter: Value, limit: Option<Value>, relation| {
            let rounds = Rounds { counter, step: values.step(counter)?, limit, relation };
            (limit.is_none_or(is_invariant) && rounds.ends()).then_some(rounds)
        };
        rounds(a, b, relation).or_else(|| rounds(b?, Some(a), relation.swapped()))
    }

    /// Whether the counter goes towards the limit, as far as that is known.
    fn ends(&self) -> bool {
        match (self.relation, self.step) {
            (Relation::Equal, _) | (_, Step::NONE) => false,
            (Relation::NotEqual, Step::Constant(_)) => true,
            (Relation::Less(_), Step::Constant(step)) => step > 0,
            (Relation::Greater(_), Step::Constant(step)) => step < 0,
            (Relation::Less(_), Step::Times(_, factor)) => factor > 0,
            (_, Step::Times(..)) => false,
        }
    }

    /// Whether the guard can compute how far values with a step go.
    pub(super) fn reaches(&self, step: Step) -> bool {
        match (step, self.step) {
            (Step::Times(_, factor), _) if factor < 0 => false,
            (Step::NONE, _) | (_, Step::Constant(_)) => true,
            (step, own) => step == own,
        }
    }

    /// The values that the guard needs.
    pub(super) fn values(&self) -> impl Iterator<Item = Value> {
        [self.counter].into_iter().chain(self.limit).chain(self.step.factor())
    }

    /// Writes how far the loop goes. The guard requires what makes it right.
    pub(super) fn write(&self, guard: &mut Guard<'_>) -> Reach {
        let counter = guard.first(self.counter);
        let limit = match self.limit {
            Some(limit) => guard.first(limit),
            None => guard.constant32(0),
        };
        let Step::Constant(step) = self.step else {
            let Relation::Less(order) = self.relation else { unreachable!("it has no guard") };
            return self.distance(guard, order, counter, limit);
        };
        let amount = step.unsigned_abs();
        Reach::Rounds(match self.relation {
            Relation::Equal => unreachable!("such a loop has no guard"),
            Relation::NotEqual => {
                let (from, to) = if step > 0 { (counter, limit) } else { (limit, counter) };
                let distance = guard.binary32(Op::I32Sub, to, from);
                let distance = guard.extend(distance, false);
                let rounds = quotient(guard, distance, amount);
                if amount > 1 {
                    // The counter must meet the limit, and not pass it.
                    let amount = guard.constant(amount.into());
                    let met = guard.binary(Op::I64Mul, rounds, amount);
                    guard.require_at_most(distance, met);
                    guard.require_at_most(met, distance);
                }
                rounds
            }
            Relation::Less(order) => {
                let (counter, limit) =
                    (order.extended(guard, counter), order.extended(guard, limit));
                let excess = order.excess(amount);
                if excess > 0 {
                    // The counter must not wrap beyond the limit.
                    let max = guard.constant(order.max() - excess);
                    guard.require_at_most(limit, max);
                }
                rounds_between(guard, counter, limit, excess, amount)
            }
            Relation::Greater(order) => {
                let (counter, limit) =
                    (order.extended(guard, counter), order.extended(guard, limit));
                let excess = order.excess(amount);
                if excess > 0 {
                    let min = guard.constant(order.min() + excess);
                    guard.require_at_most(min, limit);
                }
                rounds_between(guard, limit, counter, excess, amount)
            }
        })
    }

    /// Writes the distance that a counter goes whose step is no constant.
    fn distance(&self, guard: &mut Guard<'_>, order: Order, counter: Value, limit: Value) -> Reach {
        let amount = guard.amount(self.step);
        let max = guard.constant(AMOUNT_MAX);
        guard.require_at_most(amount, max);
        let (counter, limit) = (order.extended(guard, counter), order.extended(guard, limit));
        // The first value that fails the test lies before this end.
        let mut end = guard.binary(Op::I64Add, limit, amount);
        if !order.or_equal {
            let one = guard.constant(1);
            end = guard.binary(Op::I64Sub, end, one);
        }
        let max = guard.constant(order.max());
        guard.require_at_most(end, max);
        let distance = guard.binary(Op::I64Sub, end, counter);
        guard.require_not_negative(distance);
        Reach::Distance(distance, amount)
    }
}

impl Order {
    fn extended(self, guard: &mut Guard<'_>, value: Value) -> Value {
        guard.extend(value, self.is_signed)
    }

    /// The distance by which the first value that fails the test can lie beyond the limit.
    fn excess(self, amount: u32) -> i64 {
        i64::from(amount) - 1 + i64::from(self.or_equal)
    }

    fn max(self) -> i64 {
        if self.is_signed { i32::MAX.into() } else { u32::MAX.into() }
    }

    fn min(self) -> i64 {
        if self.is_signed { i32::MIN.into() } else { 0 }
    }
}

/// The comparison that a condition makes: the relation, and its sides. A condition that compares nothing is compared
/// with 0.
fn compared(
    f: &Function,
    values: &Values,
    mut condition: Value,
) -> (Relation, Value, Option<Value>) {
    let mut is_negated = false;
    for _ in 0..NEGATIONS_MAX {
        let Some((Op::I32Eqz, inst)) = values.op(f, condition) else { break };
        condition = f.operands(inst)[0];
        is_negated = !is_negated;
    }
    let comparison = values.op(f, condition).and_then(|(op, inst)| Some((Relation::of(op)?, inst)));
    let (relation, a, b) = match comparison {
        Some((relation, inst)) => {
            let operands = f.operands(inst);
            (relation, operands[0], Some(operands[1]))
        }
        None => (Relation::NotEqual, condition, None),
    };
    (if is_negated { relation.negated() } else { relation }, a, b)
}

/// The number of rounds in which a value from `low` on, or from `high` down, is not beyond the other.
fn rounds_between(
    guard: &mut Guard<'_>,
    low: Value,
    high: Value,
    excess: i64,
    amount: u32,
) -> Value {
    let mut distance = guard.binary(Op::I64Sub, high, low);
    if excess > 0 {
        let excess = guard.constant(excess);
        distance = guard.binary(Op::I64Add, distance, excess);
    }
    quotient(guard, distance, amount)
}

/// The quotient of a distance and an amount. Of a distance that is negative, or larger than 2^31, it is something that
/// the guard refuses.
fn quotient(guard: &mut Guard<'_>, distance: Value, amount: u32) -> Value {
    if amount == 1 {
        return distance;
    }
    if amount.is_power_of_two() {
        // A negative distance becomes a large one.
        let shift = guard.constant(amount.trailing_zeros().into());
        return guard.binary(Op::I64ShrU, distance, shift);
    }
    // By a rounded reciprocal: `distance * remainder < 2^31`, so the quotient of a multiple is exact, and of others it is
    // too large by one at most.
    const ONE: u64 = 1 << 31;
    guard.require_not_negative(distance);
    let max = guard.constant(ONE as i64);
    guard.require_at_most(distance, max);
    let reciprocal = guard.constant(ONE.div_ceil(amount.into()) as i64);
    let product = guard.binary(Op::I64Mul, distance, reciprocal);
    let shift = guard.constant(ONE.trailing_zeros().into());
    guard.binary(Op::I64ShrU, product, shift)
}
