//! The embedding API of slotvm.

#[cfg(feature = "jit")]
mod abi;
#[cfg(feature = "jit")]
mod activation;
#[cfg(feature = "jit")]
mod code;
#[cfg(feature = "jit")]
mod compile;
#[cfg(feature = "jit")]
mod isa;
#[cfg(feature = "jit")]
mod lower;
#[cfg(all(test, feature = "jit"))]
mod native_tests;
#[cfg(feature = "jit")]
mod pctable;
#[cfg(feature = "jit")]
mod registry;
#[cfg(feature = "jit")]
mod signals;
mod slot_mode;
#[cfg(feature = "jit")]
mod stack;
#[cfg(feature = "jit")]
mod trampoline;

pub use slot_mode::{ParseSlotModeError, SlotMode};
