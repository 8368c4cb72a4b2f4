//! Configuration of an engine.

#[cfg(feature = "jit")]
mod cache;
#[cfg_attr(not(feature = "jit"), allow(dead_code, reason = "interpreters count nothing"))]
pub(crate) mod counts;
pub(crate) mod executions;
#[cfg_attr(not(feature = "jit"), allow(dead_code, reason = "interpreters keep no code"))]
mod keeping;
#[cfg(not(feature = "jit"))]
mod no_cache;
#[cfg_attr(not(feature = "jit"), allow(dead_code, reason = "interpreters run no passes"))]
pub(crate) mod passes;
pub(crate) mod slot_mode;

use std::sync::Arc;
use std::time::Duration;

use slotvm_runtime::{Limits, MemoryPlan};
use slotvm_ssa::construction::braun::BraunOptions;
use slotvm_ssa::construction::promote::PromoteOptions;
use slotvm_ssa::pipeline::PassSet;

#[cfg(not(feature = "jit"))]
use self::no_cache as cache;
use crate::config::passes::Passes;
use crate::config::slot_mode::SlotMode;

pub use cache::Cache;
pub use keeping::CacheConfig;

use keeping::CodeKey;

/// The engine that runs guest code.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tier {
    /// The interpreter, which needs no executable memory.
    Interpreter,
    /// The interpreter at first, and native code of what a program does often: functions, and loops that go on in native
    /// code while they run. Results, traps with their places and frames, and fuel are the same in each tier. A function that
    /// cannot be compiled stays interpreted. Blocks that have never run are left out of native code, which goes back to the
    /// interpreter there, and is made again if it does so often; code of a module that has a place in a [`Cache`] or a file
    /// has all blocks. See [`Config::tier_thresholds`].
    Auto,
    /// Native code, compiled when a module is made. A build without the feature `jit` has none, and
    /// [`Engine::new`](crate::Engine::new) fails.
    Jit,
}

impl Tier {
    /// The tiers that this build has.
    pub const ALL: &'static [Tier] = &[
        Tier::Interpreter,
        #[cfg(feature = "jit")]
        Tier::Auto,
        #[cfg(feature = "jit")]
        Tier::Jit,
    ];

    /// The fastest tier that this build has.
    pub const BEST: Tier = Tier::ALL[Tier::ALL.len() - 1];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Tier::Interpreter => "interpreter",
            Tier::Auto => "auto",
            Tier::Jit => "jit",
        }
    }
}

impl Default for Tier {
    /// [`Tier::Auto`]; [`Tier::Interpreter`] in a build without the feature `jit`.
    fn default() -> Tier {
        match Tier::ALL {
            [first] => *first,
            [_, second, ..] => *second,
            [] => unreachable!("there is one at least"),
        }
    }
}

impl std::fmt::Display for Tier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// Time at which native code is compiled.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compile {
    /// Compiles all functions when the module is made, so that errors show at once.
    #[default]
    Eager,
    /// Compiles each function at its first call, so that a large program starts at once. First calls are slower, and
    /// so are later ones, which go through a table. Memory for code is taken page by page. Calls that wait for code
    /// can be interrupted like others, see [`Config::timeout`].
    Lazy,
}

/// Counts at which native code is made, see [`Config::tier_thresholds`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct TierThresholds {
    /// Calls of a function.
    pub calls: u32,
    /// Rounds of a loop.
    pub rounds: u32,
}

/// The threads that make native code of [`Tier::Auto`].
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum TierCompilation {
    /// In other threads of the engine, at most four, while the program goes on. They end when the engine is dropped.
    ///
    /// Of a small module (64 KiB of functions), the thread of the program compiles some parts itself, for 5 ms or a little more
    /// in all, and newer versions of them for 20 ms: programs take less processor time. It begins when the program has run for
    /// a quarter of a millisecond since the first part was hot, and goes on as long as that has run for a quarter of what it
    /// has waited. It does not with [`Config::tier_thresholds`], and not where it could be interrupted meanwhile.
    ///
    /// The child of a `fork` starts threads of its own. It must not run modules that the parent was running meanwhile: what
    /// a thread of the parent had begun never ends there, and a call may wait for it.
    #[default]
    Background,
    /// The thread of the program, which waits, when a threshold is reached.
    Synchronous,
}

