//! The passes that a function goes through.

use std::sync::Arc;

use slotvm_ssa::pipeline::PassSet;

use crate::config::passes::Passes;

impl Passes {
    /// The passes of a function.
    pub(crate) fn of(&self, func: u32) -> PassSet {
        self.by_function.get(func as usize).copied().unwrap_or(self.usual)
    }

    /// Switches a pass on or off, for all functions.
    ///
    /// # Panics
    /// Panics if there is no optional pass with the name.
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
