//! The passes that functions go through.

use std::sync::Arc;

use slotvm_ssa::pipeline::PassSet;

/// A set of passes for each function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Passes {
    /// The passes of functions that have no set of their own.
    pub(crate) usual: PassSet,
    /// Sets of the first functions, by their numbers in the function index space.
    pub(crate) by_function: Arc<[PassSet]>,
}

impl Passes {
    /// The passes of a function.
    #[cfg_attr(not(feature = "jit"), expect(dead_code, reason = "interpreters run no passes"))]
    pub(crate) fn of(&self, func: u32) -> PassSet {
        self.by_function.get(func as usize).copied().unwrap_or(self.usual)
    }

    /// Switches a pass on or off, for all functions.
    ///
    /// # Panics
    /// Panics if there is no optional pass with the name.
    #[cfg_attr(not(feature = "jit"), expect(dead_code, reason = "interpreters run no passes"))]
    pub(crate) fn switch(&mut self, name: &str, is_on: bool) {
        let switch = |passes: &mut PassSet| passes.switch(name, is_on).expect("it is a pass");
        switch(&mut self.usual);
        Arc::make_mut(&mut self.by_function).iter_mut().for_each(switch);
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