/// Options of SSA construction from bytecode in one step, see [`Config::on_the_fly`].
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct OnTheFly {
    /// The way to find phis.
    pub braun: BraunOptions,
    /// Whether numeric operations on constants become constants, unless they trap, and phis of equal
    /// constants as well.
    pub fold: bool,
    /// Whether an operation that gives one of its operands as it is, like the addition of zero or a
    /// `select` of two equal values, becomes this operand.
    pub copies: bool,
}

/// The way profilers learn the names of native functions.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProfilingStrategy {
    /// No profiler support.
    #[default]
    None,
    /// Writes a line for each function to `/tmp/perf-PID.map`, which `perf report` reads by itself.
    PerfMap,
    /// Writes a record with the code of each function to `jit-PID.dump` in the current directory, for `perf record -k
    /// mono` and `perf inject --jit`. `perf annotate` then shows the code.
    JitDump,
}

/// Configuration of an [`Engine`](crate::Engine).
///
/// The methods that set something return the configuration, to be chained.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) tier: Tier,
    pub(crate) slots: SlotMode,
    pub(crate) promotion: PromoteOptions,
    pub(crate) on_the_fly: Option<OnTheFly>,
    pub(crate) passes: Passes,
    pub(crate) compile: Compile,
    pub(crate) tier_thresholds: Option<TierThresholds>,
    pub(crate) tier_compilation: TierCompilation,
    pub(crate) tier_seed: Option<u64>,
    /// The seed of random exits, and whether code that is left often is made again.
    pub(crate) tier_exits: Option<(u64, bool)>,
    pub(crate) consume_fuel: bool,
    pub(crate) epoch_interruption: bool,
    pub(crate) timeout: Option<Duration>,
    pub(crate) stack_cells_max: Option<u64>,
    pub(crate) canonical_nans: bool,
    pub(crate) native_stack_bytes_max: usize,
    pub(crate) memory: Option<MemoryPlan>,
    pub(crate) signals_based_traps: bool,
    pub(crate) limits: Limits,
    pub(crate) verify_passes: bool,
    pub(crate) profiler: ProfilingStrategy,
    pub(crate) debug_info: bool,
    pub(crate) parallel_compilation: bool,
    pub(crate) code_offset_bytes: usize,
    pub(crate) count_blocks: bool,
    pub(crate) cache: Option<Cache>,
    pub(crate) code_key: Option<CodeKey>,
    pub(crate) contain_faults: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            tier: Tier::default(),
            slots: SlotMode::default(),
            promotion: PromoteOptions::default(),
            on_the_fly: None,
            passes: Passes::default(),
            compile: Compile::Eager,
            tier_thresholds: None,
            tier_compilation: TierCompilation::default(),
            tier_seed: None,
            tier_exits: None,
            consume_fuel: false,
            epoch_interruption: false,
            timeout: None,
            stack_cells_max: None,
            canonical_nans: false,
            native_stack_bytes_max: 512 << 10,
            memory: None,
            signals_based_traps: true,
            limits: Limits::default(),
            verify_passes: cfg!(debug_assertions),
            profiler: ProfilingStrategy::None,
            debug_info: false,
            parallel_compilation: false,
            code_offset_bytes: 0,
            count_blocks: false,
            cache: None,
            code_key: None,
            contain_faults: !cfg!(debug_assertions),
        }
    }
}

impl Config {
    /// The default: all tiers of the build, no fuel, nothing deterministic beyond the semantics.
    pub fn new() -> Config {
        Config::default()
    }

    /// Sets the engine that runs guest code, [`Tier::Auto`] by default.
    pub fn tier(&mut self, tier: Tier) -> &mut Config {
        self.tier = tier;
        self
    }

    /// Sets where native code keeps the slots of functions, in each tier that makes some. The interpreter ignores it.
    pub fn slots(&mut self, slots: SlotMode) -> &mut Config {
        self.slots = slots;
        self
    }

    /// Sets how mode [`Ssa`](SlotMode::Ssa) promotes. All ways compute the same results. Those other than the default
    /// exist for comparison; their code is larger and takes longer to compile.
    pub fn promotion(&mut self, options: PromoteOptions) -> &mut Config {
        self.promotion = options;
        self
    }

    /// Lets mode [`Ssa`](SlotMode::Ssa) construct SSA form from bytecode in one pass, without promotion. Functions that
    /// are too large for it, or have references into the embedder's heap, are still promoted. It exists for comparison;
    /// results are the same.
    pub fn on_the_fly(&mut self, options: OnTheFly) -> &mut Config {
        self.on_the_fly = Some(options);
        self
    }

