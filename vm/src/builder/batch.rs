//! Functions that are made without a [`FunctionBuilder`](super::FunctionBuilder), some on other threads.

use super::{BuildError, BuildRule, FuncId, ModuleBuilder};
use crate::module::Func;
use crate::stacks::Stacks;

/// Some of the functions of a module, in their order.
#[derive(Debug, Default)]
pub(crate) struct FuncBatch {
    /// The operand stacks of labels.
    stacks: Stacks,
    funcs: Vec<Func>,
}

impl FuncBatch {
    /// Adds a function. The shapes of its labels are numbers of `stacks`.
    pub(crate) fn add(&mut self, mut func: Func, stacks: &Stacks) {
        self.stacks.take_labels(&mut func.labels, stacks);
        self.funcs.push(func);
    }

    /// Number of distinct operand stacks of all labels, including the stacks below them.
    pub(crate) fn n_label_stacks(&self) -> usize {
        self.stacks.len()
    }
}

impl ModuleBuilder {
    /// Defines declared functions, from that with number `first` among them on.
    pub(crate) fn define_all(&mut self, first: usize, part: FuncBatch) {
        for (i, mut func) in (first..).zip(part.funcs) {
            self.stacks.take_labels(&mut func.labels, &part.stacks);
            self.module.funcs[i] = func;
            self.defined[i] = true;
        }
    }

    /// Number of distinct operand stacks of all labels, including the stacks below them.
    pub(crate) fn n_label_stacks(&self) -> usize {
        self.stacks.len()
    }

    /// Leaves all declared functions without code, which they get later.
    pub(crate) fn define_later(&mut self) {
        self.defined.fill(true);
    }

    /// An error that concerns a function.
    pub(crate) fn error_in(&self, func: FuncId, rule: BuildRule) -> BuildError {
        let name = self.module.names.func(func.0).map(str::to_owned);
        BuildError::in_func(func, name, rule)
    }
}
