//! slotvm: a JIT for stack machines, and the API by which programs embed it.
//!
//! The names are those of wasmtime, on purpose. A front end emits bytecode by a [`builder`], as `.bc` or as text, and
//! this API runs it:
//!
//! ```
//! use slotvm::{Caller, Engine, Linker, Module, Store};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let engine = Engine::default();
//!     let module = Module::from_text(&engine, r#"
//!         import "env" "print" func print(i64)
//!         export "squares" func squares
//!         func squares(n: i64) {
//!           local i: i64
//!         next:
//!           local.get i  local.get i  i64.mul  call print
//!           local.get i  i64.const 1  i64.add  local.tee i
//!           local.get n  i64.lt_s  br_if next
//!           return
//!         }"#)?;
//!     let mut linker = Linker::new(&engine);
//!     linker.func_wrap("env", "print", |mut caller: Caller<'_, Vec<i64>>, n: i64| {
//!         caller.data_mut().push(n);
//!     })?;
//!     let mut store = Store::new(&engine, Vec::new());
//!     let instance = linker.instantiate(&mut store, &module)?;
//!     let squares = instance.get_typed_func::<i64, ()>(&store, "squares")?;
//!     squares.call(&mut store, 5)?;
//!     assert_eq!(store.data(), &[0, 1, 4, 9, 16]);
//!     Ok(())
//! }
//! ```
//!
//! # Overview
//!
//! * An [`Engine`] has a [`Config`]: the [`Tier`] that runs guest code, the place of slots in native code
//!   ([`SlotMode`]), fuel and limits.
//! * A [`Module`] is loaded, verified, built as IR, promoted to SSA, lowered to Cranelift's IR (`lower`), compiled
//!   (`compile`) and placed into executable memory (`code`, which alone uses cranelift-jit).
//! * A [`Store`] has the state of running programs. A [`Linker`] makes an [`Instance`] of a module, whose exports are
//!   functions ([`Func`], [`TypedFunc`]), a [`Memory`], a [`Table`] or a [`Global`].
//! * A call from the host enters native code through a trampoline. A fault there arrives as a signal and becomes a
//!   [`Trap`] with its place in the bytecode; code without signals calls the runtime instead. Host functions get a
//!   [`Caller`].
//! * Machines that own their memory use the low-level API, [`raw`]: C functions by their addresses, without store,
//!   instance and linker.
//!
//! # Times and spans
//!
//! [`Module::timings`] has the time of each stage of the [pipeline](slotvm_ssa::pipeline), [`Module::functions`] the
//! sizes that they made. The stages are also spans of the crate `tracing`, by the same names; without a subscriber
//! they cost some 80 instructions a function. Stages of a whole module (`load`, `verify`, `place`) are at level debug,
//! as are `compile`, which encloses the work on functions, and `instantiate`. Stages of a function are at level trace,
//! enclosed by `function` with its number and name; so is `budget`, the choice of an effort level. With [`Tier::Auto`]
//! an event of the target `slotvm::tiers`, at level debug, says what native code was made of, why, what it cost, and when
//! that is paid back, and of newer versions how often the one before was left; `vmrun --tier-log` prints it.
//!
//! # Compilations that fail
//!
//! [`Module::compile_stats`] and [`Engine::compile_stats`] count compilations, and those that failed by their reason
//! ([`CompileFailure`]): a budget that a module exceeds, or a bug in slotvm. With [`Tier::Auto`] what was not compiled stays
//! interpreted. An event of the target `slotvm::compile` names the function: at level error if the reason is a bug.
//!
//! A panic of the compiler is such a bug. It is caught and becomes an error, in every thread, and never unwinds into the
//! embedder. The process's panic hook is called first, as for any panic; the library does not change it. With
//! `panic = "abort"` nothing is caught, and the process ends. Builds with debug assertions panic at the next occasion: where
//! code is compiled, or when the module is dropped.
//!
//! # Builds without native code
//!
//! The feature `jit` is on by default. Without it there is no dependency on Cranelift, and the API stays the same.
//! Engines interpret, which is then the default tier. [`Tier::Auto`], [`Tier::Jit`] and a
//! [`raw::Compiler`] are errors. [`Module::functions`] is empty, and [`Module::clif`], [`Module::asm`] and
//! [`Module::machine_code`] return `None`.

