//! The passes that functions go through.

use std::sync::Arc;

use slotvm_ssa::pipeline::PassSet;

/// A set of passes for each function.
#[derive(Clone, Debug, Default)]
#[cfg_attr(not(feature = "jit"), allow(dead_code, reason = "interpreters run no passes"))]
pub(crate) struct Passes {
    /// The passes of functions that have no set of their own.
    pub(crate) usual: PassSet,
    /// Sets of the first functions, by their numbers in the function index space.
    pub(crate) by_function: Arc<[PassSet]>,
}

#[cfg_attr(not(feature = "jit"), allow(dead_code, reason = "interpreters run no passes"))]
impl Passes {
    /// The passes of a function.
    pub(crate) fn of(&self, func: u32) -> PassSet {
        self.by_function.get(func as usize).copied().unwrap_or(self.usual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_beyond_the_list_have_the_usual_passes() {
        let by_function = [PassSet::none(), PassSet::all()].into();
        let passes = Passes { usual: PassSet::none(), by_function };
        let sets = [0, 1, 2, u32::MAX].map(|func| passes.of(func));
        assert_eq!(sets, [PassSet::none(), PassSet::all(), PassSet::none(), PassSet::none()]);
    }
}