    /// Sets the optional passes that native code goes through, which are all by default. Results, traps with their places
    /// and fuel are the same with any of them. The set is for studying passes and for finding faults in them; its text
    /// form is that of `vmrun --passes`:
    ///
    /// ```
    /// use slotvm::{Config, Engine, PassSet};
    ///
    /// let passes: PassSet = "none".parse()?;
    /// let engine = Engine::new(Config::new().passes(passes))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn passes(&mut self, passes: PassSet) -> &mut Config {
        self.passes.usual = passes;
        self
    }

    /// Sets other passes for the first functions of each module, by their numbers in the function index space. It exists
    /// for `vmrun crosscheck`, which searches for the function that a fault is in.
    #[doc(hidden)]
    pub fn passes_by_function(&mut self, passes: impl Into<Arc<[PassSet]>>) -> &mut Config {
        self.passes.by_function = passes.into();
        self
    }

    /// Sets when [`Tier::Jit`] makes native code. The results are the same. With [`Compile::Lazy`] a function that cannot be
    /// compiled fails the call that first reaches it.
    pub fn compile(&mut self, when: Compile) -> &mut Config {
        self.compile = when;
        self
    }

    /// Sets after how many calls of a function, or rounds of a loop, [`Tier::Auto`] makes native code of it. With `None`,
    /// the default, that depends on what the code costs and what it saves, both estimated from its size.
    pub fn tier_thresholds(&mut self, thresholds: Option<TierThresholds>) -> &mut Config {
        self.tier_thresholds = thresholds;
        self
    }

    /// Sets thresholds of [`Tier::Auto`] for each function and loop by a random number, and by another one how much later
    /// than its threshold native code is there. For tests, together with [`TierCompilation::Synchronous`].
    #[doc(hidden)]
    pub fn tier_seed(&mut self, seed: u64) -> &mut Config {
        self.tier_seed = Some(seed);
        self
    }

    /// Lets native code of [`Tier::Auto`] leave for the interpreter in the place of random blocks, and lets it be made again
    /// after a random number of times or never. For tests.
    #[doc(hidden)]
    pub fn tier_exits(&mut self, seed: u64, is_made_again: bool) -> &mut Config {
        self.tier_exits = Some((seed, is_made_again));
        self
    }

    /// Sets in which threads [`Tier::Auto`] makes native code.
    pub fn tier_compilation(&mut self, compilation: TierCompilation) -> &mut Config {
        self.tier_compilation = compilation;
        self
    }

    /// Sets whether guest code consumes fuel, see [`Store::set_fuel`](crate::Store::set_fuel). A new store has none.
    pub fn consume_fuel(&mut self, consume: bool) -> &mut Config {
        self.consume_fuel = consume;
        self
    }

    /// Whether guest code can be interrupted by [`Engine::increment_epoch`](crate::Engine::increment_epoch):
    /// it traps with [`Interrupted`](crate::TrapCode::Interrupted), or asks a callback of the store, when
    /// the epoch reaches the store's [deadline](crate::Store::set_epoch_deadline). The deadline of a new store has
    /// passed.
    ///
    /// Code that can be interrupted polls at the start of each function, at backward branches, and after each MiB of a
    /// bulk operation. Host functions are not interrupted, but the guest is once they have returned.
    pub fn epoch_interruption(&mut self, enable: bool) -> &mut Config {
        self.epoch_interruption = enable;
        self
    }

    /// Sets how long a call from the host into guest code may take. Beyond that it traps with
    /// [`Interrupted`](crate::TrapCode::Interrupted) at the places that [`Config::epoch_interruption`] names, which
    /// need not be set. The outermost call counts: time in a host function that calls back is included.
    /// [`Store::set_timeout`](crate::Store::set_timeout) sets another time for a store.
    ///
    /// The engine watches the time itself, in a thread that starts with the first such call, sleeps while
    /// there is none, and ends when the engine and its stores are dropped.
    ///
    /// The time includes compilation. With [`Compile::Lazy`], other threads compile, so that a call that waits for a
    /// function also traps in time; so it does with [`Config::epoch_interruption`]. The compilation continues for the
    /// next call. At most four run at a time for a module, and dropping the module waits for them. If no thread can
    /// be started, the call fails with an error, and the next one tries again.
    ///
    /// ```
    /// use slotvm::{Config, Engine, Instance, Module, Store, TrapCode};
    /// use std::time::Duration;
    ///
    /// let engine = Engine::new(Config::new().timeout(Some(Duration::from_millis(20))))?;
    /// let module = Module::from_text(&engine, r#"
    ///     export "spin" func spin
    ///     func spin() { again: br again }"#)?;
    /// let mut store = Store::new(&engine, ());
    /// let instance = Instance::new(&mut store, &module, &[])?;
    /// let spin = instance.get_typed_func::<(), ()>(&store, "spin")?;
    /// let error = spin.call(&mut store, ()).unwrap_err();
    /// assert_eq!(error.trap_code(), Some(TrapCode::Interrupted));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn timeout(&mut self, timeout: Option<Duration>) -> &mut Config {
        self.timeout = timeout;
        self
    }

    /// Whether guest code polls.
    pub(crate) fn polls(&self) -> bool {
        self.epoch_interruption || self.timeout.is_some()
    }

    /// Makes the call stack deterministic if a number of cells is given: all tiers trap with
    /// [`StackOverflow`](crate::TrapCode::StackOverflow) when the frames of the active guest functions would exceed
    /// it. With `None` the native stack limits the depth.
    ///
    /// Guest code still stops at [`Config::max_native_stack`]; raise it if that comes first.
    pub fn deterministic_stack(&mut self, cells_max: Option<u64>) -> &mut Config {
        self.stack_cells_max = cells_max;
        self
    }

    /// Whether NaN results of arithmetic have the same bits on all machines and in all tiers.
    pub fn canonical_nans(&mut self, canonical: bool) -> &mut Config {
        self.canonical_nans = canonical;
        self
    }

    /// Sets how many bytes of the host's stack a call of guest code may use, in any tier, with all nested calls of host
    /// functions; 512 KiB by default. A thread with less stack allows less, and 192 KiB of it are left to
    /// host functions. Past that, guest code traps with [`StackOverflow`](crate::TrapCode::StackOverflow).
    pub fn max_native_stack(&mut self, bytes: usize) -> &mut Config {
        self.native_stack_bytes_max = bytes;
        self
    }

    /// Sets the address space of each linear memory. The default is enough that the module's accesses need no check;
    /// [`MemoryPlan::CHECKED`] takes as little as possible and checks each access.
    pub fn memory(&mut self, plan: Option<MemoryPlan>) -> &mut Config {
        self.memory = plan;
        self
    }

    /// Sets whether native code traps by faulting instructions, which is the default. The first such engine installs
    /// the process's handlers of `SIGSEGV`, `SIGBUS`, `SIGILL` and `SIGFPE`. Code that does not trap pays nothing.
    ///
    /// If not, no handler is installed for this engine, and its code executes no instruction that faults: it checks
    /// each access, division, conversion and call first, and traps by calling the runtime. Programs behave the same.
    /// Memories take as little address space as they can, unless [`Config::memory`] sets another. A function whose
    /// native frame exceeds 96 KiB (more than about 12,000 slots in memory) has no code: calling it is a
    /// [`StackOverflow`](crate::TrapCode::StackOverflow).
    ///
    /// The interpreter ignores it.
    pub fn signals_based_traps(&mut self, enable: bool) -> &mut Config {
        self.signals_based_traps = enable;
        self
    }

    /// The limits of each store.
    pub fn limits(&mut self, limits: Limits) -> &mut Config {
        self.limits = limits;
        self
    }

    /// Sets how profilers learn the names of native functions; by default they do not. File names contain the process
    /// id, and all engines of the process share the files. [`Engine::new`](crate::Engine::new) fails if they cannot
    /// be created.
    pub fn profiler(&mut self, strategy: ProfilingStrategy) -> &mut Config {
        self.profiler = strategy;
        self
    }

    /// Sets whether native code is registered with debuggers, through the interface of GDB and LLDB for code made at
    /// run time; off by default. They get the name and the address of each function and of the trampolines around
    /// host calls, the source places that the module has ([`slotvm_bytecode::module::Func::lines`]), calls that were inlined,
    /// and the locals with names, as DWARF 5: breakpoints accept names of guest functions and source lines, backtraces show
    /// both, and `info locals` shows values. Freed code is removed.
    ///
    /// A local has a value while code still needs it. Code that keeps slots in memory
    /// ([`SlotMode::Memory`]) has all of them at any time. In other code, which keeps no
    /// local for debuggers, one may be shown with a value that it gets a little later, or had until it was assigned that of another
    /// local; locals of inlined functions are not shown. The interpreter is not described; nor are the locals and lines of
    /// code that was precompiled or comes from a cache. Functions of WebAssembly are all translated when their module is made.
    ///
    /// The list that debuggers read belongs to the process, and has no lock. No other library that generates code may
    /// change it on another thread while modules of this engine are made or dropped. wasmtime changes it if its own
    /// `debug_info` is set, and so does LLVM's JIT.
    pub fn debug_info(&mut self, enable: bool) -> &mut Config {
        self.debug_info = enable;
        self
    }

    /// Sets whether several threads import, verify and compile the functions of a module: those of the caller's
    /// `rayon` pool, or of the global one, which is created if needed. The code is the same to the byte. Each thread
    /// needs the memory for compiling one function, and [`Module::timings`](crate::Module::timings) has the sum of the
    /// times of all threads.
    ///
    /// Off by default, unlike in wasmtime: after `fork` the threads of a pool are missing in the child, which then
    /// cannot compile. Has no effect without the feature `parallel-compilation`, which is on by default.
    pub fn parallel_compilation(&mut self, parallel: bool) -> &mut Config {
        self.parallel_compilation = parallel;
        self
    }

    /// Verifies functions after each stage and pass, by the verifiers of our IR and of Cranelift's. A violation is an
    /// error that names the stage. On in debug builds by default; costs about as much time as compiling.
    pub fn verify_passes(&mut self, verify: bool) -> &mut Config {
        self.verify_passes = verify;
        self
    }

    /// Sets a directory where native code is kept for the next process, none by default. What a module is given as bytes or
    /// as a file is looked up there by its hash and by all that its code depends on. If it is there, functions have their
    /// code when they are first called, and function bodies are not validated again.
    ///
    /// An engine that compiles whole modules ([`Compile::Eager`]) writes them as soon as they are compiled; calls in
    /// their code then go through a table, as with [`Compile::Lazy`]. Others write what the program has needed: a thread of
    /// the engine does, two seconds after there was more of it, and dropping the module writes the rest. A little more is
    /// not written, since a file is written whole.
    ///
    /// ```no_run
    /// use slotvm::{Cache, CacheConfig, Config, Engine, Module};
    ///
    /// let engine = Engine::new(Config::new().cache(Some(Cache::new(&CacheConfig::new())?)))?;
    /// let module = Module::from_file(&engine, "program.bc")?;
    /// # Ok::<(), slotvm::Error>(())
    /// ```
    pub fn cache(&mut self, cache: Option<Cache>) -> &mut Config {
        self.cache = cache;
        self
    }

    /// Sets the key by which precompiled modules are authenticated: [`Module::serialize`](crate::Module::serialize) and
    /// [`Engine::precompile_module`](crate::Engine::precompile_module) write a keyed hash (BLAKE3), and what has another one
    /// is not loaded. Whoever knows the key can have any code executed.
    pub fn code_key(&mut self, key: Option<[u8; 32]>) -> &mut Config {
        self.code_key = key.map(CodeKey);
        self
    }

    /// Sets whether faults of the compiler, panics among them, are errors like others. By default they are, except where
    /// debug assertions are on: there they panic, so that no test passes that has one. It exists for tests of the errors.
    #[doc(hidden)]
    pub fn contain_faults(&mut self, contain: bool) -> &mut Config {
        self.contain_faults = contain;
        self
    }

    /// Leaves this many bytes empty before the code of each module, except with [`Compile::Lazy`]. It exists for
    /// benchmarks, which measure how much the time of code depends on its address.
    #[doc(hidden)]
    pub fn code_offset(&mut self, bytes: usize) -> &mut Config {
        self.code_offset_bytes = bytes;
        self
    }

    /// Sets whether native code counts how often it executes each block, for reports; off by default, when code has nothing
    /// of it. [`Module::block_counts`](crate::Module::block_counts) reads the counters. Code that is kept or comes from a
    /// cache is not counted.
    pub fn count_blocks(&mut self, count: bool) -> &mut Config {
        self.count_blocks = count;
        self
    }

    /// The address space of each linear memory, `None` for what suits the module that defines it.
    pub(crate) fn memory_plan(&self) -> Option<MemoryPlan> {
        // Nothing relies on more.
        self.memory.or_else(|| (!self.signals_based_traps).then_some(MemoryPlan::CHECKED))
    }
}
