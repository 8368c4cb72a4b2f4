//! The engine: a configuration and what is compiled once for all modules.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use slotvm_runtime::{Error, Interruption};

use crate::compile::stats::CompileStats;
use crate::config::slot_mode::SlotMode;
use crate::config::{Config, Tier};
use crate::native::ownership::engine::NativeEngine;

/// The target triple of the machine that native code is made for.
pub fn host_target() -> String {
    target_lexicon::Triple::host().to_string()
}

/// The version of slotvm.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Compiles modules by one configuration. Cloning it is cheap and returns the same engine.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    config: Config,
    /// The interruption of the stores.
    interruption: Option<Interruption>,
    native: Option<Arc<NativeEngine>>,
}

impl Engine {
    /// An engine with a configuration.
    ///
    /// # Errors
    /// Fails if the configuration asks for native code and the build lacks the feature `jit` or the machine is not
    /// supported, or if the files of a profiler cannot be created.
    pub fn new(config: &Config) -> Result<Engine, Error> {
        Ok(Engine(Arc::new(Inner {
            config: config.clone(),
            interruption: config.polls().then(|| interruption(config)),
            native: match config.tier {
                Tier::Auto | Tier::Jit => Some(Arc::new(NativeEngine::new(config)?)),
                Tier::Interpreter => None,
            },
        })))
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// The engine that runs guest code.
    pub fn tier(&self) -> Tier {
        self.config().tier
    }

    /// The place of the slots of functions in native code.
    pub fn slots(&self) -> SlotMode {
        self.config().slots
    }

    /// The features of the machine that the code generator knows, by its names (`has_avx`), and whether the machine has
    /// them, so that native code uses them. Empty if the engine interprets.
    pub fn machine_features(&self) -> Vec<(&'static str, bool)> {
        self.native().map_or(Vec::new(), |native| native.machine_features())
    }

    /// Returns the sums of [`Module::compile_stats`](crate::Module::compile_stats) over all modules of the engine, those
    /// that were dropped or failed to be made included. Once all modules and stores are dropped, the sums are final, since
    /// dropping them waits for the threads that compile.
    pub fn compile_stats(&self) -> CompileStats {
        self.native().map_or_else(CompileStats::default, |native| native.compile_stats())
    }

    /// Whether this is the same engine.
    pub fn same(&self, other: &Engine) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Lets a tick of the epoch pass, in which stores count their
    /// [deadlines](crate::Store::set_epoch_deadline). This may be called on any thread and in a signal
    /// handler. Has no effect without [`Config::epoch_interruption`] or [`Config::timeout`].
    pub fn increment_epoch(&self) {
        if let Some(interruption) = &self.0.interruption {
            interruption.epoch.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The interruption of a new store, if there is one.
    pub(crate) fn interruption(&self) -> Option<&Interruption> {
        self.0.interruption.as_ref()
    }

    /// The state of native code, if the engine makes any.
    pub(crate) fn native(&self) -> Option<&Arc<NativeEngine>> {
        self.0.native.as_ref()
    }
}

fn interruption(config: &Config) -> Interruption {
    Interruption {
        epoch: Arc::default(),
        // Without epochs the deadline never comes.
        epoch_deadline: if config.epoch_interruption { 0 } else { u64::MAX },
        ticker: Arc::default(),
        timeout: config.timeout,
    }
}

impl Default for Engine {
    /// An engine with the default configuration.
    ///
    /// # Panics
    /// Panics if the machine is not supported.
    fn default() -> Engine {
        Engine::new(&Config::default()).expect("the machine is supported")
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("config", &self.0.config).finish_non_exhaustive()
    }
}
