//! The budget of compile work that a module owns, with what was drawn from it.
//!
//! Functions have their shares ([`Budget`]), and leave each other's alone. Code that is made of all functions
//! a second time, with checks of memory accesses, shares what the first has left. In tiers a function is compiled from
//! its start and from some of its loops, as the program needs it. Its start has its own share, as if all functions were
//! compiled, and its loops have as much again, so that a function that is hot late is not refused for what was before. Each
//! newer version of the code may take as much as the first, and takes nothing from that: else a loop that is left often would
//! have others refused that nobody has compiled yet.
//!
//! Everything else that is compiled for a module draws on one account: what the bytes of its types and imports
//! add to the budget, and an eighth of what its functions have. Costs are estimated from counts, so whether
//! something is refused depends on what was asked for before, and on no clock.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use slotvm_bytecode::VerifiedModule;
use slotvm_bytecode::module::Import;

use super::shares::{Budget, Share, time};

/// See the module documentation.
pub(crate) struct ModuleBudget {
    functions: Budget,
    /// Points of time that functions were estimated to take which are compiled.
    functions_drawn: AtomicU64,
    /// Points of time that each version of the code of each function was estimated to take in tiers, from its start and from
    /// its loops, by the functions' numbers among those that the module defines.
    drawn_by: OnceLock<Box<[[Drawn; 2]]>>,
    /// Points of time for what is no function.
    time: u64,
    /// Those that are drawn.
    drawn: AtomicU64,
}

/// Points of time, by the number of versions before.
type Drawn = [AtomicU64; 1 + NEWER_VERSIONS_MAX as usize];

/// The versions of the code of a part of a module that are made after the first, at most.
pub(crate) const NEWER_VERSIONS_MAX: u32 = 2;

/// The part of the budget of functions that is there for other things besides: to their 40 ms for each KB it adds 5.
const OTHER_PART: u64 = 8;
/// The minimum for any module: trampolines of several of the widest types, or of hundreds of small ones.
const NS_MIN: u64 = 120_000_000;

/// A module wants more compiled than it may.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "calls between the host and the module would take more work to compile than a module of its size may \
     (compile work): {wanted} points more, of {max} of which {drawn} are drawn"
)]
pub(crate) struct Overdrawn {
    wanted: u64,
    max: u64,
    drawn: u64,
}

impl ModuleBudget {
    /// Returns the budget for a module's size.
    pub(crate) fn new(module: &VerifiedModule) -> ModuleBudget {
        let functions = Budget::new(module);
        let of_all = time(functions.module_bytes + import_bytes(module));
        let time = of_all - functions.time + (functions.time / OTHER_PART).max(NS_MIN);
        let (functions_drawn, drawn) = (AtomicU64::new(0), AtomicU64::new(0));
        ModuleBudget { functions, functions_drawn, drawn_by: OnceLock::new(), time, drawn }
    }

    /// The budget that the functions of new code share: all of it, or the rest that other code of the module has
    /// left.
    pub(crate) fn functions(&self) -> Budget {
        self.functions.less(self.functions_drawn.load(Ordering::Relaxed))
    }

    /// Counts the points of a function that is compiled, which has stayed below its share.
    pub(crate) fn draw_function(&self, time: u64) {
        self.functions_drawn.fetch_add(time, Ordering::Relaxed);
    }

    /// The rest of a function's share in tiers for code before which there were some versions, at most
    /// [`NEWER_VERSIONS_MAX`]: of that for its start, or of that for its loops.
    pub(crate) fn rest_of(
        &self,
        module: &VerifiedModule,
        func: u32,
        is_loop: bool,
        version: u32,
    ) -> Share {
        let drawn = self.drawn_by(module, func, is_loop, version).load(Ordering::Relaxed);
        self.functions.share(module, func).less(drawn)
    }

    /// Counts the points of code of a function in tiers.
    pub(crate) fn draw_of(
        &self,
        module: &VerifiedModule,
        func: u32,
        is_loop: bool,
        version: u32,
        time: u64,
    ) {
        self.drawn_by(module, func, is_loop, version).fetch_add(time, Ordering::Relaxed);
    }

