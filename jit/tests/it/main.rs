//! Tests of the embedding API by programs in text form. Each test checks the interpreter and
//! in native code in all slot modes, if the build has native code; tests of nothing else are ignored without.

mod alone;
mod api;
mod backtraces;
mod bounds;
mod branch_hints;
mod builds;
mod cells;
mod cold;
#[cfg(feature = "jit")]
mod counts;
mod deadline;
#[cfg(feature = "jit")]
mod door;
#[cfg(feature = "jit")]
mod exits;
mod extend;
mod extremes;
#[cfg(feature = "jit")]
mod failures;
mod fork;
mod host;
mod hostile;
#[cfg(feature = "jit")]
mod inlined_exits;
mod interrupt;
mod layers;
#[cfg(feature = "jit")]
mod lazy;
mod leaf;
mod limiter;
mod limits;
mod linking;
#[cfg(feature = "jit")]
mod machine_code;
mod named_limits;
#[cfg(feature = "jit")]
mod pages;
mod places;
#[cfg(feature = "jit")]
mod precompiled;
mod roots;
mod safety;
#[cfg(feature = "jit")]
mod speculation;
mod stack;
mod support;
#[cfg(feature = "jit")]
mod tiers;
mod traps;
mod values;
#[cfg(feature = "jit")]
mod versions;
#[cfg(feature = "jit")]
mod waiting;
