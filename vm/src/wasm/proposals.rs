//! Which proposals the import knows, and which one a module needs that it does not know.

use wasmparser::{Validator, WasmFeatures};

/// What the import takes: WebAssembly 2.0, tail calls, extended constant expressions.
pub(super) const SUPPORTED: WasmFeatures = WasmFeatures::MVP
    .union(WasmFeatures::SIGN_EXTENSION)
    .union(WasmFeatures::SATURATING_FLOAT_TO_INT)
    .union(WasmFeatures::MULTI_VALUE)
    .union(WasmFeatures::BULK_MEMORY)
    .union(WasmFeatures::REFERENCE_TYPES)
    .union(WasmFeatures::MUTABLE_GLOBAL)
    .union(WasmFeatures::SIMD)
    .union(WasmFeatures::TAIL_CALL)
    .union(WasmFeatures::EXTENDED_CONST);

/// A proposal that the import does not know.
struct Unsupported {
    name: &'static str,
    feature: WasmFeatures,
    /// What it stands on.
    base: WasmFeatures,
}

const UNSUPPORTED: [Unsupported; 11] = {
    const fn on(name: &'static str, feature: WasmFeatures, base: WasmFeatures) -> Unsupported {
        Unsupported { name, feature, base }
    }
    const fn alone(name: &'static str, feature: WasmFeatures) -> Unsupported {
        on(name, feature, WasmFeatures::empty())
    }
    const REFERENCES: WasmFeatures = WasmFeatures::FUNCTION_REFERENCES;
    const CONTINUATIONS: WasmFeatures =
        REFERENCES.union(WasmFeatures::GC).union(WasmFeatures::EXCEPTIONS);
    [
        alone("relaxed SIMD", WasmFeatures::RELAXED_SIMD),
        alone("multiple memories", WasmFeatures::MULTI_MEMORY),
        alone("64-bit memories", WasmFeatures::MEMORY64),
        alone("threads", WasmFeatures::THREADS),
        alone("exception handling", WasmFeatures::EXCEPTIONS),
        alone("legacy exception handling", WasmFeatures::LEGACY_EXCEPTIONS),
        alone("typed function references", REFERENCES),
        on("garbage collection", WasmFeatures::GC, REFERENCES),
        alone("wide arithmetic", WasmFeatures::WIDE_ARITHMETIC),
        alone("custom page sizes", WasmFeatures::CUSTOM_PAGE_SIZES),
        on("stack switching", WasmFeatures::STACK_SWITCHING, CONTINUATIONS),
    ]
};

/// The proposals that a refused module needs to be valid; none if it is not valid with all of them.
///
/// The module is validated a few times over.
pub(super) fn missing(bytes: &[u8]) -> Vec<&'static str> {
    let is_valid = |features| Validator::new_with_features(features).validate_all(bytes).is_ok();
    let all = UNSUPPORTED.iter().fold(SUPPORTED, |all, proposal| all.union(proposal.feature));
    if !is_valid(all) {
        return Vec::new();
    }
    let suffices = |p: &&Unsupported| is_valid(SUPPORTED.union(p.feature).union(p.base));
    if let Some(proposal) = UNSUPPORTED.iter().find(suffices) {
        return vec![proposal.name];
    }
    // Several at once: those which cannot be left out.
    let needed = |proposal: &&Unsupported| !is_valid(all.difference(proposal.feature));
    UNSUPPORTED.iter().filter(needed).map(|proposal| proposal.name).collect()
}