    fn drawn_by(
        &self,
        module: &VerifiedModule,
        func: u32,
        is_loop: bool,
        version: u32,
    ) -> &AtomicU64 {
        let n_funcs = module.module().funcs.len();
        let none = || std::iter::repeat_with(Default::default).take(n_funcs).collect();
        let index = (func - module.n_imported_funcs()) as usize;
        &self.drawn_by.get_or_init(none)[index][usize::from(is_loop)][version as usize]
    }

    /// Takes points of time.
    ///
    /// # Errors
    /// Fails if there are less; then none are taken.
    pub(crate) fn draw(&self, wanted: u64) -> Result<(), Overdrawn> {
        let enough = |drawn: u64| drawn.checked_add(wanted).filter(|&sum| sum <= self.time);
        // Nothing else depends on the order in which threads draw.
        let drawn = self.drawn.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enough);
        drawn.map(|_| ()).map_err(|drawn| Overdrawn { wanted, max: self.time, drawn })
    }
}

/// The bytes that types and imports take in a binary module, at least.
fn import_bytes(module: &VerifiedModule) -> u64 {
    let module = module.module();
    let types = module.types.iter().map(|ty| 3 + ty.params.len() + ty.results.len());
    let import = |import: &Import| 4 + import.module.len() + import.name.len();
    let bytes: usize = types.sum::<usize>() + module.imports.iter().map(import).sum::<usize>();
    bytes as u64
}

#[cfg(test)]
mod tests {
    use slotvm_bytecode::{text, verify};

    use super::*;

    fn module(source: &str) -> VerifiedModule {
        verify(text::parse(source).expect("it is text")).expect("it is well-typed")
    }

    #[test]
    fn an_account_is_never_overdrawn() {
        let budget = ModuleBudget::new(&module("func f() { return }"));
        let max = budget.time;
        assert!(max > 0);
        budget.draw(max - 10).unwrap();
        let error = budget.draw(11).unwrap_err();
        assert_eq!(error, Overdrawn { wanted: 11, max, drawn: max - 10 });
        budget.draw(10).unwrap();
        assert!(budget.draw(u64::MAX).is_err());
        assert!(budget.draw(0).is_ok());
    }

    #[test]
    fn imports_add_to_the_account() {
        let imports = |n: usize| {
            let import = |i| format!("import \"env\" \"f{i}\" func f{i}(i64) -> i64\n");
            ModuleBudget::new(&module(&(0..n).map(import).collect::<String>())).time
        };
        // Small modules count as larger than they are.
        assert_eq!(imports(0), imports(10));
        // Each has nine bytes or more, beyond the 4 KiB that any module counts as.
        assert!(imports(1_000) > imports(0) + 4_900 * 39_000);
    }

    #[test]
    fn code_that_is_made_again_shares_what_is_left() {
        let module = module("func f() { return } func g() { return }");
        let budget = ModuleBudget::new(&module);
        let share = |func| budget.functions().share(&module, func).time;
        let before = share(0);
        assert_eq!(before, share(1));
        budget.draw_function(before);
        assert_eq!((share(0), share(1)), (before / 2, before / 2));
        budget.draw_function(before * 2);
        assert_eq!(share(0), 0);
    }

    #[test]
    fn in_tiers_a_function_draws_on_its_own_shares() {
        let module = module("func f() { return } func g() { return }");
        let budget = ModuleBudget::new(&module);
        let rest = |func, is_loop| budget.rest_of(&module, func, is_loop, 0).time;
        let before = rest(0, false);
        budget.draw_of(&module, 0, true, 0, before - 1);
        assert_eq!((rest(0, true), rest(0, false), rest(1, true)), (1, before, before));
        budget.draw_of(&module, 0, true, 0, 2);
        budget.draw_of(&module, 0, false, 0, 1);
        assert_eq!((rest(0, true), rest(0, false), rest(1, true)), (0, before - 1, before));
    }

    #[test]
    fn newer_versions_of_a_loop_leave_the_shares_of_others_alone() {
        let module = module("func f() { return }");
        let budget = ModuleBudget::new(&module);
        let rest = |version| budget.rest_of(&module, 0, true, version).time;
        let before = rest(0);
        budget.draw_of(&module, 0, true, 0, 1);
        budget.draw_of(&module, 0, true, 1, before);
        assert_eq!((rest(0), rest(1), rest(NEWER_VERSIONS_MAX)), (before - 1, 0, before));
    }
}
