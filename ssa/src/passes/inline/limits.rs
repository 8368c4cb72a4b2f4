//! What may be inlined, by sizes.

/// Limits of inlining in one function. Sizes count the instructions of slot form, except those that promotion
/// and code generation take no code for: accesses of slots, constants, and branches that always go one way.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum size of all bodies together.
    pub added_max: u32,
    /// The maximum number of bytecode instructions of all functions that are looked at together.
    pub looked_at_max: u32,
    /// The maximum size of a body that is called in a loop.
    pub in_loop_max: u32,
    /// The maximum size of a body that is called elsewhere.
    pub elsewhere_max: u32,
}

impl Limits {
    /// The maximum number of bytecode instructions, of locals, and of operands of calls and branches of a function that
    /// may be inlined.
    pub const CALLEE_COST_MAX: u32 = 200;
    /// Bytecode instructions for each that counts, at most, of a function that is looked at.
    pub const COST_PER_SIZE: u32 = 5;
    /// The maximum size of a body that is a function around the call again.
    pub const RECURSIVE_MAX: u32 = 30;
    /// The maximum size of a body that has a loop, and is called in one or by a small function without any. In larger
    /// ones a call takes little time beside the loop, and the values of the caller that live across it would take
    /// registers from it.
    pub const WITH_LOOP_MAX: u32 = 12;
    /// The maximum size of such a small function: one that skips spaces, and then looks at a character.
    pub const AROUND_LOOP_MAX: u32 = 30;
    /// The maximum number of calls around a body that are inlined.
    pub const NESTED_CALLS_MAX: u32 = 8;
    /// The maximum number of times that a function is inlined into itself, one body in the other.
    pub const RECURSION_MAX: u32 = 1;
    /// The maximum number of parameters and results of a function that may be inlined.
    pub const SIGNATURE_VALUES_MAX: usize = 32;
    /// The size that all functions of a module together may grow by beyond their own, in equal parts.
    const MODULE_ADDED: u32 = 4_000;
    /// The part of [`Limits::MODULE_ADDED`] that one function gets, at least and at most.
    const ADDED_PARTS: (u32, u32) = (8, 400);
    /// [`Limits::in_loop_max`] and [`Limits::elsewhere_max`] of large and of small modules. Between them they are a
    /// part of that part.
    const IN_LOOP: (u32, u32) = (40, 60);
    const ELSEWHERE: (u32, u32) = (8, 12);
    /// The part of its own size that a function may grow by beyond that.
    const OWN_PART: u32 = 4;

    /// The maximum cost of a function that may be inlined.
    pub(super) fn callee_cost_max(has_loop: bool) -> u32 {
        match has_loop {
            true => Self::WITH_LOOP_MAX * Self::COST_PER_SIZE,
            false => Self::CALLEE_COST_MAX,
        }
    }

    /// The maximum number of instructions of a leaf, which may be as large as a body that is called outside loops.
    pub(super) const fn leaf_cost_max() -> usize {
        (Self::ELSEWHERE.1 * Self::COST_PER_SIZE) as usize
    }

    /// The limits for a function of this size in a module with so many functions.
    pub(super) fn of(size: u32, n_funcs: u32) -> Limits {
        let (least, most) = Self::ADDED_PARTS;
        let part = (Self::MODULE_ADDED / n_funcs.max(1)).clamp(least, most);
        let added_max = size / Self::OWN_PART + part;
        Limits {
            added_max,
            looked_at_max: added_max.saturating_mul(4) + Self::CALLEE_COST_MAX,
            in_loop_max: (part / 2).clamp(Self::IN_LOOP.0, Self::IN_LOOP.1),
            elsewhere_max: (part / 10).clamp(Self::ELSEWHERE.0, Self::ELSEWHERE.1),
        }
    }
}
