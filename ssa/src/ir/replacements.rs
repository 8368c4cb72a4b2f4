//! Values that other values stand for, as a forest with path halving (Tarjan and van Leeuwen, *Worst-case Analysis of Set
//! Union Algorithms*, 1984).

use crate::ir::entity::Value;

/// The replacement of each value. Values that were never replaced stand for themselves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Replacements {
    /// Values beyond the end stand for themselves.
    by: Vec<Value>,
}

impl Replacements {
    /// Whether no value was replaced.
    pub(crate) fn is_empty(&self) -> bool {
        self.by.is_empty()
    }

    /// Returns the final replacement of a value, or itself.
    pub(crate) fn resolve(&mut self, mut value: Value) -> Value {
        loop {
            let next = self.next(value);
            if next == value {
                return value;
            }
            let after = self.next(next);
            self.by[value.index()] = after;
            value = after;
        }
    }

    fn next(&self, value: Value) -> Value {
        self.by.get(value.index()).copied().unwrap_or(value)
    }

    /// Replaces a value that stands for itself, in a function that has `n_values` values so far.
    pub(crate) fn replace(&mut self, value: Value, by: Value, n_values: usize) {
        debug_assert_eq!(self.next(value), value, "{value} was replaced before");
        if self.by.is_empty() {
            self.by.reserve(n_values);
        }
        self.by.extend((self.by.len()..n_values).map(Value::new));
        self.by[value.index()] = self.resolve(by);
    }
}
