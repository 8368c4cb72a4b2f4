//! Values of a loop and those that stand for them in a copy.

use crate::ir::Function;
use crate::ir::entity::{Block, Inst, Value};

/// Values that stand for others; all others stand for themselves.
#[derive(Debug)]
pub(super) struct ValueMap {
    /// Values beyond the end stand for themselves.
    by: Vec<Value>,
    /// The values that others stand for.
    mapped: Vec<Value>,
}

impl ValueMap {
    pub(super) fn new(f: &Function) -> ValueMap {
        ValueMap { by: (0..f.n_values()).map(Value::new).collect(), mapped: Vec::new() }
    }

    pub(super) fn get(&self, value: Value) -> Value {
        self.by.get(value.index()).copied().unwrap_or(value)
    }

    pub(super) fn map(&mut self, value: Value, by: Value) {
        self.by[value.index()] = by;
        self.mapped.push(value);
    }

    /// Maps a value to its copy, which gets its name.
    pub(super) fn copy_value(&mut self, f: &mut Function, value: Value, copy: Value) {
        if let Some(names) = &mut f.names {
            names.pass_on(value, copy);
        }
        self.map(value, copy);
    }

    /// Lets all values stand for themselves again.
    pub(super) fn clear(&mut self) {
        self.mapped.drain(..).for_each(|value| self.by[value.index()] = value);
    }

    /// Copies an instruction. Its operands are mapped, and its results are from now on.
    pub(super) fn copy(&mut self, f: &mut Function, inst: Inst) -> Inst {
        let operands: Vec<Value> = f.operands(inst).iter().map(|&value| self.get(value)).collect();
        let copy = f.make_copy(inst, &operands);
        for (result, copied) in f.results(inst).zip(f.results(copy)) {
            self.copy_value(f, result, copied);
        }
        copy
    }

    /// Makes parameters like those of a block, to which these are mapped.
    pub(super) fn copy_params(&mut self, f: &mut Function, block: Block) -> Vec<Value> {
        let params = f.params(block).to_vec();
        let copy = |param: Value| {
            let copied = f.make_value(f.value_type(param));
            self.copy_value(f, param, copied);
            copied
        };
        params.into_iter().map(copy).collect()
    }
}
