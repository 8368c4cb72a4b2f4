//! Which proposals the import knows, and which one a module needs that it does not know.

use wasmparser::{Validator, WasmFeatures};

/// What the import takes: WebAssembly 2.0 without vectors, tail calls, extended constant expressions.
pub(super) const SUPPORTED: WasmFeatures = WasmFeatures::MVP
    .union(WasmFeatures::SIGN_EXTENSION)
    .union(WasmFeatures::SATURATING_FLOAT_TO_INT)
    .union(WasmFeatures::MULTI_VALUE)
    .union(WasmFeatures::BULK_MEMORY)
    .union(WasmFeatures::REFERENCE_TYPES)
    .union(WasmFeatures::MUTABLE_GLOBAL)
    .union(WasmFeatures::TAIL_CALL)
    .union(WasmFeatures::EXTENDED_CONST);

/// Proposals that the import does not know, by name, each with those that it stands on.
const UNSUPPORTED: [(&str, WasmFeatures); 12] = [
    ("SIMD", WasmFeatures::SIMD),
    ("relaxed SIMD", WasmFeatures::SIMD.union(WasmFeatures::RELAXED_SIMD)),
    ("multiple memories", WasmFeatures::MULTI_MEMORY),
    ("64-bit memories", WasmFeatures::MEMORY64),
    ("threads", WasmFeatures::THREADS),
    ("exception handling", WasmFeatures::EXCEPTIONS),
    ("legacy exception handling", WasmFeatures::LEGACY_EXCEPTIONS),
    ("typed function references", WasmFeatures::FUNCTION_REFERENCES),
    ("garbage collection", WasmFeatures::FUNCTION_REFERENCES.union(WasmFeatures::GC)),
    ("wide arithmetic", WasmFeatures::WIDE_ARITHMETIC),
    ("custom page sizes", WasmFeatures::CUSTOM_PAGE_SIZES),
    ("stack switching", STACK_SWITCHING),
];

const STACK_SWITCHING: WasmFeatures = WasmFeatures::STACK_SWITCHING
    .union(WasmFeatures::FUNCTION_REFERENCES)
    .union(WasmFeatures::GC)
    .union(WasmFeatures::EXCEPTIONS);

/// The proposals that a refused module needs to be valid; none if it is not valid with all of them.
///
/// The module is validated a few times over.
pub(super) fn missing(bytes: &[u8]) -> Vec<&'static str> {
    let is_valid = |features| Validator::new_with_features(features).validate_all(bytes).is_ok();
    let all = UNSUPPORTED.iter().fold(SUPPORTED, |all, (_, features)| all.union(*features));
    if !is_valid(all) {
        return Vec::new();
    }
    if let Some((name, _)) = UNSUPPORTED.iter().find(|(_, f)| is_valid(SUPPORTED.union(*f))) {
        return vec![name];
    }
    // Several at once: those which cannot be left out.
    let needed = |&&(_, features): &&(&str, WasmFeatures)| !is_valid(all.difference(features));
    UNSUPPORTED.iter().filter(needed).map(|&(name, _)| name).collect()
}
