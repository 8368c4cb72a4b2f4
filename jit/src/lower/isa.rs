//! The machine that code is compiled for, and Cranelift's settings.

use cranelift_codegen::isa::{self, OwnedTargetIsa, TargetIsa};
use cranelift_codegen::settings::{self, Configurable, Flags};
use slotvm_bytecode::ValType;
use slotvm_ssa::passes::pressure::PreservedRegisters;
use target_lexicon::{Architecture, Triple};

use crate::config::slot_mode::SlotMode;

/// The part of the configuration that Cranelift's settings depend on.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct IsaOptions {
    /// Decides the optimisation level.
    pub(crate) slots: SlotMode,
    /// Whether NaN results of arithmetic get canonical bits.
    pub(crate) canonical_nans: bool,
    /// Whether Cranelift checks its IR around its passes, which costs 35 to 50% of compile time.
    pub(crate) verify_clif: bool,
    /// Whether code is described to debuggers.
    pub(crate) describes_code: bool,
}

impl IsaOptions {
    /// The settings for a slot mode: Cranelift's verifier runs in debug builds only.
    pub(crate) fn new(slots: SlotMode) -> IsaOptions {
        let (canonical_nans, describes_code) = (false, false);
        IsaOptions { slots, canonical_nans, verify_clif: cfg!(debug_assertions), describes_code }
    }
}

/// Error of a machine that code cannot be made for.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum IsaError {
    /// Cranelift does not know the machine, or not in this build.
    #[error("native code is not supported on {triple}: {reason}")]
    Unsupported {
        /// The machine.
        triple: Triple,
        /// The reason.
        reason: String,
    },
}

/// The machine that this process runs on, with the features that it has.
pub(crate) fn host_isa(options: IsaOptions) -> Result<OwnedTargetIsa, IsaError> {
    let unsupported = |reason: &str| unsupported(Triple::host(), reason);
    finish(cranelift_native::builder().map_err(unsupported)?, options)
}

/// Returns the ISA of another machine, with the features that all of its kind have and that SIMD needs.
#[cfg(test)]
pub(crate) fn foreign_isa(triple: Triple, options: IsaOptions) -> Result<OwnedTargetIsa, IsaError> {
    let builder = isa::lookup(triple.clone());
    let mut builder = builder.map_err(|error| unsupported(triple.clone(), &error.to_string()))?;
    if triple.architecture == Architecture::X86_64 {
        for feature in ["has_sse3", "has_ssse3", "has_sse41"] {
            builder.enable(feature).expect("Cranelift knows the feature");
        }
    }
    finish(builder, options)
}

/// The registers of a machine that calls preserve.
pub(crate) fn preserved_registers(isa: &dyn TargetIsa) -> PreservedRegisters {
    match isa.triple().architecture {
        Architecture::Aarch64(_) => PreservedRegisters::AARCH64,
        _ => PreservedRegisters::X86_64,
    }
}

/// Settings of Cranelift in which code takes less time to make, as names and values.
pub(crate) type Settings = [(&'static str, &'static str)];

/// No optimiser.
pub(crate) const WITHOUT_OPTIMISER: &Settings = &[("opt_level", "none")];
/// No optimiser, and registers in one pass over the code.
pub(crate) const IN_ONE_PASS: &Settings =
    &[("opt_level", "none"), ("regalloc_algorithm", "single_pass")];
/// No list of the blocks of the machine code. Cranelift makes it in time quadratic in the number of adjacent blocks
/// that turn out to have no code.
pub(crate) const WITHOUT_BLOCKS: &Settings = &[("machine_code_cfg_info", "false")];

