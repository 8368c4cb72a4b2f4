//! Configuration of an engine.

pub(crate) mod slot_mode;

use std::time::Duration;

use slotvm_runtime::{Limits, MemoryPlan};
use slotvm_ssa::construction::braun::BraunOptions;
use slotvm_ssa::construction::promote::PromoteOptions;

use crate::config::slot_mode::SlotMode;

/// The engine that runs guest code.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tier {
    /// The interpreter, which is the semantic reference.
    Interpreter,
    /// Native code, compiled when a module is made. A build without the feature `jit` has none, and
    /// [`Engine::new`](crate::Engine::new) fails.
    Jit,
}

impl Tier {
    /// The tiers that this build has.
    pub const ALL: &'static [Tier] = &[
        Tier::Interpreter,
        #[cfg(feature = "jit")]
        Tier::Jit,
    ];

    /// The fastest tier that this build has.
    pub const BEST: Tier = Tier::ALL[Tier::ALL.len() - 1];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Tier::Interpreter => "interpreter",
            Tier::Jit => "jit",
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
    /// All functions, when the module is made, which tells at once whether they can be compiled.
    #[default]
    Eager,
    /// Each function when it is first called, which is slower for that call, and for those that run, since
    /// calls go by way of a table; but a large program starts at once. Memory for code is taken page by
    /// page. If calls can be interrupted, so can those that wait for code, see [`Config::timeout`].
    Lazy,
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
    pub(crate) compile: Compile,
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
}

impl Default for Config {
    fn default() -> Config {
        Config {
            tier: Tier::BEST,
            slots: SlotMode::default(),
            promotion: PromoteOptions::default(),
            on_the_fly: None,
            compile: Compile::Eager,
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
        }
    }
}

impl Config {
    /// The default: the fastest tier of the build, no fuel, nothing deterministic beyond the semantics.
    pub fn new() -> Config {
        Config::default()
    }

    /// The engine that runs guest code.
    pub fn tier(&mut self, tier: Tier) -> &mut Config {
        self.tier = tier;
        self
    }

    /// Sets where native code keeps the slots of functions. The interpreter ignores it.
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

    /// Lets mode [`Ssa`](SlotMode::Ssa) make SSA form straight from bytecode, in one pass, in place of
    /// promotion, which is left to functions that are too large for it. It is there to compare with, and
    /// computes the same.
    pub fn on_the_fly(&mut self, options: OnTheFly) -> &mut Config {
        self.on_the_fly = Some(options);
        self
    }

    /// Sets when native code is compiled. The results are the same. With [`Compile::Lazy`] a function that cannot be
    /// compiled fails the call that first reaches it.
    pub fn compile(&mut self, when: Compile) -> &mut Config {
        self.compile = when;
        self
    }

    /// Whether guest code consumes fuel, see [`Store::set_fuel`](crate::Store::set_fuel). A store
    /// starts without any.
    pub fn consume_fuel(&mut self, consume: bool) -> &mut Config {
        self.consume_fuel = consume;
        self
    }

    /// Whether guest code can be interrupted by [`Engine::increment_epoch`](crate::Engine::increment_epoch):
    /// it traps with [`Interrupted`](crate::TrapCode::Interrupted), or asks a callback of the store, when
    /// the epoch has come to the store's [deadline](crate::Store::set_epoch_deadline). A store starts with
    /// a deadline that has come.
    ///
    /// Code that can be interrupted polls at the start of each function, where a branch leads back, and
    /// after each MiB of a bulk operation. So it is interrupted after a part of a function without loops at
    /// most; host functions are not interrupted, but the guest is when they have returned.
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
    /// Compiling counts. With [`Compile::Lazy`], functions are compiled by threads of their own, so that a call
    /// that waits for one traps in time, too; with [`Config::epoch_interruption`] as well. The compilation goes on
    /// for the next call. At most four run at a time for a module, and whoever drops the module waits for them.
    /// If the system makes no thread, the call fails with an error, and the next one tries again.
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

    /// Bytes of the host's stack that a call of guest code may use, in any tier, with all that host functions
    /// call below it; 512 KiB by default. A thread with less stack allows less, and 192 KiB of it are left to
    /// host functions. Past that, guest code traps with [`StackOverflow`](crate::TrapCode::StackOverflow).
    pub fn max_native_stack(&mut self, bytes: usize) -> &mut Config {
        self.native_stack_bytes_max = bytes;
        self
    }

    /// The address space of each linear memory. By default it suffices for the module's accesses to
    /// need no check; [`MemoryPlan::CHECKED`] takes as little as possible and checks each access.
    pub fn memory(&mut self, plan: Option<MemoryPlan>) -> &mut Config {
        self.memory = plan;
        self
    }

    /// Whether native code traps by instructions that fault, for which the process gets handlers of
    /// `SIGSEGV`, `SIGBUS`, `SIGILL` and `SIGFPE` with the first engine that wants them. It is the default,
    /// and costs nothing where nothing traps.
    ///
    /// Without, no handler is installed for this engine and its code executes no instruction that faults:
    /// it checks each access, division, conversion and call before, and traps by calling the runtime.
    /// Everything that a program can see stays the same. Memories take as little address space as they can
    /// unless [`Config::memory`] says otherwise. A function whose native frame takes more than 96 KiB,
    /// as those with more than some 12,000 slots in memory do, has no code: calling it is a
    /// [`StackOverflow`](crate::TrapCode::StackOverflow).
    ///
    /// The interpreter does not look at it.
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

    /// Whether native debuggers are shown native code, by the interface that GDB and LLDB have for code made
    /// at run time; they are not by default. They get the name and the place of each function and of
    /// the trampolines around calls of the host, and find callers: breakpoints take names of guest
    /// functions, and backtraces pass through them and name them. There are neither source lines nor
    /// variables. Code is not shown any more when it is freed.
    ///
    /// The list that debuggers read belongs to the process. The interface has no lock for those who make
    /// code, so no other such library of the process may change it, on another thread, while modules of
    /// this engine are made or dropped; wasmtime does so if its own `debug_info` is set, and LLVM's JIT.
    pub fn debug_info(&mut self, enable: bool) -> &mut Config {
        self.debug_info = enable;
        self
    }

    /// Whether the functions of a module are imported, verified and compiled by several threads: those of the
    /// pool of the crate `rayon` that the caller is in, or else of its global one, which is made if there is
    /// none. The code is the same to the byte. Each thread needs the memory that compiling one function takes, and
    /// [`Module::timings`](crate::Module::timings) has the sum of the times of all threads.
    ///
    /// It is off by default, other than in wasmtime: a process that has the threads of a pool cannot compile
    /// in a child of `fork`, where they are missing. Without the feature `parallel-compilation`, which is on by
    /// default, it has no effect.
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

    /// The address space of each linear memory, `None` for what suits the module that defines it.
    pub(crate) fn memory_plan(&self) -> Option<MemoryPlan> {
        // Nothing relies on more.
        self.memory.or_else(|| (!self.signals_based_traps).then_some(MemoryPlan::CHECKED))
    }
}
