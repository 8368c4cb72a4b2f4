//! The plan for guest and host, in terms of object numbers, and a model of its effects.

use std::collections::VecDeque;

/// The number of an object, or null.
pub(super) type Obj = Option<u64>;

/// The message of the panic that is planned.
pub(super) const PLANNED: &str = "planned panic";
/// A part of the message of a handle that has ended.
pub(super) const ENDED: &str = "a handle is not used after the call or scope that it was made in";
/// The message of a handle of another store.
pub(super) const FOREIGN: &str = "object used with the wrong store";

/// The elements of the table.
pub(super) const ELEMENTS: usize = 4;
/// The rounds of the function with a loop.
pub(super) const ROUNDS: usize = 5;
/// The depth of the recursive function.
pub(super) const DEPTH: usize = 4;
/// Calls of host functions in each other, beyond which they no longer call the guest.
pub(super) const ACTIVE_MAX: usize = 4;

/// An act of the host when the guest calls it with two references.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Returns the first one.
    First,
    /// Returns the second one.
    Second,
    Null,
    /// Returns a new object.
    Fresh,
    /// Moves everything, and returns the first one.
    Collect,
    /// Opens a scope with handles, moves everything, and returns the second one.
    Scope,
    /// A visitor panics halfway; then moves everything, and returns the first one.
    VisitorPanics,
    /// Exchanges the global and an element, by handles, and returns the first one.
    Exchange,
    Fail,
    Panic,
    /// Calls the guest with both exchanged, and ends as it does.
    Reenter,
    /// Calls the guest with both exchanged, however it ends. Then moves everything, and returns the first one.
    Survive,
    /// Keeps the handle of the first one, and returns the second one.
    Keep,
    /// Returns the handle that was kept.
    Kept,
    /// Returns a handle of another store.
    Foreign,
}

impl Act {
    pub(super) const ALL: &[Act] = &[
        Act::First,
        Act::Second,
        Act::Null,
        Act::Fresh,
        Act::Fresh,
        Act::Collect,
        Act::Collect,
        Act::Scope,
        Act::VisitorPanics,
        Act::Exchange,
        Act::Fail,
        Act::Panic,
        Act::Reenter,
        Act::Survive,
        Act::Survive,
        Act::Keep,
        Act::Kept,
        Act::Foreign,
    ];
}

/// The end of a call that does not return.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// By an error of the host.
    Fail,
    Trap,
    /// By the planned panic.
    Planned,
    /// By the panic of a handle that has ended.
    Ended,
    /// By the panic of a handle of another store.
    Foreign,
    /// By a panic that nobody planned.
    Unknown,
}

impl End {
    /// The end by a panic with a message.
    pub(super) fn of_panic(message: &str) -> End {
        let ends = [(PLANNED, End::Planned), (ENDED, End::Ended), (FOREIGN, End::Foreign)];
        let known = ends.into_iter().find(|(part, _)| message.contains(part));
        known.map_or(End::Unknown, |(_, end)| end)
    }
}

/// A function of the guest that takes two references.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Guest {
    Pass,
    Loop,
    Deep,
    Both,
    Tail,
    Rare,
    Trap,
}

impl Guest {
    pub(super) const ALL: &[Guest] = &[
        Guest::Pass,
        Guest::Loop,
        Guest::Deep,
        Guest::Both,
        Guest::Tail,
        Guest::Rare,
        Guest::Trap,
    ];

    /// The name of its export.
    pub(super) fn name(self) -> &'static str {
        match self {
            Guest::Pass => "pass",
            Guest::Loop => "loop",
            Guest::Deep => "deep",
            Guest::Both => "both",
            Guest::Tail => "tail",
            Guest::Rare => "rare",
            Guest::Trap => "trap",
        }
    }

    pub(super) fn n_results(self) -> usize {
        if self == Guest::Both { 3 } else { 1 }
    }
}

