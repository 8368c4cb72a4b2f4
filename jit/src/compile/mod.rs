//! Compilation of verified bytecode: one function through all stages, all functions of a module, and the budget.

#[cfg(feature = "jit")]
mod attempts;
#[cfg_attr(
    not(feature = "jit"),
    expect(
        dead_code,
        unused_imports,
        reason = "builds without native code only have what it would tell"
    )
)]
pub(crate) mod budget;
#[cfg(feature = "jit")]
mod clif_text;
#[cfg(feature = "jit")]
pub(crate) mod contain;
#[cfg(feature = "jit")]
mod debug_code;
#[cfg(feature = "jit")]
pub(crate) mod error;
#[cfg_attr(not(feature = "jit"), allow(dead_code, reason = "nothing is compiled"))]
pub(crate) mod failure;
#[cfg(all(test, feature = "jit"))]
pub(crate) mod faults;
#[cfg(feature = "jit")]
pub(crate) mod folds;
#[cfg(feature = "jit")]
pub(crate) mod function;
pub(crate) mod function_info;
#[cfg(feature = "jit")]
mod hot_loop;
pub(crate) mod listing;
#[cfg(feature = "jit")]
pub(crate) mod parallel;
#[cfg(feature = "jit")]
mod passes;
#[cfg(feature = "jit")]
mod places;
#[cfg(feature = "jit")]
pub(crate) mod stack;
#[cfg_attr(not(feature = "jit"), allow(dead_code, reason = "nothing is compiled"))]
pub(crate) mod stats;
#[cfg_attr(not(feature = "jit"), allow(dead_code, reason = "nothing is compiled"))]
pub(crate) mod subject;
pub(crate) mod timings;
#[cfg(feature = "jit")]
pub(crate) mod workers;
