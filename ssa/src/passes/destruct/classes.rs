//! Congruence classes: sets of values of which no two are ever live at once, so that one slot can hold
//! them all. A phi and its operands should be in one class, since no copy is needed then.
//!
//! After Boissinot et al. (2009), section 4: classes are kept in dominance order, and a value joins
//! one if it does not interfere with the closest member that dominates it. If it interfered with a
//! member further up, that one would be live at the closer one's definition, too, and they would
//! interfere (Budimlić et al. 2002). There, pairs of classes are merged, which looks at all of their
//! members each time. Here all values are visited once, in dominance order, and join a class as they
//! come, so new members always come after the others, and a stack for each class has those that
//! dominate the current block. What a value tries:
//! 1. the classes of its phis and, if it is a phi, of its operands,
//! 2. if there are none yet, a few classes of its *web*: all values that phis connect, whether or not they
//!    interfere. It brings together the operands of a phi that comes later.
//!
//! So there are no more tries than phi operands and a constant for each value.
//!
//! Two values interfere if their live ranges do. Boissinot et al. also let equal values share a slot while
//! both are live, since their input has copies. This IR has no copy instruction, and constants are in no
//! class, so two values are equal only by chance.

use super::live::{Liveness, Point};
use crate::graphs::dominators::DomTree;
use crate::graphs::steps::step;
use crate::ir::Function;
use crate::ir::entity::Value;

/// The maximum number of classes of a web that a value tries.
const WEB_TRIES_MAX: usize = 4;

/// No class.
pub(super) const NO_CLASS: u32 = u32::MAX;

/// The classes of a function's values.
#[derive(Debug)]
pub(super) struct Classes {
    /// Class of each value; [`NO_CLASS`] for values that are in none.
    of_value: Vec<u32>,
    /// The members that dominate the current point, the closest on top.
    stacks: Vec<Vec<Value>>,
    /// The number of members.
    sizes: Vec<u32>,
}

impl Classes {
    /// Sorts values into classes. `values` has those that should be in one, in dominance order.
    pub(super) fn find(
        f: &Function,
        tree: &DomTree,
        defs: &[Option<Point>],
        live: &Liveness,
        values: &[Value],
    ) -> Classes {
        let affinities = Affinities::collect(f, defs);
        let mut webs = vec![Vec::new(); f.n_values()];
        let mut classes = Classes {
            of_value: vec![NO_CLASS; f.n_values()],
            stacks: Vec::new(),
            sizes: Vec::new(),
        };
        for &value in values {
            let web = &mut webs[affinities.webs[value.index()].index()];
            let near = affinities.of(value).iter().map(|near| classes.of_value[near.index()]);
            let mut tries: Vec<u32> = near.filter(|&class| class != NO_CLASS).collect();
            if tries.is_empty() {
                tries.extend_from_slice(web);
            }
            let mut tried = NO_CLASS;
            let class = tries.into_iter().find(|&class| {
                step();
                let is_new = class != std::mem::replace(&mut tried, class);
                is_new && classes.takes(class, value, tree, defs, live)
            });
            let class = class.unwrap_or_else(|| {
                classes.stacks.push(Vec::new());
                classes.sizes.push(0);
                let class = classes.sizes.len() as u32 - 1;
                if web.len() < WEB_TRIES_MAX {
                    web.push(class);
                }
                class
            });
            classes.of_value[value.index()] = class;
            classes.stacks[class as usize].push(value);
            classes.sizes[class as usize] += 1;
        }
        classes
    }

    /// Whether a class can take a value, which must interfere with none of its members.
    fn takes(
        &mut self,
        class: u32,
        value: Value,
        tree: &DomTree,
        defs: &[Option<Point>],
        live: &Liveness,
    ) -> bool {
        let point = defs[value.index()].expect("values in classes have definitions");
        let block = |value: Value| defs[value.index()].expect("members have definitions").0;
        let stack = &mut self.stacks[class as usize];
        while let Some(&top) = stack.last()
            && !tree.dominates(block(top).0, point.0.0)
        {
            step();
            stack.pop();
        }
        stack.last().is_none_or(|&top| !live.is_live_behind(top, point))
    }

    /// The number of classes.
    pub(super) fn len(&self) -> usize {
        self.sizes.len()
    }

    /// The class of a value.
    pub(super) fn of(&self, value: Value) -> Option<u32> {
        let class = self.of_value[value.index()];
        (class != NO_CLASS).then_some(class)
    }

    /// Whether a value has a class of its own.
    pub(super) fn is_alone(&self, value: Value) -> bool {
        self.of(value).is_none_or(|class| self.sizes[class as usize] == 1)
    }
}

/// The values that phis connect.
struct Affinities {
    starts: Vec<u32>,
    /// Operands of each phi, and phis of each operand.
    values: Vec<Value>,
    /// Representative of each value's web.
    webs: Vec<Value>,
}

impl Affinities {
    fn collect(f: &Function, defs: &[Option<Point>]) -> Affinities {
        let mut starts = vec![0; f.n_values() + 1];
        for_each_pair(f, defs, |a, b| {
            starts[a.index()] += 1;
            starts[b.index()] += 1;
        });
        let mut end = 0;
        for start in &mut starts {
            end += *start;
            *start = end;
        }
        let mut values = vec![Value::default(); end as usize];
        let mut webs: Vec<Value> = (0..f.n_values()).map(Value::new).collect();
        for_each_pair(f, defs, |a, b| {
            for (a, b) in [(a, b), (b, a)] {
                starts[a.index()] -= 1;
                values[starts[a.index()] as usize] = b;
            }
            let (a, b) = (root(&mut webs, a), root(&mut webs, b));
            webs[a.index().max(b.index())] = a.min(b);
        });
        for value in 0..webs.len() {
            root(&mut webs, Value::new(value));
            webs[value] = webs[webs[value].index()];
        }
        Affinities { starts, values, webs }
    }

    fn of(&self, value: Value) -> &[Value] {
        let start = self.starts[value.index()] as usize;
        &self.values[start..self.starts[value.index() + 1] as usize]
    }
}

/// Calls `on` with each phi and each of its operands, as far as both have definitions.
fn for_each_pair(f: &Function, defs: &[Option<Point>], mut on: impl FnMut(Value, Value)) {
    for block in f.blocks() {
        for &edge in f.pred_edges(block) {
            for (&arg, &param) in f.edge_args(edge).iter().zip(f.params(block)) {
                if defs[arg.index()].is_some() && defs[param.index()].is_some() && arg != param {
                    on(param, arg);
                }
            }
        }
    }
}

/// The value that stands for a set, by path halving.
fn root(parents: &mut [Value], mut value: Value) -> Value {
    while parents[value.index()] != value {
        step();
        parents[value.index()] = parents[parents[value.index()].index()];
        value = parents[value.index()];
    }
    value
}
