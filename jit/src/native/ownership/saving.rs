//! Writing the code of a module to a cache.
//!
//! An engine that makes all code of a module at once writes it at once. Others write what the program has needed: a thread
//! of the engine [a while](SAVE_AFTER) after more was made, and whoever drops the module what is new by then. Little more
//! than what is there is not worth a write, since a file is written whole.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, TryLockError};
use std::time::Duration;

use crate::config::Cache;
use crate::native::ownership::code_table::CodeTable;
use crate::native::ownership::file;
use crate::native::ownership::module_trampolines::ModuleTrampolines;
use crate::precompiled::Key;
use crate::precompiled::file::About;

/// The time between the first code that was not written and the write: long enough for the code that a program needs
/// together to come into one file.
const SAVE_AFTER: Duration = Duration::from_secs(2);
/// The part of the code that was written which more has to exceed to be written as well.
const MUCH: usize = 8;

/// The code of a module, and where it is kept.
pub(crate) struct Saving {
    code: Arc<CodeTable>,
    trampolines: Arc<ModuleTrampolines>,
    /// The place in a cache, if there is one.
    cached: OnceLock<Cached>,
}

/// The file of a module in a cache.
struct Cached {
    cache: Cache,
    name: String,
    about: About,
    /// The number of parts there. Whoever writes holds the lock, and nobody waits for it: the child of a fork may have
    /// inherited it from a thread that it has not.
    n_written: Mutex<usize>,
    /// Whether a thread is going to write.
    is_due: AtomicBool,
}

impl Saving {
    /// The code is kept nowhere yet.
    pub(crate) fn new(code: Arc<CodeTable>, trampolines: Arc<ModuleTrampolines>) -> Saving {
        Saving { code, trampolines, cached: OnceLock::new() }
    }

    /// Keeps code in the file of this name.
    pub(crate) fn keep_in(&self, cache: Cache, name: String, about: About) {
        let n_written = Mutex::new(file::n_kept(&self.code));
        let cached = Cached { cache, name, about, n_written, is_due: AtomicBool::new(false) };
        let first = self.cached.set(cached);
        assert!(first.is_ok(), "a module has one file");
    }

    /// The file with all code that there is, authenticated by a key.
    pub(crate) fn file(&self, key: &Key, about: &About, module: Option<&[u8]>) -> Vec<u8> {
        file::write(&self.code, &self.trampolines, key, about, module)
    }

    /// Writes all code that there is.
    pub(crate) fn save(&self) {
        self.save_if(|_, _| true);
    }

    /// Writes the code if there is much that was not written.
    fn save_much(&self) {
        self.save_if(|n, n_written| n > n_written + n_written / MUCH);
    }

    /// Writes the code if the numbers of parts that there are, and that were written, ask for it.
    fn save_if(&self, asks: impl Fn(usize, usize) -> bool) {
        let Some(Cached { cache, name, about, n_written, .. }) = self.cached.get() else { return };
        let mut n_written = match n_written.try_lock() {
            Ok(n_written) => n_written,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        let n = file::n_kept(&self.code) + file::n_made(&self.code);
        if asks(n, *n_written) {
            // A file that cannot be written is not tried again before there is more to write.
            cache.save(name, &self.file(cache.key(), about, None));
            *n_written = n;
        }
    }

    /// Lets a thread of the engine write the code, after more of it was made.
    pub(crate) fn save_later(self: &Arc<Saving>) {
        let Some(cached) = self.cached.get() else { return };
        if cached.is_due.swap(true, Ordering::Relaxed) {
            return;
        }
        let saving = Arc::downgrade(self);
        let work = move || {
            let Some(saving) = saving.upgrade() else { return };
            let cached = saving.cached.get().expect("it was there before");
            // What is made from now on is due again.
            cached.is_due.store(false, Ordering::Relaxed);
            saving.save_much();
        };
        if !self.code.native.workers.push_after(SAVE_AFTER, self.code.number(), work) {
            cached.is_due.store(false, Ordering::Relaxed);
        }
    }

    /// Writes the code for the last time, when no program uses it any more.
    pub(crate) fn save_last(&self) {
        if self.cached.get().is_some() {
            // Takes back the write that is due, or waits for one that has begun.
            self.code.native.workers.finish(self.code.number());
            self.save_much();
        }
    }
}