mod api;
#[cfg(feature = "jit")]
mod code;
mod compile;
mod config;
#[cfg(feature = "jit")]
mod lower;
mod native;
#[cfg(feature = "jit")]
mod precompiled;
pub mod raw;
#[cfg(all(test, feature = "jit"))]
mod soak_tests;

pub use api::caller::Caller;
pub use api::engine::{Engine, VERSION, host_target};
pub use api::externs::{Extern, Global, Memory, MemoryAccessError, MemoryValue, Table};
pub use api::func::Func;
pub use api::host_func::{HostFunc, IntoFunc};
pub use api::instance::Instance;
pub use api::leaf::{LeafFunc, LeafFunction};
#[doc(hidden)]
pub use api::linker::HostCallObserver;
pub use api::linker::{InstancePre, Linker, UnknownImportError};
pub use api::module::Module;
pub use api::rooted::{RootScope, Rooted};
pub use api::store::{AsContext, AsContextMut, Store, StoreContext, StoreContextMut};
pub use api::typed::{HostResults, Scalar, TypedFunc, Values};
pub use api::types::{ExportType, ExternType, ImportType};
pub use api::val::{ExternRef, V128, Val};
pub use compile::failure::CompileFailure;
pub use compile::stats::CompileStats;
#[doc(hidden)]
pub use compile::subject::{Subject as CompileSubject, compiling};
pub use compile::timings::Timings;
pub use config::slot_mode::{ParseSlotModeError, SlotMode};
pub use config::{
    Cache, CacheConfig, Compile, Config, ProfilingStrategy, Tier, TierCompilation, TierThresholds,
};
pub use native::ownership::engine::CRANELIFT_VERSION;
/// The bytecode: modules as data, their binary and text form, the verifier, opcodes.
pub use slotvm_bytecode as bytecode;
pub use slotvm_bytecode::module::{
    ConstExpr, ElemItems, GlobalType, ImportCall, MemoryType, SegmentMode, TableType,
};
pub use slotvm_bytecode::{
    BranchHint, CustomTrap, FuncType, Imm, Module as Bytecode, Op, SourcePlace, TrapCode, ValType,
    VerifiedModule, VerifyError, builder,
};
/// The runtime below this API, for tools that look deeper.
pub use slotvm_runtime as runtime;
pub use slotvm_runtime::{
    Backtrace, Error, Frame, HostError, Limits, LinkError, MemoryPlan, ResourceLimiter,
    StoreLimits, StoreLimitsBuilder, Trap, UpdateDeadline,
};
/// The compiler's IR and passes, for tools and for front ends that make functions in slot form ([`raw`]).
pub use slotvm_ssa as ssa;
pub use slotvm_ssa::pipeline::{ParsePassSetError, PassSet};

/// Details of the compiler for those who study it: ways to SSA form, and the outcome and cost of each function.
///
/// Embedders need none of it. [`Config::promotion`] and [`Config::on_the_fly`] choose a way to SSA form;
/// [`Module::functions`] has how each function was compiled, [`Module::machine_code`] its machine code, and
/// [`Module::block_counts`] the number of executions of its blocks.
pub mod compiler {
    pub use slotvm_ssa::construction::braun::BraunOptions;
    pub use slotvm_ssa::construction::construct::{
        Construction, Placement, Renaming, SlotCounts, TooLarge,
    };
    pub use slotvm_ssa::construction::promote::{PromoteOptions, PromotionReport};

    pub use crate::compile::budget::{Cause, Effort, Excess, Work, WorkCounts};
    pub use crate::compile::function_info::{FunctionInfo, Sizes};
    pub use crate::compile::listing::{
        BytecodePlace, CodeCall, CodeFrame, CodeRange, CodeRelocation, CodeTarget, CodeTrap,
        FunctionCode,
    };
    pub use crate::config::OnTheFly;
    pub use crate::config::counts::{BlockCounts, FunctionCounts};
    #[doc(hidden)]
    pub use crate::config::executions::{Executions, FunctionExecutions};
}

/// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

/// Compiles and runs the Rust of the guide.
#[cfg(doctest)]
pub mod guide {
    /// Embedding.
    #[doc = include_str!("../../docs/guide/src/embedding.md")]
    pub struct Embedding;

    /// The bytecode.
    #[doc = include_str!("../../docs/guide/src/bytecode.md")]
    pub struct Bytecode;
}
