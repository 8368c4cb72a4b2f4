//! Supported proposals, and the unsupported ones that a module needs.

use wasmparser::{BinaryReaderError, Validator, WasmFeatures};

/// The supported features: WebAssembly 2.0, tail calls, extended constant expressions, wide arithmetic.
pub(super) const SUPPORTED: WasmFeatures = WasmFeatures::MVP
    .union(WasmFeatures::SIGN_EXTENSION)
    .union(WasmFeatures::SATURATING_FLOAT_TO_INT)
    .union(WasmFeatures::MULTI_VALUE)
    .union(WasmFeatures::BULK_MEMORY)
    .union(WasmFeatures::REFERENCE_TYPES)
    .union(WasmFeatures::MUTABLE_GLOBAL)
    .union(WasmFeatures::SIMD)
    .union(WasmFeatures::TAIL_CALL)
    .union(WasmFeatures::EXTENDED_CONST)
    .union(WasmFeatures::WIDE_ARITHMETIC);

/// A proposal that the import does not support.
struct Unsupported {
    name: &'static str,
    feature: WasmFeatures,
    /// The proposals that it builds on.
    base: WasmFeatures,
}

const UNSUPPORTED: [Unsupported; 16] = {
    const fn on(name: &'static str, feature: WasmFeatures, base: WasmFeatures) -> Unsupported {
        Unsupported { name, feature, base }
    }
    const fn alone(name: &'static str, feature: WasmFeatures) -> Unsupported {
        on(name, feature, WasmFeatures::empty())
    }
    const REFERENCES: WasmFeatures = WasmFeatures::FUNCTION_REFERENCES;
    const OBJECTS: WasmFeatures = REFERENCES.union(WasmFeatures::GC);
    const CONTINUATIONS: WasmFeatures = OBJECTS.union(WasmFeatures::EXCEPTIONS);
    const SHARED: WasmFeatures = OBJECTS.union(WasmFeatures::THREADS);
    [
        alone("relaxed SIMD", WasmFeatures::RELAXED_SIMD),
        alone("multiple memories", WasmFeatures::MULTI_MEMORY),
        alone("64-bit memories", WasmFeatures::MEMORY64),
        alone("threads", WasmFeatures::THREADS),
        alone("exception handling", WasmFeatures::EXCEPTIONS),
        alone("legacy exception handling", WasmFeatures::LEGACY_EXCEPTIONS),
        alone("typed function references", REFERENCES),
        on("garbage collection", WasmFeatures::GC, REFERENCES),
        alone("custom page sizes", WasmFeatures::CUSTOM_PAGE_SIZES),
        alone("compact imports", WasmFeatures::COMPACT_IMPORTS),
        alone("memory control", WasmFeatures::MEMORY_CONTROL),
        on("stack switching", WasmFeatures::STACK_SWITCHING, CONTINUATIONS),
        on("shared-everything threads", WasmFeatures::SHARED_EVERYTHING_THREADS, SHARED),
        on("acquire-release atomics", WasmFeatures::ACQUIRE_RELEASE_ATOMICS, SHARED),
        on("multibyte array access", WasmFeatures::MULTIBYTE_ARRAY_ACCESS, OBJECTS),
        on("custom descriptors", WasmFeatures::CUSTOM_DESCRIPTORS, OBJECTS),
    ]
};

/// Returns the proposals that a rejected module needs to be valid.
///
/// Validates the module several times.
///
/// # Errors
/// Fails if the module is invalid with all of them, too: then its first error under some may be that one of the others is not
/// enabled, while the error under all is what is wrong with it.
pub(super) fn missing(bytes: &[u8]) -> Result<Vec<&'static str>, BinaryReaderError> {
    let validate = |features| Validator::new_with_features(features).validate_all(bytes);
    let is_valid = |features| validate(features).is_ok();
    let all = UNSUPPORTED.iter().fold(SUPPORTED, |all, proposal| all.union(proposal.feature));
    validate(all)?;
    let suffices = |p: &&Unsupported| {
        let is_enough = is_valid(SUPPORTED.union(p.feature).union(p.base));
        is_enough && (p.base.is_empty() || !is_valid(SUPPORTED.union(p.base)))
    };
    if let Some(proposal) = UNSUPPORTED.iter().find(suffices) {
        return Ok(vec![proposal.name]);
    }
    // The module needs several at once: name those that cannot be left out.
    let needed = |proposal: &&Unsupported| !is_valid(all.difference(proposal.feature));
    Ok(UNSUPPORTED.iter().filter(needed).map(|proposal| proposal.name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each module feature that wasmparser can validate is either supported or rejected by name.
    #[test]
    fn every_feature_of_the_validator_has_a_name_here() {
        let named = UNSUPPORTED.iter().fold(SUPPORTED, |all, proposal| all.union(proposal.feature));
        for (name, feature) in WasmFeatures::all().iter_names() {
            let is_of_components = name == "COMPONENT_MODEL" || name.starts_with("CM");
            assert!(is_of_components || named.contains(feature), "{name}");
        }
        assert!(UNSUPPORTED.iter().all(|proposal| !SUPPORTED.contains(proposal.feature)));
    }
}
