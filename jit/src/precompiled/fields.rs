//! Named values that code depends on: code runs only in an engine that has the same ones.

use std::fmt::Display;

use cranelift_codegen::isa::TargetIsa;
use slotvm_runtime::MemoryPlan;

use crate::compile::function::CompileOptions;
use crate::lower::Trapping;

/// Names and values, in a fixed order.
pub(crate) type Fields = Vec<(String, String)>;

/// The sources of the crates that make code, so that no version under development takes code of another.
const SOURCES: &str = env!("SLOTVM_SOURCES");

/// The fields of an engine's code.
pub(crate) fn of_engine(options: &CompileOptions, memory: Option<MemoryPlan>) -> Fields {
    // What is not named here does not change what code does and relies on.
    let CompileOptions { build, promotion, on_the_fly, passes, lower, .. } = options;
    let isa: &dyn TargetIsa = &*lower.isa;
    let mut fields = Fields::new();
    let mut add = |name: &str, value: &dyn Display| {
        fields.push((name.to_owned(), value.to_string()));
    };
    add("version", &env!("CARGO_PKG_VERSION"));
    add("sources", &SOURCES);
    add("Cranelift", &cranelift_codegen::VERSION);
    add("target", isa.triple());
    // Verified or not, described to debuggers or not.
    let without_effect = ["enable_verifier", "unwind_info"];
    for flag in isa.flags().iter().filter(|flag| !without_effect.contains(&flag.name)) {
        add(flag.name, &flag.value_string());
    }
    for flag in isa.isa_flags() {
        add(flag.name, &flag.value_string());
    }
    add("fuel", &build.fuel);
    add("deterministic stack", &build.stack_cells);
    add("polls", &build.polls);
    add("slots", &lower.slots);
    add("promotion", &format_args!("{promotion:?}"));
    add("construction", &format_args!("{on_the_fly:?}"));
    add("passes", &format_args!("{passes:?}"));
    // With the module, it decides on the address space that accesses rely on.
    add("memory", &format_args!("{memory:?}"));
    add("traps by signals", &(lower.trapping == Trapping::Signals));
    fields
}

/// The first field of an engine that a file has another value for, with the value there.
pub(crate) fn difference<'f>(
    engine: &'f Fields,
    file: &'f Fields,
) -> Option<(&'f str, &'f str, &'f str)> {
    let none = ("nothing", "");
    let n = engine.len().max(file.len());
    (0..n).find_map(|i| {
        let get = |fields: &'f Fields| {
            fields.get(i).map_or(none, |(name, value)| (name.as_str(), value.as_str()))
        };
        let (here, there) = (get(engine), get(file));
        let name = if here == none { there.0 } else { here.0 };
        let found = if here.0 == there.0 { there.1 } else { "nothing" };
        (here != there).then_some((name, here.1, found))
    })
}