/// The model of a store.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) global: Obj,
    pub(super) table: [Obj; ELEMENTS],
    /// The references with which the host was called.
    pub(super) log: Vec<(Obj, Obj)>,
    n_objects: u64,
    plan: VecDeque<Act>,
    /// The calls of the host that are active, by their numbers.
    active: Vec<u64>,
    n_calls: u64,
    /// The object whose handle was kept, and in which call.
    kept: Option<(u64, u64)>,
}

impl Model {
    /// The number of a new object.
    pub(super) fn fresh(&mut self) -> u64 {
        self.n_objects += 1;
        self.n_objects
    }

    pub(super) fn plan(&mut self, plan: &[Act]) {
        self.plan = plan.iter().copied().collect();
    }

    /// Whatever the host was doing has ended.
    pub(super) fn end_all(&mut self) {
        self.active.clear();
    }

    /// Calls a function of the guest.
    pub(super) fn call(&mut self, guest: Guest, a: Obj, b: Obj) -> Result<Vec<Obj>, End> {
        match guest {
            Guest::Pass => {
                let c = self.act(a, b)?;
                self.global = a;
                self.table[1] = b;
                Ok(vec![c])
            }
            Guest::Loop => {
                let (mut a, mut b) = (a, b);
                for _ in 0..ROUNDS {
                    (a, b) = (self.act(a, b)?, a);
                }
                self.table[2] = b;
                Ok(vec![a])
            }
            Guest::Deep => Ok(vec![self.deep(a, b, DEPTH)?]),
            Guest::Both => {
                let c = self.act(b, a)?;
                let d = self.act(c, self.global)?;
                Ok(vec![b, d, a])
            }
            Guest::Tail => Ok(vec![self.act(b, a)?]),
            Guest::Rare => {
                let mut last = None;
                for i in 0..ROUNDS {
                    if i == 2 {
                        last = self.act(a, b)?;
                    }
                }
                self.table[3] = a;
                self.global = b;
                Ok(vec![last])
            }
            Guest::Trap => {
                self.table[0] = self.act(a, b)?;
                Err(End::Trap)
            }
        }
    }

    /// Each depth keeps its own references while the ones below it call the host.
    fn deep(&mut self, a: Obj, b: Obj, depth: usize) -> Result<Obj, End> {
        let c = self.act(a, b)?;
        if depth > 0 {
            self.table[3] = self.deep(b, c, depth - 1)?;
        }
        self.global = c;
        Ok(a)
    }

    fn act(&mut self, a: Obj, b: Obj) -> Result<Obj, End> {
        self.log.push((a, b));
        self.n_calls += 1;
        let call = self.n_calls;
        let n_active = self.active.len();
        self.active.push(call);
        let ended = self.does(call, a, b);
        self.active.truncate(n_active);
        ended
    }

    fn does(&mut self, call: u64, a: Obj, b: Obj) -> Result<Obj, End> {
        let may_call = self.active.len() <= ACTIVE_MAX;
        match self.plan.pop_front().unwrap_or(Act::First) {
            Act::First | Act::Collect | Act::VisitorPanics => Ok(a),
            Act::Second | Act::Scope => Ok(b),
            Act::Null => Ok(None),
            Act::Fresh => Ok(Some(self.fresh())),
            Act::Exchange => {
                std::mem::swap(&mut self.global, &mut self.table[0]);
                Ok(a)
            }
            Act::Fail => Err(End::Fail),
            Act::Panic => Err(End::Planned),
            Act::Reenter if may_call => Ok(self.call(Guest::Pass, b, a)?[0]),
            Act::Survive if may_call => {
                // What it returns, or how it ends, is left.
                drop(self.call(Guest::Pass, b, a));
                Ok(a)
            }
            Act::Reenter | Act::Survive => Ok(a),
            Act::Keep => {
                self.kept = a.map(|object| (object, call));
                Ok(b)
            }
            Act::Kept => match self.kept {
                None => Ok(a),
                Some((object, call)) if self.active.contains(&call) => Ok(Some(object)),
                Some(_) => Err(End::Ended),
            },
            Act::Foreign => Err(End::Foreign),
        }
    }
}
