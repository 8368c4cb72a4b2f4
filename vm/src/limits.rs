//! Named limits of a module.
//!
//! The loader or the verifier rejects a module that exceeds one, with an error that names the limit. The
//! interpreter and the compiler rely on them.

macro_rules! limits {
    ($($name:ident: $ty:ident = $max:literal $doc:literal;)*) => {
        $(#[doc = $doc] pub const $name: $ty = $max;)*

        /// All limits: name, maximum, description.
        pub const ALL: &[(&str, u64, &str)] = &[$((stringify!($name), $name as u64, $doc)),*];
    };
}

limits! {
    MODULE_BYTES_MAX: usize = 1_073_741_824 "Bytes of a binary module.";
    TYPES_MAX: usize = 1_000_000 "Function types.";
    PARAMS_MAX: usize = 1_000 "Parameters of a function type.";
    RESULTS_MAX: usize = 1_000 "Results of a function type.";
    FUNCS_MAX: usize = 1_000_000 "Functions, imported ones included.";
    IMPORTS_MAX: usize = 1_000_000 "Imports.";
    EXPORTS_MAX: usize = 1_000_000 "Exports.";
    GLOBALS_MAX: usize = 1_000_000 "Globals, imported ones included.";
    TABLES_MAX: usize = 100 "Tables, imported ones included.";
    MEMORIES_MAX: usize = 1 "Memories, imported ones included.";
    MEMORY_PAGES_MAX: u32 = 65_536 "Pages of a memory.";
    SEGMENTS_MAX: usize = 100_000 "Element and data segments, each.";
    SEGMENT_ELEMS_MAX: usize = 10_000_000 "Elements of one element segment.";
    SHAPES_MAX: usize = 10_000_000 "Shapes.";
    CODE_BYTES_MAX: usize = 134_217_728 "Bytes of code of one function.";
    MODULE_LOCALS_MAX: usize = 2_000_000 "Locals of all functions that a module defines. A few bytes can declare many, and each takes 16 bytes of memory once it is verified.";
    LOCALS_MAX: usize = 60_000 "Locals of one function, parameters included.";
    LABELS_MAX: usize = 10_000_000 "Labels of one function.";
    STACK_OPERANDS_MAX: usize = 1_000_000 "Depth of the operand stack, in operands.";
    NAME_BYTES_MAX: usize = 100_000 "Bytes of a name.";
    KEPT_OPERANDS_MAX: usize = 1_000 "Operands that a `br_keep` keeps.";
    IMPORT_STACKS_MAX: usize = 65_536 "Operands on the stack of a function that the WebAssembly import meets, and distinct operand stacks at its labels or at those of all functions, in excess of one for each byte of the code. A call of two bytes can make a thousand.";
    CONST_EXPR_INSTS_MAX: usize = 10_000 "Instructions of a constant expression.";
}