/// The same machine with these settings changed.
pub(crate) fn with_settings<'a>(
    isa: &dyn TargetIsa,
    settings: impl IntoIterator<Item = &'a (&'static str, &'static str)>,
) -> Result<OwnedTargetIsa, IsaError> {
    let triple = isa.triple().clone();
    let failed = |error: &dyn std::fmt::Display| unsupported(triple.clone(), &error.to_string());
    let mut builder = isa::lookup(triple.clone()).map_err(|error| failed(&error))?;
    for value in isa.isa_flags() {
        builder.set(value.name, &value.value_string()).map_err(|error| failed(&error))?;
    }
    let mut flags = cranelift_codegen::settings::builder();
    for value in isa.flags().iter() {
        flags.set(value.name, &value.value_string()).map_err(|error| failed(&error))?;
    }
    for (name, value) in settings {
        flags.set(name, value).map_err(|error| failed(&error))?;
    }
    builder.finish(Flags::new(flags)).map_err(|error| failed(&error))
}

fn unsupported(triple: Triple, reason: &str) -> IsaError {
    IsaError::Unsupported { triple, reason: reason.to_owned() }
}

fn finish(builder: isa::Builder, options: IsaOptions) -> Result<OwnedTargetIsa, IsaError> {
    let triple = builder.triple().clone();
    if triple.pointer_width().map_or(0, target_lexicon::PointerWidth::bits) != 64 {
        return Err(unsupported(triple, "its addresses do not have 64 bits"));
    }
    let isa = builder.finish(flags(options));
    isa.map_err(|error| unsupported(triple, &error.to_string()))
}

fn flags(options: IsaOptions) -> Flags {
    let on_off = |on: bool| if on { "true" } else { "false" };
    let opt_level = if options.slots == SlotMode::Memory { "none" } else { "speed" };
    let mut builder = settings::builder();
    let values = [
        ("opt_level", opt_level),
        ("enable_verifier", on_off(options.verify_clif)),
        ("enable_nan_canonicalization", on_off(options.canonical_nans)),
        // Backtraces follow frame pointers, and tail calls on x86-64 need them.
        ("preserve_frame_pointers", "true"),
        // Runtime functions of Cranelift's own may be farther away than a direct call reaches.
        ("use_colocated_libcalls", "false"),
        // Code is relocated in place, so absolute addresses do.
        ("is_pic", "false"),
        // Placement looks for loops.
        ("machine_code_cfg_info", "true"),
        // Backtraces go by frame pointers, and nothing unwinds through guest frames. Debuggers look at registers of callers.
        ("unwind_info", on_off(options.describes_code)),
    ];
    for (name, value) in values {
        builder.set(name, value).expect("the setting exists and takes the value");
    }
    Flags::new(builder)
}

/// Whether the machine can execute the instructions on vectors. Of those that Cranelift compiles for, only
/// x86-64 comes without some.
pub(crate) fn has_vectors(isa: &dyn TargetIsa) -> bool {
    let is_x86 = matches!(isa.triple().architecture, Architecture::X86_64);
    // SSE4.1 rounds and SSSE3 shuffles; SSE4.1 comes with the others, but flags can be set one by one.
    !is_x86 || isa.has_round() && isa.has_x86_pshufb_lowering()
}

/// Whether the back end may fold a load of all bytes of a type into the instruction that uses its value.
/// x86-64 has memory operands everywhere, aarch64 loads that extend.
pub(crate) fn folds_loads(isa: &dyn TargetIsa, ty: ValType) -> bool {
    match isa.triple().architecture {
        Architecture::Aarch64(_) => ty == ValType::I32,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_codegen::settings::OptLevel;

    #[test]
    fn the_optimiser_can_be_left_out() {
        let options = IsaOptions { canonical_nans: true, ..IsaOptions::new(SlotMode::Ssa) };
        let isa = host_isa(options).unwrap();
        assert_eq!(isa.flags().opt_level(), OptLevel::Speed);
        let plain = with_settings(&*isa, WITHOUT_OPTIMISER).unwrap();
        assert_eq!(plain.flags().opt_level(), OptLevel::None);
        assert!(plain.flags().enable_nan_canonicalization());
        assert!(plain.flags().preserve_frame_pointers());
        assert_eq!(plain.triple(), isa.triple());
        let values = |isa: &dyn TargetIsa| -> Vec<String> {
            isa.isa_flags().iter().map(ToString::to_string).collect()
        };
        assert_eq!(values(&*plain), values(&*isa));
    }
}
