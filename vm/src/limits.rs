//! The limits of a module, each with its name. What exceeds one is refused by the loader or the
//! verifier with an error that names the limit; the interpreter and the compiler rely on them.

/// Bytes of a binary module.
pub const MODULE_BYTES_MAX: usize = 1 << 30;
/// Function types.
pub const TYPES_MAX: usize = 1_000_000;
/// Parameters of a function type.
pub const PARAMS_MAX: usize = 1_000;
/// Results of a function type.
pub const RESULTS_MAX: usize = 1_000;
/// Functions, imported ones included.
pub const FUNCS_MAX: usize = 1_000_000;
/// Imports.
pub const IMPORTS_MAX: usize = 1_000_000;
/// Exports.
pub const EXPORTS_MAX: usize = 1_000_000;
/// Globals, imported ones included.
pub const GLOBALS_MAX: usize = 1_000_000;
/// Tables, imported ones included.
pub const TABLES_MAX: usize = 100;
/// Elements that a table may start with.
pub const TABLE_ELEMS_MAX: u32 = 10_000_000;
/// Memories, imported ones included.
pub const MEMORIES_MAX: usize = 1;
/// Pages of a memory.
pub const MEMORY_PAGES_MAX: u32 = 65_536;
/// Element and data segments, each.
pub const SEGMENTS_MAX: usize = 100_000;
/// Elements of one element segment.
pub const SEGMENT_ELEMS_MAX: usize = 10_000_000;
/// Shapes.
pub const SHAPES_MAX: usize = 10_000_000;
/// Bytes of code of one function.
pub const CODE_BYTES_MAX: usize = 128 << 20;
/// Locals of one function, parameters included.
pub const LOCALS_MAX: usize = 50_000;
/// Labels of one function.
pub const LABELS_MAX: usize = 10_000_000;
/// Depth of the operand stack, in operands.
pub const STACK_OPERANDS_MAX: usize = 1_000_000;
/// Bytes of a name.
pub const NAME_BYTES_MAX: usize = 100_000;
/// Instructions of a constant expression.
pub const CONST_EXPR_INSTS_MAX: usize = 10_000;
