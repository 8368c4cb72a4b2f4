//! Statistics of compilations: how many succeeded, and how many did not for which reason.
//!
//! All code of a module adds to the counters of the module, which add to those of its engine. Nothing is ordered by
//! them, so they are relaxed; after the threads that compile have ended they are exact.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::compile::failure::CompileFailure;

/// Counts of the compilations of a [module](crate::Module::compile_stats), or of all modules of an
/// [engine](crate::Engine::compile_stats). All are zero if the engine interprets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompileStats {
    compiled: u64,
    failures: [u64; CompileFailure::N],
    trampolines: [u64; CompileFailure::N],
    replaced: u64,
}

impl CompileStats {
    /// The functions, and the forms of functions that are entered in loops, that machine code was made of. A function
    /// counts each time: for its start, for its loops, and for [`Module::asm`](crate::Module::asm) and the like.
    pub fn compiled(&self) -> u64 {
        self.compiled
    }

    /// The compilations of functions and loops that failed for a reason.
    pub fn failures(&self, reason: CompileFailure) -> u64 {
        self.failures[reason as usize]
    }

    /// The trampolines between the host, the interpreter and native code that failed to be made for a reason.
    pub fn trampoline_failures(&self, reason: CompileFailure) -> u64 {
        self.trampolines[reason as usize]
    }

    /// Each reason with the number of compilations that failed for it, trampolines included. Reasons with zero are left
    /// out.
    pub fn all_failures(&self) -> impl Iterator<Item = (CompileFailure, u64)> + '_ {
        let sum = |&reason| (reason, self.failures(reason) + self.trampoline_failures(reason));
        CompileFailure::ALL.iter().map(sum).filter(|&(_, n)| n > 0)
    }

    /// The compilations that failed for a reason that is a [bug](CompileFailure::is_bug) of slotvm, trampolines included.
    pub fn bugs(&self) -> u64 {
        self.all_failures().filter(|(reason, _)| reason.is_bug()).map(|(_, n)| n).sum()
    }

    /// The files, chunks and pieces of [kept code](crate::Config::cache) that failed their check. What they had code of
    /// is compiled again.
    pub fn replaced(&self) -> u64 {
        self.replaced
    }
}

/// The counters behind [`CompileStats`].
#[derive(Debug, Default)]
pub(crate) struct Counts {
    compiled: AtomicU64,
    failures: [AtomicU64; CompileFailure::N],
    trampolines: [AtomicU64; CompileFailure::N],
    replaced: AtomicU64,
    /// The counters of the engine, if these are those of a module.
    engine: Option<Arc<Counts>>,
}

impl Counts {
    /// The counters of a module.
    pub(crate) fn of_module(engine: &Arc<Counts>) -> Arc<Counts> {
        Arc::new(Counts { engine: Some(engine.clone()), ..Counts::default() })
    }

    pub(crate) fn add_compiled(&self) {
        self.add(|counts| &counts.compiled);
    }

    pub(crate) fn add_failure(&self, reason: CompileFailure) {
        self.add(|counts| &counts.failures[reason as usize]);
    }

    pub(crate) fn add_trampoline_failure(&self, reason: CompileFailure) {
        self.add(|counts| &counts.trampolines[reason as usize]);
    }

    pub(crate) fn add_replaced(&self) {
        self.add(|counts| &counts.replaced);
    }

    fn add(&self, counter: impl Fn(&Counts) -> &AtomicU64) {
        counter(self).fetch_add(1, Ordering::Relaxed);
        if let Some(engine) = &self.engine {
            counter(engine).fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn read(&self) -> CompileStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CompileStats {
            compiled: read(&self.compiled),
            failures: self.failures.each_ref().map(read),
            trampolines: self.trampolines.each_ref().map(read),
            replaced: read(&self.replaced),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_has_the_sums_of_its_modules() {
        let engine = Arc::new(Counts::default());
        let (a, b) = (Counts::of_module(&engine), Counts::of_module(&engine));
        a.add_compiled();
        a.add_failure(CompileFailure::Budget);
        b.add_failure(CompileFailure::Panic);
        b.add_trampoline_failure(CompileFailure::Budget);
        b.add_replaced();
        let stats = a.read();
        assert_eq!((stats.compiled(), stats.bugs(), stats.replaced()), (1, 0, 0));
        assert!(stats.all_failures().eq([(CompileFailure::Budget, 1)]));
        drop((a, b));
        let stats = engine.read();
        assert_eq!((stats.compiled(), stats.bugs(), stats.replaced()), (1, 1, 1));
        assert_eq!(stats.failures(CompileFailure::Budget), 1);
        assert_eq!(stats.trampoline_failures(CompileFailure::Budget), 1);
        let all = [(CompileFailure::Budget, 2), (CompileFailure::Panic, 1)];
        assert!(stats.all_failures().eq(all));
    }
}
